//! [`Egress`]: writes answers into the publishers' rings. A message that does not fit stays with the sender, so that no
//! slow publisher delays others; one longer than the ring is written in parts, as the publisher reads.

use crate::messages::EgressMessage;
use gapless_log::{LogError, RingWriter};
use gapless_transport::link::{ANSWER_LENGTH_MAX, ConnectionId};
use gapless_transport::mailbox::Mailbox;
use gapless_wire::checksum::crc32c;
use gapless_wire::{Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, MessageParts, aligned_length};
use rustix::fd::OwnedFd;
use std::sync::Arc;

struct EgressRing {
    connection: ConnectionId,
    writer: RingWriter,
    wake: Arc<OwnedFd>,
    dirty: bool,
    unfinished: Option<UnfinishedSend>,
}

/// The publisher gets nothing else meanwhile.
struct UnfinishedSend {
    header: FrameHeader,
    payload: Vec<u8>,
    part_length: usize,
    next: usize,
}

/// Payload with its CRC-32C, computed once for all recipients.
#[derive(Clone, Copy, Debug)]
pub struct CheckedPayload<'a> {
    bytes: &'a [u8],
    crc: u32,
}

impl<'a> CheckedPayload<'a> {
    /// `bytes` must not be memory that another process can change.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, crc: crc32c(bytes) }
    }

    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    #[must_use]
    pub const fn crc(&self) -> u32 {
        self.crc
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    Written,
    RingFull,
    Undeliverable,
}

pub struct Egress {
    /// Searched linearly from the last hit: few, and mostly the same one.
    rings: Vec<EgressRing>,
    last: usize,
    any_dirty: bool,
    has_unfinished: bool,
    publishers: Mailbox<EgressMessage>,
    frame_length_max: usize,
}

impl Egress {
    /// A sender without publishers; they arrive through `publishers`.
    #[must_use]
    pub fn new(publishers: Mailbox<EgressMessage>, frame_length_max: usize) -> Self {
        Self { rings: Vec::new(), last: 0, any_dirty: false, has_unfinished: false, publishers, frame_length_max }
    }

    /// Adds and removes publishers, and continues long messages; returns the number of frames written.
    #[inline]
    pub fn refresh(&mut self) -> usize {
        self.take_publishers();
        if self.has_unfinished { self.continue_messages() } else { 0 }
    }

    #[inline]
    fn take_publishers(&mut self) {
        while let Some(event) = self.publishers.pop() {
            match event {
                EgressMessage::Opened { connection, writer, wake } => {
                    self.rings.push(EgressRing { connection, writer, wake, dirty: false, unfinished: None });
                }
                EgressMessage::Closed { connection } => {
                    self.rings.retain(|ring| ring.connection != connection);
                }
            }
        }
    }

    #[cold]
    fn continue_messages(&mut self) -> usize {
        let mut frames = 0;
        self.has_unfinished = false;
        self.rings.retain_mut(|ring| {
            let Some(unfinished) = &mut ring.unfinished else { return true };
            let before = unfinished.next;
            let outcome = unfinished.write_to(&mut ring.writer);
            if unfinished.next > before {
                frames += unfinished.next - before;
                ring.dirty = true;
                self.any_dirty = true;
            }
            match outcome {
                Ok(()) => ring.unfinished = None,
                Err(LogError::Full { .. }) => self.has_unfinished = true,
                Err(error) => {
                    let connection = ring.connection.0;
                    tracing::warn!(connection, %error, "a publisher cannot be sent to; it is dropped");
                    return false;
                }
            }
            true
        });
        frames
    }

    /// Whether a part of a long message waits for room. Room that becomes free causes no wake-up.
    #[inline]
    #[must_use]
    pub const fn is_waiting_for_room(&self) -> bool {
        self.has_unfinished
    }

    #[inline]
    fn find(&mut self, connection: ConnectionId) -> Option<usize> {
        if self.rings.get(self.last).is_none_or(|ring| ring.connection != connection) {
            self.last = self.rings.iter().position(|ring| ring.connection == connection)?;
        }
        Some(self.last)
    }

    /// Finds a publisher that was opened after the last refresh: its first request may be answered in the same poll.
    #[cold]
    fn find_opened(&mut self, connection: ConnectionId) -> Option<usize> {
        self.take_publishers();
        self.find(connection)
    }

    /// Writes a message, visible to the publisher after [`Egress::flush`].
    #[inline]
    pub fn deliver(
        &mut self,
        connection: ConnectionId,
        header: &FrameHeader,
        payload: CheckedPayload<'_>,
    ) -> SendResult {
        let frame_length_max = self.frame_length_max;
        let Some(index) = self.find(connection).or_else(|| self.find_opened(connection)) else {
            return SendResult::Undeliverable;
        };
        let ring = &mut self.rings[index];
        if ring.unfinished.is_some() {
            return if ring.writer.is_reader_closed() { SendResult::Undeliverable } else { SendResult::RingFull };
        }
        let length = HEADER_LENGTH + payload.bytes.len();
        let written = if length <= frame_length_max && length <= ring.writer.frame_length_max() {
            write_frame(&mut ring.writer, header, payload, Fragment::WHOLE)
        } else {
            let part_length = frame_length_max.min(ring.writer.frame_length_max()) - HEADER_LENGTH;
            let payload = payload.bytes;
            match write_fragments(&mut ring.writer, header, payload, part_length) {
                Err(LogError::TooLong { .. }) if payload.len() <= ANSWER_LENGTH_MAX => {
                    let mut unfinished =
                        UnfinishedSend { header: *header, payload: payload.to_vec(), part_length, next: 0 };
                    let written = unfinished.write_to(&mut ring.writer);
                    ring.unfinished = written.is_err().then_some(unfinished);
                    self.has_unfinished |= ring.unfinished.is_some();
                    match written {
                        Err(LogError::Full { .. }) => Ok(()),
                        other => other,
                    }
                }
                other => other,
            }
        };
        match written {
            Ok(()) => {}
            Err(LogError::Full { .. }) if ring.writer.is_reader_closed() => return SendResult::Undeliverable,
            Err(LogError::Full { .. }) => return SendResult::RingFull,
            Err(error) => {
                tracing::warn!(connection = connection.0, %error, "a publisher cannot be sent to; it is dropped");
                self.rings.swap_remove(index);
                return SendResult::Undeliverable;
            }
        }
        ring.dirty = true;
        self.any_dirty = true;
        SendResult::Written
    }

