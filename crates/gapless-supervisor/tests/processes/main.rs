//! Guarantees of guardian, launcher, supervisor and state directory, also when processes die at any moment. One program
//! without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod copy_program;
mod floor;
mod place;
mod serving_program;
mod stand_in;

mod a_floor_stays_up;
mod a_guardian_outlives_its_supervisors;
mod a_guardian_takes_what_comes;
mod a_launcher_becomes_its_copy;
mod a_second_start_is_impossible;
mod a_singleton_is_active_once;
mod a_stop_loses_no_call;
mod a_successor_goes_on_where_one_died;
mod files_change_while_they_are_in_force;
mod logs_of_another_user_are_not_trusted;
mod logs_stay_below_their_limit;
mod routes_are_looked_after;
mod what_a_copy_says_is_not_lost;
mod what_copies_and_the_machine_do_wrong;
mod what_escapes_is_found_by_its_group;
mod whoever_is_killed_nothing_starts_twice;
mod whoever_is_silent_or_lost_is_replaced;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

/// Concurrent scenarios; they spend nearly all of their time waiting.
const AT_A_TIME: usize = 24;

fn main() -> ExitCode {
    copy_program::run_if_asked();
    stand_in::run_role_if_asked();
    // Longest first.
    let modules = [
        whoever_is_silent_or_lost_is_replaced::module(),
        a_floor_stays_up::module(),
        a_guardian_outlives_its_supervisors::module(),
        a_guardian_takes_what_comes::module(),
        a_launcher_becomes_its_copy::module(),
        a_second_start_is_impossible::module(rounds(1_000, 100)),
        a_singleton_is_active_once::module(rounds(300, 100)),
        a_stop_loses_no_call::module(),
        a_successor_goes_on_where_one_died::module(),
        files_change_while_they_are_in_force::module(),
        logs_of_another_user_are_not_trusted::module(),
        logs_stay_below_their_limit::module(rounds(64, 16)),
        routes_are_looked_after::module(),
        what_a_copy_says_is_not_lost::module(),
        what_copies_and_the_machine_do_wrong::module(),
        what_escapes_is_found_by_its_group::module(),
        whoever_is_killed_nothing_starts_twice::module(rounds(150, 50)),
    ];
    gapless_testkit::scenarios::run(modules.into_iter().map(|module| module.side_by_side(AT_A_TIME)).collect())
}
