//! One program, because linking one for each promise takes longer than running them all.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod support;

mod appended_frames_are_replayed;
mod archived_segments_stay_readable;
mod disk_errors_are_reported;
mod foreign_owner_is_kept;
mod frame_damage_is_reported;
mod history_is_one;
mod journal_inspection;
mod journal_runs_for_weeks;
mod lost_files_are_detected;
mod random_damage_never_shortens;
mod reader_follows_truncation;
mod record_damage_is_reported;
mod records_among_frames;
mod records_match_model;
mod recovery_is_exact;
mod recovery_repairs_directory;
mod retention_limits;
mod truncation_is_exact;
mod unwritable_file_system;
