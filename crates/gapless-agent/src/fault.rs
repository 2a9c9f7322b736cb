//! Named crash points and mutants; empty without debug assertions. `GAPLESS_CRASH_POINT=name:n` makes the process kill
//! itself with SIGKILL at the n-th pass (from 1) of that point; `GAPLESS_MUTANT=name` enables a known defect that the
//! tests must catch.

/// Crash points of every process with a journal.
pub const CRASH_POINTS: [&str; 12] = [
    "between_claim_and_commit",
    "before_journal_copy",
    "after_journal_copy",
    "before_journaled_mark",
    "before_sync",
    "after_sync",
    "before_reply",
    "in_snapshot_write",
    "before_snapshot_rename",
    "before_segment_roll",
    "after_segment_roll",
    "after_segment_name",
];

pub const ARCHIVE_CRASH_POINTS: [&str; 5] =
    ["archive_in_copy", "archive_after_copy", "archive_after_stub", "archive_before_removal", "archive_after_removal"];

/// Crash points of a command bus that deletes events: the first while the effects of the events are recorded, the
/// others for each segment, `deletion_after_archive` for each archived one.
pub const DELETION_CRASH_POINTS: [&str; 6] = [
    "deletion_in_base",
    "deletion_after_base",
    "deletion_after_history",
    "deletion_after_segment",
    "deletion_after_archive",
    "deletion_after_sync",
];

pub const STREAM_CRASH_POINTS: [&str; 4] =
    ["in_state_write", "after_release_before_send", "between_packets", "before_answer"];

/// Crash points of a cluster's member: leader and follower have their own where the role matters.
pub const CLUSTER_CRASH_POINTS: [&str; 25] = [
    "leader_before_proposing",
    "leader_after_proposing",
    "leader_before_sending",
    "leader_after_sending",
    "leader_before_journaling",
    "leader_before_acknowledging",
    "leader_before_releasing",
    "leader_after_releasing",
    "follower_before_journaling",
    "follower_before_acknowledging",
    "follower_before_releasing",
    "follower_after_releasing",
    "becoming_leader",
    "ceasing_to_lead",
    "cut_before_checkpoint",
    "cut_after_checkpoint",
    "cut_after_truncation",
    "cut_before_removal",
    "start_before_truncation",
    "start_after_truncation",
    "fetch_before_appending",
    "fetch_after_appending",
    "fetch_before_position",
    "fetch_after_position",
    "hand_over",
];

/// Crash points of a member that lags too far for its leader's journal: while it fetches a state, and while its next
/// start installs that.
pub const SNAPSHOT_TRANSFER_CRASH_POINTS: [&str; 12] = [
    "snapshot_transfer_begin",
    "snapshot_transfer_after_offer",
    "snapshot_transfer_after_piece",
    "snapshot_transfer_after_files",
    "snapshot_transfer_after_frames",
    "snapshot_transfer_before_sync",
    "snapshot_transfer_before_complete",
    "snapshot_transfer_complete",
    "install_after_state",
    "install_between_journals",
    "install_after_journal",
    "install_before_removal",
];

/// Crash points of a command bus with a journal, in the order of a command's path; then those of its index, and of
/// aggregates that are not in memory.
pub const COMMAND_CRASH_POINTS: [&str; 13] = [
    "command_decided",
    "transaction_between_frames",
    "transaction_appended",
    "transaction_released",
    "index_run_begun",
    "index_run_written",
    "index_run_placed",
    "index_merge_begun",
    "index_merge_placed",
    "index_merge_removed",
    "index_opening",
    "aggregate_loading",
    "aggregate_loaded",
];

/// Crash points of calling routes of other processes.
pub const CALLER_CRASH_POINTS: [&str; 15] = [
    "discover_watching",
    "discover_connected",
    "attach_before_passing",
    "attach_passed",
    "call_waiting_for_slot",
    "call_slot_taken",
    "call_request_written",
    "call_offered_before_entry",
    "call_entered_before_tail",
    "call_offered",
    "call_waiting",
    "call_answer_seen",
    "call_withdrawn",
    "call_before_free",
    "call_revoked_before_wake",
];

/// Crash points of a caller with an overflow, in the order of a request's path.
pub const BACKLOG_CRASH_POINTS: [&str; 12] = [
    "backlog_entered",
    "backlog_mover_started",
    "overflow_segment_made",
    "overflow_block_written",
    "overflow_block_read",
    "overflow_segment_deleted",
    "backlog_taken",
    "backlog_offered",
    "backlog_slot_freed",
    "backlog_cancelled",
    "backlog_mover_ended",
    "overflow_helper_ended",
];

/// Crash points of serving routes to other processes.
pub const INSTANCE_CRASH_POINTS: [&str; 15] = [
    "sweep_lock_taken",
    "sweep_between_files",
    "serve_lock_taken",
    "serve_before_rename",
    "serve_listening",
    "bell_before_passing",
    "bell_passed",
    "instance_claimed",
    "instance_header_read",
    "instance_begun",
    "instance_handler_done",
    "instance_reply_written",
    "instance_answered_before_wake",
    "instance_before_done_bit",
    "instance_before_completion",
];

