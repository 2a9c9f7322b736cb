//! The promises of the program `gapless`: one test program with a module for each promise, because linking a program
//! for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod floor;
#[path = "../program/mod.rs"]
mod program;
mod stream_process;

mod a_calculator_is_supervised;
mod a_call_says_all_from_a_shell;
mod a_directory_is_of_one_history;
mod a_file_that_was_cut_is_named;
mod a_floor_is_run_by_commands;
mod a_floor_stays_in_the_foreground;
mod a_guard_that_fails_hinders_nobody;
mod a_journal_is_looked_into;
mod a_late_joiner_over_udp_meets_every_line;
mod a_member_s_directory_is_verified_whole;
mod a_member_s_operator_is_told_what_is_wrong;
mod a_node_s_counters_are_shown;
mod a_page_is_made_of_runs;
mod a_poisoned_node_is_helped;
mod a_publisher_leaves_no_session;
mod a_sequence_is_skipped;
mod a_sequencer_that_stands_still_is_named;
mod a_silent_supervisor_keeps_nobody_waiting;
mod a_snapshot_is_taken_by_command;
mod a_stream_is_archived;
mod a_stream_is_controlled;
mod a_stream_is_passed_on;
mod a_stream_runs_over_every_transport;
mod a_stream_s_nodes_are_shown;
mod a_stream_says_what_is_wrong;
mod a_supervisor_s_file_is_checked;
mod a_whole_floor_stays_up;
mod calls_say_what_is_wrong;
mod containers_share_a_directory;
mod copies_have_names_in_their_domain;
mod damage_to_counters_files_stops_no_call;
mod errors_say_what_helps;
mod lines_are_published_exactly_once;
mod looking_says_why_it_sees_nothing;
mod nodes_and_members_are_watched;
mod routes_are_called_and_served;
mod routes_are_changed_from_a_shell;
mod serving_ends_with_its_processes;
mod the_events_of_a_bus_are_shown;
mod the_program_explains_itself;
mod tools_say_what_a_directory_is;
mod what_is_gone_from_a_journal_is_missed;
mod who_is_not_allowed_sees_nothing;
mod who_waits_says_for_whom;
