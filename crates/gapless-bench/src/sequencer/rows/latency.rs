//! Round trips from a node to the sequencer and back, one message in flight.

use super::{Finished, RoleFigures, config, histogram, node_order, note_scene, per_second, recorded, round};
use crate::Result;
use crate::affinity::pair_of_cores;
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::report::{CpuPerMessage, FloorRow, Row};
use crate::resources::stolen_ns;
use crate::sequencer::accounting::judge;
use crate::sequencer::order::{NodeOrder, Participant, Ready, Role, RoundTrips};
use crate::sequencer::plan::{LatencyPlan, Plan, Transport};
use crate::sequencer::scene::{Place, Scene, SequencerPlan, floor, journaled_bytes};
use crate::sequencer::slices::slices;
use gapless::wire::mold;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Measures one row.
pub(in crate::sequencer) fn measure(
    plan: &Plan,
    of: &LatencyPlan,
    number: usize,
    interrupted: &AtomicBool,
) -> Result<Finished> {
    let place = Place::new(plan, number)?;
    place.as_ref().map_or(Ok(()), Place::settle)?;
    let mut row =
        Row { config: config(plan, "latency", of.transport, of.payload_bytes, of.messages), ..Row::default() };
    let floors = floors(plan, of, &mut row.notes);
    // As on the floor, who measures has the first core.
    let (node_cpu, sequencer_cpu) = if plan.running.is_some() { (None, None) } else { pair_of_cores().unzip() };
    let threads = if sequencer_cpu.is_some() { "min" } else { "default" };
    let sequencer = SequencerPlan {
        transport: of.transport,
        batch: true,
        rewinds: false,
        plan: threads,
        for_throughput: false,
        cpu: sequencer_cpu,
        journaled_bytes: journaled_bytes(of.warm_up + of.messages, of.payload_bytes),
    };
    let mut scene = Scene::open(plan, place, sequencer, interrupted)?;
    let role = Role::RoundTrips { warm_up: of.warm_up, messages: of.messages };
    let order = NodeOrder { cpu: node_cpu, ..node_order(&scene, of.payload_bytes, role) };
    let spins = order.spins;
    let mut node = scene.node("node 1", order)?;
    let participant = Participant {
        session: node.hear_while::<Ready>(&mut || scene.look())?.session,
        payload_bytes: of.payload_bytes,
    };
    let (cost_before, stolen_before, began) = (scene.cost()?, stolen_ns(), SystemTime::now());
    let trips: RoundTrips = node.hear_while(&mut || scene.look())?;
    let (cost, stolen) = (scene.cost()?, stolen_ns());
    scene.finish(node)?;
    let journal = scene.stop(&[participant])?;

    let latencies = histogram(&trips.latencies_ns);
    row.latency_ns = latencies.latency_ns();
    row.sent = Some(of.messages);
    row.elapsed_ns = Some(trips.elapsed_ns);
    // The warm-up is among what the sequencer handled.
    let handled = of.warm_up + of.messages;
    let mut sequencer = RoleFigures { role: "sequencer".to_owned(), handled, ..RoleFigures::default() };
    if let (Some(before), Some(after)) = (cost_before, cost) {
        sequencer = sequencer.with_cpu(after.cpu_ns - before.cpu_ns, handled);
        sequencer.peak_memory_bytes = Some(after.peak_memory_bytes);
    }
    let node =
        RoleFigures { role: "node 1".to_owned(), sent: of.messages, handled: of.messages, ..RoleFigures::default() };
    let node = node.with_rate(of.messages, trips.elapsed_ns).with_cpu(trips.cpu_ns, of.messages);
    let node = node.with_account(&trips.account);
    if let (Some(service), Some(driver)) = (sequencer.cpu_ns_per_message, node.cpu_ns_per_message) {
        row.cpu_ns_per_message = Some(CpuPerMessage { driver, service });
    }
    row.peak_memory_bytes = Some(trips.account.peak_memory_bytes + cost.map_or(0, |cost| cost.peak_memory_bytes));
    row.extra.insert("round_trips_per_s".to_owned(), round(per_second(of.messages, trips.elapsed_ns)).into());
    row.extra.insert("slices".to_owned(), serde_json::to_value(slices(&latencies))?);
    row.extra.insert("roles".to_owned(), serde_json::to_value([sequencer, node])?);
    if let (Some(before), Some(after)) = (stolen_before, stolen) {
        row.extra.insert("stolen_ns".to_owned(), (after - before).into());
    }
    if let Some(floor) = floors.first() {
        row.compare_with(floor);
    }
    if let Some(ratio) = row.floor_ratio.filter(|_| plan.has_targets) {
        row.extra.insert("floor_ratio_max".to_owned(), of.ratio_max.into());
        row.extra.insert("target_met".to_owned(), (ratio <= of.ratio_max).into());
    }
    let extra = &mut row.config.extra;
    extra.insert("in_flight".to_owned(), 1.into());
    extra.insert("node_wait".to_owned(), if spins { "spin" } else { "yield" }.into());
    if let (Some(node), Some(sequencer)) = (node_cpu, sequencer_cpu) {
        extra.insert("cpus".to_owned(), serde_json::json!({"node": node, "sequencer": sequencer}));
        row.config.cpu = Some(threads.to_owned());
    }
    judge(&mut row, &[handled], &[("node 1", &trips.account)], journal.as_ref());
    note_scene(&mut row, &mut scene);
    let tag = format!("latency {} {}", of.transport.name(), of.payload_bytes);
    Ok(Finished { row, floors, latencies: vec![(tag, recorded(latencies, trips.elapsed_ns), began)] })
}

/// The floors beside it, the one that it is compared with first.
fn floors(plan: &Plan, of: &LatencyPlan, notes: &mut Vec<String>) -> Vec<FloorRow> {
    let frame = of.payload_bytes as u64 + HEADER_BYTES;
    let packet = frame + (mold::HEADER_LENGTH + mold::BLOCK_HEADER_LENGTH) as u64;
    let items: &[_] = match of.transport {
        Transport::SharedMemory => &[(FloorKind::ShmPingPong, frame)],
        Transport::Udp | Transport::Multicast => {
            &[(FloorKind::UdpRoundTrip, packet), (FloorKind::UdpRoundTripUnconnected, packet)]
        }
    };
    items.iter().filter_map(|&(kind, bytes)| floor(plan, kind, bytes, notes)).collect()
}
