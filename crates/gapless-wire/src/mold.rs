//! MoldUDP64 1.00: messages of a feed in UDP packets, and the request for those that were lost.
//!
//! All numbers are big-endian. The header of a downstream packet, and the whole of a request:
//!
//! ```text
//!                      1
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9   byte
//! +-------------------+---------------+---+
//! |   feed session    |   sequence    |cnt|
//! +-------------------+---------------+---+
//! ```
//!
//! | field | in a downstream packet | in a request |
//! |---|---|---|
//! | feed session | ASCII, left-justified, filled up with spaces | the same |
//! | sequence, u64 | of the first message; without one, the next to be sent | the first that is wanted |
//! | count, u16 | message blocks that follow; 0 a heartbeat, 0xffff the end of the session | how many are wanted |
//!
//! A message block, as often as the count says, without a gap:
//!
//! ```text
//!  0 1 2        byte
//! +---+-----…-+
//! |len|message|   len, u16: bytes of the message, without itself; 0 is allowed
//! +---+-----…-+
//! ```
//!
//! Sequences start at 1. A request is answered by a downstream packet, unicast to who asked. Source: *MoldUDP64
//! Protocol Specification V 1.00*, Nasdaq.

use crate::descriptor::FRAME_LENGTH_UDP;
use crate::feed_session::FeedSession;
use crate::mtu::{Mtu, PACKET_HEADER_LENGTH};

/// Length of a downstream packet's header in bytes.
pub const HEADER_LENGTH: usize = 20;
/// Length of a request in bytes.
pub const REQUEST_LENGTH: usize = 20;
/// Bytes that a message takes besides its own: the length field of its block.
pub const BLOCK_HEADER_LENGTH: usize = 2;
/// The longest packet by default, bytes of UDP payload: it fits an MTU of 1500.
pub const PACKET_LENGTH_UDP: usize = 1_400;
/// The longest message that a block can hold, bytes.
pub const MESSAGE_LENGTH_MAX: usize = u16::MAX as usize;
/// The message count of a heartbeat.
pub const MESSAGE_COUNT_HEARTBEAT: u16 = 0;
/// The most messages in one packet.
pub const MESSAGE_COUNT_MAX: u16 = 0xfffe;
/// The message count that says that the feed session has ended.
pub const MESSAGE_COUNT_END_OF_SESSION: u16 = 0xffff;
/// A sender that has been silent for this long sends a heartbeat, ns.
pub const HEARTBEAT_INTERVAL_NS: u64 = 1_000_000_000;

const SEQUENCE_OFFSET: usize = FeedSession::LENGTH;
const COUNT_OFFSET: usize = 18;

const _: () = assert!(HEADER_LENGTH == COUNT_OFFSET + 2 && REQUEST_LENGTH == HEADER_LENGTH);
const _: () = assert!(HEADER_LENGTH + BLOCK_HEADER_LENGTH + FRAME_LENGTH_UDP <= PACKET_LENGTH_UDP);
const _: () = assert!(
    Mtu::DEFAULT.packet_length_max() == PACKET_LENGTH_UDP
        && HEADER_LENGTH + BLOCK_HEADER_LENGTH <= PACKET_HEADER_LENGTH
);

/// Why some bytes are not a MoldUDP64 packet or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoldError {
    /// Fewer bytes than a header.
    #[error("MoldUDP64 packet is cut short: a header of {HEADER_LENGTH} bytes is expected, {found_bytes} bytes found")]
    Header { found_bytes: usize },
    /// A request is longer or shorter than it must be.
    #[error("MoldUDP64 request has {found_bytes} bytes, {REQUEST_LENGTH} are expected")]
    Request { found_bytes: usize },
    /// The feed session is neither a name nor blank.
    #[error(
        "feed session \"{}\" is not printable ASCII filled up with spaces on the right",
        found.escape_ascii()
    )]
    FeedSession { found: [u8; FeedSession::LENGTH] },
    /// The messages would have sequences that do not exist.
    #[error("{count} messages from sequence {sequence} on go beyond the last sequence")]
    Sequence {
        /// Of the first message.
        sequence: u64,
        /// How many messages there are, or are asked for.
        count: u16,
    },
    /// A message block reaches beyond the packet.
    #[error("message block {index} at byte {offset} needs {needed_bytes} bytes, the packet has {found_bytes} left")]
    Block {
        /// Which block it is, from 0.
        index: u16,
        /// Where it begins in the packet.
        offset: usize,
        /// Bytes that it needs.
        needed_bytes: usize,
        /// Bytes that are left.
        found_bytes: usize,
    },
    /// More bytes than the message blocks.
    #[error("MoldUDP64 packet of {count} messages ends at byte {offset}, {found_bytes} bytes follow")]
    Trailing {
        /// How many blocks there are.
        count: u16,
        /// Where the last of them ends, or the header.
        offset: usize,
        /// Bytes behind it.
        found_bytes: usize,
    },
}

