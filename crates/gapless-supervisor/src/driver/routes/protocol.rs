//! Messages between the threads: `WatcherCommand` to the watcher, `WatcherReport` from it.

use crate::config::process::PingConfig;
use crate::instance_name::InstanceName;
use crate::supervision::event::ProcessEvent;
use std::collections::BTreeMap;

/// Observations wanted of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    pub incarnation: u64,
    pub process_id: u32,
    /// Report readiness once it serves this route.
    pub ready: Option<String>,
    pub ping: Option<PingConfig>,
    pub is_to_drain: bool,
}

pub type WatchRequests = BTreeMap<InstanceName, WatchRequest>;

#[derive(Debug)]
pub enum WatcherCommand {
    Watch(WatchRequests),
    Changed,
    Answered { question: u64, answer: PingOutcome },
    End,
}

/// End of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingOutcome {
    Answered,
    TimedOut,
    NotDelivered,
}

#[derive(Debug)]
pub enum WatcherReport {
    Happened(ProcessEvent),
    Drained { instance: InstanceName, incarnation: u64 },
    Problem(Option<String>),
}
