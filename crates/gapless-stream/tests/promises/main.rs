//! One program with a module for each promise: linking one for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod member;
mod memory_world;
mod raw_publisher;
mod raw_soup;
mod strange_packets;

mod close_keeps_other_opens;
mod datagrams_arrive;
mod deleted_frames_are_reported;
mod every_transport_conforms;
mod feed_session_end_is_announced;
mod foreign_decoder_reads_feed;
mod forged_heartbeats_are_ignored;
mod forged_packets_are_ignored;
mod full_ring_delays_resends;
mod halt_between_sessions_holds;
mod member_follows_and_leads;
mod memory_network_is_deterministic;
mod named_open_creates_nothing;
mod new_publisher_is_polled;
mod no_feed_without_admission;
mod no_outcome_without_service;
mod nodes_over_tcp;
mod queries_reach_the_service;
mod relay_keeps_limits;
mod relay_loses_nothing;
mod relay_restores_feed_sessions;
mod request_gets_several_packets;
mod restored_stream_is_refused;
mod session_expiry_is_reported;
mod session_limit_through_relay;
mod slow_memory_reader_is_told;
mod sockets_over_bad_network;
mod soup_bin_tcp_clients;
mod stream_states_its_mtu;
mod throttle_counts_every_frame;
mod timer_limit;
mod udp_without_packet_joining;
mod unfinished_messages_are_evicted;
mod unread_node_restarts;
