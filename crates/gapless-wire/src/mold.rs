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
//! | feed session | ASCII, left-justified, padded with spaces | the same |
//! | sequence, u64 | of the first message; without one, the next to be sent | the first requested |
//! | count, u16 | message blocks that follow; 0 a heartbeat, 0xffff the end of the session | number of messages requested |
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
//! Sequences start at 1. A request is answered by a downstream packet, unicast to the requester. Source: *MoldUDP64
//! Protocol Specification V 1.00*, Nasdaq.

use crate::descriptor::FRAME_LENGTH_UDP;
use crate::feed_session::FeedSession;
use crate::mtu::{Mtu, PACKET_HEADER_LENGTH};

pub const HEADER_LENGTH: usize = 20;
pub const REQUEST_LENGTH: usize = 20;
pub const BLOCK_HEADER_LENGTH: usize = 2;
/// Longest packet by default, bytes of UDP payload: fits an MTU of 1500.
pub const PACKET_LENGTH_UDP: usize = 1_400;
/// Longest message of a block, bytes.
pub const MESSAGE_LENGTH_MAX: usize = u16::MAX as usize;
pub const MESSAGE_COUNT_HEARTBEAT: u16 = 0;
/// Limit of messages in one packet.
pub const MESSAGE_COUNT_MAX: u16 = 0xfffe;
pub const MESSAGE_COUNT_END_OF_SESSION: u16 = 0xffff;
/// Silence after which a sender sends a heartbeat, ns.
pub const HEARTBEAT_INTERVAL_NS: u64 = 1_000_000_000;

const SEQUENCE_OFFSET: usize = FeedSession::LENGTH;
const COUNT_OFFSET: usize = 18;

const _: () = assert!(HEADER_LENGTH == COUNT_OFFSET + 2 && REQUEST_LENGTH == HEADER_LENGTH);
const _: () = assert!(HEADER_LENGTH + BLOCK_HEADER_LENGTH + FRAME_LENGTH_UDP <= PACKET_LENGTH_UDP);
const _: () = assert!(
    Mtu::DEFAULT.packet_length_max() == PACKET_LENGTH_UDP
        && HEADER_LENGTH + BLOCK_HEADER_LENGTH <= PACKET_HEADER_LENGTH
);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoldError {
    /// Fewer bytes than a header.
    #[error("MoldUDP64 packet is cut short: a header of {HEADER_LENGTH} bytes is expected, {found_bytes} bytes found")]
    Header { found_bytes: usize },
    /// A request of the wrong length.
    #[error("MoldUDP64 request has {found_bytes} bytes, {REQUEST_LENGTH} are expected")]
    Request { found_bytes: usize },
    /// The feed session is neither a name nor blank.
    #[error(
        "feed session \"{}\" is not printable ASCII filled up with spaces on the right",
        found.escape_ascii()
    )]
    FeedSession { found: [u8; FeedSession::LENGTH] },
    /// The sequences of the messages would overflow.
    #[error("{count} messages from sequence {sequence} on go beyond the last sequence")]
    Sequence { sequence: u64, count: u16 },
    /// A message block extends beyond the packet.
    #[error("message block {index} at byte {offset} needs {needed_bytes} bytes, the packet has {found_bytes} left")]
    Block { index: u16, offset: usize, needed_bytes: usize, found_bytes: usize },
    /// More bytes than the message blocks.
    #[error("MoldUDP64 packet of {count} messages ends at byte {offset}, {found_bytes} bytes follow")]
    Trailing { count: u16, offset: usize, found_bytes: usize },
}

/// A downstream packet.
///
/// ```
/// use gapless_wire::FeedSession;
/// use gapless_wire::mold::{PacketContent, PACKET_LENGTH_UDP, MoldPacket, PacketWriter};
/// let feed_session = FeedSession::new("ORDERS")?;
/// let mut buffer = [0; PACKET_LENGTH_UDP];
/// let mut writer = PacketWriter::new(&mut buffer, feed_session, 7);
/// assert!(writer.push(b"seven") && writer.push(b"eight"));
/// let length = writer.finish();
///
/// let packet = MoldPacket::parse(&buffer[..length])?;
/// assert_eq!((packet.feed_session, packet.sequence, packet.next_sequence()), (feed_session, 7, 9));
/// let PacketContent::Messages(messages) = packet.content else { panic!("there are two") };
/// assert_eq!(messages.collect::<Vec<_>>(), [b"seven", b"eight"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoldPacket<'a> {
    pub feed_session: FeedSession,
    pub sequence: u64,
    pub content: PacketContent<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketContent<'a> {
    /// The sender is alive.
    Heartbeat,
    /// Lost messages can still be requested for a short while.
    EndOfSession,
    Messages(PacketMessages<'a>),
}

