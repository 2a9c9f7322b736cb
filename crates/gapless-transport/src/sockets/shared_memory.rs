//! [`SharedSocket`]: bytes between two processes of one host, through two rings in shared memory.
//!
//! The dialling side creates both rings and sends their descriptors over a Unix socket. That is one packet of 8 bytes,
//! "GAPRING\1", with the ring to the other side and the ring from it. After that the socket carries only wake-ups: one
//! byte of any value, to a side that has noted in its ring that it sleeps. The end of the socket is the end of the
//! connection, so that the death of a process is noticed at once; bytes published before are still read.
//!
//! ```text
//!  a record of a ring (a multiple of 8 bytes, 64 at least)
//!   0  u32  length of the record
//!   4  u32  bytes of the connection in it: a multiple of 8, not 0
//!   8  …    the bytes, then anything
//! ```
//!
//! The other process is not trusted: a ring must be sealed against shrinking and have a size in range, positions and
//! lengths are checked, and bytes are only parsed in a copy.

use super::bytes::{SocketRead, check_connecting};
use crate::descriptors::descriptor_limit_reason;
use crate::peer_process::PeerCredentials;
use crate::socket_path::socket_address;
use gapless_agent::{checked_file, socket_file};
use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, StreamIdentity, ring};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Bytes; powers of two.
pub const RING_BYTES: std::ops::RangeInclusive<usize> = 4096..=1 << 28;
const RINGS_MAGIC: [u8; 8] = *b"GAPRING\x01";
const RINGS: usize = 2;
const PREFIX_LENGTH: usize = 8;
/// The other side reads the first part of a long message while the next is written.
const PIECE_BYTES_MAX: usize = 32 << 10;
const BACKLOG: i32 = 16;

pub struct SharedSocket {
    socket: OwnedFd,
    rings: Option<Rings>,
    /// The other side closed its socket, or announced its end.
    is_hung_up: bool,
}

struct Rings {
    writer: RingWriter,
    reader: RingReader,
    piece_bytes_max: usize,
    /// Record at the front: its length, the bytes taken of it, and the rest.
    record_length: usize,
    record_taken: usize,
    record_left: usize,
}

impl SharedSocket {
    /// Connects to `path`, and creates the rings.
    ///
    /// # Errors
    /// No listener, or one of another user.
    pub fn dial(path: &Path, ring_bytes: usize) -> io::Result<Self> {
        let socket = unix_socket()?;
        rustix::net::connect(&socket, &socket_address(path)?)?;
        if !PeerCredentials::of(&socket)?.is_trusted() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let identity = StreamIdentity { stream_id: 0, incarnation: 0 };
        let make = || ring::create(&MemoryKind::Shared, ring_bytes, identity).map_err(from_log_error);
        let ((writer, its_reader), (its_writer, reader)) = (make()?, make()?);
        send_rings(&socket, [its_reader.fd(), its_writer.fd()])?;
        // The other process has these ends now; dropping them must not announce a close.
        its_reader.leave_to_peer();
        its_writer.leave_to_peer();
        Ok(Self { socket, rings: Some(Rings::over(writer, reader)), is_hung_up: false })
    }

    /// Fills `room` with received bytes.
    ///
    /// # Errors
    /// The connection failed, or the other side violated the protocol.
    #[inline]
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<SocketRead> {
        let Some(rings) = &mut self.rings else { return self.take_rings() };
        let mut taken = rings.take(room)?;
        if taken == 0 {
            if !self.is_hung_up && !rings.reader.is_writer_closed() {
                return Ok(SocketRead::Nothing);
            }
            // Bytes published before the end are read first.
            taken = rings.take(room)?;
        }
        Ok(if taken > 0 { SocketRead::Bytes(taken) } else { SocketRead::End })
    }

