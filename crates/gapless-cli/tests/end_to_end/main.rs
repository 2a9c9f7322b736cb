//! The promises of whole benchmarks and clusters of processes. They keep every core busy for minutes, so `cargo test
//! --workspace` leaves them out. `cargo test -p gapless-cli --test end_to_end` runs them.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bench_process;
#[path = "../program/mod.rs"]
mod program;

mod builds_are_compared;
mod canonical_cluster_benchmark;
mod canonical_options;
mod cluster_survives_its_leader;
mod commands_benchmark;
mod component_benchmarks;
mod failover_benchmark;
mod interrupted_run_is_reported;
mod members_are_changed;
mod overview_benchmark;
mod rpc_curve_benchmark;
mod rpc_faults_benchmark;
mod rpc_payloads_benchmark;
mod rpc_scenarios_benchmark;
mod sequencer_benchmark;
mod supervisor_benchmark;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets tests that keep all CPUs busy take turns: benchmarks and clusters.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // An earlier failure does not affect the next test.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
