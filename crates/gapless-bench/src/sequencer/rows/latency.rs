//! Round trips from a node to the sequencer and back, one message in flight.

use super::{FinishedRow, RoleFigures, config, node_assignment, note_mtu, note_stream, per_second, round};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::histogram::{LatencyHistogram, RecordedRun};
use crate::resources::stolen_ns;
use crate::sequencer::accounting::verify_accounts;
use crate::sequencer::arguments::StreamTransport;
use crate::sequencer::plan::{LatencyPlan, SequencerRunPlan};
use crate::sequencer::slices::slices;
use crate::sequencer::stream_under_test::{SequencerPlan, StreamUnderTest, floor, journaled_bytes, own_directory};
use gapless_load::sequencer::protocol::{
    NodeAssignment, NodeReady, NodeRole, Participant, ProcessCost, RoundTripResult,
};
use gapless_measure::affinity::pair_of_cores;
use gapless_measure::reporting::{is_set, word};
use gapless_measure::{CpuPerMessage, FloorRow, Row};
use gapless_wire::mold;
use gapless_wire::mtu::Mtu;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Repeats with new processes, each time with the floor right before: addresses in memory and other work of the machine
/// change more than the measured differences.
pub(in crate::sequencer) fn measure(
    plan: &SequencerRunPlan,
    of: &LatencyPlan,
    number: usize,
    interrupted: &AtomicBool,
) -> Result<FinishedRow> {
    let mut row =
        Row { config: config(plan, "latency", of.transport, of.payload_bytes, of.messages), ..Row::default() };
    note_mtu(&mut row, of.mtu);
    let repetitions = of.repetitions.min(of.messages).max(1);
    let (mut all, mut measured): (Vec<Repetition>, u64) = (Vec::new(), 0);
    for repetition in 0..repetitions {
        let messages = of.messages * (repetition + 1) / repetitions - of.messages * repetition / repetitions;
        match once(plan, of, messages, (number, &mut row), interrupted) {
            Ok(repetition) => all.push(repetition),
            Err(_) if is_set(interrupted) && !all.is_empty() => {
                row.notes.push(format!("interrupted: {} of {repetitions} repetitions", all.len()));
                break;
            }
            Err(error) => return Err(error),
        }
        measured += all.last().map_or(0, |repetition| repetition.trips.measured);
    }

    let mut latencies = LatencyHistogram::new();
    all.iter().for_each(|each| latencies.merge(&each.trips.latencies));
    let sum = |of: fn(&Repetition) -> u64| all.iter().map(of).sum::<u64>();
    let elapsed_ns = sum(|each| each.trips.elapsed_ns);
    row.latency_ns = latencies.latency_ns();
    row.sent = Some(measured);
    row.elapsed_ns = Some(elapsed_ns);
    let handled = sum(|each| each.handled);
    let mut sequencer = RoleFigures { role: "sequencer".to_owned(), handled, ..RoleFigures::default() };
    let costs: Option<Vec<ProcessCost>> = all.iter().map(|each| each.cost).collect();
    if let Some(costs) = &costs {
        sequencer = sequencer.with_cpu(costs.iter().map(|cost| cost.cpu_ns).sum(), handled);
        sequencer.peak_memory_bytes = costs.iter().map(|cost| cost.peak_memory_bytes).max();
    }
    let node = RoleFigures { role: "node 1".to_owned(), sent: measured, handled: measured, ..RoleFigures::default() };
    let mut node = node.with_rate(measured, elapsed_ns).with_cpu(sum(|each| each.trips.cpu_ns), measured);
    node.peak_memory_bytes = all.iter().map(|each| each.trips.account.peak_memory_bytes).max();
    node.resent = sum(|each| each.trips.account.resent);
    node.requested = sum(|each| each.trips.account.requested);
    if let (Some(service), Some(driver)) = (sequencer.cpu_ns_per_message, node.cpu_ns_per_message) {
        row.cpu_ns_per_message = Some(CpuPerMessage { driver, service });
    }
    row.peak_memory_bytes = Some(node.peak_memory_bytes.unwrap_or(0) + sequencer.peak_memory_bytes.unwrap_or(0));
    row.extra.insert("round_trips_per_s".to_owned(), round(per_second(measured, elapsed_ns)).into());
    row.extra.insert("slices".to_owned(), serde_json::to_value(slices(&latencies))?);
    row.extra.insert("roles".to_owned(), serde_json::to_value([sequencer, node])?);
    if let Some(stolen) = all.iter().map(|each| each.stolen_ns).sum::<Option<u64>>() {
        row.extra.insert("stolen_ns".to_owned(), stolen.into());
    }
    let floors = compare(&mut row, &mut all)?;
    let ratios = row.extra.get("floor_ratios").and_then(|ratios| ratios.as_array()).map(Vec::len);
    let has_all_repetitions = ratios == Some(repetitions as usize);
    let is_judged = plan.has_targets && has_all_repetitions;
    if let Some((ratio, ratio_max)) = row.floor_ratio.zip(of.ratio_max).filter(|_| is_judged) {
        row.extra.insert("floor_ratio_max".to_owned(), ratio_max.into());
        row.extra.insert("target_met".to_owned(), (ratio <= ratio_max).into());
    }
    row.config.extra.insert("in_flight".to_owned(), 1.into());
    row.config.extra.insert("repetitions".to_owned(), all.len().into());
    if all.len() < repetitions as usize {
        row.config.count = Some(measured);
    }
    let tag = format!("latency {} {}", word(of.transport), of.payload_bytes);
    let began = all[0].began;
    Ok(FinishedRow { row, floors, latencies: vec![(tag, RecordedRun::of_one_interval(latencies, elapsed_ns), began)] })
}

