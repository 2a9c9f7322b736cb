//! [`AgentRole`]: the agents that a stream's process may have. It is the key of thread plans and wakers; its name is
//! printed, shown by `ps` for the thread, and named in failures.

use std::fmt;

/// Role of an agent. A plan has at most one agent of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentRole {
    /// Puts publishers' frames in order.
    Sequencer,
    /// Forwards frames that another process has sequenced.
    Relay,
    /// A cluster's member: sequences as leader, appends the leader's frames as follower, and does its own journaling.
    Member,
    /// Moves frames from the window into the journal.
    Journaler,
    /// Sends publishers the outcome of frames that are not simply appended.
    Responder,
    /// Runs a service's handlers.
    Service,
    /// Sends a service's replies, where they have a thread of their own.
    Sender,
    /// Receives frames that nodes publish by datagrams.
    Gateway,
    /// Receives frames that nodes and clients publish by TCP.
    TcpGateway,
    /// Sends released frames by datagrams.
    Feed,
    /// Resends lost datagrams.
    Replayer,
    /// Serves the stream from any sequence by TCP.
    Rewind,
}

impl AgentRole {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequencer => "sequencer",
            Self::Relay => "relay",
            Self::Member => "member",
            Self::Journaler => "journaler",
            Self::Responder => "answers",
            Self::Service => "service",
            Self::Sender => "sender",
            Self::Gateway => "gateway",
            Self::TcpGateway => "tcp-gateway",
            Self::Feed => "feed",
            Self::Replayer => "replayer",
            Self::Rewind => "rewind",
        }
    }
}

impl fmt::Display for AgentRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
