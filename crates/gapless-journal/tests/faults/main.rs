//! Promises of the journal's writer when its process is killed: one program, without a harness, see
//! `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[path = "../promises/support/mod.rs"]
mod support;

mod a_killed_archiver_loses_nothing;
mod a_killed_writer_loses_nothing;

use std::process::ExitCode;

fn main() -> ExitCode {
    a_killed_writer_loses_nothing::run_as_writer_if_requested();
    a_killed_archiver_loses_nothing::run_as_archiver_if_requested();
    gapless_testkit::scenarios::run(vec![
        a_killed_archiver_loses_nothing::module(),
        a_killed_writer_loses_nothing::module(),
    ])
}
