//! [`MemberService`]: a service on a member's stream. It takes the place of the responder and reads only released
//! frames.

use crate::AgentRole;
use crate::egress::Egress;
use crate::handled_commands::HandledCommands;
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

/// Fatal error of a service.
pub type ServiceError = Box<dyn std::error::Error + Send + Sync>;

pub trait MemberService {
    /// Journal positions recorded by the service's snapshots, oldest first. A snapshot covers released frames only, so
    /// it may be ahead of the member's own records.
    fn points(&self, layout: &StreamLayout) -> Result<Vec<FilePoint>, ServiceError>;

    /// Recovers the state after the released, journaled frame `sequence`.
    ///
    /// # Errors
    /// Damage, a gap, or a frame at which the service stops.
    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError>;

    /// `None` for a service that handles released frames.
    fn transactions(&mut self, links: &TransactionLinks<'_>) -> Option<Box<dyn Transactions>> {
        let _ = links;
        None
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    /// Typed commands that this program handles; a leader marks the others as unhandled. `None`: it marks none.
    fn handled_commands(&self) -> Option<HandledCommands> {
        None
    }

    /// Rules that the recovered stream lacks; a leader writes them into it.
    fn fault_rules_to_write(&self) -> Option<FaultRules> {
        None
    }

    /// Creates the agent named `service` that applies further released frames and answers publishers.
    fn agent(self: Box<Self>, parts: ServiceParts<'_>) -> Result<ServiceAgents, ServiceError>;
}

pub struct ServiceAgents {
    pub service: Box<dyn Agent>,
    /// Agent that sends replies on a thread of its own.
    pub sender: Option<Box<dyn Agent>>,
}

impl ServiceAgents {
    /// A service that sends its replies itself.
    #[must_use]
    pub fn alone(service: impl Agent + 'static) -> Self {
        Self { service: Box::new(service), sender: None }
    }

    /// Agents by role; the service gets `service`.
    #[must_use]
    pub fn by_role(self, service: AgentRole) -> Vec<(AgentRole, Box<dyn Agent>)> {
        let sender = self.sender.map(|sender| (AgentRole::Sender, sender));
        std::iter::once((service, self.service)).chain(sender).collect()
    }
}

/// Parts for the agent that sends replies.
pub struct SenderParts {
    pub queue_depth: usize,
    pub waker: Waker,
}

/// Connections of speculative execution.
pub struct TransactionLinks<'a> {
    /// Wakes the agent that calls it.
    pub member: &'a Waker,
    /// Wakes the service's agent.
    pub service: &'a Waker,
    /// Released frames.
    pub window: &'a Window,
    pub layout: &'a StreamLayout,
    pub counters: &'a Counters,
}

pub struct ServiceParts<'a> {
    /// Released frames after the recovered sequence.
    pub cursor: GatingCursor,
    /// Shows how many frames are still to come.
    pub window: Window,
    /// Sender to the publishers of this member.
    pub egress: Egress,
    /// Set if replies have a thread of their own.
    pub sender: Option<SenderParts>,
    pub from_sequencer: Mailbox<ResponderMessage>,
    pub sequencer: Mailbox<SequencerRequest>,
    pub sequencer_waker: Waker,
    pub counters: &'a Counters,
    pub layout: &'a StreamLayout,
    pub identity: StreamIdentity,
    pub syncer: Syncer,
    /// Receives the sequence of each snapshot.
    pub watermark: RetentionWatermark,
    /// State hashes at sequences that are the same on each member.
    pub hashes: Mailbox<StateHash>,
    pub waker: Waker,
    pub frames_per_poll_max: usize,
    /// Helper threads; without, polls do their work.
    pub has_helpers: bool,
    /// Set once by the agent.
    pub snapshots: Arc<OnceLock<Arc<dyn Snapshots>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateHash {
    /// Last covered frame.
    pub sequence: u64,
    /// Identity of the state's form (`gapless_message::state::form_of`); states of different forms are not compared.
    pub form: u64,
    pub hash: u64,
}

/// Snapshots of a member's service, for any thread.
pub trait Snapshots: Send + Sync {
    /// Takes a snapshot of everything handled so far, waits until it is on the device, and returns its sequence. Gives
    /// up once `is_over` returns true.
    fn take(&self, is_over: &dyn Fn() -> bool) -> Result<u64, String>;

    /// Does not wait.
    fn expedite(&self);

    /// Oldest first: sequence and file.
    fn list(&self) -> Result<Vec<(u64, PathBuf)>, String>;

    fn file_name(&self, sequence: u64) -> String;

    /// Checks that the file, which comes from another member, is a snapshot of this stream at `sequence`. The error
    /// says what is wrong.
    fn check(&self, path: &Path, sequence: u64) -> Result<(), String>;
}
