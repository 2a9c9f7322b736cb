//! Tests that kill a service's process: one program without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bank_witness;
mod fault_witness;

#[cfg(debug_assertions)]
mod acknowledged_commands_survive_kill;
#[cfg(debug_assertions)]
mod killed_bank_keeps_commands;
#[cfg(debug_assertions)]
mod killed_deletion_keeps_events;
mod killed_member_keeps_commands;
#[cfg(debug_assertions)]
mod killed_owner_keeps_commands;
mod service_killed_anywhere;

use std::process::ExitCode;

fn main() -> ExitCode {
    bank_witness::process::run_bank_if_asked();
    #[cfg(debug_assertions)]
    killed_deletion_keeps_events::run_deleter_if_asked();
    fault_witness::process::be_the_service_if_asked();
    gapless_testkit::scenarios::run(vec![
        service_killed_anywhere::module(),
        #[cfg(debug_assertions)]
        killed_bank_keeps_commands::module(),
        #[cfg(debug_assertions)]
        killed_deletion_keeps_events::module(),
        killed_member_keeps_commands::module(),
        #[cfg(debug_assertions)]
        killed_owner_keeps_commands::module(),
        #[cfg(debug_assertions)]
        acknowledged_commands_survive_kill::module(),
    ])
}
