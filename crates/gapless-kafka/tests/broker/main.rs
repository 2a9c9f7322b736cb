//! Needs Java, and Maven the first time; without them each scenario is skipped. No harness: see
//! `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod clients;

mod a_disk_is_full;
mod broker_outages_pass;
#[cfg(feature = "tls-tests")]
mod connections_are_encrypted;
mod records_are_delivered;
mod refusals_are_classified;
mod round_trips_are_measured;
mod topics_are_made;

use std::process::ExitCode;

fn main() -> ExitCode {
    let modules = vec![
        records_are_delivered::module(),
        topics_are_made::module(),
        refusals_are_classified::module(),
        broker_outages_pass::module(),
        a_disk_is_full::module(),
        round_trips_are_measured::module(),
        #[cfg(feature = "tls-tests")]
        connections_are_encrypted::module(),
    ];
    gapless_testkit::scenarios::run(modules)
}
