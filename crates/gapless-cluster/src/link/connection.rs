//! [`PeerConnection`]: messages over one socket in both directions. Knows nothing of members.

use super::detached_sender::{DetachedConnection, DetachedSend};
use super::receive_buffer::{LinkMessage, ReceiveBuffer};
use super::wire::{HEADER_LENGTH, MessageHeader, MessageKind, WireError};
use gapless_transport::sockets::SendQueue;
use gapless_transport::sockets::Socket;
use gapless_transport::sockets::SocketRead;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::io::IoSlice;

/// Largest number of slices of frames that are sent without a copy; a message with more is copied once.
const FRAME_SLICES_MAX: usize = 12;
/// Length up to which a message is copied together before it is sent, bytes.
const SHORT_LENGTH_MAX: usize = 2_048;
/// Slices for a header, the consensus part and the two paddings.
const OTHER_SLICES: usize = 4;
const FILLING: [u8; 8] = [0; 8];
/// Buffer of a pending connection, bytes: no message of the handshake is longer.
pub(super) const HANDSHAKE_BUFFER_BYTES: usize = 512;

/// Reason for which a connection can no longer be used.
#[derive(Debug)]
pub(super) enum ConnectionError {
    /// The other side has closed it.
    Closed,
    System(io::Error),
    /// Bytes that are not a message.
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

/// A connection from its first byte on.
#[derive(Debug)]
pub(super) struct PeerConnection {
    pub(super) socket: Socket,
    incoming: ReceiveBuffer,
    outgoing: SendQueue,
    /// Buffer for a short message, copied together.
    short: Vec<u8>,
    messages_sent: u64,
    /// Whether bytes were received since the flag was last cleared.
    has_received: bool,
    /// Whether bytes were sent since the flag was last cleared.
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

    /// Sends a message; the part that the socket does not accept now is queued for the next flushes. Returns `false`
    /// and sends nothing if more than `queue_bytes_max` would be queued.
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

    /// Queues the parts without their first `sent` bytes.
    #[cold]
    fn queue_rest<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>, mut sent: usize) {
        for part in parts {
            let skipped = sent.min(part.len());
            self.outgoing.push(&part[skipped..]);
            sent -= skipped;
        }
    }

    /// Sends queued bytes, as far as the socket accepts them.
    ///
    /// # Errors
    /// The connection is broken.
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

    /// Reads once from the socket. Returns whether anything was received.
    ///
    /// # Errors
    /// The connection is broken, or closed.
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

    /// Returns the next whole message of the received bytes.
    ///
    /// # Errors
    /// The bytes are not a message.
    #[inline]
    pub(super) fn next_message(&mut self) -> Result<Option<LinkMessage<'_>>, WireError> {
        self.incoming.next_message()
    }

    /// Drops the received bytes.
    pub(super) fn discard(&mut self) {
        self.incoming.discard();
    }

    /// Accepts all kinds of messages from now on, with a receive buffer of this size: the other side is identified.
    pub(super) fn accept_messages(&mut self, receive_buffer_bytes: usize) {
        self.incoming.set_capacity(receive_buffer_bytes.max(HEADER_LENGTH));
    }

    /// Moves the sending of a TCP connection without TLS to a separate thread; changes nothing if that cannot start.
    pub(super) fn detach_sending(&mut self, options: &DetachedSend) {
        if !matches!(self.socket, Socket::Tcp(_)) {
            return;
        }
        match DetachedConnection::start(self.socket.as_fd(), options) {
            Ok(detached) => self.socket = Socket::Other(Box::new(detached)),
            Err(error) => tracing::warn!(%error, "there is no thread that sends; the member's thread does"),
        }
    }

    /// Frees memory that only a long message needed.
    pub(super) fn shrink(&mut self) {
        self.incoming.shrink();
    }

    /// Returns the number of bytes that are queued and not yet given to the socket.
    #[inline]
    pub(super) const fn unsent(&self) -> usize {
        self.outgoing.length()
    }

    /// Returns whether anything is queued.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        !self.outgoing.is_empty() || self.socket.has_unsent()
    }

    /// Returns whether bytes were received since the last call.
    #[inline]
    pub(super) const fn take_received(&mut self) -> bool {
        std::mem::replace(&mut self.has_received, false)
    }

    /// Returns whether bytes were sent since the last call.
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
