#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

mod replica_processes;
#[path = "../warnings/mod.rs"]
mod warnings;

mod killed_durable_client;
mod killed_replica_keeps_replies;
mod killed_state_replica;
mod slow_service_blocks_none;
mod stopped_service_is_reported;

use std::process::ExitCode;

fn main() -> ExitCode {
    stopped_service_is_reported::run_as_service_if_requested();
    killed_durable_client::run_as_process_if_requested();
    killed_replica_keeps_replies::run_as_replica_if_requested();
    killed_state_replica::run_as_replica_if_requested();
    slow_service_blocks_none::run_as_replica_if_requested();
    gapless_testkit::scenarios::run(vec![
        stopped_service_is_reported::module(),
        killed_durable_client::module(),
        killed_replica_keeps_replies::module(),
        killed_state_replica::module(),
        slow_service_blocks_none::module(),
    ])
}
