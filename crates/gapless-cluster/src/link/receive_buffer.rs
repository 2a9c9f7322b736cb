//! `ReceiveBuffer`: received bytes, and the messages in them, returned in place.

use super::wire::{HEADER_LENGTH, MessageHeader, MessageKind, WireError};

const ALIGNMENT: usize = 8;

/// Whole message, in place in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkMessage<'a> {
    pub kind: MessageKind,
    pub consensus: &'a [u8],
    /// At an address that is a multiple of 8; the frames' checksums are not verified.
    pub frames: &'a [u8],
}

/// A buffer for the bytes that one side of a connection sends.
///
/// ```
/// use gapless_cluster::link::{ReceiveBuffer, wire::{MessageHeader, MessageKind}};
///
/// let mut buffer = ReceiveBuffer::new(4096);
/// let bytes = MessageHeader::new(MessageKind::Consensus, 1, b"", 0).to_bytes();
/// buffer.room()[..bytes.len()].copy_from_slice(&bytes);
/// buffer.commit(bytes.len());
/// assert_eq!(buffer.next_message()?.map(|message| message.kind), Some(MessageKind::Consensus));
/// assert_eq!(buffer.next_message()?, None);
/// # Ok::<(), gapless_cluster::link::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct ReceiveBuffer {
    bytes: Vec<u8>,
    base: usize,
    start: usize,
    end: usize,
    capacity: usize,
    capacity_usual: usize,
    header: Option<MessageHeader>,
    /// Bytes of the message at `start` that are needed for the next step.
    needed: usize,
    messages_taken: u64,
    is_large_needed: bool,
    /// Sender unknown: only the short messages of the handshake are accepted.
    is_pending: bool,
}

impl ReceiveBuffer {
    /// Grows for a longer message, once its header is checked.
    ///
    /// # Panics
    /// If a header does not fit.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity >= HEADER_LENGTH, "{capacity} bytes hold no header");
        let capacity = capacity.next_multiple_of(ALIGNMENT);
        let (bytes, base) = aligned(capacity);
        Self {
            bytes,
            base,
            start: 0,
            end: 0,
            capacity,
            capacity_usual: capacity,
            header: None,
            needed: HEADER_LENGTH,
            messages_taken: 0,
            is_large_needed: false,
            is_pending: false,
        }
    }

    /// Creates an empty buffer of `capacity` bytes for a sender before its handshake. Until
    /// [`ReceiveBuffer::set_capacity`] any message except those of the handshake is an error, whatever length it
    /// claims.
    ///
    /// # Panics
    /// If a header does not fit.
    #[must_use]
    pub fn of_pending_connection(capacity: usize) -> Self {
        Self { is_pending: true, ..Self::new(capacity) }
    }

    /// Accepts all messages from now on; the capacity is at least the present content.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.is_pending = false;
        self.capacity_usual = capacity.next_multiple_of(ALIGNMENT);
        self.resize(self.capacity_usual.max(self.needed).max((self.end - self.start).next_multiple_of(ALIGNMENT)));
    }

    /// Frees unused memory of long messages since the last call.
    pub fn shrink(&mut self) {
        let is_large_needed = std::mem::take(&mut self.is_large_needed);
        if self.capacity > self.capacity_usual && self.start == self.end && !is_large_needed {
            self.resize(self.capacity_usual);
        }
    }

    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Room for the next bytes; not empty after [`ReceiveBuffer::next_message`] has returned `None`.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        let is_at_end = self.start + self.needed > self.capacity;
        // Unread bytes move only if little room would be left.
        if self.start > 0 && (is_at_end || self.capacity - self.end < self.capacity / 2) {
            let (from, to) = (self.base + self.start, self.base + self.end);
            self.bytes.copy_within(from..to, self.base);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.base + self.end..self.base + self.capacity]
    }

    /// Marks the first `length` bytes of the room as filled.
    ///
    /// # Panics
    /// If the room is smaller.
    #[inline]
    pub fn commit(&mut self, length: usize) {
        assert!(length <= self.capacity - self.end, "{length} bytes were never claimed");
        self.end += length;
    }

    /// Next whole message, valid until the next call.
    ///
    /// # Errors
    /// The bytes, and all later ones, are not messages.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<LinkMessage<'_>>, WireError> {
        if self.end - self.start < self.needed {
            return Ok(None);
        }
        let header = match self.header {
            Some(header) => header,
            None => match self.read_header()? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let length = header.message_length();
        let begin = self.base + self.start;
        self.header = None;
        self.needed = HEADER_LENGTH;
        self.messages_taken += 1;
        self.start += length;
        if self.start == self.end {
            // The first cache lines are still warm.
            (self.start, self.end) = (0, 0);
        }
        let (consensus, frames) = header.parts(&self.bytes[begin..begin + length])?;
        Ok(Some(LinkMessage { kind: header.kind, consensus, frames }))
    }

    #[inline]
    fn read_header(&mut self) -> Result<Option<MessageHeader>, WireError> {
        let at = self.base + self.start;
        let bytes = self.bytes[at..].first_chunk().expect("the caller has looked that it is there");
        let header = MessageHeader::parse(bytes)?;
        let expected = self.messages_taken + 1;
        if header.number != expected {
            return Err(WireError::Number { expected, found: header.number });
        }
        if self.is_pending && !header.kind.is_of_handshake() {
            return Err(WireError::Kind { found: header.kind as u8 });
        }
        let length = header.message_length();
        if self.end - self.start >= length {
            return Ok(Some(header));
        }
        (self.header, self.needed) = (Some(header), length);
        self.is_large_needed |= length > self.capacity_usual;
        if length > self.capacity {
            self.resize(length);
        }
        Ok(None)
    }

    /// Drops the received bytes.
    pub fn discard(&mut self) {
        (self.start, self.end) = (0, 0);
        (self.header, self.needed) = (None, HEADER_LENGTH);
    }

    #[cold]
    fn resize(&mut self, capacity: usize) {
        if capacity == self.capacity {
            return;
        }
        let (mut bytes, base) = aligned(capacity);
        let length = self.end - self.start;
        bytes[base..base + length].copy_from_slice(&self.bytes[self.base + self.start..self.base + self.end]);
        (self.bytes, self.base, self.capacity) = (bytes, base, capacity);
        (self.start, self.end) = (0, length);
    }
}

