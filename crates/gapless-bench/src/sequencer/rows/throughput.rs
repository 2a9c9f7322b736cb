//! Nodes that publish as fast as they can, each of which reads everything.

use super::{FinishedRow, RoleFigures, config, node_assignment, note_mtu, note_stream, per_second, round};
use crate::Result;
use crate::child_process::{Child, receive_all};
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::own_directory::sync_file_system;
use crate::resources::stolen_ns;
use crate::sequencer::accounting::verify_accounts;
use crate::sequencer::arguments::StreamTransport;
use crate::sequencer::plan::{SequencerRunPlan, ThroughputPlan};
use crate::sequencer::stream_under_test::{SequencerPlan, StreamUnderTest, floor, journaled_bytes, own_directory};
use gapless_load::sequencer::protocol::{
    MessageAccount, NodeAssignment, NodeReady, NodeRequest, NodeRole, Participant, ProcessCost, PushResult,
};
use gapless_measure::{CpuPerMessage, Row};
use gapless_wire::mtu::Mtu;
use std::sync::atomic::AtomicBool;

pub(in crate::sequencer) fn measure(
    plan: &SequencerRunPlan,
    of: &ThroughputPlan,
    number: usize,
    interrupted: &AtomicBool,
) -> Result<FinishedRow> {
    let directory = own_directory(plan, number)?;
    let total = of.messages * of.nodes as u64;
    let mut row = Row { config: config(plan, "throughput", of.transport, of.payload_bytes, total), ..Row::default() };
    note_mtu(&mut row, of.mtu);
    let mut floors = Vec::new();
    if of.transport == StreamTransport::SharedMemory {
        floors.extend(floor(plan, FloorKind::ShmStream, of.payload_bytes as u64 + HEADER_BYTES, &mut row.notes));
    }
    if of.transport == StreamTransport::Tcp {
        floors.extend(floor(plan, FloorKind::TcpStream, of.payload_bytes as u64 + HEADER_BYTES, &mut row.notes));
    }
    // Cost of the journal without us: every frame goes into the page cache.
    if plan.has_targets {
        floors.extend(floor(plan, FloorKind::SequentialWrite, 0, &mut row.notes));
        directory.as_ref().map_or(Ok(()), |directory| sync_file_system(directory.path()))?;
    }
    let sequencer = SequencerPlan {
        transport: of.transport,
        mtu: of.mtu,
        batch: of.batch,
        rewinds: true,
        plan: "default",
        for_throughput: true,
        cpu: None,
        journaled_bytes: journaled_bytes((of.warm_up + of.messages) * of.nodes as u64, of.payload_bytes),
    };
    let mut stream_under_test = StreamUnderTest::open(plan, directory, sequencer, interrupted)?;
    let mut nodes = Vec::new();
    for number in 1..=of.nodes {
        let assignment = NodeAssignment {
            batch: of.batch,
            mtu: of.mtu.map(Mtu::bytes),
            window_messages: of.window_messages,
            ..node_assignment(&stream_under_test, of.payload_bytes, NodeRole::Push)
        };
        nodes.push(stream_under_test.node(&format!("node {number}"), assignment)?);
    }
    let ready: Vec<NodeReady> = receive_all(&mut nodes, &mut || stream_under_test.check_running())?;
    let participant = |ready: &NodeReady| Participant { session: ready.session, payload_bytes: of.payload_bytes };
    let participants: Vec<_> = ready.iter().map(participant).collect();
    send_all(&mut nodes, &NodeRequest::Participants(participants.clone()))?;
    receive_all::<bool>(&mut nodes, &mut || stream_under_test.check_running())?;
    send_all(&mut nodes, &NodeRequest::Push(of.warm_up))?;
    receive_all::<PushResult>(&mut nodes, &mut || stream_under_test.check_running())?;
    let (cost_before, stolen_before) = (stream_under_test.cost()?, stolen_ns());
    send_all(&mut nodes, &NodeRequest::Push(of.messages))?;
    let pushed: Vec<PushResult> = receive_all(&mut nodes, &mut || stream_under_test.check_running())?;
    let (cost, stolen) = (stream_under_test.cost()?, stolen_ns());
    send_all(&mut nodes, &NodeRequest::End)?;
    let accounts: Vec<MessageAccount> = receive_all(&mut nodes, &mut || stream_under_test.check_running())?;
    for node in nodes {
        stream_under_test.finish(node)?;
    }
    let journal = stream_under_test.stop(&participants)?;

    let roles = roles(of, &pushed, &accounts, cost_before.zip(cost));
    let slowest_ns = pushed.iter().map(|pushed| pushed.all_ns).max().unwrap_or(0);
    row.sent = Some(total);
    row.elapsed_ns = Some(roles[0].elapsed_ns);
    row.throughput_per_s = Some(roles[0].rate_per_s);
    row.extra.insert("delivered_per_s".to_owned(), round(per_second(total, slowest_ns)).into());
    let nodes_cpu_ns: u64 = pushed.iter().map(|pushed| pushed.cpu_ns).sum();
    if let Some(service) = roles[0].cpu_ns_per_message {
        row.cpu_ns_per_message = Some(CpuPerMessage { driver: round(nodes_cpu_ns as f64 / total as f64), service });
    }
    row.peak_memory_bytes = Some(roles.iter().filter_map(|role| role.peak_memory_bytes).sum());
    row.extra.insert("roles".to_owned(), serde_json::to_value(&roles)?);
    if let (Some(before), Some(after)) = (stolen_before, stolen) {
        row.extra.insert("stolen_ns".to_owned(), (after - before).into());
    }
    if let Some(floor) = floors.iter().find(|floor| floor.rate_per_s.is_some()) {
        row.compare_with(floor);
    }
    if let Some(rate_min) = of.rate_min_per_s.filter(|_| plan.has_targets) {
        row.extra.insert("throughput_min_per_s".to_owned(), rate_min.into());
        row.extra.insert("target_met".to_owned(), (roles[0].rate_per_s >= rate_min).into());
    }
    row.config.cpu = plan.running.is_none().then(|| "default".to_owned());
    let extra = &mut row.config.extra;
    extra.insert("nodes".to_owned(), of.nodes.into());
    extra.insert("window_messages".to_owned(), of.window_messages.into());
    extra.insert("node_wait".to_owned(), "yield, then park".into());
    if of.transport.is_by_packets() {
        extra.insert("batch_node".to_owned(), of.batch.into());
        if plan.running.is_none() {
            extra.insert("batch_sequencer".to_owned(), of.batch.into());
        }
    }
    let names: Vec<String> = (1..=of.nodes).map(|number| format!("node {number}")).collect();
    let named: Vec<_> = names.iter().map(String::as_str).zip(&accounts).collect();
    verify_accounts(&mut row, &vec![of.warm_up + of.messages; of.nodes], &named, journal.as_ref());
    note_stream(&mut row, &mut stream_under_test);
    Ok(FinishedRow { row, floors, latencies: Vec::new() })
}

