//! A late joiner reads everything from the first frame, while a live node goes on at a modest rate.

use super::{FinishedRow, RoleFigures, config, node_assignment, note_mtu, note_stream};
use crate::Result;
use crate::histogram::RecordedRun;
use crate::resources::stolen_ns;
use crate::sequencer::accounting::verify_accounts;
use crate::sequencer::plan::{RewindPlan, SequencerRunPlan};
use crate::sequencer::stream_under_test::{SequencerPlan, StreamUnderTest, journaled_bytes, own_directory};
use gapless_load::sequencer::protocol::{
    MessageAccount, NodeAssignment, NodeReady, NodeRequest, NodeRole, PaceResult, Participant, PushResult, RewindResult,
};
use gapless_measure::Row;
use gapless_measure::affinity::{available_cpus, pair_of_cores};
use gapless_measure::reporting::word;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

const FILL_WINDOW_MESSAGES: u32 = 4_096;

/// Live and late node and the one that fills the stream use the same transport.
pub(in crate::sequencer) fn measure(
    plan: &SequencerRunPlan,
    of: &RewindPlan,
    number: usize,
    interrupted: &AtomicBool,
) -> Result<FinishedRow> {
    let directory = own_directory(plan, number)?;
    // On two cores: one for the sequencer, one for both nodes.
    let (nodes_cpu, sequencer_cpu) = pair_of_cores().unzip();
    let nodes_cpu = nodes_cpu.filter(|_| available_cpus().len() == 2);
    let threads = if sequencer_cpu.is_some() { "min" } else { "default" };
    let sequencer = SequencerPlan {
        transport: of.transport,
        mtu: of.mtu,
        batch: true,
        rewinds: true,
        plan: threads,
        for_throughput: false,
        cpu: sequencer_cpu,
        journaled_bytes: journaled_bytes(of.frames, of.payload_bytes),
    };
    let mut stream_under_test = StreamUnderTest::open(plan, directory, sequencer, interrupted)?;
    let filler = fill(&mut stream_under_test, of)?;

    let live = NodeAssignment {
        cpu: nodes_cpu,
        window_messages: FILL_WINDOW_MESSAGES,
        ..node_assignment(&stream_under_test, of.payload_bytes, NodeRole::Push)
    };
    let mut live = stream_under_test.node("the live node", live)?;
    let live_one = Participant {
        session: live.receive_while::<NodeReady>(&mut || stream_under_test.check_running())?.session,
        payload_bytes: of.payload_bytes,
    };
    live.ask::<bool>(&NodeRequest::Participants(vec![live_one]))?;
    let began = SystemTime::now();
    live.send(&NodeRequest::Pace(of.rate_per_s))?;
    let until = Instant::now() + Duration::from_millis(of.before_ms);
    while Instant::now() < until && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
    live.send(&NodeRequest::Enough)?;
    let before: PaceResult = live.receive_while(&mut || stream_under_test.check_running())?;

    let role = NodeRole::Rewind;
    let late = NodeAssignment { cpu: nodes_cpu, ..node_assignment(&stream_under_test, of.payload_bytes, role) };
    let mut late = stream_under_test.node("the late node", late)?;
    late.receive::<NodeReady>()?;
    let (cost_before, stolen_before, joined) = (stream_under_test.cost()?, stolen_ns(), SystemTime::now());
    live.send(&NodeRequest::Pace(of.rate_per_s))?;
    late.send(&NodeRequest::Participants(vec![filler, live_one]))?;
    let rewound: RewindResult = late.receive_while(&mut || stream_under_test.check_running())?;
    live.send(&NodeRequest::Enough)?;
    let during: PaceResult = live.receive_while(&mut || stream_under_test.check_running())?;
    let (cost, stolen) = (stream_under_test.cost()?, stolen_ns());
    live.send(&NodeRequest::End)?;
    let live_account: MessageAccount = live.receive_while(&mut || stream_under_test.check_running())?;
    stream_under_test.finish(live)?;
    stream_under_test.finish(late)?;
    let journal = stream_under_test.stop(&[filler, live_one])?;

    let mut row = Row { config: config(plan, "rewind", of.transport, of.payload_bytes, of.frames), ..Row::default() };
    note_mtu(&mut row, of.mtu);
    let live_sent = before.sent + during.sent;
    let late_role = RoleFigures { role: "late node".to_owned(), handled: rewound.frames, ..RoleFigures::default() };
    let late_role = late_role.with_rate(rewound.frames, rewound.elapsed_ns).with_cpu(rewound.cpu_ns, rewound.frames);
    let live_role = RoleFigures {
        role: "live node, meanwhile".to_owned(),
        sent: during.sent,
        handled: during.sent,
        ..RoleFigures::default()
    };
    let live_role = live_role.with_rate(during.sent, during.elapsed_ns).with_cpu(during.cpu_ns, during.sent);
    let mut roles = vec![late_role.with_account(&rewound.account), live_role.with_account(&live_account)];
    if let (Some(before), Some(after)) = (cost_before, cost) {
        let figures = RoleFigures { role: "sequencer".to_owned(), handled: during.sent, ..RoleFigures::default() };
        let figures = figures.with_rate(during.sent, during.elapsed_ns);
        let mut figures = figures.with_cpu(after.cpu_ns - before.cpu_ns, during.sent);
        figures.peak_memory_bytes = Some(after.peak_memory_bytes);
        roles.insert(0, figures);
    }
    row.throughput_per_s = roles.iter().find(|role| role.role == "late node").map(|role| role.rate_per_s);
    row.latency_ns = during.latencies.latency_ns();
    row.extra.insert("latency_before_ns".to_owned(), serde_json::to_value(before.latencies.latency_ns())?);
    row.sent = Some(rewound.frames);
    row.elapsed_ns = Some(rewound.elapsed_ns);
    row.peak_memory_bytes = Some(roles.iter().filter_map(|role| role.peak_memory_bytes).sum());
    if let (Some(before), Some(after)) = (stolen_before, stolen) {
        row.extra.insert("stolen_ns".to_owned(), (after - before).into());
    }
    if let Some(rate) = row.throughput_per_s.filter(|_| plan.has_targets) {
        row.extra.insert("throughput_min_per_s".to_owned(), of.rate_min_per_s.into());
        row.extra.insert("target_met".to_owned(), (rate >= of.rate_min_per_s).into());
    }
    row.extra.insert("roles".to_owned(), serde_json::to_value(&roles)?);
    if of.transport.is_by_packets() {
        row.config.extra.insert("rewind".to_owned(), "tcp".into());
    }
    row.config.rate_per_s = Some(of.rate_per_s);
    row.config.cpu = Some(threads.to_owned());
    row.config.extra.insert("node_wait".to_owned(), "sleep until shortly before it is due, then spin".into());
    if let (Some(nodes), Some(sequencer)) = (nodes_cpu, sequencer_cpu) {
        row.config.extra.insert("cpus".to_owned(), serde_json::json!({"nodes": nodes, "sequencer": sequencer}));
    }
    verify(&mut row, [of.frames, live_sent], &rewound.account, &live_account, journal.as_ref());
    note_stream(&mut row, &mut stream_under_test);
    let tagged = |when, paced: PaceResult, began| {
        let recorded = RecordedRun::of_one_interval(paced.latencies, paced.elapsed_ns);
        (format!("rewind {} {when}", word(of.transport)), recorded, began)
    };
    let latencies = vec![tagged("before", before, began), tagged("during", during, joined)];
    Ok(FinishedRow { row, floors: Vec::new(), latencies })
}