    /// Makes messages visible, and wakes sleeping publishers.
    #[inline]
    pub fn flush(&mut self) {
        if !std::mem::take(&mut self.any_dirty) {
            return;
        }
        for ring in &mut self.rings {
            if std::mem::take(&mut ring.dirty) && ring.writer.publish() {
                // Fails only if the counter is full: the publisher is being woken already.
                let _ = rustix::io::write(&*ring.wake, &1u64.to_ne_bytes());
            }
        }
    }

    /// Wakes sleeping publishers for new frames in the window.
    #[inline]
    pub fn wake_sleepers(&mut self) {
        for ring in &mut self.rings {
            if ring.writer.wakes_reader() {
                // Fails only if the counter is full, like in `flush`.
                let _ = rustix::io::write(&*ring.wake, &1u64.to_ne_bytes());
            }
        }
    }

    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.rings.iter().map(|ring| ring.connection)
    }

    /// Drops closed publishers of this process; others are announced.
    pub fn drop_closed(&mut self) {
        self.rings.retain(|ring| !ring.writer.is_reader_closed());
    }
}

#[inline]
fn write_frame(
    writer: &mut RingWriter,
    header: &FrameHeader,
    payload: CheckedPayload<'_>,
    fragment: Fragment,
) -> Result<(), LogError> {
    let length = payload.bytes.len();
    let claim = writer.claim(HEADER_LENGTH + length)?;
    let mut frame = FrameWriter::new(claim);
    frame.payload_mut()[..length].copy_from_slice(payload.bytes);
    // The checksum is of our own copy, not of memory that the publisher could change meanwhile.
    let length = frame.finish_with_checksum(&FrameHeader { fragment, ..*header }, length, payload.crc);
    writer.commit(length);
    Ok(())
}

impl UnfinishedSend {
    fn write_to(&mut self, writer: &mut RingWriter) -> Result<(), LogError> {
        let parts = MessageParts::new(&self.payload, self.part_length);
        while self.next < parts.count() {
            let (fragment, part) = parts.get(self.next);
            write_frame(writer, &self.header, CheckedPayload::new(part), fragment)?;
            self.next += 1;
        }
        Ok(())
    }
}

/// All fragments or none; "too long": it never fits as a whole.
#[cold]
fn write_fragments(
    writer: &mut RingWriter,
    header: &FrameHeader,
    payload: &[u8],
    part_length: usize,
) -> Result<(), LogError> {
    let parts = MessageParts::new(payload, part_length);
    let needed_bytes = payload.len() + parts.count() * (aligned_length(HEADER_LENGTH) + 8);
    let limit_bytes = writer.frame_length_max();
    if needed_bytes > limit_bytes {
        return Err(LogError::TooLong { length_bytes: needed_bytes, limit_bytes });
    }
    // A message that does not fit must not drop frames committed before it.
    if writer.backlog_bytes() as usize + needed_bytes > 2 * limit_bytes {
        let lag_bytes = writer.backlog_bytes();
        return Err(LogError::Full { needed_bytes, lag_bytes, capacity_bytes: 2 * limit_bytes });
    }
    for (fragment, part) in parts.iter() {
        write_frame(writer, header, CheckedPayload::new(part), fragment)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use gapless_agent::wake_fd;
    use gapless_log::{MemoryKind, StreamIdentity, ring};
    use gapless_wire::Frame;

    #[test]
    fn answer_finds_a_new_publisher() {
        let publishers = Mailbox::new(4);
        let mut egress = Egress::new(publishers.clone(), 1024);
        assert_eq!(egress.refresh(), 0);
        // Opened after the refresh, and answered before the next one.
        let (writer, mut reader) = ring::create(&MemoryKind::Anonymous, 4096, StreamIdentity::default()).unwrap();
        let (connection, wake) = (ConnectionId(7), Arc::new(wake_fd::create().unwrap()));
        assert!(publishers.push(EgressMessage::Opened { connection, writer, wake }).is_ok());
        let deliver = |egress: &mut Egress, connection| {
            egress.deliver(connection, &FrameHeader::default(), CheckedPayload::new(b"answer"))
        };
        assert_eq!(deliver(&mut egress, connection), SendResult::Written);
        egress.flush();
        let length = reader.next_length().unwrap().unwrap();
        let mut bytes = vec![0; aligned_length(length)];
        reader.copy(&mut bytes);
        assert_eq!(Frame::parse(&bytes).unwrap().payload(), b"answer");
        assert!(publishers.push(EgressMessage::Closed { connection }).is_ok());
        egress.refresh();
        for gone in [connection, ConnectionId(8)] {
            assert_eq!(deliver(&mut egress, gone), SendResult::Undeliverable);
        }
    }
}
