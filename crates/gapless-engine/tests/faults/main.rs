//! Promises of a service on a cluster whose members are killed, stopped or slow: one program, without a harness, see
//! `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod replica_processes;
#[path = "../warnings/mod.rs"]
mod warnings;

mod a_client_of_a_stopped_service_is_told;
mod a_killed_replica_loses_no_reply;
mod a_killed_replica_of_state_loses_no_reply;
mod a_slow_service_holds_up_nobody;

use std::process::ExitCode;

fn main() -> ExitCode {
    a_client_of_a_stopped_service_is_told::run_as_service_if_requested();
    a_killed_replica_loses_no_reply::run_as_replica_if_requested();
    a_killed_replica_of_state_loses_no_reply::run_as_replica_if_requested();
    a_slow_service_holds_up_nobody::run_as_replica_if_requested();
    gapless_testkit::scenarios::run(vec![
        a_client_of_a_stopped_service_is_told::module(),
        a_killed_replica_loses_no_reply::module(),
        a_killed_replica_of_state_loses_no_reply::module(),
        a_slow_service_holds_up_nobody::module(),
    ])
}
