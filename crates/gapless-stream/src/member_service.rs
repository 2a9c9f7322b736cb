//! [`MemberService`]: a service on a member's stream, as the host of services puts it there, and the messages between
//! the two. It stands in the place of the responder: it reads what is released, and nothing before.

use crate::AgentRole;
use crate::egress::Egress;
use crate::messages::{ResponderMessage, SequencerRequest};
use crate::retention_watermark::RetentionWatermark;
use crate::transactions::Transactions;
use gapless_agent::{Agent, Counters, Waker};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{FilePoint, Syncer};
use gapless_log::{GatingCursor, StreamIdentity, Window};
use gapless_transport::mailbox::Mailbox;
use gapless_wire::mark::FaultRules;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The error of a service that cannot go on.
pub type ServiceError = Box<dyn std::error::Error + Send + Sync>;

/// A service that is to run on a member.
pub trait MemberService {
    /// The points that its snapshots record of the journal beside them, oldest first. A snapshot is of released frames
    /// alone, so it may know of more than the member's records.
    ///
    /// # Errors
    /// The snapshots cannot be read.
    fn points(&self, layout: &StreamLayout) -> Result<Vec<FilePoint>, ServiceError>;

    /// Recovers its state after the frame `sequence`, which is released and journaled: from the newest snapshot and the
    /// journal.
    ///
    /// # Errors
    /// Damage, a gap, or a frame at which the service stops.
    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError>;

    /// Speculative execution, where this member leads; a service that handles what is released has none.
    fn transactions(&mut self, links: &TransactionLinks<'_>) -> Option<Box<dyn Transactions>> {
        let _ = links;
        None
    }

    /// The versions of itself that it can act as.
    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    /// The rules for faults that the service has and the recovered stream has not, to be written into it by a leader.
    fn fault_rules_to_write(&self) -> Option<FaultRules> {
        None
    }

    /// The agent that applies released frames from there on, and answers publishers. Its name is `service`.
    ///
    /// # Errors
    /// No thread, no file.
    fn agent(self: Box<Self>, parts: ServiceParts<'_>) -> Result<ServiceAgents, ServiceError>;
}

/// The agents of a service.
pub struct ServiceAgents {
    pub service: Box<dyn Agent>,
    /// Where replies leave on a thread of their own: the agent that sends them.
    pub sender: Option<Box<dyn Agent>>,
}

impl ServiceAgents {
    /// A service that answers by itself.
    #[must_use]
    pub fn alone(service: impl Agent + 'static) -> Self {
        Self { service: Box::new(service), sender: None }
    }

    /// As a stream is given its agents; the service has this role.
    #[must_use]
    pub fn by_role(self, service: AgentRole) -> Vec<(AgentRole, Box<dyn Agent>)> {
        let sender = self.sender.map(|sender| (AgentRole::Sender, sender));
        std::iter::once((service, self.service)).chain(sender).collect()
    }
}

/// The connection of the agent that sends a service's replies.
pub struct SenderParts {
    /// Replies that may wait for it.
    pub queue_depth: usize,
    /// Wakes its thread.
    pub waker: Waker,
}

/// The connections of a service's speculative execution.
pub struct TransactionLinks<'a> {
    /// Wakes the agent that calls it.
    pub member: &'a Waker,
    /// Wakes the service's agent.
    pub service: &'a Waker,
    /// What is released.
    pub window: &'a Window,
    pub layout: &'a StreamLayout,
    /// The member's counters.
    pub counters: &'a Counters,
}

/// The connections of a service's agent.
pub struct ServiceParts<'a> {
    /// Released frames, from after the recovered sequence on.
    pub cursor: GatingCursor,
    /// The window, to know what is still to come.
    pub window: Window,
    /// To the publishers of this member.
    pub egress: Egress,
    /// Where replies leave on a thread of their own.
    pub sender: Option<SenderParts>,
    /// From the sequencer.
    pub from_sequencer: Mailbox<ResponderMessage>,
    /// To the sequencer.
    pub sequencer: Mailbox<SequencerRequest>,
    /// Wakes the sequencer's thread.
    pub sequencer_waker: Waker,
    /// The member's counters.
    pub counters: &'a Counters,
    pub layout: &'a StreamLayout,
    pub identity: StreamIdentity,
    /// Puts the journal on the device.
    pub syncer: Syncer,
    /// Receives the sequence of each snapshot.
    pub watermark: RetentionWatermark,
    /// Takes hashes of the state, of sequences that are the same on each member.
    pub hashes: Mailbox<StateHash>,
    pub waker: Waker,
    /// Frames applied in one poll.
    pub frames_per_poll_max: usize,
    /// Whether it may have threads of its own; if not, its polls do their work.
    pub has_helpers: bool,
    /// Where the agent puts its snapshots, once.
    pub snapshots: Arc<OnceLock<Arc<dyn Snapshots>>>,
}

/// The hash of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateHash {
    /// The frame that it stands after.
    pub sequence: u64,
    pub hash: u64,
}

/// The snapshots of the service that runs on a member, for any thread.
pub trait Snapshots: Send + Sync {
    /// Takes one of everything that is handled by now, and waits until it is on the device; the sequence at which it
    /// stands. Given up once `is_over` says so.
    ///
    /// # Errors
    /// Why there is none.
    fn take(&self, is_over: &dyn Fn() -> bool) -> Result<u64, String>;

    /// Asks for one, and waits for nothing.
    fn hasten(&self);

    /// Those that there are, oldest first: sequence and file.
    ///
    /// # Errors
    /// Their directory cannot be read.
    fn list(&self) -> Result<Vec<(u64, PathBuf)>, String>;

    /// The name of the file of one at `sequence`.
    fn file_name(&self, sequence: u64) -> String;

    /// Whether the file at `path`, of another member, is one of this stream that stands at `sequence`.
    ///
    /// # Errors
    /// The fault of the snapshot.
    fn check(&self, path: &Path, sequence: u64) -> Result<(), String>;
}
