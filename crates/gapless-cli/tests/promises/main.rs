//! What the program `gapless` promises: one program, with a module for each promise, because linking a program for each would
//! take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod bench_process;
mod program;
mod stream_process;

mod a_cluster_survives_its_leader;
mod a_failover_is_seen_as_clients_see_it;
mod a_journal_is_looked_into;
mod a_late_joiner_over_udp_meets_every_line;
mod a_node_s_counters_are_shown;
mod a_publisher_leaves_no_session;
mod a_sequence_is_skipped;
mod a_sequencer_is_measured_over_every_transport;
mod a_snapshot_is_taken_by_command;
mod a_stream_is_archived;
mod a_stream_is_controlled;
mod a_stream_is_passed_on;
mod a_stream_runs_over_every_transport;
mod a_stream_s_nodes_are_shown;
mod a_stream_says_what_is_wrong;
mod each_part_is_measured_beside_its_floor;
mod every_option_of_canonical_has_its_effect;
mod lines_are_published_exactly_once;
mod members_are_changed_by_commands;
mod nodes_and_members_are_watched;
mod the_program_explains_itself;
mod two_builds_are_compared;
