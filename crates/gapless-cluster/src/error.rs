use crate::consensus::{ConsensusError, RecoveryError};
use crate::link::LinkError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_stream::StreamError;
use std::path::PathBuf;

const NOBODY_ELSE: &str = "; where no other member has what this one had, `gapless cluster recover --force-single` makes it \
                           a cluster of one, for which its journal is enough";

/// Reason for which a member cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Consensus refuses its options or members.
    #[error(transparent)]
    Consensus(#[from] ConsensusError),
    /// The journal's records do not make a state.
    #[error("{path}: {source}")]
    Recovery { path: PathBuf, source: RecoveryError },
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Agent(gapless_agent::Error),
    /// The directory does not belong to this member.
    #[error("{path}: {reason}")]
    Foreign { path: PathBuf, reason: String },
    /// A file is damaged, or belongs to another directory.
    #[error(
        "{path} is damaged, or of another directory; begin the member anew with an empty directory and `gapless cluster add \
         --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Damaged { path: PathBuf },
    /// An earlier version of the program wrote the directory.
    #[error(
        "{directory} is a member's directory of an earlier format, written by {}, which this program does not read: its small files have no \
         checksums. It is not damaged. If the directories of all members are, the cluster goes on with the frames of one of them, by `gapless cluster \
         recover --force-single`, and with new members beside it: the guide \"running a cluster\" says which one. If it is this one alone, begin the \
         member anew with an empty directory and `gapless cluster add --replace`, never with a copy",
        written_by.as_deref().unwrap_or("a program that does not say its version")
    )]
    EarlierFormat { directory: PathBuf, written_by: Option<String> },
    /// A file is missing that the directory used to have.
    #[error(
        "{path} is missing, and this directory has had it; begin the member anew with an empty directory and `gapless \
         cluster add --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Missing { path: PathBuf },
    /// A file is older than another one requires.
    #[error(
        "{path} is an older copy of itself: {found}, and {expected}; begin the member anew with an empty directory and \
         `gapless cluster add --replace`, never with a copy{}",
        NOBODY_ELSE
    )]
    Older { path: PathBuf, found: String, expected: String },
    #[error(
        "member {member} was removed from its cluster ({reason}) and does not start again; its directory can go, and a new \
         member takes a new number"
    )]
    Removed { member: u64, reason: String },
    /// The file and the directory have different incarnations.
    #[error(
        "{path}: the directory is of incarnation {found}, and the file says {configured}: one of the two is from before or \
         after a forced recovery; take the other file, or an empty directory and a new member's number"
    )]
    OtherIncarnation { path: PathBuf, found: u64, configured: u64 },
    /// No journal held the needed frames any more; the next start installs the state fetched from another member.
    #[error(
        "member {member} was too far behind for its leader's journal and has fetched a state up to sequence {sequence}: \
         start it again, it goes on from there"
    )]
    StartAgain { member: u64, sequence: u64 },
    /// The other members know it with another directory.
    #[error("member {member} is refused by member {by}: {reason}")]
    NotTheSame { member: u64, by: u64, reason: String },
    /// The log diverges from that of the leader, or of the member that it is compared with.
    #[error(
        "the log of member {member} is not that of member {leader}: {}, and they part at frame {sequence} (entry \
         {index}) at the latest. A directory of the cluster was put back to an older copy, or exchanged, or a majority of the \
         machines lost power at tier `quorum`. Keep this directory until you know which members have what was \
         acknowledged; then replace the others by new ones with empty directories: `gapless cluster add --replace`",
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
    /// The service's state differs from that of the other members.
    #[error(
        "the state of member {member} differs from that of the others: {}, and is another one after {sequence}: a \
         handler is not deterministic. Mend it, then start the member with an empty directory and a new number, or \
         without snapshots after the first of the two",
        if *agreed_sequence == 0 { "no sequence is known at which it was the same".to_owned() }
        else { format!("it was the same after sequence {agreed_sequence}") }
    )]
    Differs {
        member: u64,
        /// 0 if none is known.
        agreed_sequence: u64,
        sequence: u64,
    },
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// Error of the service that was to run on the member.
    #[error(transparent)]
    Service(gapless_stream::member_service::ServiceError),
    /// Never retried.
    #[error("syncing the journal: {reason}")]
    Sync { reason: String },
}
