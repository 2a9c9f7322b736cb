//! Promises of calls between processes, also when processes die at any moment: one program, without a harness, see
//! `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod copy_process;

mod a_forked_child_harms_nobody;
mod a_process_without_threads_says_so;
mod a_scribbler_spoils_only_its_own_routes;
mod calls_end_as_their_handlers_say;
mod copies_of_two_versions_serve_one_route;
mod ever_new_routes_cost_nothing;
mod first_calls_hold_up_nobody;
mod hung_processes_hold_up_nobody;
mod killed_copies_lose_no_answer;
mod notices_reach_their_callers;
mod relays_die_like_copies;
mod routes_come_and_go;
mod span_recorder;
mod traces_go_over_processes;
mod what_finds_no_slot_waits_on_disk;
mod what_is_short_is_asked_for_again;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

/// Scenarios that run concurrently, among those that count no descriptors of this process.
const AT_A_TIME: usize = 12;

fn main() -> ExitCode {
    copy_process::be_one_if_asked();
    a_forked_child_harms_nobody::be_one_if_asked();
    a_process_without_threads_says_so::be_one_if_asked();
    copies_of_two_versions_serve_one_route::be_one_if_asked();
    killed_copies_lose_no_answer::be_a_caller_if_asked();
    a_scribbler_spoils_only_its_own_routes::be_a_caller_if_asked();
    notices_reach_their_callers::be_one_if_asked();
    relays_die_like_copies::be_one_if_asked();
    routes_come_and_go::be_one_if_asked();
    traces_go_over_processes::be_one_if_asked();
    what_is_short_is_asked_for_again::be_one_if_asked();
    // The longest first.
    gapless_testkit::scenarios::run(vec![
        killed_copies_lose_no_answer::module(),
        killed_copies_lose_no_answer::shared_module(),
        a_forked_child_harms_nobody::module(),
        a_process_without_threads_says_so::module(),
        a_scribbler_spoils_only_its_own_routes::module(rounds(300, 100) as u32),
        calls_end_as_their_handlers_say::module(),
        copies_of_two_versions_serve_one_route::module(),
        ever_new_routes_cost_nothing::module(),
        ever_new_routes_cost_nothing::shared_module(),
        first_calls_hold_up_nobody::module(),
        hung_processes_hold_up_nobody::module(),
        notices_reach_their_callers::module(),
        relays_die_like_copies::module(),
        routes_come_and_go::module(),
        traces_go_over_processes::module(),
        what_finds_no_slot_waits_on_disk::module(),
        what_is_short_is_asked_for_again::module(),
    ])
}
