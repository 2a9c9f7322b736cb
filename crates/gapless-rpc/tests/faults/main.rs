//! Without a harness, see `gapless_testkit::scenarios`. Slow.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod counted;
#[path = "../processes/instance_process.rs"]
mod instance_process;

#[cfg(debug_assertions)]
mod backlog_crash_points;
mod calls_survive_kills;
#[path = "../processes/corrupt_memory_is_contained.rs"]
mod corrupt_memory_is_contained;
#[cfg(debug_assertions)]
mod death_at_crash_points;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

fn main() -> ExitCode {
    instance_process::be_one_if_asked();
    corrupt_memory_is_contained::be_a_caller_if_asked();
    counted::be_an_instance_if_asked();
    counted::be_a_caller_if_asked();
    #[cfg(debug_assertions)]
    backlog_crash_points::be_the_caller_if_asked();
    gapless_testkit::scenarios::run(vec![
        calls_survive_kills::module(),
        #[cfg(debug_assertions)]
        backlog_crash_points::module(),
        #[cfg(debug_assertions)]
        death_at_crash_points::module(),
        corrupt_memory_is_contained::module(rounds(10_000, 2_000) as u32),
    ])
}
