//! [`NodeEvent`]: the events that a node's poll hands out.

use crate::ClientError;
use crate::message_type::{MessageType, decode};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::{Encoding, Kind};

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// It was closed, or has failed; it does nothing any more.
    Closed,
    /// It has no connection to the stream and looks for one; the first event of a node whose first attempt fails, which over
    /// networks none does: nobody has answered yet.
    Connecting,
    /// It is connected and reads what was there before.
    Rewinding,
    /// It has read everything there was; later messages are new.
    Live,
}

/// Something that a node has met.
#[derive(Debug)]
pub enum NodeEvent<'a> {
    /// The node's state has changed.
    State(NodeState),
    /// The node may publish from now on; its next message has this number.
    Open {
        /// The stream's identifier of the node's session.
        session: u64,
        /// The number of its next frame.
        next_session_seq: u64,
    },
    /// A message of any publisher.
    Message(Message<'a>),
    /// A timer has come due.
    Timer {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        /// The session that asked for it.
        owner: u64,
        /// The owner's identifier of it.
        timer: u64,
        /// When it was to fire, ns since the epoch.
        deadline_ns: u64,
        /// Whether this node asked for it.
        own: bool,
    },
    /// The stream has as many timers as it may have: this one is not set. Later messages of its publisher are not held
    /// up.
    TimerRefused {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        /// The session that asked for it.
        owner: u64,
        /// The owner's identifier of it.
        timer: u64,
        /// When it was to fire, ns since the epoch.
        deadline_ns: u64,
        /// Whether this node asked for it.
        own: bool,
    },
    /// A publisher's session was opened or has ended.
    Session {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        session: u64,
        /// Whether it was opened; else it has ended.
        opened: bool,
        /// Whether it is this node's.
        own: bool,
    },
    /// The sequencer takes nothing more from publishers.
    Halted {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        /// The sequencer's reason.
        reason: &'a str,
    },
    /// The sequencer takes publishers' messages again.
    Resumed {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
    },
    /// A feed session has begun; this is its first frame.
    FeedBegan {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        feed_session: FeedSession,
    },
    /// A feed session has ended; this was its last frame.
    FeedEnded {
        /// Its place in the order.
        sequence: u64,
        /// Sequenced time, ns since the epoch.
        timestamp_ns: u64,
        feed_session: FeedSession,
    },
    /// The stream was faster than this node: it reads on from the journal. Nothing is lost.
    Lapped {
        /// The sequence that it reads next.
        sequence: u64,
        /// How far the stream is.
        released_sequence: u64,
    },
    /// The sequencer takes nothing more of this node until then.
    Throttled {
        /// Sequenced time, ns since the epoch.
        until_ns: u64,
    },
    /// The stream has as many sessions as it may have; the node's is not opened, and is asked for again.
    Limit,
}

/// A message of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The place of its last frame in the order.
    pub sequence: u64,
    /// Sequenced time, ns since the epoch.
    pub timestamp_ns: u64,
    /// The session of its publisher.
    pub session: u64,
    /// The publisher's number of its last frame.
    pub session_seq: u64,
    /// Whether this node published it: its coming back is the acknowledgement.
    pub own: bool,
    /// Command or event.
    pub kind: Kind,
    /// Schema id << 16 | template id.
    pub schema: u32,
    /// How the payload is encoded.
    pub encoding: Encoding,
    /// CRC-32C of the payload of its last frame, as its publisher computed it.
    pub payload_crc: u32,
    /// The payload, of all fragments.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Which message it is.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        MessageType { schema: self.schema, encoding: self.encoding }
    }

    /// The message, as `M` says: an object or a view of the payload.
    ///
    /// # Errors
    /// [`ClientError::Decode`], where it is another message than `M` ([`Message::message_type`]), or not what it says.
    pub fn decode<M: gapless_schema::Message>(&self) -> Result<M::Decoded<'a>, ClientError> {
        decode::<M>(self.message_type(), self.payload)
    }
}
