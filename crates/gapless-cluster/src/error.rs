//! [`ClusterError`]: why a member cannot start, or cannot go on.

use crate::consensus::{ConsensusError, RecoveryError};
use crate::link::LinkError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_stream::StreamError;
use std::path::PathBuf;

/// What remains where the way of an error is closed: it leads by way of the other members.
const NOBODY_ELSE: &str = "; where no other member has what this one had, `gapless cluster recover --force-single` makes it \
                           a cluster of one, for which its journal is enough";

/// What a member cannot start with, or go on after.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The window.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Consensus refuses its options or members.
    #[error(transparent)]
    Consensus(#[from] ConsensusError),
    /// The journal's records do not make a state.
    #[error("{path}: {source}")]
    Recovery {
        /// The journal.
        path: PathBuf,
        /// What is wrong.
        source: RecoveryError,
    },
    /// The links.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No thread.
    #[error(transparent)]
    Agent(gapless_agent::Error),
    /// The directory holds something else.
    #[error("{path}: {reason}")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What it holds.
        reason: String,
    },
    /// A file is damaged, or another directory's.
    #[error(
        "{path} is damaged, or of another directory; begin the member anew with an empty directory and `gapless cluster add \
         --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file is gone that the directory has had.
    #[error(
        "{path} is missing, and this directory has had it; begin the member anew with an empty directory and `gapless \
         cluster add --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file says less than another one knows that it has said.
    #[error(
        "{path} is an older copy of itself: {found}, and {expected}; begin the member anew with an empty directory and \
         `gapless cluster add --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What another file says.
        expected: String,
    },
    /// It was removed from its cluster.
    #[error(
        "member {member} was removed from its cluster ({reason}) and does not start again; its directory can go, and a new \
         member takes a new number"
    )]
    Removed {
        /// Which member.
        member: u64,
        /// Who said so.
        reason: String,
    },
    /// The file is of another incarnation than the directory.
    #[error(
        "{path}: the directory is of incarnation {found}, and the file says {configured}: one of the two is from before or \
         after a forced recovery; take the other file, or an empty directory and a new member's number"
    )]
    OtherIncarnation {
        /// Where it stands.
        path: PathBuf,
        /// The directory's.
        found: u64,
        /// The file's.
        configured: u64,
    },
    /// It was so far behind that it has fetched the state of another member, which its next start puts into place.
    #[error(
        "member {member} was too far behind for its leader's journal and has fetched a state up to sequence {sequence}: \
         start it again, it goes on from there"
    )]
    StartAgain {
        /// Which member.
        member: u64,
        /// Where it goes on.
        sequence: u64,
    },
    /// The others know it with another directory.
    #[error("member {member} is refused by member {by}: {reason}")]
    NotTheSame {
        /// Which member.
        member: u64,
        /// Who refuses it.
        by: u64,
        /// Its words.
        reason: String,
    },
    /// Its log is not that of its leader, or of the member that it is compared with.
    #[error(
        "the log of member {member} is not that of member {leader}: {}, and they part at frame {sequence} (entry \
         {index}) at the latest. A directory of the cluster was put back to an older copy, or exchanged, or a majority of the \
         machines lost power at tier `quorum`. Keep this directory until you know which members have what was \
         acknowledged; then replace the others by new ones with empty directories: `gapless cluster add --replace`",
        same_sequence.map_or_else(|| "no frame is known up to which it is the same".to_owned(),
            |sequence| format!("it is the same up to frame {sequence}"))
    )]
    OtherHistory {
        /// Which member.
        member: u64,
        /// Whom it is compared with.
        leader: u64,
        /// The newest frame up to which both are known to be the same.
        same_sequence: Option<u64>,
        /// The oldest entry at which they are known to differ.
        index: u64,
        /// The last frame up to there, as this member has it.
        sequence: u64,
    },
    /// The service's state is not that of the other members.
    #[error(
        "the state of member {member} differs from that of the others: {}, and is another one behind {sequence}; the \
         handlers do something there that is not the same on each member. Mend them, and start the member anew with an \
         empty directory and a new number, or without snapshots behind the first of the two",
        if *agreed_sequence == 0 { "no sequence is known at which it was the same".to_owned() }
        else { format!("it was the same behind sequence {agreed_sequence}") }
    )]
    Differs {
        /// Which member.
        member: u64,
        /// The last sequence at which it agreed with the others; 0 if none is known.
        agreed_sequence: u64,
        /// The first at which it does not.
        sequence: u64,
    },
    /// The operating system.
    #[error("{action}: {source}")]
    System {
        /// What was to be done.
        action: String,
        /// Its word.
        source: std::io::Error,
    },
    /// The service that was to run on the member.
    #[error(transparent)]
    Service(gapless_stream::member_service::ServiceError),
    /// Syncing has failed; it is never tried again.
    #[error("syncing the journal: {reason}")]
    Sync {
        /// Why.
        reason: String,
    },
}
