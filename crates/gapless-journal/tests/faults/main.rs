#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[path = "../promises/support/mod.rs"]
mod support;

mod killed_archiver_loses_nothing;
mod killed_writer_loses_nothing;

use std::process::ExitCode;

fn main() -> ExitCode {
    killed_writer_loses_nothing::run_as_writer_if_requested();
    killed_archiver_loses_nothing::run_as_archiver_if_requested();
    gapless_testkit::scenarios::run(vec![
        killed_archiver_loses_nothing::module(),
        killed_writer_loses_nothing::module(),
    ])
}
