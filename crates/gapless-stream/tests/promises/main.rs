//! Promises of event streams, their nodes and their networks: one program, with a module for each promise, because
//! linking a program for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod member;
mod memory_world;
mod raw_publisher;
mod raw_soup;
mod strange_packets;

mod a_feed_session_says_that_it_has_ended;
mod a_foreign_decoder_reads_the_feed;
mod a_halt_between_feed_sessions_holds;
mod a_member_follows_and_leads;
mod a_network_in_memory_repeats_itself;
mod a_new_publisher_is_heard_at_once;
mod a_publisher_hears_that_its_session_has_expired;
mod a_relay_keeps_to_limits;
mod a_relay_loses_nothing;
mod a_relay_remembers_feed_sessions;
mod a_request_is_answered_by_several_packets;
mod a_session_too_many_is_refused_to_who_asked;
mod a_stream_states_its_mtu;
mod a_throttle_counts_every_frame;
mod a_timer_too_many_is_refused;
mod datagrams_arrive;
mod every_transport_conforms;
mod forged_heartbeats_move_no_node;
mod nodes_over_tcp_go_on;
mod real_sockets_behind_a_bad_network;
mod soup_bin_tcp_clients_are_served;
mod udp_goes_on_where_packets_cannot_be_joined;
mod unfinished_messages_make_room;
mod what_finds_no_room_is_sent_later;
mod who_closes_a_session_opens_another;
mod who_has_read_nothing_begins_anew;
mod who_has_seen_more_is_not_let_in;
mod who_is_not_let_in_changes_nothing;
mod who_is_not_let_in_gets_no_feed;
mod who_names_a_session_gets_no_other;
mod who_reads_too_slowly_for_memory_is_told;
mod who_reads_what_retention_deletes_is_told;
mod who_runs_no_service_says_nothing_of_outcomes;
