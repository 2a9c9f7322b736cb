//! `PeerConnection`: messages over one socket in both directions.

use super::detached_sender::{DetachedConnection, DetachedSend};
use super::receive_buffer::{LinkMessage, ReceiveBuffer};
use super::wire::{HEADER_LENGTH, MessageHeader, MessageKind, WireError};
use gapless_transport::sockets::SendQueue;
use gapless_transport::sockets::Socket;
use gapless_transport::sockets::SocketRead;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::io::IoSlice;

/// A message with more slices is copied once.
const FRAME_SLICES_MAX: usize = 12;
/// Up to this length, bytes, the parts of one message are copied together before it is sent.
const SHORT_LENGTH_MAX: usize = 2_048;
const OTHER_SLICES: usize = 4;
const FILLING: [u8; 8] = [0; 8];
/// No message of the handshake is longer.
pub(super) const HANDSHAKE_BUFFER_BYTES: usize = 512;

#[derive(Debug)]
pub(super) enum ConnectionError {
    Closed,
    System(io::Error),
    Wire(WireError),
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<WireError> for ConnectionError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

#[derive(Debug)]
pub(super) struct PeerConnection {
    pub(super) socket: Socket,
    incoming: ReceiveBuffer,
    outgoing: SendQueue,
    short: Vec<u8>,
    messages_sent: u64,
    has_received: bool,
    has_sent: bool,
}

impl PeerConnection {
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            incoming: ReceiveBuffer::of_pending_connection(HANDSHAKE_BUFFER_BYTES),
            outgoing: SendQueue::default(),
            short: Vec::new(),
            messages_sent: 0,
            has_received: false,
            has_sent: false,
        }
    }

    /// Queues the part that the socket does not accept now; returns `false` and sends nothing if more than
    /// `queue_bytes_max` would be queued.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub(super) fn send(
        &mut self,
        kind: MessageKind,
        consensus: &[u8],
        frames: &[&[u8]],
        frames_length: usize,
        queue_bytes_max: usize,
    ) -> Result<bool, ConnectionError> {
        let header = MessageHeader::new(kind, self.messages_sent + 1, consensus, frames_length);
        let length = header.message_length();
        let is_queued = !self.outgoing.is_empty();
        if is_queued && self.outgoing.length() + length > queue_bytes_max {
            return Ok(false);
        }
        let bytes = header.to_bytes();
        let consensus_filling = &FILLING[..consensus.len().next_multiple_of(8) - consensus.len()];
        let frames_filling = &FILLING[..frames_length.next_multiple_of(8) - frames_length];
        let mut sent = 0;
        if !is_queued && length <= SHORT_LENGTH_MAX {
            // One more copy costs less than so many slices.
            self.short.clear();
            for part in [&bytes, consensus, consensus_filling].into_iter().chain(frames.iter().copied()) {
                self.short.extend_from_slice(part);
            }
            self.short.extend_from_slice(frames_filling);
            sent = self.socket.send(&self.short)?;
        } else if !is_queued && frames.len() <= FRAME_SLICES_MAX {
            let mut slices = [IoSlice::new(&[]); FRAME_SLICES_MAX + OTHER_SLICES];
            slices[0] = IoSlice::new(&bytes);
            let mut count = 1;
            let parts =
                [consensus, consensus_filling].into_iter().chain(frames.iter().copied()).chain([frames_filling]);
            for part in parts.filter(|part| !part.is_empty()) {
                slices[count] = IoSlice::new(part);
                count += 1;
            }
            sent = self.socket.send_slices(&slices[..count])?;
        }
        if sent < length {
            let parts = [&bytes[..], consensus, consensus_filling].into_iter();
            self.queue_rest(parts.chain(frames.iter().copied()).chain([frames_filling]), sent);
        }
        self.messages_sent += 1;
        self.has_sent = true;
        Ok(true)
    }

    #[cold]
    fn queue_rest<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>, mut sent: usize) {
        for part in parts {
            let skipped = sent.min(part.len());
            self.outgoing.push(&part[skipped..]);
            sent -= skipped;
        }
    }

    #[inline]
    pub(super) fn flush(&mut self) -> Result<usize, ConnectionError> {
        if self.socket.has_unsent() {
            self.socket.flush()?;
        }
        if self.outgoing.is_empty() {
            return Ok(0);
        }
        Ok(self.outgoing.flush(&mut self.socket)?)
    }

    #[inline]
    pub(super) fn read(&mut self) -> Result<bool, ConnectionError> {
        match self.socket.receive(self.incoming.room())? {
            SocketRead::Bytes(length) => {
                self.incoming.commit(length);
                self.has_received = true;
                Ok(true)
            }
            SocketRead::Nothing => Ok(false),
            SocketRead::End => Err(ConnectionError::Closed),
        }
    }

    #[inline]
    pub(super) fn next_message(&mut self) -> Result<Option<LinkMessage<'_>>, WireError> {
        self.incoming.next_message()
    }

    pub(super) fn discard(&mut self) {
        self.incoming.discard();
    }

    /// Accepts all kinds of messages: the other side is identified.
    pub(super) fn accept_messages(&mut self, receive_buffer_bytes: usize) {
        self.incoming.set_capacity(receive_buffer_bytes.max(HEADER_LENGTH));
    }

    /// Changes nothing if the thread cannot start.
    pub(super) fn detach_sending(&mut self, options: &DetachedSend) {
        if !matches!(self.socket, Socket::Tcp(_)) {
            return;
        }
        match DetachedConnection::start(self.socket.as_fd(), options) {
            Ok(detached) => self.socket = Socket::Other(Box::new(detached)),
            Err(error) => tracing::warn!(%error, "there is no thread that sends; the member's thread does"),
        }
    }

    pub(super) fn shrink(&mut self) {
        self.incoming.shrink();
    }

    #[inline]
    pub(super) const fn unsent(&self) -> usize {
        self.outgoing.length()
    }

    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        !self.outgoing.is_empty() || self.socket.has_unsent()
    }

    #[inline]
    pub(super) const fn take_received(&mut self) -> bool {
        std::mem::replace(&mut self.has_received, false)
    }

    #[inline]
    pub(super) const fn take_sent(&mut self) -> bool {
        std::mem::replace(&mut self.has_sent, false)
    }
}

impl AsFd for PeerConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
