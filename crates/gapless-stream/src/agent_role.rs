//! [`AgentRole`]: the agents that a stream's process may have. Thread plans, wakers and agents are found by it; its
//! name is printed, shown by `ps` for the thread, and named by a failure.

use std::fmt;

/// The role of an agent. A plan has one agent of a role at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentRole {
    /// Puts publishers' frames in order.
    Sequencer,
    /// Passes on frames that another process has put in order.
    Relay,
    /// Does what a sequencer does where it leads a cluster, follows where it does not, and journals by itself.
    Member,
    /// Moves frames from the window into the journal.
    Journaler,
    /// Sends to publishers the fate of frames that are not simply appended.
    Responder,
    /// Runs a service's handlers.
    Service,
    /// Sends a service's replies, where that has a thread of its own.
    Sender,
    /// Takes what nodes publish by datagrams.
    Gateway,
    /// Takes what nodes and clients publish by TCP.
    TcpGateway,
    /// Sends released frames by datagrams.
    Feed,
    /// Sends lost datagrams again.
    Replayer,
    /// Serves the stream from any sequence on by TCP.
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
