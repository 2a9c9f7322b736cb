//! Promises of services, stores and replicas. One program with a module per promise, because linking a program for each
//! would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod attacked;
mod damages;
mod following_member;
mod replicas;
#[path = "../warnings/mod.rs"]
mod warnings;

mod a_call_ends_in_its_time;
mod a_call_keeps_what_else_comes;
mod a_client_finds_the_leader;
mod a_client_that_has_seen_more_is_told;
mod a_client_that_waits_says_for_whom;
mod a_command_gets_its_reply_once;
mod a_command_is_skipped_on_one_node;
mod a_command_that_cannot_run_yet_holds_up_its_session_alone;
mod a_copy_that_differs_stops;
mod a_dead_service_is_noticed_by_time;
mod a_deposed_leader_takes_its_state_back;
mod a_directory_is_started_by_its_owner_alone;
mod a_full_or_foreign_disk_is_a_clear_error;
mod a_handlers_fault_is_stated;
mod a_hostile_publisher_spoils_only_its_own_ring;
mod a_member_too_far_behind_gets_a_snapshot;
mod a_new_version_begins_at_one_sequence;
mod a_node_says_why_it_waits;
mod a_poisoned_command_is_skipped;
mod a_refusal_has_a_code;
mod a_refusal_with_an_effect_is_named;
mod a_replicated_state_needs_no_cluster;
mod a_reply_that_was_not_given_is_told;
mod a_restarted_client_asks_for_outcomes;
mod a_service_on_a_stream_runs_over_networks;
mod a_slow_client_holds_up_nobody;
mod a_snapshot_lets_the_journal_go;
mod a_store_is_as_its_model;
mod a_store_says_what_is_wrong;
mod a_test_moves_the_time;
mod a_timer_wakes_the_sequencer;
mod an_expired_session_is_opened_again;
mod an_open_says_what_the_stream_has;
mod another_program_is_noticed;
mod clients_come_by_tcp;
mod copies_of_a_service_on_a_stream_publish_once;
mod every_damage_has_its_outcome;
mod every_damage_to_a_member_has_its_outcome;
mod every_damage_to_a_relay_has_its_outcome;
mod every_reply_arrives_or_is_said_to_be_too_long;
mod handlers_draw_the_same_at_every_replay;
mod long_messages_survive_a_restart;
mod the_notice_limit_is_met_before_an_effect;
