//! The messages between sequencer, acceptor and service inside the process.

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
    /// A publisher has come.
    Opened {
        connection: ConnectionId,
        reader: RingReader,
        /// Whether what is in the ring comes from this process, and both checksums of each frame were right there.
        is_checked: bool,
    },
    /// A publisher is gone; messages that it published whole are still taken.
    Closed { connection: ConnectionId },
}

/// From the acceptor to the agent that sends replies.
pub enum EgressMessage {
    /// A publisher has come.
    Opened { connection: ConnectionId, writer: RingWriter, wake: Arc<OwnedFd> },
    /// A publisher is gone.
    Closed { connection: ConnectionId },
}

/// From the sequencer to the agent that answers publishers: a responder, or a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponderMessage {
    /// A session's replies go to this connection from now on.
    Attach {
        session: u64,
        token: u128,
        /// Where its replies go.
        connection: ConnectionId,
    },
    /// A command was repeated: send its reply again, or wait for it.
    Repeat {
        session: u64,
        /// The command, by the number of its last frame.
        session_seq: u64,
        connection: ConnectionId,
        /// The last sequence that was given before: once that is released, so is the command.
        last_sequence: u64,
    },
    /// An open session was opened again with its token.
    Reopen {
        session: u64,
        token: u128,
        /// The next session_seq that the sequencer accepts.
        next_session_seq: u64,
        /// The last notice that the publisher has received.
        notices_seen: u64,
        /// The last sequence that was given before: once that is released, so is everything below the next number.
        last_sequence: u64,
        connection: ConnectionId,
    },
    /// A frame was not taken.
    Refuse {
        connection: ConnectionId,
        session: u64,
        session_seq: u64,
        code: RefusalCode,
        /// For a gap the next expected session_seq, for a throttled publisher until when, for a session too many the
        /// low half of its token.
        detail: u64,
    },
    /// Nothing of this publisher is taken: this member follows another, or has followed one since it opened its sessions.
    NotLeader {
        connection: ConnectionId,
        /// Where the leader can be reached, one address a line; empty if that is not known.
        leader: Arc<str>,
    },
    /// This member leads no more: sessions that were opened here and are not released yet are not known to be in the
    /// stream, and their numbers may become those of others.
    LeadsNoMore,
    /// This member leads, after the frame `last_sequence`, and its sequencer has none of the timers of the stream's own
    /// service: it needs them as they stand there.
    Leads {
        /// The last frame of others.
        last_sequence: u64,
    },
}

/// To the sequencer, from the service or from the stream's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequencerRequest {
    SetTimer {
        /// The service's identifier.
        timer: u64,
        /// When, ns since the epoch.
        deadline_ns: u64,
    },
    /// A timer is not to fire any more.
    CancelTimer {
        /// The service's identifier.
        timer: u64,
        /// When it was to fire.
        deadline_ns: u64,
    },
    /// Takes nothing more from publishers, at once: frames that they have published and that are not in the stream yet
    /// wait. Between two feed sessions it takes effect as the next one begins, if the process still runs then.
    Halt {
        /// Why, for a person.
        reason: String,
    },
    /// Takes publishers' messages again; between two feed sessions as the next one begins.
    Resume,
    /// Ends the feed session that is open, if there is one, and begins another.
    BeginFeed {
        /// The name of the new one.
        name: FeedSession,
    },
    /// Ends the feed session that is open; publishers' messages wait until another begins.
    EndFeed,
    /// Moves the time of a stream on, to the next timer or to `to_ns`; of one with a
    /// [`ManualTime`](crate::manual_time::ManualTime).
    MoveTime {
        /// ns since the epoch.
        to_ns: u64,
    },
    /// From here on the stream's own service acts as this version of itself, not 0.
    ServiceVersion { version: u32 },
    /// The rules for faults of the stream's own service, for the rest of the stream's life; nothing where it has some.
    FaultRules(FaultRules),
    /// How much each publisher may send from now on.
    Throttle(Option<Throttle>),
    /// A command whose sender receives where it took effect.
    Control {
        /// The number of the command, for the answer.
        number: u64,
        command: ControlCommand,
    },
}
