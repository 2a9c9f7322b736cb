//! Run for anonymous memory, for shared memory mapped a second time, and for a file opened by its path.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cursors;
mod frames;
mod models;
mod places;
mod ring;
mod truncation;
mod window;

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
        frames_of_any_length_are_unchanged,
        window_waits_for_slowest_cursor,
        unreleased_frames_are_kept,
        too_long_frame_is_refused,
        abandoned_claim_leaves_no_trace,
        committed_frame_appears_on_publish,
        released_scope_hides_unreleased,
        new_cursor_starts_at_scope_end,
        out_of_order_commit_panics,
        commit_beyond_the_claim_panics,
        release_beyond_appended_panics,
        release_cannot_go_back,
        invalid_sizes_are_refused,
        window_has_its_streams_identity;
    truncation:
        frames_after_the_cut_are_gone,
        released_frames_cannot_be_cut,
        unpublished_frames_are_cut_silently,
        regrown_window_reports_the_cut,
        window_waits_until_the_cut_is_noted,
        cut_before_the_index_works;
    cursors:
        free_cursor_starts_anywhere,
        lapped_cursor_gets_replay_sequence,
        abandoned_claim_loses_old_frames,
        large_window_drops_a_64th_early,
        small_index_reports_lapped,
        cursor_before_first_frame_is_lapped,
        truncated_frame_is_not_indexed,
        dropped_cursor_gates_nothing,
        cursor_cannot_pass_its_limit;
    ring:
        frames_of_any_length_are_unchanged,
        full_ring_waits_for_a_release,
        frame_over_half_the_ring_is_refused,
        abandoned_claim_leaves_no_trace,
        discarded_frames_are_never_seen,
        fragments_are_seen_together,
        commit_beyond_the_claim_panics,
        reader_cannot_pass_the_writer,
        sessions_of_next_frames_are_peeked,
        closed_ring_can_be_read_to_its_end,
        end_left_to_its_peer_stays_open,
        reopened_end_continues,
        sleeping_reader_is_reported;
    models:
        window_models_a_multi_reader_queue,
        ring_models_a_queue;
}
