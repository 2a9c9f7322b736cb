//! One program, because linking one for each promise would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod attacked;
mod damages;
mod following_member;
mod replicas;
mod shared_client;
#[path = "../warnings/mod.rs"]
mod warnings;

mod call_deadlines;
mod call_keeps_other_messages;
mod changed_program_is_detected;
mod client_ahead_is_refused;
mod client_finds_leader;
mod commands_get_one_reply;
mod dead_service_times_out;
mod deposed_leader_restores_state;
mod derived_services;
mod derived_states;
mod directory_owner_is_checked;
mod diverged_member_stops;
mod expired_session_is_reopened;
mod handler_faults_are_reported;
mod hostile_publisher_is_isolated;
mod lagging_member_gets_snapshot;
mod long_messages_survive_restart;
mod manual_time;
mod member_directory_damage;
mod mismatches_name_the_difference;
mod missing_reply_is_reported;
mod notice_limit_precedes_effects;
mod operator_skips_command;
mod poisoned_command_is_skipped;
mod postponed_command_blocks_session;
mod programs_agree_on_commands;
mod programs_agree_on_timers;
mod queries_read_state;
mod random_numbers_are_deterministic;
mod refusal_effects_are_detected;
mod refusals_have_codes;
mod relay_directory_damage;
mod restarted_client_recovers_outcomes;
mod service_directory_damage;
mod service_instances_publish_once;
mod session_open_states_sequence;
mod single_node_replicated_state;
mod slow_client_blocks_none;
mod snapshots_release_journal;
mod state_versions_are_replaced;
mod store_errors;
mod store_matches_model;
mod stream_service_over_networks;
mod tcp_clients_are_served;
mod timer_wakes_sequencer;
mod too_long_replies;
mod typed_commands;
mod typed_messages;
mod unusable_directory_is_refused;
mod version_activation;
mod waiting_client_logs_server;
mod waiting_node_logs_reason;
