//! A nonblocking TCP connection with a bounded buffer in each direction.

use crate::sockets::{SocketRead, TcpSocket};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Bytes(usize),
    Nothing,
    /// The rest waits until some of the buffer is consumed.
    Full,
    End,
}

#[derive(Debug)]
struct ByteQueue {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ByteQueue {
    fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], start: 0, end: 0 }
    }

    #[inline]
    fn waiting(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        assert!(length <= self.end - self.start, "{length} bytes cannot be consumed of {}", self.end - self.start);
        self.start += length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        // Waiting bytes are moved only if they are few compared to the room gained.
        if self.start > 0 && (self.end == self.bytes.len() || self.start > self.bytes.len() / 2) {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }

    #[inline]
    fn commit(&mut self, length: usize) {
        assert!(length <= self.bytes.len() - self.end, "{length} bytes were never claimed");
        self.end += length;
    }

    fn resize(&mut self, capacity: usize) {
        let kept = self.end - self.start;
        assert!(kept <= capacity, "{kept} bytes that wait do not fit {capacity}");
        let mut bytes = vec![0; capacity];
        bytes[..kept].copy_from_slice(self.waiting());
        *self = Self { bytes, start: 0, end: kept };
    }
}

#[derive(Debug)]
pub struct TcpConnection {
    socket: TcpSocket,
    peer: SocketAddr,
    incoming: ByteQueue,
    outgoing: ByteQueue,
}

impl TcpConnection {
    /// The first calls of [`TcpConnection::receive`] and [`TcpConnection::send`] show the outcome.
    ///
    /// # Errors
    /// An error of the operating system, if it is known at once.
    pub fn connect(peer: SocketAddr, incoming_bytes: usize, outgoing_bytes: usize) -> io::Result<Self> {
        Ok(Self::with(TcpSocket::dial(peer, 0)?, peer, incoming_bytes, outgoing_bytes))
    }

    /// Wraps an accepted connection.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn over(socket: OwnedFd, peer: SocketAddr, incoming_bytes: usize, outgoing_bytes: usize) -> io::Result<Self> {
        Ok(Self::with(TcpSocket::over(socket)?, peer, incoming_bytes, outgoing_bytes))
    }

    fn with(socket: TcpSocket, peer: SocketAddr, incoming_bytes: usize, outgoing_bytes: usize) -> Self {
        let (incoming, outgoing) = (ByteQueue::new(incoming_bytes), ByteQueue::new(outgoing_bytes));
        Self { socket, peer, incoming, outgoing }
    }

    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Resizes the receive buffer, bytes.
    ///
    /// # Panics
    /// If the contents do not fit.
    pub fn resize_incoming(&mut self, bytes: usize) {
        self.incoming.resize(bytes);
    }

    /// Resizes the send buffer, bytes.
    ///
    /// # Panics
    /// If the contents do not fit.
    pub fn resize_outgoing(&mut self, bytes: usize) {
        self.outgoing.resize(bytes);
    }

    /// Receives once.
    ///
    /// # Errors
    /// The connection failed, or could not be made.
    #[inline]
    pub fn receive(&mut self) -> io::Result<Received> {
        let room = self.incoming.room();
        if room.is_empty() {
            return Ok(Received::Full);
        }
        Ok(match self.socket.receive(room)? {
            SocketRead::Bytes(length) => {
                self.incoming.commit(length);
                Received::Bytes(length)
            }
            SocketRead::Nothing => Received::Nothing,
            SocketRead::End => Received::End,
        })
    }

    #[inline]
    #[must_use]
    pub fn incoming(&self) -> &[u8] {
        self.incoming.waiting()
    }

    /// Consumes the first `length` received bytes.
    ///
    /// # Panics
    /// If fewer bytes have arrived.
    #[inline]
    pub fn consume(&mut self, length: usize) {
        self.incoming.consume(length);
    }

    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        self.outgoing.room()
    }

    /// Adds the first `length` bytes of the room.
    ///
    /// # Panics
    /// If there was less room.
    #[inline]
    pub fn commit(&mut self, length: usize) {
        self.outgoing.commit(length);
    }

    #[inline]
    pub fn queue(&mut self, bytes: &[u8]) -> bool {
        let Some(place) = self.room().get_mut(..bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        self.commit(bytes.len());
        true
    }

    #[inline]
    #[must_use]
    pub const fn unsent(&self) -> usize {
        self.outgoing.end - self.outgoing.start
    }

    /// Returns whether all was sent.
    ///
    /// # Errors
    /// The connection failed, or could not be made.
    #[inline]
    pub fn send(&mut self) -> io::Result<bool> {
        while self.unsent() > 0 {
            match self.socket.send(self.outgoing.waiting())? {
                0 => return Ok(false),
                length => self.outgoing.consume(length),
            }
        }
        Ok(true)
    }

    /// Ends the output: no byte follows the queued ones.
    pub fn finish(&self) {
        self.socket.finish();
    }

    pub fn discard_incoming(&mut self) {
        let length = self.incoming.waiting().len();
        self.incoming.consume(length);
    }
}

impl AsFd for TcpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::turn_until;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn small_buffers_keep_byte_order() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpConnection::connect(listener.local_addr().unwrap(), 7, 5).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        assert!(near.queue(b"abcd") && !near.queue(b"ef") && near.queue(b"e"));
        turn_until("it is sent", || near.send().unwrap());
        let mut read = [0; 5];
        far.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"abcde");
        far.write_all(b"0123456789").unwrap();
        turn_until("some came", || near.receive().unwrap() == Received::Bytes(7));
        assert_eq!(near.receive().unwrap(), Received::Full);
        assert_eq!(near.incoming(), b"0123456");
        near.consume(5);
        turn_until("the rest came", || near.receive().unwrap() == Received::Bytes(3));
        assert_eq!(near.incoming(), b"56789");
        near.resize_incoming(5);
        assert_eq!(near.incoming(), b"56789");
        near.consume(5);
        drop(far);
        turn_until("its end", || near.receive().unwrap() == Received::End);
    }

    #[test]
    fn refused_connection_fails_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        if let Ok(mut near) = TcpConnection::connect(address, 8, 8) {
            turn_until("it fails", || near.receive().is_err());
        }
    }
}
