//! What every window and ring promises, whatever memory it is in: one suite, run for anonymous memory,
//! for shared memory mapped a second time through its descriptor, and for a file opened by its path.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cursors;
mod frames;
mod models;
mod places;
mod ring;
mod truncation;
mod window;

/// Makes a test of each function for each kind of memory.
macro_rules! conformance {
    ($($module:ident: $($test:ident),+;)+) => {
        conformance! { @place anonymous Anonymous; $($module: $($test),+;)+ }
        conformance! { @place shared Shared; $($module: $($test),+;)+ }
        conformance! { @place file InFile; $($module: $($test),+;)+ }
    };
    (@place $name:ident $place:ident; $($module:ident: $($test:ident),+;)+) => {
        mod $name {
            $(mod $module {
                $(#[test] fn $test() {
                    crate::conformance::$module::$test(&<crate::conformance::places::$place as crate::conformance::places::Place>::new());
                })+
            })+
        }
    };
}

conformance! {
    window:
        frames_of_any_length_come_out_as_they_went_in,
        a_window_waits_for_its_slowest_cursor,
        frames_that_are_not_released_are_never_overwritten,
        a_frame_that_is_too_long_is_refused,
        an_abandoned_claim_leaves_no_trace,
        what_is_committed_is_seen_when_it_is_published,
        a_released_cursor_sees_what_is_released,
        a_new_cursor_starts_where_its_scope_ends,
        a_sequence_out_of_turn_cannot_be_committed,
        more_than_was_claimed_cannot_be_committed,
        a_frame_that_was_not_appended_cannot_be_released,
        a_release_cannot_be_withdrawn,
        sizes_that_no_window_can_have_are_refused,
        a_windows_identity_is_that_of_its_stream;
    truncation:
        what_is_behind_the_cut_is_gone,
        what_is_released_cannot_be_cut,
        what_was_not_published_is_cut_without_a_word,
        a_cursor_beyond_the_cut_is_told_even_if_the_window_has_grown_again,
        a_window_waits_until_its_cursors_know_of_the_cut,
        a_cut_far_behind_the_index_finds_its_frame;
    cursors:
        a_free_cursor_starts_anywhere,
        a_lapped_cursor_is_told_from_where_to_replay,
        what_an_abandoned_claim_overwrote_is_lost,
        a_large_window_lets_go_of_a_64th_early,
        an_index_with_fewer_slots_than_frames_says_lapped,
        a_free_cursor_before_the_first_frame_is_lapped,
        a_frame_that_was_cut_is_not_found_through_the_index,
        a_dropped_cursor_holds_nobody_up,
        a_cursor_cannot_pass_what_it_may_read;
    ring:
        frames_of_any_length_come_out_as_they_went_in,
        a_full_ring_takes_no_more_until_the_reader_releases,
        a_frame_longer_than_half_the_ring_is_refused,
        an_abandoned_claim_leaves_no_trace,
        what_is_discarded_is_never_seen,
        fragments_are_seen_together,
        more_than_was_claimed_cannot_be_committed,
        a_reader_cannot_pass_the_writer,
        the_sessions_of_the_next_frames_can_be_looked_at,
        an_end_that_closes_is_noticed_and_the_rest_can_be_read,
        an_end_left_to_its_peer_stays_open,
        an_end_that_is_opened_again_goes_on_where_it_was,
        a_reader_that_sleeps_is_reported;
    models:
        a_window_is_a_queue_with_many_readers,
        a_ring_is_a_queue;
}
