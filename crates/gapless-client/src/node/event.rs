//! [`NodeEvent`]: the events delivered by a node's poll.

use crate::ClientError;
use crate::message_type::{MessageType, decode};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::{Encoding, Kind};

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Closed or failed; the node does nothing any more.
    Closed,
    /// Not connected, and trying to. It is the first event of a node whose first attempt fails; over networks no attempt fails, as the
    /// answer may still come.
    Connecting,
    /// Connected, and reading old messages.
    Rewinding,
    /// Everything available has been read; later messages are new.
    Live,
}

/// An event of a node.
#[derive(Debug)]
pub enum NodeEvent<'a> {
    State(NodeState),
    /// The node may publish from now on.
    Open {
        /// Identifier of the node's session in the stream.
        session: u64,
        /// Number of its next frame.
        next_session_seq: u64,
    },
    /// A message of any publisher.
    Message(Message<'a>),
    /// A timer has fired.
    Timer {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        /// Session that set it.
        owner: u64,
        /// Identifier chosen by the owner.
        timer: u64,
        /// Deadline, ns since the epoch.
        deadline_ns: u64,
        /// Whether this node set it.
        own: bool,
    },
    /// The stream's limit of timers is reached: this one is not set. Later messages of its publisher are not delayed.
    TimerRefused {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        /// Session that asked for it.
        owner: u64,
        /// Identifier chosen by the owner.
        timer: u64,
        /// Requested deadline, ns since the epoch.
        deadline_ns: u64,
        /// Whether this node asked for it.
        own: bool,
    },
    /// A publisher's session was opened or has ended.
    Session {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        session: u64,
        /// Whether it was opened; otherwise it has ended.
        opened: bool,
        /// Whether it is this node's.
        own: bool,
    },
    /// The stream is halted: the sequencer takes nothing more from publishers.
    Halted {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        /// Reason given by the operator.
        reason: &'a str,
    },
    /// The sequencer takes publishers' messages again.
    Resumed {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
    },
    /// A feed session has begun; this is its first frame.
    FeedBegan {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        feed_session: FeedSession,
    },
    /// A feed session has ended; this was its last frame.
    FeedEnded {
        /// Position in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        feed_session: FeedSession,
    },
    /// The stream was faster than this node, which continues from the journal. Nothing is lost.
    Lapped {
        /// Next sequence to be read.
        sequence: u64,
        /// Last released sequence.
        released_sequence: u64,
    },
    /// The sequencer takes nothing more from this node until the given time.
    Throttled {
        /// Sequenced time, ns since the epoch.
        until_ns: u64,
    },
    /// The stream's limit of sessions is reached; the node's session is not opened, and is requested again.
    Limit,
}

/// A message of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Position of its last frame in the order.
    pub sequence: u64,
    /// Sequenced time, ns since the epoch.
    pub timestamp_ns: u64,
    /// Session of its publisher.
    pub session: u64,
    /// Publisher's number of its last frame.
    pub session_seq: u64,
    /// Whether this node published it: its return is the acknowledgement.
    pub own: bool,
    /// Command or event.
    pub kind: Kind,
    /// Schema id << 16 | template id.
    pub schema: u32,
    /// Encoding of the payload.
    pub encoding: Encoding,
    /// CRC-32C of the payload of its last frame, as computed by its publisher.
    pub payload_crc: u32,
    /// Payload, of all fragments.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Type of the message.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        MessageType { schema: self.schema, encoding: self.encoding }
    }

    /// Decodes the message as `M`: an object or a view of the payload.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message than `M` ([`Message::message_type`]), or malformed.
    pub fn decode<M: gapless_schema::Message>(&self) -> Result<M::Decoded<'a>, ClientError> {
        decode::<M>(self.message_type(), self.payload)
    }
}
