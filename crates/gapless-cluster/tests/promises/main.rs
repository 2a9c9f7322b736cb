//! One program: linking one for each promise would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod cluster;
mod linked_members;
mod replication_model;

mod broken_links_reconnect;
mod catch_up_is_proportional;
mod committed_frames_are_kept;
mod earlier_format_is_migrated;
mod event_stream_has_no_flags;
mod foreign_bytes_are_checked;
mod idle_cluster_sleeps;
mod idle_restarts_write_nothing;
mod interrupted_fetch_resumes;
mod large_segments_are_recovered;
mod local_members_share_memory;
mod lost_member_is_replaced;
mod members_agree;
mod members_are_discovered;
mod members_join_and_leave;
mod messages_arrive_in_order;
mod new_member_sleeps;
mod replication_model_holds;
mod unknown_peers_are_refused;
