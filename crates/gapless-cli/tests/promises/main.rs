//! One program with a module for each promise, because linking a program for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod floor;
#[path = "../program/mod.rs"]
mod program;
mod stream_process;

mod a_guard_that_fails_hinders_nobody;
mod bus_events_are_shown;
mod calculator_is_supervised;
mod call_errors_are_explained;
mod calls_from_a_shell;
mod commands_change_processes;
mod containers_share_a_directory;
mod counter_damage_is_harmless;
mod empty_listings_are_explained;
mod errors_suggest_a_fix;
mod halted_sequencer_is_named;
mod help_is_complete;
mod histories_are_not_mixed;
mod instances_are_named;
mod journal_is_inspected;
mod late_udp_joiner_catches_up;
mod lines_are_published_exactly_once;
mod member_directory_is_verified;
mod member_errors_are_reported;
mod missing_segment_is_reported;
mod node_counters_are_shown;
mod nodes_and_members_are_watched;
mod poisoned_node_recovers;
mod publisher_closes_its_session;
mod report_page_is_written;
mod routes_change_by_command;
mod sequence_is_skipped;
mod serve_and_call_commands;
mod serve_ends_with_processes;
mod silent_supervisor_times_out;
mod snapshot_is_taken_by_command;
mod stream_errors_are_reported;
mod stream_is_archived;
mod stream_is_controlled;
mod stream_is_relayed;
mod stream_nodes_are_shown;
mod stream_over_every_transport;
mod supervisor_file_is_validated;
mod tools_identify_directories;
mod trading_floor_stays_up;
mod truncated_file_is_named;
mod up_stays_in_foreground;
mod waiting_commands_name_cause;
mod who_is_not_allowed_sees_nothing;