/// A downstream packet.
///
/// ```
/// use gapless_wire::FeedSession;
/// use gapless_wire::mold::{Content, PACKET_LENGTH_UDP, Packet, PacketWriter};
/// let feed_session = FeedSession::new("ORDERS")?;
/// let mut buffer = [0; PACKET_LENGTH_UDP];
/// let mut writer = PacketWriter::new(&mut buffer, feed_session, 7);
/// assert!(writer.push(b"seven") && writer.push(b"eight"));
/// let length = writer.finish();
///
/// let packet = Packet::parse(&buffer[..length])?;
/// assert_eq!((packet.feed_session, packet.sequence, packet.next_sequence()), (feed_session, 7, 9));
/// let Content::Messages(messages) = packet.content else { panic!("there are two") };
/// assert_eq!(messages.collect::<Vec<_>>(), [b"seven", b"eight"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Of which feed.
    pub feed_session: FeedSession,
    /// Of the first message; without one, the next to be sent.
    pub sequence: u64,
    /// What it says.
    pub content: Content<'a>,
}

/// What a downstream packet says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Nothing is new; the sender lives.
    Heartbeat,
    /// Nothing comes any more; what was lost can still be asked for, for a short while.
    EndOfSession,
    /// One message or more.
    Messages(Messages<'a>),
}

impl<'a> Packet<'a> {
    /// Views a packet, which is all of `bytes`: the payload of one datagram.
    ///
    /// # Errors
    /// [`MoldError`] unless it has exactly the message blocks that it announces, all of them inside, with
    /// nothing behind.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MoldError> {
        let Some((header, blocks)) = bytes.split_first_chunk() else {
            return Err(MoldError::Header { found_bytes: bytes.len() });
        };
        let Header { feed_session, sequence, count } = Header::read(header)?;
        let messages = Messages { blocks, count: if count == MESSAGE_COUNT_END_OF_SESSION { 0 } else { count } };
        check_sequences(sequence, messages.count)?;
        check_blocks(messages.clone())?;
        let content = match count {
            MESSAGE_COUNT_HEARTBEAT => Content::Heartbeat,
            MESSAGE_COUNT_END_OF_SESSION => Content::EndOfSession,
            _ => Content::Messages(messages),
        };
        Ok(Self { feed_session, sequence, content })
    }

    /// The sequence behind the packet's last message: what a receiver that has all of it expects next.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        match &self.content {
            Content::Messages(messages) => self.sequence.saturating_add(messages.count as u64),
            Content::Heartbeat | Content::EndOfSession => self.sequence,
        }
    }
}

/// The messages of a packet in their order; the first has the packet's sequence, each other the next.
#[derive(Clone, PartialEq, Eq)]
pub struct Messages<'a> {
    /// The blocks that are left, and nothing else: what [`Packet::parse`] gives away is checked.
    blocks: &'a [u8],
    count: u16,
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, blocks) = self.blocks.split_first_chunk()?;
        let (message, blocks) = blocks.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        self.blocks = blocks;
        self.count -= 1;
        Some(message)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl ExactSizeIterator for Messages<'_> {
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.count)
    }
}

impl std::iter::FusedIterator for Messages<'_> {}

impl std::fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("count", &self.count).field("length", &self.blocks.len()).finish()
    }
}

/// Walks over the blocks once, so that nobody after it needs to look whether they end where they should.
#[inline]
fn check_blocks(mut messages: Messages<'_>) -> Result<(), MoldError> {
    let (count, length) = (messages.count, messages.blocks.len());
    while messages.count > 0 {
        if messages.next().is_none() {
            return Err(block_beyond_packet(&messages, count, length));
        }
    }
    if messages.blocks.is_empty() {
        return Ok(());
    }
    let found_bytes = messages.blocks.len();
    Err(MoldError::Trailing { count, offset: HEADER_LENGTH + length - found_bytes, found_bytes })
}

/// What to say of the first of the `left` blocks, out of `count` in `length` bytes.
#[cold]
fn block_beyond_packet(left: &Messages<'_>, count: u16, length: usize) -> MoldError {
    let message_length = left.blocks.first_chunk().map_or(0, |field| usize::from(u16::from_be_bytes(*field)));
    MoldError::Block {
        index: count - left.count,
        offset: HEADER_LENGTH + length - left.blocks.len(),
        needed_bytes: BLOCK_HEADER_LENGTH + message_length,
        found_bytes: left.blocks.len(),
    }
}

/// Refuses what would make somebody's sum of the two overflow.
#[inline]
const fn check_sequences(sequence: u64, count: u16) -> Result<(), MoldError> {
    match sequence.checked_add(count as u64) {
        Some(_) => Ok(()),
        None => Err(MoldError::Sequence { sequence, count }),
    }
}

/// The fields that packets and requests share.
struct Header {
    feed_session: FeedSession,
    sequence: u64,
    count: u16,
}

impl Header {
    #[inline]
    fn read(bytes: &[u8; HEADER_LENGTH]) -> Result<Self, MoldError> {
        let field = field_at(bytes, 0);
        let Some(feed_session) = FeedSession::from_bytes(field) else {
            return Err(MoldError::FeedSession { found: field });
        };
        let sequence = u64::from_be_bytes(field_at(bytes, SEQUENCE_OFFSET));
        Ok(Self { feed_session, sequence, count: u16::from_be_bytes(field_at(bytes, COUNT_OFFSET)) })
    }

