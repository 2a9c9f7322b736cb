//! [`Reactor`]: what the I/O thread sleeps on, and the pidfds of peers. It knows no packet and no side.
//!
//! There is one pidfd for each process at the other end of any connection, however many there are or were: a process that
//! connects and goes a thousand times costs one. It stays watched while a connection of its process is open, and then for
//! as long as anybody is to be told of the death.

use super::connection::{BUFFER_BYTES, Connection, Flushed};
use super::peer::{self, PeerIdentity};
use crate::error::RegistryError;
use gapless_transport::warnings::Warnings;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;

/// Connections of an I/O thread at most, both ways together.
pub const CONNECTIONS_MAX: usize = 4096;
/// Connections with one process at most, so that none shuts the others out.
pub const CONNECTIONS_OF_PROCESS_MAX: usize = CONNECTIONS_MAX / 16;
/// A peer must say who it is, and a copy what it serves, within this time.
pub const HANDSHAKE_NS: u64 = 2_000_000_000;
/// Packets of one peer that are handled before the others have their turn.
pub const PACKETS_AT_A_TIME: usize = 32;
/// Events that are taken at a time.
const EVENTS_MAX: usize = 256;
/// A queue that no socket tells of is tried again after this time.
pub const RETRY_NS: u64 = 20_000_000;

/// What has become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Another thread has a command.
    Waker,
    /// Somebody connects.
    Listener,
    /// Something has appeared in the directory.
    Watch,
    /// A connection of a caller, by its number.
    Caller(u64),
    /// A connection to a copy, by its number.
    Copy(u32),
    /// A process is dead, by its id.
    Process(u32),
    /// A completion eventfd was written, by the number of its registration.
    Completion(u64),
}

const NUMBER_BITS: u32 = 56;

impl Source {
    const fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Self::Waker => (0, 0),
            Self::Listener => (1, 0),
            Self::Watch => (2, 0),
            Self::Caller(number) => (3, number),
            Self::Copy(number) => (4, number as u64),
            Self::Process(number) => (5, number as u64),
            Self::Completion(number) => (6, number),
        };
        kind << NUMBER_BITS | number
    }

    const fn from_bits(bits: u64) -> Self {
        let number = bits & ((1 << NUMBER_BITS) - 1);
        match bits >> NUMBER_BITS {
            0 => Self::Waker,
            1 => Self::Listener,
            2 => Self::Watch,
            3 => Self::Caller(number),
            4 => Self::Copy(number as u32),
            5 => Self::Process(number as u32),
            _ => Self::Completion(number),
        }
    }
}

/// The descriptors that an I/O thread sleeps on. Any thread may add to them.
#[derive(Clone)]
pub struct Watched(Arc<OwnedFd>);

impl Watched {
    fn none() -> Result<Self, RegistryError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(RegistryError::system("making an epoll"))?;
        Ok(Self(Arc::new(epoll)))
    }

    /// For tests: nothing can be added.
    #[cfg(test)]
    pub fn broken() -> Self {
        Self(Arc::new(gapless_agent::wake_fd::create().expect("an eventfd")))
    }

    /// Watches a descriptor for `flags`. It must be taken out before it is closed: a child that was just forked may still
    /// have it.
    pub fn watch(&self, fd: impl AsFd, source: Source, flags: EventFlags) -> Result<(), RegistryError> {
        let data = EventData::new_u64(source.to_bits());
        epoll::add(&self.0, fd, data, flags).map_err(RegistryError::system("watching a descriptor"))
    }

    /// Watches it no longer.
    pub fn unwatch(&self, fd: impl AsFd) {
        // What is not watched is as good.
        let _ = epoll::delete(&self.0, fd);
    }
}

/// What the I/O thread sleeps on.
pub struct Reactor {
    watched: Watched,
    processes: HashMap<u32, Process>,
    connections: usize,
    /// Bytes of the packet that is read now.
    pub buffer: Vec<u8>,
    /// What others can provoke is logged once a second.
    pub warnings: Warnings,
}

struct Process {
    pidfd: OwnedFd,
    connections: usize,
    /// Copies whose connections are closed: the calling side is told of their deaths.
    mourners: Vec<u32>,
}

impl Reactor {
    pub fn new() -> Result<Self, RegistryError> {
        Ok(Self {
            watched: Watched::none()?,
            processes: HashMap::new(),
            connections: 0,
            buffer: vec![0; BUFFER_BYTES],
            warnings: Warnings::default(),
        })
    }

    /// Whether another connection may be opened.
    pub const fn has_room(&self) -> bool {
        self.connections < CONNECTIONS_MAX
    }

