//! Promises of clusters, their members and the links between these: one program, with a module for each promise,
//! because linking a program for each would take minutes more.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod cluster;
mod meeting;
mod replication_model;

mod a_broken_link_is_made_anew;
mod a_cluster_of_an_earlier_format_goes_on;
mod a_lost_partner_does_no_harm;
mod a_member_that_ends_while_it_fetches_starts_again;
mod a_new_member_sleeps_until_it_meets_the_others;
mod a_segment_of_many_entries_is_read_again;
mod an_idle_cluster_seldom_wakes;
mod an_unknown_peer_is_refused;
mod catching_up_costs_what_it_moves;
mod foreign_bytes_are_checked;
mod members_agree;
mod members_come_and_go;
mod members_find_each_other;
mod members_of_one_host_share_memory;
mod messages_arrive_whole_and_in_order;
mod replication_and_membership_hold;
mod starts_without_a_frame_fill_no_journal;
mod what_a_quorum_has_is_kept;
