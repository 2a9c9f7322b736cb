//! Bridges between domains over a real broker of Kafka 4, with processes that are killed and stopped: one program, without a harness, see
//! `gapless_testkit::scenarios`. Needs Java, and Maven the first time; without them each scenario says that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod machines;

mod a_name_is_taken;
mod bridges_are_watched;
mod bridges_die;
mod brokers_die;
mod foreign_programs_call;
mod routes_of_others_are_called;

use std::process::ExitCode;

fn main() -> ExitCode {
    machines::be_a_part_if_asked();
    gapless_testkit::scenarios::run(vec![
        routes_of_others_are_called::module(),
        bridges_are_watched::module(),
        bridges_die::module(),
        brokers_die::module(),
        a_name_is_taken::module(),
        foreign_programs_call::module(),
    ])
}
