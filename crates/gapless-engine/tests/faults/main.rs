//! What a service on a cluster promises when its members are killed, stand still or are slow: one program, without a harness,
//! see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod replica_processes;

mod a_killed_replica_loses_no_reply;
mod a_killed_replica_of_state_loses_no_reply;
mod a_slow_service_holds_up_nobody;

use std::process::ExitCode;

fn main() -> ExitCode {
    a_killed_replica_loses_no_reply::be_a_replica_if_asked();
    a_killed_replica_of_state_loses_no_reply::be_a_replica_if_asked();
    a_slow_service_holds_up_nobody::be_a_replica_if_asked();
    gapless_testkit::scenarios::run(vec![
        a_killed_replica_loses_no_reply::module(),
        a_killed_replica_of_state_loses_no_reply::module(),
        a_slow_service_holds_up_nobody::module(),
    ])
}
