//! [`Reactor`]: the descriptors that the I/O thread sleeps on. Each peer process has one pidfd, watched while it has a
//! connection, and then until its death is reported.

use super::connection::{BUFFER_BYTES, FlushResult, PeerConnection};
use super::peer::{self, PeerIdentity};
use crate::registry::error::RegistryError;
use gapless_transport::warnings::Warnings;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;

/// Limit of connections of an I/O thread, both ways together.
pub const CONNECTIONS_MAX: usize = 4096;
/// Limit for one process, so that it cannot shut out the others.
pub const CONNECTIONS_OF_PROCESS_MAX: usize = CONNECTIONS_MAX / 16;
/// Timeout of a peer's hello, and of an instance's list of routes.
pub const HANDSHAKE_NS: u64 = 2_000_000_000;
/// Packets of one peer before the next peer's turn.
pub const PACKETS_AT_A_TIME: usize = 32;
const EVENTS_MAX: usize = 256;
/// Pause before a retry when no socket event reports room.
pub const RETRY_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    Waker,
    Listener,
    Watch,
    Caller(u64),
    Instance(u32),
    Process(u32),
    Completion(u64),
}

const NUMBER_BITS: u32 = 56;

impl EventSource {
    const fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Self::Waker => (0, 0),
            Self::Listener => (1, 0),
            Self::Watch => (2, 0),
            Self::Caller(number) => (3, number),
            Self::Instance(number) => (4, number as u64),
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
            4 => Self::Instance(number as u32),
            5 => Self::Process(number as u32),
            _ => Self::Completion(number),
        }
    }
}

/// Any thread may add to them.
#[derive(Clone)]
pub struct WatchedDescriptors(Arc<OwnedFd>);

impl WatchedDescriptors {
    fn none() -> Result<Self, RegistryError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(RegistryError::system("making an epoll"))?;
        Ok(Self(Arc::new(epoll)))
    }

    /// A set that nothing can be added to.
    #[cfg(test)]
    pub fn broken() -> Self {
        Self(Arc::new(gapless_agent::wake_fd::create().expect("an eventfd")))
    }

    /// Unwatch a descriptor before closing it: a child that was just forked may still have it.
    pub fn watch(&self, fd: impl AsFd, source: EventSource, flags: EventFlags) -> Result<(), RegistryError> {
        let data = EventData::new_u64(source.to_bits());
        epoll::add(&self.0, fd, data, flags).map_err(RegistryError::system("watching a descriptor"))
    }

    pub fn unwatch(&self, fd: impl AsFd) {
        // Not being watched is no error.
        let _ = epoll::delete(&self.0, fd);
    }
}

/// Event loop state of the I/O thread.
pub struct Reactor {
    watched: WatchedDescriptors,
    processes: HashMap<u32, WatchedProcess>,
    connections: usize,
    /// Buffer of the current packet.
    pub buffer: Vec<u8>,
    /// At most one a second, since peers can provoke them.
    pub warnings: Warnings,
}

struct WatchedProcess {
    pidfd: OwnedFd,
    connections: usize,
    /// Instances with closed connections.
    unreported_instances: Vec<u32>,
}

impl Reactor {
    pub fn new() -> Result<Self, RegistryError> {
        Ok(Self {
            watched: WatchedDescriptors::none()?,
            processes: HashMap::new(),
            connections: 0,
            buffer: vec![0; BUFFER_BYTES],
            warnings: Warnings::default(),
        })
    }

    pub const fn has_room(&self) -> bool {
        self.connections < CONNECTIONS_MAX
    }

    /// Open connections with a process, both ways together.
    pub fn connections_of(&self, process_id: u32) -> usize {
        self.processes.get(&process_id).map_or(0, |process| process.connections)
    }