    /// Connections with a process that are open, both ways together.
    pub fn connections_of(&self, process_id: u32) -> usize {
        self.processes.get(&process_id).map_or(0, |process| process.connections)
    }

    /// Opens the account of a connection: who is at its other end, and watches both. The connection is closed with
    /// [`close`](Self::close).
    pub fn open(&mut self, connection: &Connection, source: Source) -> Result<PeerIdentity, RegistryError> {
        let (identity, pidfd) = peer::identify(connection)?;
        let process_id = identity.process_id;
        self.watch(connection, source, EventFlags::IN | EventFlags::RDHUP)?;
        // Both are alive, or were a moment ago: one number, one process.
        if let Some(process) = self.processes.get_mut(&process_id).filter(|known| !peer::is_dead(&known.pidfd)) {
            process.connections += 1;
        } else if self.processes.contains_key(&process_id) {
            self.unwatch(connection);
            let reason = "the process that had this number before is not buried yet".to_owned();
            return Err(RegistryError::Protocol { process_id, reason });
        } else {
            if let Err(error) = self.watch(&pidfd, Source::Process(process_id), EventFlags::IN) {
                self.unwatch(connection);
                return Err(error);
            }
            self.processes.insert(process_id, Process { pidfd, connections: 1, mourners: Vec::new() });
        }
        self.connections += 1;
        Ok(identity)
    }

    /// Closes a connection. The copy `mourner` is told of when the process is dead.
    pub fn close(&mut self, connection: Connection, process_id: u32, mourner: Option<u32>) {
        self.unwatch(&connection);
        drop(connection);
        self.connections -= 1;
        let Some(process) = self.processes.get_mut(&process_id) else { return };
        process.connections -= 1;
        process.mourners.extend(mourner);
        if process.connections == 0 && process.mourners.is_empty() {
            self.forget(process_id);
        }
    }

    /// Whether the process of an event is dead. (It may be another one by now that has its number.)
    pub fn is_dead(&self, process_id: u32) -> bool {
        self.processes.get(&process_id).is_some_and(|process| peer::is_dead(&process.pidfd))
    }

    /// Ends the watch of a dead process whose connections are closed: the copies that are to be told of.
    pub fn bury(&mut self, process_id: u32) -> Vec<u32> {
        self.forget(process_id).map(|process| process.mourners).unwrap_or_default()
    }

    fn forget(&mut self, process_id: u32) -> Option<Process> {
        let process = self.processes.remove(&process_id)?;
        self.unwatch(&process.pidfd);
        Some(process)
    }

    /// After something was sent: watches for room in the peer's socket if it did not take all. True: it is to be tried again
    /// after [`RETRY_NS`].
    pub fn watch_room(&self, connection: &Connection, source: Source, flushed: Flushed) -> bool {
        let room = if flushed == Flushed::WhenWritable { EventFlags::OUT } else { EventFlags::empty() };
        let flags = EventFlags::IN | EventFlags::RDHUP | room;
        // It fails for a descriptor that is not watched, which no connection's is.
        let _ = epoll::modify(&self.watched.0, connection, EventData::new_u64(source.to_bits()), flags);
        flushed == Flushed::Later
    }

    /// Sleeps until something is ready, or for so long. Puts what is into `ready`, in place of what was there.
    pub fn wait(&self, timeout_ns: Option<u64>, ready: &mut Vec<(Source, EventFlags)>) -> Result<(), Errno> {
        // Whole milliseconds, as the kernel takes them; rounded up, or the thread would wake before its time, in vain.
        let timeout = timeout_ns.map(|ns| ns.div_ceil(1_000_000).min(3_600_000));
        let timeout =
            timeout.map(|ms| Timespec { tv_sec: (ms / 1000) as i64, tv_nsec: (ms % 1000 * 1_000_000) as i64 });
        ready.clear();
        let mut space = [MaybeUninit::uninit(); EVENTS_MAX];
        match epoll::wait(&self.watched.0, &mut space, timeout.as_ref()) {
            Ok((events, _)) => {
                ready.extend(events.iter().map(|event| (Source::from_bits(event.data.u64()), event.flags)));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

impl Deref for Reactor {
    type Target = Watched;

    fn deref(&self) -> &Watched {
        &self.watched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_as_they_were_written() {
        let last = (1 << NUMBER_BITS) - 1;
        let plain = [Source::Waker, Source::Listener, Source::Watch];
        let numbered = [0, 1, last].into_iter().flat_map(|number| [Source::Caller(number), Source::Completion(number)]);
        let short = [0, u32::MAX].into_iter().flat_map(|number| [Source::Copy(number), Source::Process(number)]);
        for source in plain.into_iter().chain(numbered).chain(short) {
            assert_eq!(Source::from_bits(source.to_bits()), source);
        }
    }
}