/// Publishes what the late joiner will read.
fn fill(stream_under_test: &mut StreamUnderTest<'_>, of: &RewindPlan) -> Result<Participant> {
    let assignment = NodeAssignment {
        window_messages: FILL_WINDOW_MESSAGES,
        ..node_assignment(stream_under_test, of.payload_bytes, NodeRole::Push)
    };
    let mut node = stream_under_test.node("the node that fills the stream", assignment)?;
    let participant = Participant {
        session: node.receive_while::<NodeReady>(&mut || stream_under_test.check_running())?.session,
        payload_bytes: of.payload_bytes,
    };
    node.ask::<bool>(&NodeRequest::Participants(vec![participant]))?;
    node.send(&NodeRequest::Push(of.frames))?;
    node.receive_while::<PushResult>(&mut || stream_under_test.check_running())?;
    node.ask::<MessageAccount>(&NodeRequest::End)?;
    stream_under_test.finish(node)?;
    Ok(participant)
}

/// The late node has seen the filler's messages and the live one's up to some point; the live node its own; the journal
/// all.
fn verify(
    row: &mut Row,
    expected: [u64; 2],
    late: &MessageAccount,
    live: &MessageAccount,
    journal: Option<&MessageAccount>,
) {
    let [filled, live_sent] = expected;
    let seen_live = late.seen.get(1).copied().unwrap_or(0).min(live_sent);
    let (mut verified, mut lost, mut duplicated) = (true, 0, 0);
    let judgements: [(&[u64], &str, Option<&MessageAccount>); 3] = [
        (&[filled, seen_live], "the late node", Some(late)),
        (&[live_sent], "the live node", Some(live)),
        (&expected, "the journal", journal),
    ];
    for (expected, name, account) in judgements {
        let Some(account) = account else { continue };
        verify_accounts(row, expected, &[(name, account)], None);
        verified &= row.verified == Some(true);
        lost += row.lost.unwrap_or(0);
        duplicated += row.duplicated.unwrap_or(0);
    }
    (row.verified, row.lost, row.duplicated) = (Some(verified), Some(lost), Some(duplicated));
}