    /// Sends the slices as one, as far as there is room; returns the bytes.
    ///
    /// # Errors
    /// The connection failed.
    ///
    /// # Panics
    /// If the total is not a multiple of 8 bytes.
    #[inline]
    pub fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(rings) = &mut self.rings else { return Ok(0) };
        if rings.writer.is_reader_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let (sent, sleeps) = rings.put(slices)?;
        if sleeps && rings.writer.wakes_reader() {
            // No room for a wake-up means that there are enough; an end is noticed when receiving.
            let _ = rustix::net::send(&self.socket, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        Ok(sent)
    }

    pub fn finish(&self) {
        // A broken connection needs no end.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
    }

    /// Takes wake-ups, and notices the end.
    pub fn check(&mut self) {
        if self.rings.is_none() {
            return;
        }
        loop {
            match rustix::net::recv(&self.socket, &mut [0; 64], RecvFlags::DONTWAIT) {
                Ok((1.., _)) => {}
                Err(Errno::AGAIN | Errno::INTR) => return,
                Ok(_) | Err(_) => {
                    self.is_hung_up = true;
                    return;
                }
            }
        }
    }

    /// Before sleep on the descriptor; check once more after this.
    pub fn arm(&self) {
        if let Some(rings) = &self.rings {
            rings.reader.arm();
        }
    }

    pub fn disarm(&mut self) {
        if let Some(rings) = &self.rings {
            rings.reader.disarm();
        }
        self.check();
    }

    #[cold]
    fn take_rings(&mut self) -> io::Result<SocketRead> {
        let mut bytes = [0; RINGS_MAGIC.len() + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RINGS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = match rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(came) => came,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(SocketRead::Nothing),
            Err(errno) => return Err(errno.into()),
        };
        let descriptors: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        if came.bytes == 0 {
            return Ok(SocketRead::End);
        }
        if came.flags.contains(ReturnFlags::CTRUNC) && descriptors.len() < RINGS {
            return Err(io::Error::other(descriptor_limit_reason()));
        }
        let is_whole = !came.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        if !is_whole || bytes[..came.bytes] != RINGS_MAGIC {
            return Err(invalid_data("the first packet brings no rings"));
        }
        let Ok([to_here, from_here]) = <[OwnedFd; RINGS]>::try_from(descriptors) else {
            return Err(invalid_data("the first packet brings other than two rings"));
        };
        check_length(&to_here)?;
        check_length(&from_here)?;
        let reader = RingReader::open(to_here).map_err(from_log_error)?;
        let writer = RingWriter::open(from_here).map_err(from_log_error)?;
        self.rings = Some(Rings::over(writer, reader));
        Ok(SocketRead::Nothing)
    }
}

impl Rings {
    fn over(writer: RingWriter, reader: RingReader) -> Self {
        // A record is at most half of a ring; a quarter lets both sides work.
        let piece_bytes_max = PIECE_BYTES_MAX.min(writer.frame_length_max() / 2 - PREFIX_LENGTH);
        Self { writer, reader, piece_bytes_max, record_length: 0, record_taken: 0, record_left: 0 }
    }

    #[inline]
    fn take(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < room.len() {
            if self.record_left == 0 && !self.begin_record()? {
                break;
            }
            // Both are multiples of 8, like everything on a connection.
            let length = self.record_left.min(room.len() - filled);
            self.reader.copy_at(PREFIX_LENGTH + self.record_taken, &mut room[filled..filled + length]);
            filled += length;
            self.record_taken += length;
            self.record_left -= length;
            if self.record_left == 0 {
                self.reader.advance(self.record_length);
            }
        }
        if filled > 0 {
            self.reader.release();
        }
        Ok(filled)
    }

    #[inline]
    fn begin_record(&mut self) -> io::Result<bool> {
        let Some(length) = self.reader.next_length().map_err(from_log_error)? else { return Ok(false) };
        let mut prefix = [0; PREFIX_LENGTH];
        self.reader.copy(&mut prefix);
        let bytes = u64::from_le_bytes(prefix) >> 32;
        if bytes == 0 || !bytes.is_multiple_of(8) || bytes > (length - PREFIX_LENGTH) as u64 {
            return Err(invalid_data(&format!("a record of {length} bytes says that {bytes} are of the connection")));
        }
        (self.record_length, self.record_taken, self.record_left) = (length, 0, bytes as usize);
        Ok(true)
    }

