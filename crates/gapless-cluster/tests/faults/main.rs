//! Promises of a cluster whose members are killed, paused, cut off, lie or have failing disks and wrong clocks: one
//! program, without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod processes;

mod a_copy_of_a_directory_is_found_out;
mod a_damaged_member_is_refused_or_mended;
mod a_disk_that_fails_stops_one_member;
mod a_killed_member_loses_nothing;
mod a_member_that_missed_single_messages_soon_catches_up;
mod a_member_too_far_behind_gets_a_state;
mod a_slow_or_cut_off_member_harms_nobody;
mod a_wrong_clock_harms_nobody;
mod a_wrong_member_is_refused;
mod client_histories_are_linearizable;
mod packets_are_really_lost;

use std::process::ExitCode;

fn main() -> ExitCode {
    processes::be_a_member_if_asked();
    packets_are_really_lost::run_if_inside();
    gapless_testkit::scenarios::run(vec![
        a_copy_of_a_directory_is_found_out::module(),
        a_damaged_member_is_refused_or_mended::module(),
        a_disk_that_fails_stops_one_member::module(),
        a_killed_member_loses_nothing::module(),
        a_member_that_missed_single_messages_soon_catches_up::module(),
        a_member_too_far_behind_gets_a_state::module(),
        a_slow_or_cut_off_member_harms_nobody::module(),
        a_wrong_clock_harms_nobody::module(),
        a_wrong_member_is_refused::module(),
        client_histories_are_linearizable::module(),
        packets_are_really_lost::module(),
    ])
}
