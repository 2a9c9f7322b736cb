//! `AgentRole`: the agents that a stream's process may have.

use std::fmt;

/// Role of an agent, at most one of each in a plan; its name is shown by `ps` for the thread, and in failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentRole {
    Sequencer,
    /// Forwards frames that another process has sequenced.
    Relay,
    /// Sequences as leader, appends the leader's frames as follower, and does its own journaling.
    Member,
    Journaler,
    /// Sends publishers the outcome of frames that are not simply appended.
    Responder,
    Service,
    /// Sends a service's replies on a thread of its own.
    Sender,
    /// Receives frames published by datagrams.
    Gateway,
    /// Receives frames published by TCP.
    TcpGateway,
    Feed,
    Replayer,
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