pub const GUARDIAN_CRASH_POINTS: [&str; 14] = [
    "guardian_locked",
    "guardian_listening",
    "guardian_before_supervisor",
    "guardian_supervisor_started",
    "guardian_connected",
    "guardian_welcomed",
    "guardian_before_fork",
    "guardian_forked",
    "guardian_started_told",
    "guardian_reaped",
    "guardian_ended_told",
    "guardian_listed",
    "guardian_forgotten",
    "guardian_ending",
];

/// Crash points of a process that becomes supervised.
pub const LAUNCH_CRASH_POINTS: [&str; 11] = [
    "launch_begun",
    "launch_locked",
    "launch_read",
    "launch_recorded",
    "launch_confined",
    "launch_limited",
    "launch_log_opened",
    "launch_standby",
    "launch_active",
    "launch_before_exec",
    "launch_refused",
];

/// Crash points of writing into a supervisor's directory, or querying its guardian.
pub const SUPERVISOR_CRASH_POINTS: [&str; 6] = [
    "state_before_rename",
    "state_renamed",
    "supervisor_locked",
    "supervisor_before_guardian",
    "supervisor_guardian_started",
    "supervisor_connected",
];

/// All mutants; a test must catch each.
pub const MUTANTS: [&str; 19] = [
    "acknowledge_before_journal",
    "skip_truncation",
    "drop_session_table",
    "keep_cut_state",
    "forget_vote",
    "commit_without_quorum",
    "vote_after_power_loss",
    "believe_own_clock",
    "released_frames_may_differ",
    "keep_cut_overlay",
    "forget_session_order",
    "drop_identifiers",
    "believe_stale_index",
    "drop_notice",
    "acknowledge_what_was_not_taken",
    "send_again_under_a_new_number",
    "take_any_session_for_its_own",
    "forget_the_last_number",
    "give_up_early",
];

#[cfg(not(debug_assertions))]
#[inline(always)]
pub const fn crash_point(_name: &'static str) {}

#[cfg(not(debug_assertions))]
#[inline(always)]
#[must_use]
pub const fn mutant(_name: &'static str) -> bool {
    false
}

#[cfg(debug_assertions)]
pub use armed::{crash_point, mutant};

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct ArmedPoint {
        point: String,
        passes_left: AtomicU64,
    }

    static ARMED: OnceLock<Option<ArmedPoint>> = OnceLock::new();
    static MUTANT: OnceLock<Option<String>> = OnceLock::new();

    fn armed() -> Option<&'static ArmedPoint> {
        ARMED
            .get_or_init(|| {
                let value = std::env::var("GAPLESS_CRASH_POINT").ok()?;
                let (point, pass) = value.split_once(':').expect("GAPLESS_CRASH_POINT is name:n");
                assert!(is_named(point), "GAPLESS_CRASH_POINT names no crash point: {point}");
                let pass: u64 = pass.parse().expect("GAPLESS_CRASH_POINT is name:n with a number n from 1");
                Some(ArmedPoint { point: point.to_owned(), passes_left: AtomicU64::new(pass) })
            })
            .as_ref()
    }

    fn is_named(point: &str) -> bool {
        [
            &super::CRASH_POINTS[..],
            &super::ARCHIVE_CRASH_POINTS,
            &super::DELETION_CRASH_POINTS,
            &super::STREAM_CRASH_POINTS,
            &super::CLUSTER_CRASH_POINTS,
            &super::SNAPSHOT_TRANSFER_CRASH_POINTS,
            &super::COMMAND_CRASH_POINTS,
            &super::CALLER_CRASH_POINTS,
            &super::BACKLOG_CRASH_POINTS,
            &super::INSTANCE_CRASH_POINTS,
            &super::GUARDIAN_CRASH_POINTS,
            &super::LAUNCH_CRASH_POINTS,
            &super::SUPERVISOR_CRASH_POINTS,
        ]
        .iter()
        .any(|points| points.contains(&point))
    }

    /// Kills the process here if the environment requests it.
    pub fn crash_point(name: &'static str) {
        // A repository test compares all names with the lists.
        let Some(armed) = armed() else { return };
        debug_assert!(is_named(name), "unknown crash point {name}");
        if armed.point == name && armed.passes_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let myself = rustix::process::getpid();
            rustix::process::kill_process(myself, rustix::process::Signal::KILL).expect("a process may kill itself");
            // SIGKILL is pending; no code after this point may run.
            loop {
                std::thread::park();
            }
        }
    }

    #[must_use]
    pub fn mutant(name: &'static str) -> bool {
        let planted = MUTANT.get_or_init(|| {
            let planted = std::env::var("GAPLESS_MUTANT").ok()?;
            assert!(super::MUTANTS.contains(&planted.as_str()), "GAPLESS_MUTANT names no mutant: {planted}");
            Some(planted)
        });
        let Some(planted) = planted else { return false };
        debug_assert!(super::MUTANTS.contains(&name), "unknown mutant {name}");
        planted == name
    }
}
