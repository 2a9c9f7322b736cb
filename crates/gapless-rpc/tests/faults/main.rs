//! Calls while processes die, thousands of times and at every crash point: one program, without a harness, see
//! `gapless_testkit::scenarios`. Slow.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

#[path = "../processes/copy_process.rs"]
mod copy_process;
mod counted;

#[cfg(debug_assertions)]
mod a_caller_dies_at_every_point_of_its_backlog;
mod a_million_calls_survive_a_thousand_kills;
#[cfg(debug_assertions)]
mod a_process_dies_at_every_named_point;
#[path = "../processes/a_scribbler_spoils_only_its_own_routes.rs"]
mod a_scribbler_spoils_only_its_own_routes;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

fn main() -> ExitCode {
    copy_process::be_one_if_asked();
    a_scribbler_spoils_only_its_own_routes::be_a_caller_if_asked();
    counted::be_a_copy_if_asked();
    counted::be_a_caller_if_asked();
    #[cfg(debug_assertions)]
    a_caller_dies_at_every_point_of_its_backlog::be_the_caller_if_asked();
    gapless_testkit::scenarios::run(vec![
        a_million_calls_survive_a_thousand_kills::module(),
        #[cfg(debug_assertions)]
        a_caller_dies_at_every_point_of_its_backlog::module(),
        #[cfg(debug_assertions)]
        a_process_dies_at_every_named_point::module(),
        a_scribbler_spoils_only_its_own_routes::module(rounds(10_000, 2_000) as u32),
    ])
}
