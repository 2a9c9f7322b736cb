//! Needs Java, and Maven the first time; without them each scenario is skipped. No harness: see
//! `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod machines;
mod other_clock;
mod traffic;

mod a_disk_is_full;
mod a_name_is_taken;
mod a_partition_moves;
mod bridges_are_watched;
mod bridges_die;
mod bridges_stand_still;
mod brokers_die;
mod clocks_jump;
mod foreign_programs_call;
mod foreign_records;
mod records_are_lost;
mod remote_routes_are_called;
mod the_broker_is_slow;
mod the_broker_refuses;

use std::process::ExitCode;

/// Each has a broker of about 400 MB.
const AT_A_TIME: usize = 4;

fn main() -> ExitCode {
    machines::be_a_part_if_asked();
    gapless_testkit::scenarios::run(vec![
        remote_routes_are_called::module(),
        bridges_are_watched::module(),
        bridges_die::module(),
        brokers_die::module(),
        a_name_is_taken::module(),
        foreign_programs_call::module(),
        bridges_stand_still::module(),
        the_broker_refuses::module(),
        a_partition_moves::module(),
        records_are_lost::module(),
        the_broker_is_slow::module(),
        a_disk_is_full::module(),
        foreign_records::module(),
        clocks_jump::module(),
    ])
}
