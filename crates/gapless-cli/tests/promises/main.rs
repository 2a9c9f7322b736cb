//! The promises of the program `gapless`: one program, with a module for each promise, because linking a program for
//! each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[path = "../program/mod.rs"]
mod program;
mod stream_process;

mod a_directory_is_of_one_history;
mod a_journal_is_looked_into;
mod a_late_joiner_over_udp_meets_every_line;
mod a_node_s_counters_are_shown;
mod a_publisher_leaves_no_session;
mod a_sequence_is_skipped;
mod a_snapshot_is_taken_by_command;
mod a_stream_is_archived;
mod a_stream_is_controlled;
mod a_stream_is_passed_on;
mod a_stream_runs_over_every_transport;
mod a_stream_s_nodes_are_shown;
mod a_stream_says_what_is_wrong;
mod calls_say_what_is_wrong;
mod errors_say_what_helps;
mod lines_are_published_exactly_once;
mod nodes_and_members_are_watched;
mod routes_are_called_and_served;
mod serving_ends_with_its_processes;
mod the_program_explains_itself;
mod what_is_gone_from_a_journal_is_missed;
