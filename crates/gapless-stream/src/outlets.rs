//! [`Outlets`]: answers on their way into the publishers' rings.
//!
//! A publisher that does not read must not hold up the others: what does not fit its ring stays with the
//! sender, who is told to try again.

use crate::link::{ConnectionId, ForDelivery};
use crate::mailbox::Mailbox;
use gapless_log::{LogError, RingWriter};
use gapless_wire::checksum::crc32c;
use gapless_wire::{Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};
use rustix::fd::OwnedFd;
use std::sync::Arc;

struct Outlet {
    connection: ConnectionId,
    writer: RingWriter,
    wake: Arc<OwnedFd>,
    dirty: bool,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is in the ring.
    Yes,
    /// The ring is full: try again later.
    Later,
    /// There is no such publisher any more, or it cannot be sent to.
    Never,
}

/// The rings to the publishers.
pub struct Outlets {
    /// Few, and mostly the same one again and again: found by looking, from where the last was.
    outlets: Vec<Outlet>,
    last: usize,
    any_dirty: bool,
    publishers: Mailbox<ForDelivery>,
    frame_length_max: usize,
}

impl Outlets {
    /// No publishers yet; they come through `publishers`.
    #[must_use]
    pub fn new(publishers: Mailbox<ForDelivery>, frame_length_max: usize) -> Self {
        Self { outlets: Vec::new(), last: 0, any_dirty: false, publishers, frame_length_max }
    }

    /// Takes in publishers that have come or gone.
    #[inline]
    pub fn refresh(&mut self) {
        while let Some(event) = self.publishers.pop() {
            match event {
                ForDelivery::Opened { connection, writer, wake } => {
                    self.outlets.push(Outlet { connection, writer, wake, dirty: false });
                }
                ForDelivery::Closed { connection } => {
                    self.outlets.retain(|outlet| outlet.connection != connection);
                }
            }
        }
    }

    #[inline]
    fn find(&mut self, connection: ConnectionId) -> Option<usize> {
        if self.outlets.get(self.last).is_none_or(|outlet| outlet.connection != connection) {
            self.last = self.outlets.iter().position(|outlet| outlet.connection == connection)?;
        }
        Some(self.last)
    }

    /// Puts a message into a publisher's ring; it is seen after [`Outlets::flush`].
    #[inline]
    pub fn deliver(&mut self, connection: ConnectionId, header: &FrameHeader, payload: &[u8]) -> Delivered {
        let frame_length_max = self.frame_length_max;
        let Some(index) = self.find(connection) else { return Delivered::Never };
        let outlet = &mut self.outlets[index];
        let length = HEADER_LENGTH + payload.len();
        let written = if length <= frame_length_max {
            write_frame(&mut outlet.writer, header, payload, Fragment::WHOLE)
        } else {
            write_fragments(&mut outlet.writer, header, payload, frame_length_max - HEADER_LENGTH)
        };
        match written {
            Ok(()) => {}
            Err(LogError::Full { .. }) if outlet.writer.is_reader_closed() => return Delivered::Never,
            Err(LogError::Full { .. }) => return Delivered::Later,
            Err(error) => {
                tracing::warn!(connection = connection.0, %error, "a publisher cannot be sent to; it is dropped");
                self.outlets.swap_remove(index);
                return Delivered::Never;
            }
        }
        outlet.dirty = true;
        self.any_dirty = true;
        Delivered::Yes
    }

    /// Lets the publishers see what was delivered, and wakes those that sleep.
    #[inline]
    pub fn flush(&mut self) {
        if !std::mem::take(&mut self.any_dirty) {
            return;
        }
        for outlet in &mut self.outlets {
            if std::mem::take(&mut outlet.dirty) && outlet.writer.publish() {
                // Fails only when the counter is full, and then the publisher is being woken already.
                let _ = rustix::io::write(&*outlet.wake, &1u64.to_ne_bytes());
            }
        }
    }

    /// Wakes the publishers that sleep and have not been woken since: there is something new in the stream, which
    /// they read from the window.
    #[inline]
    pub fn wake_sleepers(&mut self) {
        for outlet in &mut self.outlets {
            if outlet.writer.wakes_reader() {
                // As in `flush`.
                let _ = rustix::io::write(&*outlet.wake, &1u64.to_ne_bytes());
            }
        }
    }

    /// The publishers there are.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.outlets.iter().map(|outlet| outlet.connection)
    }

    /// Drops publishers of this process that read no more; those of others are announced.
    pub fn drop_closed(&mut self) {
        self.outlets.retain(|outlet| !outlet.writer.is_reader_closed());
    }
}

#[inline]
fn write_frame(
    writer: &mut RingWriter,
    header: &FrameHeader,
    payload: &[u8],
    fragment: Fragment,
) -> Result<(), LogError> {
    let claim = writer.claim(HEADER_LENGTH + payload.len())?;
    let mut frame = FrameWriter::new(claim);
    frame.payload_mut()[..payload.len()].copy_from_slice(payload);
    // Summed over our own copy, not over memory that the publisher could change meanwhile.
    let length = frame.finish_with_checksum(&FrameHeader { fragment, ..*header }, payload.len(), crc32c(payload));
    writer.commit(length);
    Ok(())
}

/// All fragments of a message, or none.
#[cold]
fn write_fragments(
    writer: &mut RingWriter,
    header: &FrameHeader,
    payload: &[u8],
    part_length: usize,
) -> Result<(), LogError> {
    let count = payload.len().div_ceil(part_length);
    let needed_bytes = payload.len() + count * (aligned_length(HEADER_LENGTH) + 8);
    let limit_bytes = writer.frame_length_max();
    if needed_bytes > limit_bytes || count > usize::from(u16::MAX) {
        return Err(LogError::TooLong { length_bytes: needed_bytes, limit_bytes });
    }
    // What was committed before must not be dropped with a message that does not fit.
    if writer.backlog_bytes() as usize + needed_bytes > 2 * limit_bytes {
        let lag_bytes = writer.backlog_bytes();
        return Err(LogError::Full { needed_bytes, lag_bytes, capacity_bytes: 2 * limit_bytes });
    }
    for (index, part) in payload.chunks(part_length).enumerate() {
        write_frame(writer, header, part, Fragment { index: index as u16, count: count as u16 })?;
    }
    Ok(())
}
