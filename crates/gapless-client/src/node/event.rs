//! `NodeEvent`: the events delivered by a node's poll.

use crate::ClientError;
use crate::message_type::{MessageType, decode, read};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::{Encoding, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// The node does nothing any more.
    Closed,
    /// First event of a node whose first attempt fails; over networks no attempt fails, as the answer may still come.
    Connecting,
    /// Reading old messages.
    Rewinding,
    /// Everything available has been read.
    Live,
}

#[derive(Debug)]
pub enum NodeEvent<'a> {
    State(NodeState),
    /// The node may publish from now on.
    Open {
        session: u64,
        next_session_seq: u64,
    },
    Message(Message<'a>),
    Timer {
        sequence: u64,
        timestamp_ns: u64,
        owner: u64,
        /// Identifier chosen by the owner.
        timer: u64,
        deadline_ns: u64,
        own: bool,
    },
    /// The stream's limit of timers is reached: this one is not set.
    TimerRefused {
        sequence: u64,
        timestamp_ns: u64,
        owner: u64,
        /// Identifier chosen by the owner.
        timer: u64,
        /// Ns since the epoch.
        deadline_ns: u64,
        own: bool,
    },
    Session {
        sequence: u64,
        timestamp_ns: u64,
        session: u64,
        /// False if the session has ended.
        opened: bool,
        own: bool,
    },
    /// The sequencer takes nothing more from publishers.
    Halted {
        sequence: u64,
        timestamp_ns: u64,
        reason: &'a str,
    },
    Resumed {
        sequence: u64,
        timestamp_ns: u64,
    },
    /// A feed session has begun; this is its first frame.
    FeedBegan {
        sequence: u64,
        timestamp_ns: u64,
        feed_session: FeedSession,
    },
    /// A feed session has ended; this was its last frame.
    FeedEnded {
        sequence: u64,
        timestamp_ns: u64,
        feed_session: FeedSession,
    },
    /// The node fell behind and continues from the journal; nothing is lost.
    Lapped {
        sequence: u64,
        released_sequence: u64,
    },
    Throttled {
        /// Sequenced time, ns since the epoch.
        until_ns: u64,
    },
    /// The limit of sessions is reached; the node's session is requested again.
    Limit,
}

#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Position of its last frame.
    pub sequence: u64,
    /// Sequenced, ns since the epoch.
    pub timestamp_ns: u64,
    pub session: u64,
    /// Number of its last frame.
    pub session_seq: u64,
    /// Whether this node published it: its return is the acknowledgement.
    pub own: bool,
    /// Command or event.
    pub kind: Kind,
    /// Schema id << 16 | template id.
    pub schema: u32,
    pub encoding: Encoding,
    /// CRC-32C of its last fragment, as computed by its publisher.
    pub payload_crc: u32,
    /// Payload of all fragments.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        MessageType { schema: self.schema, encoding: self.encoding }
    }

    /// Decodes as an object or a view of the payload.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message ([`Message::message_type`]), or malformed.
    pub fn decode<M: gapless_schema::Decode>(&self) -> Result<M::Decoded<'a>, ClientError> {
        decode::<M>(self.message_type(), self.payload)
    }

    /// Reads as a typed message, of any version that this program reads.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message, or malformed.
    pub fn read<M: gapless_message::Message>(&self) -> Result<M, ClientError> {
        read(self.message_type(), self.payload)
    }
}