    #[inline]
    fn write(&self, bytes: &mut [u8; HEADER_LENGTH]) {
        bytes[..SEQUENCE_OFFSET].copy_from_slice(&self.feed_session.bytes());
        bytes[SEQUENCE_OFFSET..COUNT_OFFSET].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[COUNT_OFFSET..].copy_from_slice(&self.count.to_be_bytes());
    }
}

#[inline]
fn field_at<const N: usize>(bytes: &[u8; HEADER_LENGTH], offset: usize) -> [u8; N] {
    *bytes[offset..].first_chunk().expect("offsets are inside the header")
}

/// Builds a downstream packet in place. What is not finished is no packet.
#[must_use]
pub struct PacketWriter<'a> {
    header: &'a mut [u8; HEADER_LENGTH],
    /// What is left of the buffer.
    free: &'a mut [u8],
    length: usize,
    /// The count is that of the messages so far.
    fields: Header,
}

impl<'a> PacketWriter<'a> {
    /// Begins a packet that is no longer than `buffer`, whose first message will have `sequence`.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`HEADER_LENGTH`].
    #[inline]
    pub fn new(buffer: &'a mut [u8], feed_session: FeedSession, sequence: u64) -> Self {
        let (header, free) = buffer.split_first_chunk_mut().expect("a packet needs room for its header");
        Self { header, free, length: HEADER_LENGTH, fields: Header { feed_session, sequence, count: 0 } }
    }

    /// Whether a message of `length` bytes can be pushed.
    #[inline]
    #[must_use]
    pub const fn fits(&self, length: usize) -> bool {
        length <= MESSAGE_LENGTH_MAX
            && self.free.len() >= BLOCK_HEADER_LENGTH + length
            && self.fields.count < MESSAGE_COUNT_MAX
    }

    /// Appends a message; false, and nothing is changed, if it does not fit: no room, longer than
    /// [`MESSAGE_LENGTH_MAX`], or [`MESSAGE_COUNT_MAX`] messages are there.
    #[inline]
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        if !self.fits(message.len()) {
            return false;
        }
        let (block, free) = std::mem::take(&mut self.free).split_at_mut(BLOCK_HEADER_LENGTH + message.len());
        let (length, place) = block.split_at_mut(BLOCK_HEADER_LENGTH);
        length.copy_from_slice(&(message.len() as u16).to_be_bytes());
        place.copy_from_slice(message);
        self.free = free;
        self.length += BLOCK_HEADER_LENGTH + message.len();
        self.fields.count += 1;
        true
    }

    /// Messages so far.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.fields.count
    }

    /// Length of the packet so far in bytes.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Writes the header and returns the packet's length in bytes. Without a message it is a heartbeat.
    #[inline]
    #[must_use]
    pub fn finish(self) -> usize {
        self.fields.write(self.header);
        self.length
    }
}

/// Writes the packet that says that the sender lives and which sequence comes next; returns its length in bytes.
///
/// # Panics
/// If `buffer` is shorter than [`HEADER_LENGTH`].
#[inline]
pub fn heartbeat(buffer: &mut [u8], feed_session: FeedSession, next_sequence: u64) -> usize {
    PacketWriter::new(buffer, feed_session, next_sequence).finish()
}

/// Writes the packet that says that nothing comes any more; returns its length in bytes.
///
/// # Panics
/// If `buffer` is shorter than [`HEADER_LENGTH`].
#[inline]
pub fn end_of_session(buffer: &mut [u8], feed_session: FeedSession, next_sequence: u64) -> usize {
    let mut writer = PacketWriter::new(buffer, feed_session, next_sequence);
    writer.fields.count = MESSAGE_COUNT_END_OF_SESSION;
    writer.finish()
}

/// Asks for messages again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of which feed.
    pub feed_session: FeedSession,
    /// The first that is wanted.
    pub sequence: u64,
    /// How many are wanted, from there on.
    pub count: u16,
}

impl Request {
    /// The request, the payload of one datagram.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; REQUEST_LENGTH] {
        let mut bytes = [0; REQUEST_LENGTH];
        let Self { feed_session, sequence, count } = *self;
        Header { feed_session, sequence, count }.write(&mut bytes);
        bytes
    }

    /// Reads a request, which is all of `bytes`.
    ///
    /// # Errors
    /// [`MoldError`] unless it has exactly [`REQUEST_LENGTH`] bytes, a feed session (which may be blank), and
    /// sequences that exist.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MoldError> {
        let Ok(header) = bytes.try_into() else {
            return Err(MoldError::Request { found_bytes: bytes.len() });
        };
        let Header { feed_session, sequence, count } = Header::read(header)?;
        check_sequences(sequence, count)?;
        Ok(Self { feed_session, sequence, count })
    }
}

#[cfg(test)]
mod tests;
