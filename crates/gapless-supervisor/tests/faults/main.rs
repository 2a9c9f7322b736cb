//! Guardian, supervisor, launchers and instances are stopped, and killed hundreds of times and at every named crash
//! point. One program without a harness, see `gapless_testkit::scenarios`. Slow.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

#[path = "../processes/copy_program.rs"]
mod copy_program;
#[path = "../processes/floor.rs"]
#[allow(dead_code, reason = "the other program of tests uses the rest")]
mod floor;
#[path = "../processes/place.rs"]
#[allow(dead_code, reason = "the other program of tests uses the rest")]
mod place;
#[path = "../processes/serving_program.rs"]
#[allow(dead_code, reason = "the other program of tests uses the rest")]
mod serving_program;
#[path = "../processes/stand_in.rs"]
mod stand_in;

mod a_silent_role_is_replaced;
#[path = "../processes/a_singleton_is_active_once.rs"]
mod a_singleton_is_active_once;
#[cfg(debug_assertions)]
mod each_role_dies_at_every_named_point;
#[path = "../processes/logs_stay_below_their_limit.rs"]
mod logs_stay_below_their_limit;
#[path = "../processes/whoever_is_killed_nothing_starts_twice.rs"]
mod whoever_is_killed_nothing_starts_twice;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

fn main() -> ExitCode {
    copy_program::run_if_asked();
    stand_in::run_role_if_asked();
    gapless_testkit::scenarios::run(vec![
        #[cfg(debug_assertions)]
        each_role_dies_at_every_named_point::module(),
        a_silent_role_is_replaced::module(),
        a_singleton_is_active_once::module(rounds(2_000, 500)),
        logs_stay_below_their_limit::module(1024),
        whoever_is_killed_nothing_starts_twice::module(rounds(2_000, 500)),
    ])
}
