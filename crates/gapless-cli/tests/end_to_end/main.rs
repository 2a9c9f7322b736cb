//! Whole benchmarks and clusters of processes keep every core busy for minutes, so `cargo test --workspace` leaves them
//! out: run `cargo test -p gapless-cli --test end_to_end`.

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

/// Benchmarks and clusters keep all CPUs busy, so they take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // Poisoned by an earlier failure.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
