//! Slow. No harness: see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

#[path = "../processes/floor.rs"]
#[allow(dead_code, reason = "the other program of tests uses the rest")]
mod floor;
#[path = "../processes/instance_program.rs"]
mod instance_program;
#[path = "../processes/minimal_supervisor.rs"]
mod minimal_supervisor;
#[path = "../processes/serving_program.rs"]
#[allow(dead_code, reason = "the other program of tests uses the rest")]
mod serving_program;
#[path = "../processes/test_place.rs"]
#[allow(dead_code, reason = "the other program of tests uses the rest")]
mod test_place;

#[path = "../processes/kills_start_nothing_twice.rs"]
mod kills_start_nothing_twice;
#[path = "../processes/logs_stay_below_limit.rs"]
mod logs_stay_below_limit;
#[cfg(debug_assertions)]
mod roles_die_at_crash_points;
#[path = "../processes/singleton_is_active_once.rs"]
mod singleton_is_active_once;
mod stopped_roles_are_replaced;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

fn main() -> ExitCode {
    instance_program::run_if_asked();
    minimal_supervisor::run_role_if_asked();
    gapless_testkit::scenarios::run(vec![
        #[cfg(debug_assertions)]
        roles_die_at_crash_points::module(),
        stopped_roles_are_replaced::module(),
        singleton_is_active_once::module(rounds(2_000, 500)),
        logs_stay_below_limit::module(1024),
        kills_start_nothing_twice::module(rounds(2_000, 500)),
    ])
}
