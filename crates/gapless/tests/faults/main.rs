//! The promises of a service whose process is killed: one program, without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bank_witness;
mod fault_witness;

#[cfg(debug_assertions)]
mod a_killed_bank_loses_no_command;
#[cfg(debug_assertions)]
mod a_killed_deletion_loses_nothing;
mod a_killed_member_loses_no_command;
#[cfg(debug_assertions)]
mod a_killed_owner_of_a_bus_loses_no_command;
mod a_killed_service_goes_on_from_any_moment;
#[cfg(debug_assertions)]
mod a_killed_service_loses_nothing_acknowledged;

use std::process::ExitCode;

fn main() -> ExitCode {
    bank_witness::process::be_the_bank_if_asked();
    #[cfg(debug_assertions)]
    a_killed_deletion_loses_nothing::be_the_deleter_if_asked();
    fault_witness::process::be_the_service_if_asked();
    gapless_testkit::scenarios::run(vec![
        a_killed_service_goes_on_from_any_moment::module(),
        #[cfg(debug_assertions)]
        a_killed_bank_loses_no_command::module(),
        #[cfg(debug_assertions)]
        a_killed_deletion_loses_nothing::module(),
        a_killed_member_loses_no_command::module(),
        #[cfg(debug_assertions)]
        a_killed_owner_of_a_bus_loses_no_command::module(),
        #[cfg(debug_assertions)]
        a_killed_service_loses_nothing_acknowledged::module(),
    ])
}
