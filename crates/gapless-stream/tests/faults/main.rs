//! One program, without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod cut_link_is_recovered;
mod killed_sequencer_loses_nothing;

use std::process::ExitCode;

fn main() -> ExitCode {
    cut_link_is_recovered::play_a_part_if_asked();
    killed_sequencer_loses_nothing::play_a_part_if_asked();
    gapless_testkit::scenarios::run(vec![cut_link_is_recovered::module(), killed_sequencer_loses_nothing::module()])
}