    /// Identifies the peer and watches both, until [`close`](Self::close).
    pub fn open(&mut self, connection: &PeerConnection, source: EventSource) -> Result<PeerIdentity, RegistryError> {
        let (identity, pidfd) = peer::identify(connection)?;
        let process_id = identity.process_id;
        self.watch(connection, source, EventFlags::IN | EventFlags::RDHUP)?;
        if let Some(process) = self.processes.get_mut(&process_id).filter(|known| !peer::is_dead(&known.pidfd)) {
            process.connections += 1;
        } else if self.processes.contains_key(&process_id) {
            self.unwatch(connection);
            let reason = "the process that had this number before is not buried yet".to_owned();
            return Err(RegistryError::Protocol { process_id, reason });
        } else {
            if let Err(error) = self.watch(&pidfd, EventSource::Process(process_id), EventFlags::IN) {
                self.unwatch(connection);
                return Err(error);
            }
            self.processes
                .insert(process_id, WatchedProcess { pidfd, connections: 1, unreported_instances: Vec::new() });
        }
        self.connections += 1;
        Ok(identity)
    }

    /// `unreported_instance` is reported when the process is dead.
    pub fn close(&mut self, connection: PeerConnection, process_id: u32, unreported_instance: Option<u32>) {
        self.unwatch(&connection);
        drop(connection);
        self.connections -= 1;
        let Some(process) = self.processes.get_mut(&process_id) else { return };
        process.connections -= 1;
        process.unreported_instances.extend(unreported_instance);
        if process.connections == 0 && process.unreported_instances.is_empty() {
            self.forget(process_id);
        }
    }

    /// Another process may have the id of an event by now.
    pub fn is_dead(&self, process_id: u32) -> bool {
        self.processes.get(&process_id).is_some_and(|process| peer::is_dead(&process.pidfd))
    }

    /// Returns the instances to report.
    pub fn take_dead(&mut self, process_id: u32) -> Vec<u32> {
        self.forget(process_id).map(|process| process.unreported_instances).unwrap_or_default()
    }

    fn forget(&mut self, process_id: u32) -> Option<WatchedProcess> {
        let process = self.processes.remove(&process_id)?;
        self.unwatch(&process.pidfd);
        Some(process)
    }

    /// True if sending is to be retried after [`RETRY_NS`].
    pub fn watch_room(&self, connection: &PeerConnection, source: EventSource, flushed: FlushResult) -> bool {
        let room = if flushed == FlushResult::WhenWritable { EventFlags::OUT } else { EventFlags::empty() };
        let flags = EventFlags::IN | EventFlags::RDHUP | room;
        // Fails only for an unwatched descriptor, and every connection is watched.
        let _ = epoll::modify(&self.watched.0, connection, EventData::new_u64(source.to_bits()), flags);
        flushed == FlushResult::Later
    }

    /// Replaces the content of `ready`.
    pub fn wait(&self, timeout_ns: Option<u64>, ready: &mut Vec<(EventSource, EventFlags)>) -> Result<(), Errno> {
        // Whole milliseconds, rounded up, or the thread would wake early.
        let timeout = timeout_ns.map(|ns| ns.div_ceil(1_000_000).min(3_600_000));
        let timeout =
            timeout.map(|ms| Timespec { tv_sec: (ms / 1000) as i64, tv_nsec: (ms % 1000 * 1_000_000) as i64 });
        ready.clear();
        let mut space = [MaybeUninit::uninit(); EVENTS_MAX];
        match epoll::wait(&self.watched.0, &mut space, timeout.as_ref()) {
            Ok((events, _)) => {
                ready.extend(events.iter().map(|event| (EventSource::from_bits(event.data.u64()), event.flags)));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

impl Deref for Reactor {
    type Target = WatchedDescriptors;

    fn deref(&self) -> &WatchedDescriptors {
        &self.watched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_round_trip() {
        let last = (1 << NUMBER_BITS) - 1;
        let plain = [EventSource::Waker, EventSource::Listener, EventSource::Watch];
        let numbered =
            [0, 1, last].into_iter().flat_map(|number| [EventSource::Caller(number), EventSource::Completion(number)]);
        let short =
            [0, u32::MAX].into_iter().flat_map(|number| [EventSource::Instance(number), EventSource::Process(number)]);
        for source in plain.into_iter().chain(numbered).chain(short) {
            assert_eq!(EventSource::from_bits(source.to_bits()), source);
        }
    }
}
