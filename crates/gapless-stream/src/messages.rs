//! Messages between sequencer, acceptor and service inside the process.

use gapless_client::control_messages::ControlCommand;
use gapless_client::throttle::Throttle;
use gapless_log::{RingReader, RingWriter};
use gapless_transport::link::ConnectionId;
use gapless_wire::control::RefusalCode;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::FaultRules;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// From the acceptor to the sequencer's agent.
pub enum PublisherEvent {
    Opened {
        connection: ConnectionId,
        reader: RingReader,
        /// Whether the frames in the ring come from this process, which has verified both checksums of each.
        is_checked: bool,
    },
    /// A publisher has disconnected; messages that it published whole are still taken.
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
    /// Replies of a session go to this connection from now on.
    Attach { session: u64, token: u128, connection: ConnectionId },
    /// A command was repeated: resend its reply, or wait for it.
    Repeat {
        session: u64,
        /// Number of the command's last frame.
        session_seq: u64,
        connection: ConnectionId,
        /// Last sequence assigned before: once it is released, so is the command.
        last_sequence: u64,
    },
    /// An open session was opened again with its token.
    Reopen {
        session: u64,
        token: u128,
        next_session_seq: u64,
        /// Last notice that the publisher has received.
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
        /// For a gap the next expected session_seq; for throttling the end time; for a session over the limit the low
        /// half of its token.
        detail: u64,
    },
    /// Frames of this publisher are not taken: this member follows another, or has since the publisher opened its
    /// sessions.
    NotLeader {
        connection: ConnectionId,
        /// Addresses of the leader, one a line; empty if they are not known.
        leader: Arc<str>,
    },
    /// This member no longer leads. Sessions opened here and not released may be missing from the stream, and their
    /// numbers may be reused for others.
    Deposed,
    /// This member leads, after the frame `last_sequence`. Its sequencer has no timers of the stream's own service: the
    /// service sends them as of that frame.
    Leads {
        /// Last frame of other leaders.
        last_sequence: u64,
    },
}

/// To the sequencer, from the service or from the stream's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequencerRequest {
    SetTimer {
        /// Identifier chosen by the service.
        timer: u64,
        deadline_ns: u64,
    },
    CancelTimer {
        /// Identifier chosen by the service.
        timer: u64,
        deadline_ns: u64,
    },
    /// Stops taking frames from publishers at once; published frames that are not in the stream yet wait. Between two
    /// feed sessions it takes effect at the beginning of the next, if the process is still running then.
    Halt { reason: String },
    /// Takes publishers' messages again; between two feed sessions, at the beginning of the next.
    Resume,
    /// Ends the open feed session, if there is one, and begins another.
    BeginFeed { name: FeedSession },
    /// Ends the open feed session; publishers' messages wait until another begins.
    EndFeed,
    /// Advances the time of a stream with a [`ManualTime`](crate::manual_time::ManualTime) to the next timer or to
    /// `to_ns`.
    MoveTime {
        /// Target time, ns since the epoch.
        to_ns: u64,
    },
    /// Makes the stream's own service run as this version of itself, instead of 0.
    ServiceVersion { version: u32 },
    /// Fault rules of the stream's own service, for the rest of the stream's life. Ignored if the stream has rules
    /// already.
    FaultRules(FaultRules),
    /// Rate limit of each publisher from now on.
    Throttle(Option<Throttle>),
    /// A command whose sender is told at which sequence it took effect.
    Control { number: u64, command: ControlCommand },
}
