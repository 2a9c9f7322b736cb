//! The promises of whole benchmarks and clusters of processes. They keep every core busy for minutes, so `cargo test
//! --workspace` leaves them out. `cargo test -p gapless-cli --test crowds` runs them.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bench_process;
#[path = "../program/mod.rs"]
mod program;

mod a_cluster_survives_its_leader;
mod a_clustered_run_compares_its_copies;
mod a_failover_is_seen_as_clients_see_it;
mod a_sequencer_is_measured_over_every_transport;
mod a_supervisor_is_measured;
mod calls_are_measured_beside_other_systems;
mod calls_are_measured_by_payload;
mod calls_are_measured_under_load;
mod calls_go_on_while_processes_are_killed;
mod commands_are_measured;
mod each_part_is_measured_beside_its_floor;
mod every_option_of_canonical_has_its_effect;
mod interrupted_calls_are_reported;
mod members_are_changed_by_commands;
mod one_table_has_all_systems;
mod two_builds_are_compared;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets tests that keep all CPUs busy take turns: benchmarks and clusters.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // An earlier failure does not affect the next test.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
