//! Promises of the journal: one program with a module per promise, because linking a program for each takes longer than
//! running them all.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod support;

mod a_cut_leaves_a_journal_that_is_exact;
mod a_disk_that_refuses_is_an_error;
mod a_file_that_is_taken_away_is_noticed;
mod a_full_or_read_only_file_system_is_an_error;
mod a_journal_runs_for_weeks;
mod a_journal_with_records_is_the_model;
mod a_look_at_a_journal;
mod a_reader_goes_on_over_a_cut;
mod a_start_judges_exactly;
mod a_start_leaves_all_in_order;
mod another_users_files_are_not_touched;
mod archived_segments_stay_readable;
mod damage_in_a_record_is_an_error_or_a_reported_cut;
mod damage_is_an_error_or_a_reported_cut;
mod history_is_one;
mod random_damage_never_shortens;
mod records_stand_among_frames;
mod retention_goes_as_far_as_it_may;
mod what_is_appended_is_replayed;
