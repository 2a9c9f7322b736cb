//! `TlsSocket`: bytes over TLS over a TCP connection.

use super::names::is_for;
use crate::sockets::bytes::SocketRead;
use crate::sockets::tcp::TcpSocket;
use rustix::fd::{AsFd, BorrowedFd};
use rustls::Connection;
use std::io;
use std::io::{IoSlice, Read, Write};

/// Encrypted, not taken by the connection yet.
const BUFFER_BYTES_MAX: usize = 256 << 10;

#[derive(Debug)]
pub struct TlsSocket {
    tcp: TcpSocket,
    connection: Connection,
    is_at_end: bool,
}

struct TcpAdapter<'a>(&'a mut TcpSocket);

impl Read for TcpAdapter<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.receive(room)? {
            SocketRead::Bytes(length) => Ok(length),
            SocketRead::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            SocketRead::End => Ok(0),
        }
    }
}

impl Write for TcpAdapter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.send_slices(slices)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            length => Ok(length),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsSocket {
    pub(super) fn new(tcp: TcpSocket, mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(BUFFER_BYTES_MAX));
        Self { tcp, connection, is_at_end: false }
    }

    /// Fills `room` with received bytes.
    ///
    /// # Errors
    /// The connection failed, or the received bytes are not validly encrypted.
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<SocketRead> {
        match self.take(room)? {
            SocketRead::Nothing => {}
            looked => return Ok(looked),
        }
        match self.connection.read_tls(&mut TcpAdapter(&mut self.tcp)) {
            Ok(0) => self.is_at_end = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(SocketRead::Nothing),
            Err(error) => return Err(error),
        }
        let processed = self.connection.process_new_packets();
        // An answer of the handshake, or the reason of its failure.
        let flushed = self.flush();
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        flushed?;
        self.take(room)
    }

    fn take(&mut self, room: &mut [u8]) -> io::Result<SocketRead> {
        match self.connection.reader().read(room) {
            Ok(0) => Ok(SocketRead::End),
            Ok(length) => Ok(SocketRead::Bytes(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(if self.is_at_end { SocketRead::End } else { SocketRead::Nothing })
            }
            // Messages are numbered and complete, so truncating the connection is no attack.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(SocketRead::End),
            Err(error) => Err(error),
        }
    }

    /// Writes without waiting; returns the bytes taken.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut sent = 0;
        for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                let taken = self.connection.writer().write(rest)?;
                rest = &rest[taken..];
                sent += taken;
                if taken == 0 {
                    self.flush()?;
                    if self.has_unsent() || self.connection.is_handshaking() {
                        return Ok(sent);
                    }
                }
            }
        }
        self.flush()?;
        Ok(sent)
    }

    /// Passes encrypted bytes on, as far as possible.
    ///
    /// # Errors
    /// The connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut TcpAdapter(&mut self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    pub fn finish(&mut self) {
        self.connection.send_close_notify();
        // A broken connection needs no end.
        let _ = self.flush();
        self.tcp.finish();
    }

    /// Verified by the handshake.
    #[must_use]
    pub fn proves(&self, name: &str) -> bool {
        let first = self.connection.peer_certificates().and_then(<[_]>::first);
        first.is_some_and(|certificate| is_for(certificate, name))
    }
}

impl AsFd for TlsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}