impl<'a> MoldPacket<'a> {
    /// `bytes` is the payload of one datagram.
    ///
    /// # Errors
    /// [`MoldError`] unless it has exactly the announced message blocks, all of them inside, with nothing after them.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MoldError> {
        let Some((header, blocks)) = bytes.split_first_chunk() else {
            return Err(MoldError::Header { found_bytes: bytes.len() });
        };
        let MoldHeader { feed_session, sequence, count } = MoldHeader::read(header)?;
        let messages = PacketMessages { blocks, count: if count == MESSAGE_COUNT_END_OF_SESSION { 0 } else { count } };
        check_sequences(sequence, messages.count)?;
        check_blocks(messages.clone())?;
        let content = match count {
            MESSAGE_COUNT_HEARTBEAT => PacketContent::Heartbeat,
            MESSAGE_COUNT_END_OF_SESSION => PacketContent::EndOfSession,
            _ => PacketContent::Messages(messages),
        };
        Ok(Self { feed_session, sequence, content })
    }

    /// Next sequence that a receiver of the whole packet expects.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        match &self.content {
            PacketContent::Messages(messages) => self.sequence.saturating_add(messages.count as u64),
            PacketContent::Heartbeat | PacketContent::EndOfSession => self.sequence,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct PacketMessages<'a> {
    /// [`MoldPacket::parse`] has checked them.
    blocks: &'a [u8],
    count: u16,
}

impl<'a> Iterator for PacketMessages<'a> {
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

impl ExactSizeIterator for PacketMessages<'_> {
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.count)
    }
}

impl std::iter::FusedIterator for PacketMessages<'_> {}

impl std::fmt::Debug for PacketMessages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("count", &self.count).field("length", &self.blocks.len()).finish()
    }
}

#[inline]
fn check_blocks(mut messages: PacketMessages<'_>) -> Result<(), MoldError> {
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

#[cold]
fn block_beyond_packet(left: &PacketMessages<'_>, count: u16, length: usize) -> MoldError {
    let message_length = left.blocks.first_chunk().map_or(0, |field| usize::from(u16::from_be_bytes(*field)));
    MoldError::Block {
        index: count - left.count,
        offset: HEADER_LENGTH + length - left.blocks.len(),
        needed_bytes: BLOCK_HEADER_LENGTH + message_length,
        found_bytes: left.blocks.len(),
    }
}

#[inline]
const fn check_sequences(sequence: u64, count: u16) -> Result<(), MoldError> {
    match sequence.checked_add(count as u64) {
        Some(_) => Ok(()),
        None => Err(MoldError::Sequence { sequence, count }),
    }
}

struct MoldHeader {
    feed_session: FeedSession,
    sequence: u64,
    count: u16,
}

impl MoldHeader {
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

/// A builder of a downstream packet in place. Without `finish` there is no packet.
#[must_use]
pub struct PacketWriter<'a> {
    header: &'a mut [u8; HEADER_LENGTH],
    free: &'a mut [u8],
    length: usize,
    fields: MoldHeader,
}

impl<'a> PacketWriter<'a> {
    /// Begins a packet of at most `buffer`'s length, whose first message will have `sequence`.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`HEADER_LENGTH`].
    #[inline]
    pub fn new(buffer: &'a mut [u8], feed_session: FeedSession, sequence: u64) -> Self {
        let (header, free) = buffer.split_first_chunk_mut().expect("a packet needs room for its header");
        Self { header, free, length: HEADER_LENGTH, fields: MoldHeader { feed_session, sequence, count: 0 } }
    }

    #[inline]
    #[must_use]
    pub const fn fits(&self, length: usize) -> bool {
        length <= MESSAGE_LENGTH_MAX
            && self.free.len() >= BLOCK_HEADER_LENGTH + length
            && self.fields.count < MESSAGE_COUNT_MAX
    }

    /// False if the message does not fit: no room, longer than [`MESSAGE_LENGTH_MAX`], or [`MESSAGE_COUNT_MAX`]
    /// messages are there.
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

    #[inline]
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.fields.count
    }

    #[inline]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the packet's length in bytes. Without a message it is a heartbeat.
    #[inline]
    #[must_use]
    pub fn finish(self) -> usize {
        self.fields.write(self.header);
        self.length
    }
}

/// Returns the length in bytes.
///
/// # Panics
/// If `buffer` is shorter than [`HEADER_LENGTH`].
#[inline]
pub fn heartbeat(buffer: &mut [u8], feed_session: FeedSession, next_sequence: u64) -> usize {
    PacketWriter::new(buffer, feed_session, next_sequence).finish()
}

/// Returns the length in bytes.
///
/// # Panics
/// If `buffer` is shorter than [`HEADER_LENGTH`].
#[inline]
pub fn end_of_session(buffer: &mut [u8], feed_session: FeedSession, next_sequence: u64) -> usize {
    let mut writer = PacketWriter::new(buffer, feed_session, next_sequence);
    writer.fields.count = MESSAGE_COUNT_END_OF_SESSION;
    writer.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoldRequest {
    pub feed_session: FeedSession,
    pub sequence: u64,
    pub count: u16,
}

impl MoldRequest {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; REQUEST_LENGTH] {
        let mut bytes = [0; REQUEST_LENGTH];
        let Self { feed_session, sequence, count } = *self;
        MoldHeader { feed_session, sequence, count }.write(&mut bytes);
        bytes
    }

    /// Decodes a request, which spans all of `bytes`.
    ///
    /// # Errors
    /// [`MoldError`] unless it has exactly [`REQUEST_LENGTH`] bytes, a feed session (which may be blank), and sequences
    /// that do not overflow.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MoldError> {
        let Ok(header) = bytes.try_into() else {
            return Err(MoldError::Request { found_bytes: bytes.len() });
        };
        let MoldHeader { feed_session, sequence, count } = MoldHeader::read(header)?;
        check_sequences(sequence, count)?;
        Ok(Self { feed_session, sequence, count })
    }
}

#[cfg(test)]
mod tests;
