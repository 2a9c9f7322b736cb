//! A bridge as a process of the benchmark; the assignment is the path of its file.

use super::{NAME, failed};
use gapless_kafka::bridge::{Bridge, BridgeEvent};
use gapless_kafka::config::BridgeConfig;
use gapless_measure::Result;
use gapless_measure::child_process::{OrphanPolicy, Parent};
use gapless_measure::resources::process_cpu_ns;
use std::path::PathBuf;

/// Runs until the benchmark is gone; answers each message by its CPU time, ns.
///
/// # Errors
/// A malformed assignment or file; a bridge that cannot start.
pub fn main(assignment: &str) -> Result<()> {
    let file: PathBuf = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
    let config = BridgeConfig::load(&file).map_err(failed)?;
    let on_event = |event: &BridgeEvent| eprintln!("{event}");
    let bridge = Bridge::start(config, on_event).map_err(failed)?;
    while parent.receive::<bool>()?.is_some() {
        parent.send(&process_cpu_ns())?;
    }
    bridge.end().map_err(failed)
}
