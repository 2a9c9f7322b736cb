//! `ClusterError`: reasons for which a member cannot start or continue.

use crate::consensus::{ConsensusError, RecoveryError};
use crate::link::LinkError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_stream::StreamError;
use std::path::PathBuf;

const NOBODY_ELSE: &str = "; if no other member has the frames of this one, `gapless cluster recover \
                           --force-single` makes it a cluster of one from its journal";

/// Reason for which a member cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The stream of the member cannot start, or has failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A window or ring of the member failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The member's journal cannot be opened, read or written. Never put it back from a copy: replace the member.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Consensus refuses its options or members. Correct the cluster file.
    #[error(transparent)]
    Consensus(#[from] ConsensusError),
    /// The consensus records of the journal make no state: the directory is damaged. Replace the member with `gapless
    /// cluster add --replace`.
    #[error("{path}: {source}")]
    Recovery { path: PathBuf, source: RecoveryError },
    /// The links to the other members cannot be made. Correct the cluster file, or remove the cause.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A thread or a counter cannot be added.
    #[error(transparent)]
    Agent(gapless_agent::Error),
    /// The directory, or a file in it, belongs to another member, cluster or program. Start the member with its own
    /// directory and program.
    #[error("{path}: {reason}")]
    Foreign { path: PathBuf, reason: String },
    #[error(
        "{path} is damaged, or belongs to another directory; replace the member with an empty directory and `gapless \
         cluster add --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Damaged { path: PathBuf },
    #[error(
        "{directory} is a member's directory of an earlier format, written by {}, which this program does not read: \
         its small files have no checksums. It is not damaged. If all members have this format, keep the frames of one \
         of them with `gapless cluster recover --force-single` and add new members: the guide \"running a cluster\" \
         says which one. If only this member has it, replace the member with an empty directory and `gapless cluster \
         add --replace`, never with a copy",
        written_by.as_deref().unwrap_or("a program that does not say its version")
    )]
    EarlierFormat { directory: PathBuf, written_by: Option<String> },
    #[error(
        "{path} is missing from this directory; replace the member with an empty directory and `gapless cluster add \
         --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Missing { path: PathBuf },
    /// Another file of the directory is newer: a part of it was restored from a copy.
    #[error(
        "{path} is an older copy: {found}, and {expected}; replace the member with an empty directory and `gapless \
         cluster add --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Older { path: PathBuf, found: String, expected: String },
    #[error(
        "member {member} was removed from its cluster ({reason}) and does not start again; delete its directory, and \
         give a new member a new number"
    )]
    Removed { member: u64, reason: String },
    #[error(
        "{path}: the directory has incarnation {found}, the cluster file {configured}: one of the two is from before a \
         forced recovery; use the other file, or an empty directory and a new member number"
    )]
    OtherIncarnation { path: PathBuf, found: u64, configured: u64 },
    /// No journal holds the frames that the member lacks. The next start installs the fetched state.
    #[error(
        "member {member} lagged too far for its leader's journal and has fetched a state up to sequence {sequence}; \
         start it again to continue from there"
    )]
    StartAgain { member: u64, sequence: u64 },
    /// Another member knows this number with another directory, or this member has lost acknowledged entries. Start it
    /// with its own directory, or replace it with `gapless cluster add --replace`.
    #[error("member {member} is refused by member {by}: {reason}")]
    NotTheSame { member: u64, by: u64, reason: String },
    #[error(
        "the logs of the members {member} and {leader} differ: {}, and they diverge at frame {sequence} (entry \
         {index}) at the latest. A directory of the cluster was restored from an older copy or exchanged, or a \
         majority of the machines lost power at tier `quorum`. Keep this directory until you know which members have \
         the acknowledged frames; then replace the others by new members with empty directories: `gapless cluster add \
         --replace`",
        same_sequence.map_or_else(|| "no frame is known up to which it is the same".to_owned(),
            |sequence| format!("it is the same up to frame {sequence}"))
    )]
    OtherHistory {
        member: u64,
        leader: u64,
        /// Newest frame known to be equal.
        same_sequence: Option<u64>,
        /// Oldest entry known to differ.
        index: u64,
        /// Last frame up to there, as this member has it.
        sequence: u64,
    },
    #[error(
        "the state of member {member} differs from that of the others: {}, and differs after sequence {sequence}: a \
         handler is not deterministic. Fix it, then start the member with an empty directory and a new number, or \
         without its snapshots after the first of the two sequences",
        if *agreed_sequence == 0 { "no sequence is known at which it was the same".to_owned() }
        else { format!("it was the same after sequence {agreed_sequence}") }
    )]
    Differs {
        member: u64,
        /// 0 if none is known.
        agreed_sequence: u64,
        sequence: u64,
    },
    /// The operating system refused. Remove the cause and start again.
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// The service on the member cannot start, or has failed.
    #[error(transparent)]
    Service(gapless_stream::member_service::ServiceError),
    /// Never retried, because the system may have dropped the data. Check the disk, then start the member again.
    #[error("syncing the journal failed: {reason}")]
    Sync { reason: String },
}