/// Allocates a vector, and returns it with the index of its first address that is a multiple of 8. It never grows, so
/// it never moves.
fn aligned(capacity: usize) -> (Vec<u8>, usize) {
    let bytes = vec![0; capacity + ALIGNMENT];
    let base = bytes.as_ptr().align_offset(ALIGNMENT);
    assert!(base < ALIGNMENT, "an address is less than {ALIGNMENT} bytes before a multiple of {ALIGNMENT}");
    (bytes, base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::wire::FRAMES_LENGTH_MAX;

    fn message(number: u64, consensus: &[u8], frames: &[u8]) -> Vec<u8> {
        let mut bytes = MessageHeader::new(MessageKind::Consensus, number, consensus, frames.len()).to_bytes().to_vec();
        for part in [consensus, frames] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    fn lengths(number: u64) -> (usize, usize) {
        ((number as usize * 7) % 90, (number as usize * 131) % 1500)
    }

    fn run(piece: usize, capacity: usize) {
        let mut wire = Vec::new();
        for number in 1..=300 {
            let (consensus, frames) = lengths(number);
            wire.extend(message(number, &vec![number as u8; consensus], &vec![!number as u8; frames]));
        }
        let mut buffer = ReceiveBuffer::new(capacity);
        let (mut rest, mut number) = (&wire[..], 1);
        while !rest.is_empty() {
            let room = buffer.room();
            assert!(!room.is_empty());
            let length = piece.min(room.len()).min(rest.len());
            room[..length].copy_from_slice(&rest[..length]);
            buffer.commit(length);
            rest = &rest[length..];
            while let Some(message) = buffer.next_message().unwrap() {
                let (consensus, frames) = lengths(number);
                assert_eq!(message.consensus, vec![number as u8; consensus]);
                assert_eq!(message.frames, vec![!number as u8; frames]);
                assert!(message.frames.as_ptr().cast::<u64>().is_aligned());
                number += 1;
            }
        }
        assert_eq!(number, 301, "pieces of {piece} in {capacity}");
    }

    #[test]
    fn any_pieces_give_whole_messages() {
        for piece in [1, 7, 32, 33, 1000, 100_000] {
            for capacity in [32, 100, 2048, 1 << 20] {
                run(piece, capacity);
            }
        }
    }

    #[test]
    fn long_message_grows_buffer_once() {
        let mut buffer = ReceiveBuffer::new(64);
        let long = message(1, b"", &[5; 10_000]);
        let mut rest = &long[..];
        let mut capacities = std::collections::BTreeSet::new();
        while !rest.is_empty() {
            assert_eq!(buffer.next_message(), Ok(None));
            let room = buffer.room();
            let length = room.len().min(rest.len());
            room[..length].copy_from_slice(&rest[..length]);
            buffer.commit(length);
            rest = &rest[length..];
            capacities.insert(buffer.capacity());
        }
        assert_eq!(buffer.next_message().unwrap().unwrap().frames, [5; 10_000]);
        assert_eq!(capacities.into_iter().collect::<Vec<_>>(), [64, long.len()]);
        buffer.shrink();
        assert_eq!(buffer.capacity(), long.len(), "the message came since the last look");
        buffer.shrink();
        assert_eq!(buffer.capacity(), 64);
    }

    #[test]
    fn excess_length_allocates_none() {
        let mut buffer = ReceiveBuffer::new(64);
        let mut bytes = MessageHeader::new(MessageKind::Consensus, 1, b"", 0).to_bytes();
        bytes[12..16].copy_from_slice(&(FRAMES_LENGTH_MAX as u32 + 8).to_le_bytes());
        let crc = gapless_wire::checksum::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        buffer.room()[..32].copy_from_slice(&bytes);
        buffer.commit(32);
        assert!(matches!(buffer.next_message(), Err(WireError::Length { .. })));
        assert_eq!(buffer.capacity(), 64);
    }

    #[test]
    fn pending_peer_gets_no_memory() {
        let mut buffer = ReceiveBuffer::of_pending_connection(512);
        let bytes = MessageHeader::new(MessageKind::Consensus, 1, b"", FRAMES_LENGTH_MAX).to_bytes();
        buffer.room()[..32].copy_from_slice(&bytes);
        buffer.commit(32);
        assert_eq!(buffer.next_message(), Err(WireError::Kind { found: MessageKind::Consensus as u8 }));
        assert_eq!(buffer.capacity(), 512);
        let mut known = ReceiveBuffer::of_pending_connection(512);
        known.set_capacity(1024);
        known.room()[..32].copy_from_slice(&bytes);
        known.commit(32);
        assert_eq!(known.next_message(), Ok(None));
    }

    #[test]
    fn wrong_message_number_is_an_error() {
        let mut buffer = ReceiveBuffer::new(4096);
        let bytes = [message(1, b"a", b""), message(3, b"b", b"")].concat();
        buffer.room()[..bytes.len()].copy_from_slice(&bytes);
        buffer.commit(bytes.len());
        assert!(buffer.next_message().unwrap().is_some());
        assert_eq!(buffer.next_message(), Err(WireError::Number { expected: 2, found: 3 }));
    }
}
