//! The rows of the benchmark, seen from outside: processes started, floors measured next to them, figures put together.
//!
//! | module | measures |
//! |---|---|
//! | `latency` | one node, one message in flight |
//! | `throughput` | nodes that push |
//! | `rewind` | a late joiner, while a live node goes on |

pub(super) mod latency;
pub(super) mod rewind;
pub(super) mod throughput;

use super::arguments::StreamTransport;
use super::plan::SequencerRunPlan;
use super::stream_under_test::StreamUnderTest;
use crate::histogram::RecordedRun;
use gapless_load::sequencer::protocol::{MessageAccount, NodeAssignment, NodeRole};
use gapless_measure::reporting::word;
use gapless_measure::{FloorRow, Row, RowConfig};
use gapless_wire::mtu::Mtu;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

pub(super) struct FinishedRow {
    pub row: Row,
    pub floors: Vec<FloorRow>,
    /// Entries of the `.hlog` file: tag, run, begin.
    pub latencies: Vec<(String, RecordedRun, SystemTime)>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleFigures {
    /// `sequencer`, `node 1` …
    pub role: String,
    pub sent: u64,
    /// Sequenced or read.
    pub handled: u64,
    /// Sequencer: from its first message to its last, by its stamps. Node: from its first publish until its last
    /// message came back.
    pub elapsed_ns: u64,
    /// Messages a second: handled by the sequencer, or sent by a node.
    pub rate_per_s: f64,
    pub mean_ns: f64,
    /// `None` for a process of another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_message: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    #[serde(default)]
    pub resent: u64,
    #[serde(default)]
    pub requested: u64,
    #[serde(default)]
    pub rewound: u64,
}

impl RoleFigures {
    fn with_rate(mut self, messages: u64, elapsed_ns: u64) -> Self {
        self.elapsed_ns = elapsed_ns;
        self.rate_per_s = round(per_second(messages, elapsed_ns));
        self.mean_ns = round(elapsed_ns as f64 / messages.max(1) as f64);
        self
    }

    fn with_cpu(mut self, cpu_ns: u64, messages: u64) -> Self {
        self.cpu_ns_per_message = Some(round(cpu_ns as f64 / messages.max(1) as f64));
        self
    }

    fn with_account(mut self, account: &MessageAccount) -> Self {
        self.peak_memory_bytes = Some(account.peak_memory_bytes);
        (self.resent, self.requested, self.rewound) = (account.resent, account.requested, account.rewound);
        self
    }
}

fn node_assignment(stream_under_test: &StreamUnderTest<'_>, payload_bytes: usize, role: NodeRole) -> NodeAssignment {
    NodeAssignment {
        way: stream_under_test.way().clone(),
        batch: true,
        mtu: None,
        cpu: None,
        spins: gapless_measure::affinity::available_cpus().len() > 1,
        window_messages: 64,
        payload_bytes,
        role,
    }
}

pub(super) fn config(
    plan: &SequencerRunPlan,
    mode: &str,
    transport: StreamTransport,
    payload_bytes: usize,
    count: u64,
) -> RowConfig {
    let is_own = plan.running.is_none();
    let mut config = RowConfig {
        mode: Some(mode.to_owned()),
        tier: is_own.then(|| word(plan.tier)),
        transport: Some(word(transport)),
        payload_bytes: Some(payload_bytes as u64),
        count: Some(count),
        ..RowConfig::default()
    };
    config.extra.insert("sequencer".to_owned(), if is_own { "own" } else { "running" }.into());
    config
}

fn note_mtu(row: &mut Row, mtu: Option<Mtu>) {
    if let Some(mtu) = mtu {
        row.config.extra.insert("mtu_bytes".to_owned(), mtu.bytes().into());
    }
}

fn note_stream(row: &mut Row, stream_under_test: &mut StreamUnderTest<'_>) {
    if let Some(plan) = &stream_under_test.plan {
        row.config.extra.insert("sequencer_threads".to_owned(), plan.trim().into());
    }
    row.notes.append(&mut stream_under_test.notes);
}

fn per_second(messages: u64, elapsed_ns: u64) -> f64 {
    messages as f64 * 1e9 / elapsed_ns.max(1) as f64
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
