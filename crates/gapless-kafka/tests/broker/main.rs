//! The client and a real broker of Kafka 4 that is killed, stopped, full, or refuses: one program, without a harness, see
//! `gapless_testkit::scenarios`. Needs Java, and Maven the first time; without them each scenario says that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod clients;

mod a_broker_comes_and_goes;
mod a_disk_is_full;
mod a_refusal_has_a_kind;
#[cfg(feature = "tls-tests")]
mod connections_are_encrypted;
mod records_go_and_come;
mod round_trips_are_measured;
mod topics_are_made;

use std::process::ExitCode;

fn main() -> ExitCode {
    let modules = vec![
        records_go_and_come::module(),
        topics_are_made::module(),
        a_refusal_has_a_kind::module(),
        a_broker_comes_and_goes::module(),
        a_disk_is_full::module(),
        round_trips_are_measured::module(),
        #[cfg(feature = "tls-tests")]
        connections_are_encrypted::module(),
    ];
    gapless_testkit::scenarios::run(modules)
}