struct Repetition {
    floors: Vec<FloorRow>,
    trips: RoundTripResult,
    handled: u64,
    cost: Option<ProcessCost>,
    stolen_ns: Option<u64>,
    began: SystemTime,
}

fn once(
    plan: &SequencerRunPlan,
    of: &LatencyPlan,
    messages: u64,
    (number, row): (usize, &mut Row),
    interrupted: &AtomicBool,
) -> Result<Repetition> {
    let directory = own_directory(plan, number)?;
    let floors = floors(plan, of, &mut row.notes);
    let (node_cpu, sequencer_cpu) = if plan.running.is_some() { (None, None) } else { pair_of_cores().unzip() };
    let threads = if sequencer_cpu.is_some() { "min" } else { "default" };
    let sequencer = SequencerPlan {
        transport: of.transport,
        mtu: of.mtu,
        batch: true,
        rewinds: false,
        plan: threads,
        for_throughput: false,
        cpu: sequencer_cpu,
        journaled_bytes: journaled_bytes(of.warm_up + messages, of.payload_bytes),
    };
    let mut stream_under_test = StreamUnderTest::open(plan, directory, sequencer, interrupted)?;
    let role = NodeRole::RoundTrips { warm_up: of.warm_up, messages, time_limit_ms: of.time_limit_ms };
    let assignment = NodeAssignment {
        cpu: node_cpu,
        mtu: of.mtu.map(Mtu::bytes),
        ..node_assignment(&stream_under_test, of.payload_bytes, role)
    };
    let spins = assignment.spins;
    let mut node = stream_under_test.node("node 1", assignment)?;
    let participant = Participant {
        session: node.receive_while::<NodeReady>(&mut || stream_under_test.check_running())?.session,
        payload_bytes: of.payload_bytes,
    };
    let (cost_before, stolen_before, began) = (stream_under_test.cost()?, stolen_ns(), SystemTime::now());
    let trips: RoundTripResult = node.receive_while(&mut || stream_under_test.check_running())?;
    let (cost, stolen) = (stream_under_test.cost()?, stolen_ns());
    stream_under_test.finish(node)?;
    let journal = stream_under_test.stop(&[participant])?;

    let extra = &mut row.config.extra;
    extra.insert("node_wait".to_owned(), if spins { "spin" } else { "yield" }.into());
    if let (Some(node), Some(sequencer)) = (node_cpu, sequencer_cpu) {
        extra.insert("cpus".to_owned(), serde_json::json!({"node": node, "sequencer": sequencer}));
        row.config.cpu = Some(threads.to_owned());
    }
    let handled = trips.warmed_up + trips.measured;
    if trips.measured < messages {
        let (measured, limit_ms) = (trips.measured, of.time_limit_ms);
        row.notes.push(format!("{measured} of {messages} round trips in the {limit_ms} ms of a repetition"));
    }
    let so_far = (row.lost.unwrap_or(0), row.duplicated.unwrap_or(0), row.verified.unwrap_or(true));
    verify_accounts(row, &[handled], &[("node 1", &trips.account)], journal.as_ref());
    row.lost = row.lost.map(|lost| lost + so_far.0);
    row.duplicated = row.duplicated.map(|duplicated| duplicated + so_far.1);
    row.verified = row.verified.map(|verified| verified && so_far.2);
    note_stream(row, &mut stream_under_test);
    let cost =
        cost_before.zip(cost).map(|(before, after)| ProcessCost { cpu_ns: after.cpu_ns - before.cpu_ns, ..after });
    let stolen_ns = stolen_before.zip(stolen).map(|(before, after)| after - before);
    Ok(Repetition { floors, trips, handled, cost, stolen_ns, began })
}

/// Takes the median ratio of all repetitions to their floors, and shows the floors of that repetition.
fn compare(row: &mut Row, all: &mut [Repetition]) -> Result<Vec<FloorRow>> {
    let ratio_of = |each: &Repetition| {
        let mut alone = Row { latency_ns: each.trips.latencies.latency_ns(), ..Row::default() };
        alone.compare_with(each.floors.first()?);
        Some((alone.floor_ratio?, alone.floor_name))
    };
    let mut ratios: Vec<_> = all.iter().enumerate().filter_map(|(at, each)| Some((ratio_of(each)?, at))).collect();
    ratios.sort_by(|((one, _), _), ((other, _), _)| one.total_cmp(other));
    let Some(((ratio, name), middle)) = ratios.get(ratios.len() / 2).cloned() else { return Ok(Vec::new()) };
    row.floor_ratio = Some(ratio);
    row.floor_name = name;
    let ratios: Vec<f64> = ratios.into_iter().map(|((ratio, _), _)| ratio).collect();
    row.extra.insert("floor_p50_ns".to_owned(), all[middle].floors[0].p50_ns.into());
    row.extra.insert("floor_ratios".to_owned(), serde_json::to_value(ratios)?);
    Ok(std::mem::take(&mut all[middle].floors))
}

fn floors(plan: &SequencerRunPlan, of: &LatencyPlan, notes: &mut Vec<String>) -> Vec<FloorRow> {
    let frame = of.payload_bytes as u64 + HEADER_BYTES;
    let packet = frame + (mold::HEADER_LENGTH + mold::BLOCK_HEADER_LENGTH) as u64;
    let items: &[_] = match of.transport {
        StreamTransport::SharedMemory => &[(FloorKind::ShmPingPong, frame)],
        StreamTransport::Tcp => &[(FloorKind::TcpRoundTrip, frame)],
        StreamTransport::Udp | StreamTransport::Multicast => {
            &[(FloorKind::UdpRoundTrip, packet), (FloorKind::UdpRoundTripUnconnected, packet)]
        }
    };
    items.iter().filter_map(|&(kind, bytes)| floor(plan, kind, bytes, notes)).collect()
}
