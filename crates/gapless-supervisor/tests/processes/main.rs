//! No harness: see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod floor;
mod instance_program;
mod minimal_supervisor;
mod serving_program;
mod test_place;

mod changed_files_are_applied;
mod escaped_processes_are_killed;
mod foreign_logs_are_untrusted;
mod former_state_is_taken_over;
mod guardian_outlives_supervisors;
mod guardian_survives_garbage;
mod kills_start_nothing_twice;
mod launcher_becomes_instance;
mod logs_stay_below_limit;
mod machine_faults_are_survived;
mod notifications_are_kept;
mod processes_stay_up;
mod routes_are_probed;
mod second_start_is_refused;
mod silent_roles_are_bypassed;
mod singleton_is_active_once;
mod stop_loses_no_call;
mod successor_takes_over;

use gapless_testkit::random::rounds;
use std::process::ExitCode;

const AT_A_TIME: usize = 24;

fn main() -> ExitCode {
    instance_program::run_if_asked();
    minimal_supervisor::run_role_if_asked();
    // Longest first.
    let modules = [
        silent_roles_are_bypassed::module(),
        processes_stay_up::module(),
        guardian_outlives_supervisors::module(),
        guardian_survives_garbage::module(),
        launcher_becomes_instance::module(),
        second_start_is_refused::module(rounds(1_000, 100)),
        singleton_is_active_once::module(rounds(300, 100)),
        stop_loses_no_call::module(),
        successor_takes_over::module(),
        changed_files_are_applied::module(),
        foreign_logs_are_untrusted::module(),
        former_state_is_taken_over::module(),
        logs_stay_below_limit::module(rounds(64, 16)),
        routes_are_probed::module(),
        notifications_are_kept::module(),
        machine_faults_are_survived::module(),
        escaped_processes_are_killed::module(),
        kills_start_nothing_twice::module(rounds(150, 50)),
    ];
    gapless_testkit::scenarios::run(modules.into_iter().map(|module| module.side_by_side(AT_A_TIME)).collect())
}
