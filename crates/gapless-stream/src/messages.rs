//! Messages between sequencer, acceptor and service inside the process.

use gapless_client::control_messages::ControlCommand;
use gapless_client::throttle::Throttle;
use gapless_log::{RingReader, RingWriter};
use gapless_transport::link::ConnectionId;
use gapless_wire::control::RefusalCode;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::FaultRules;
use gapless_wire::{Encoding, Frame};
use rustix::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// From the acceptor to the sequencer's agent.
pub enum PublisherEvent {
    Opened {
        connection: ConnectionId,
        reader: RingReader,
        /// This process has verified both checksums of each frame.
        is_checked: bool,
    },
    /// Messages that it published whole are still taken.
    Closed { connection: ConnectionId },
}

/// From the acceptor to the agent that sends replies.
pub enum EgressMessage {
    Opened { connection: ConnectionId, writer: RingWriter, wake: Arc<OwnedFd> },
    Closed { connection: ConnectionId },
}

/// From the sequencer to the agent that answers publishers: a responder, or a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponderMessage {
    Attach {
        session: u64,
        token: u128,
        connection: ConnectionId,
    },
    /// Resend the command's reply, or wait for it.
    Repeat {
        session: u64,
        session_seq: u64,
        connection: ConnectionId,
        /// Last sequence assigned before: once it is released, so is the command.
        last_sequence: u64,
    },
    Reopen {
        session: u64,
        token: u128,
        next_session_seq: u64,
        /// Received by the publisher.
        notices_seen: u64,
        /// Last sequence assigned before: once it is released, so is everything below `next_session_seq`.
        last_sequence: u64,
        connection: ConnectionId,
    },
    Refuse {
        connection: ConnectionId,
        session: u64,
        session_seq: u64,
        code: RefusalCode,
        /// Gap: next expected session_seq; throttling: end time; limit: low half of the token.
        detail: u64,
    },
    /// This member follows another, or has since the publisher opened its sessions.
    NotLeader {
        connection: ConnectionId,
        /// Addresses, one a line; empty if unknown.
        leader: Arc<str>,
    },
    /// Sessions opened here and not released may be missing from the stream, and their numbers be reused.
    Deposed,
    /// The sequencer has no timers of the stream's own service: the service sends them as of `last_sequence`.
    Leads {
        /// Last frame of other leaders.
        last_sequence: u64,
    },
    /// To be answered from the service's state. Boxed, because nearly all messages are shorter.
    Query(Box<QueryMessage>),
}

/// A frame of kind [`gapless_wire::Kind::Query`].
#[derive(Clone, Debug)]
pub struct QueryMessage {
    pub connection: ConnectionId,
    /// Has no value once the publisher is gone.
    pub publisher: Weak<()>,
    /// Number of the query, unique on its connection.
    pub number: u64,
    /// Sequence that must be handled first.
    pub after: u64,
    /// Longest wait for `after`, ns.
    pub wait_ns_max: u64,
    pub schema: u32,
    pub encoding: Encoding,
    pub payload: Vec<u8>,
}

impl QueryMessage {
    /// Copies a query whose checksums are verified.
    #[must_use]
    pub fn new(frame: &Frame<'_>, connection: ConnectionId, publisher: Weak<()>) -> Self {
        Self {
            connection,
            publisher,
            number: frame.session_seq(),
            after: frame.sequence(),
            wait_ns_max: frame.timestamp_ns(),
            schema: frame.schema(),
            encoding: frame.encoding(),
            payload: frame.payload().to_vec(),
        }
    }
}

impl PartialEq for QueryMessage {
    fn eq(&self, other: &Self) -> bool {
        let fields = |query: &Self| (query.connection, query.number, query.after, query.wait_ns_max);
        let is_of_publisher = self.publisher.ptr_eq(&other.publisher);
        let message = |query: &Self| (query.schema, query.encoding);
        is_of_publisher
            && fields(self) == fields(other)
            && message(self) == message(other)
            && self.payload == other.payload
    }
}

impl Eq for QueryMessage {}

/// To the sequencer, from the service or from the stream's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequencerRequest {
    SetTimer {
        timer: u64,
        deadline_ns: u64,
    },
    CancelTimer {
        timer: u64,
        deadline_ns: u64,
    },
    /// Published frames that are not in the stream yet wait. Between two feed sessions it takes effect at the beginning
    /// of the next, if the process still runs then.
    Halt {
        reason: String,
    },
    /// Between two feed sessions, at the beginning of the next.
    Resume,
    BeginFeed {
        name: FeedSession,
    },
    /// Publishers' messages wait until another begins.
    EndFeed,
    /// Advances a [`ManualTime`](crate::manual_time::ManualTime) to the next timer or to `to_ns`.
    MoveTime {
        /// ns since the epoch.
        to_ns: u64,
    },
    /// Version of the stream's own service, instead of 0.
    ServiceVersion {
        version: u32,
    },
    /// Rules of the stream's own service, for good; ignored if it has some.
    FaultRules(FaultRules),
    /// Rate limit of each publisher.
    Throttle(Option<Throttle>),
    /// The sender is told at which sequence it took effect.
    Control {
        number: u64,
        command: ControlCommand,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mailbox copies each message twice, for every session and repeat.
    #[test]
    fn messages_stay_short() {
        assert_eq!(size_of::<ResponderMessage>(), 64);
    }
}