fn send_all(nodes: &mut [Child<'_>], request: &NodeRequest) -> Result<()> {
    nodes.iter_mut().try_for_each(|node| node.send(request))
}

fn roles(
    of: &ThroughputPlan,
    pushed: &[PushResult],
    accounts: &[MessageAccount],
    cost: Option<(ProcessCost, ProcessCost)>,
) -> Vec<RoleFigures> {
    let total = of.messages * of.nodes as u64;
    // By the sequencer's stamps: a node that starts late has not seen the first of its own.
    let first_ns = pushed.iter().map(|pushed| pushed.first_stamp_ns).min().unwrap_or(0);
    let last_ns = pushed.iter().map(|pushed| pushed.last_stamp_ns).max().unwrap_or(0);
    let sequencer = RoleFigures { role: "sequencer".to_owned(), handled: total, ..RoleFigures::default() };
    let mut sequencer = sequencer.with_rate(total, last_ns.saturating_sub(first_ns));
    if let Some((before, after)) = cost {
        sequencer = sequencer.with_cpu(after.cpu_ns - before.cpu_ns, total);
        sequencer.peak_memory_bytes = Some(after.peak_memory_bytes);
    }
    let node = |(index, (pushed, account)): (usize, (&PushResult, &MessageAccount))| {
        let PushResult { sent, seen, own_ns, cpu_ns, .. } = *pushed;
        let role = format!("node {}", index + 1);
        let figures = RoleFigures { role, sent, handled: seen, ..RoleFigures::default() };
        figures.with_rate(sent, own_ns).with_cpu(cpu_ns, seen).with_account(account)
    };
    std::iter::once(sequencer).chain(pushed.iter().zip(accounts).enumerate().map(node)).collect()
}