    /// Bytes written, and whether the reader sleeps.
    #[inline]
    fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<(usize, bool)> {
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        assert!(length.is_multiple_of(8), "messages have multiples of 8 bytes");
        let (mut sent, mut sleeps) = (0, false);
        let mut rest = slices.iter().map(|slice| &slice[..]);
        let mut current: &[u8] = &[];
        while sent < length {
            let bytes = (length - sent).min(self.piece_bytes_max);
            let record_length = (PREFIX_LENGTH + bytes).max(gapless_wire::HEADER_LENGTH);
            let record = match self.writer.claim(record_length) {
                Ok(record) => record,
                Err(LogError::Full { .. }) => break,
                Err(error) => return Err(from_log_error(error)),
            };
            record[..4].copy_from_slice(&(record_length as u32).to_le_bytes());
            record[4..PREFIX_LENGTH].copy_from_slice(&(bytes as u32).to_le_bytes());
            let mut at = PREFIX_LENGTH;
            while at < PREFIX_LENGTH + bytes {
                if current.is_empty() {
                    current = rest.next().expect("the slices are as long as they were");
                    continue;
                }
                let part = current.len().min(PREFIX_LENGTH + bytes - at);
                record[at..at + part].copy_from_slice(&current[..part]);
                (at, current) = (at + part, &current[part..]);
            }
            self.writer.commit(record_length);
            sleeps = self.writer.publish();
            sent += bytes;
        }
        Ok((sent, sleeps))
    }
}

impl AsFd for SharedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for SharedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has_rings, is_hung_up) = (self.rings.is_some(), self.is_hung_up);
        write!(f, "SharedSocket {{ has_rings: {has_rings}, is_hung_up: {is_hung_up} }}")
    }
}

/// Listener for members of this host. Dropping it removes the socket's file.
#[derive(Debug)]
pub struct SharedListener {
    socket: OwnedFd,
    path: PathBuf,
}

impl SharedListener {
    /// Mode 0600; a file left by a killed process is replaced.
    ///
    /// # Errors
    /// Another process listens there, or the file is not a socket.
    pub fn open(path: &Path) -> io::Result<Self> {
        let address = socket_address(path)?;
        match rustix::net::connect(unix_socket()?, &address) {
            Err(Errno::NOENT) => {}
            // This error also occurs for a file that is not a socket, which must be kept.
            Err(Errno::CONNREFUSED) if std::fs::symlink_metadata(path)?.file_type().is_socket() => {
                checked_file::remove(path)?;
            }
            Ok(()) | Err(Errno::AGAIN) => return Err(io::Error::other("another process listens there")),
            Err(errno) => return Err(errno.into()),
        }
        let socket = unix_socket()?;
        // Not listening yet, so no peer can connect before it has its mode.
        socket_file::bind_for_user(&socket, path, &address)?;
        let listener = Self { socket, path: path.to_owned() };
        rustix::net::listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rings arrive later.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] without a new connection.
    pub fn accept(&self) -> io::Result<SharedSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        check_connecting(&self.socket)?;
        let socket = rustix::net::accept_with(&self.socket, flags)?;
        if !PeerCredentials::of(&socket)?.is_trusted() {
            // Like a peer that has disconnected: others may follow.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(SharedSocket { socket, rings: None, is_hung_up: false })
    }
}

impl AsFd for SharedListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for SharedListener {
    fn drop(&mut self) {
        // A missing file is fine.
        let _ = checked_file::remove(&self.path);
    }
}

fn unix_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn send_rings(socket: &OwnedFd, descriptors: [BorrowedFd<'_>; RINGS]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RINGS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let is_pushed = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(is_pushed, "the space is made for {RINGS} descriptors");
    rustix::net::sendmsg(socket, &[IoSlice::new(&RINGS_MAGIC)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Checks that it is not too much memory to map; opening it checks the seal against shrinking.
fn check_length(descriptor: &OwnedFd) -> io::Result<()> {
    let length = rustix::fs::fstat(descriptor)?.st_size;
    let length_max = (gapless_log::descriptor::HEADER_LENGTH + RING_BYTES.end()) as u64;
    if u64::try_from(length).is_ok_and(|length| length <= length_max) {
        return Ok(());
    }
    Err(invalid_data(&format!("a ring of {length} bytes, where {length_max} are the most")))
}

fn invalid_data(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

fn from_log_error(error: LogError) -> io::Error {
    match error {
        LogError::System { source, .. } => source,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}
