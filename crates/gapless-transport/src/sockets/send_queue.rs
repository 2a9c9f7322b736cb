//! Bytes that a socket did not take yet. Bounded; its user decides what happens at the limit.

use super::socket::Socket;
use std::io;

/// More is freed when empty.
const KEPT_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct SendQueue {
    bytes: Vec<u8>,
    start: usize,
}

impl SendQueue {
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.len() == self.start
    }

    #[inline]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub fn push(&mut self, bytes: &[u8]) {
        // Waiting bytes are moved only if they are few compared to the room gained.
        if self.start > self.bytes.len() / 2 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes taken.
    ///
    /// # Errors
    /// The connection failed.
    pub fn flush(&mut self, socket: &mut Socket) -> io::Result<usize> {
        let before = self.length();
        while !self.is_empty() {
            let end = self.bytes.len().min(self.start + PIECE_BYTES);
            let sent = socket.send(&self.bytes[self.start..end])?;
            self.start += sent;
            if sent == 0 {
                break;
            }
        }
        if self.is_empty() {
            self.clear();
        }
        Ok(before - self.length())
    }

    fn clear(&mut self) {
        self.start = 0;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::TcpSocket;
    use rustix::fd::OwnedFd;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_keep_order() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let mut socket = Socket::Tcp(TcpSocket::accepted(OwnedFd::from(near), 0).unwrap());
        let mut queue = SendQueue::default();
        let sent: Vec<u8> = (0..20_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            far.read_to_end(&mut read).unwrap();
            read
        });
        for piece in sent.chunks(777_777) {
            queue.push(piece);
            queue.flush(&mut socket).unwrap();
        }
        while !queue.is_empty() {
            queue.flush(&mut socket).unwrap();
            std::thread::yield_now();
        }
        assert!(queue.bytes.capacity() <= KEPT_BYTES);
        drop(socket);
        assert!(reader.join().unwrap() == sent);
    }
}
