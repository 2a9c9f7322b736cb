//! Without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod instance_process;

mod backlog_spills_to_disk;
mod corrupt_memory_is_contained;
mod dead_relays_are_detected;
mod first_calls_never_block;
mod forked_children_are_inert;
mod handler_outcomes_reach_callers;
mod hung_processes_never_block;
mod killed_instances_lose_nothing;
mod missing_threads_are_reported;
mod notices_reach_callers;
mod routes_come_and_go;
mod shortages_are_retried;
mod span_recorder;
mod traces_cross_processes;
mod two_versions_serve_route;
mod unused_tables_are_freed;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

/// Only scenarios that count no descriptors of this process run concurrently.
const AT_A_TIME: usize = 12;

fn main() -> ExitCode {
    instance_process::be_one_if_asked();
    forked_children_are_inert::be_one_if_asked();
    missing_threads_are_reported::be_one_if_asked();
    two_versions_serve_route::be_one_if_asked();
    killed_instances_lose_nothing::be_a_caller_if_asked();
    corrupt_memory_is_contained::be_a_caller_if_asked();
    notices_reach_callers::be_one_if_asked();
    dead_relays_are_detected::be_one_if_asked();
    routes_come_and_go::be_one_if_asked();
    traces_cross_processes::be_one_if_asked();
    shortages_are_retried::be_one_if_asked();
    gapless_testkit::scenarios::run(vec![
        killed_instances_lose_nothing::module(),
        killed_instances_lose_nothing::shared_module(),
        forked_children_are_inert::module(),
        missing_threads_are_reported::module(),
        corrupt_memory_is_contained::module(rounds(300, 100) as u32),
        handler_outcomes_reach_callers::module(),
        two_versions_serve_route::module(),
        unused_tables_are_freed::module(),
        unused_tables_are_freed::shared_module(),
        first_calls_never_block::module(),
        hung_processes_never_block::module(),
        notices_reach_callers::module(),
        dead_relays_are_detected::module(),
        routes_come_and_go::module(),
        traces_cross_processes::module(),
        backlog_spills_to_disk::module(),
        shortages_are_retried::module(),
    ])
}
