//! Promises of an event stream when its sequencer or its nodes are killed, or the link between them is cut: one
//! program, without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_cut_link_leaves_no_gap;
mod a_killed_sequencer_loses_nothing;

use std::process::ExitCode;

fn main() -> ExitCode {
    a_cut_link_leaves_no_gap::play_a_part_if_asked();
    a_killed_sequencer_loses_nothing::play_a_part_if_asked();
    gapless_testkit::scenarios::run(vec![
        a_cut_link_leaves_no_gap::module(),
        a_killed_sequencer_loses_nothing::module(),
    ])
}
