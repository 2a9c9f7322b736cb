//! [`DirectoryWatch`]: notices of new sockets in a domain's directory, which appear by a rename. The watch begins
//! before the first listing, and an overflow causes another, so none is missed, though some may be reported twice.
//!
//! Closing a watch takes the kernel mostly 10 to 20 ms, so a process that may end soon only lists the directory. Where
//! the kernel has no watch left for the user (often 128), the directory is listed ten times a second.

use super::directory::{DomainDirectory, FileKind, InstanceId, path_in};
use crate::registry::error::RegistryError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::sync::Arc;

const LISTING_INTERVAL_NS: i64 = 100_000_000;

const BUFFER_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub struct DirectoryWatch {
    directory: Arc<DomainDirectory>,
    signs: SocketSignal,
}

#[derive(Debug)]
enum SocketSignal {
    Inotify(OwnedFd),
    Timer(OwnedFd),
}

impl DirectoryWatch {
    /// The sockets of some listed processes may be missing.
    pub fn begin(directory: &Arc<DomainDirectory>) -> Result<(Self, Vec<InstanceId>), RegistryError> {
        let failed = || RegistryError::system(format!("watching the domain {}", directory.path().display()));
        let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).and_then(|inotify| {
            inotify::add_watch(&inotify, path_in(&directory.fd(), "."), WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
            Ok(inotify)
        });
        let signs = match watched {
            Ok(inotify) => SocketSignal::Inotify(inotify),
            // No inotify instances (`MFILE`) or watches (`NOSPC`) left.
            Err(Errno::MFILE | Errno::NOSPC) => SocketSignal::Timer(timer().map_err(failed())?),
            Err(errno) => return Err(failed()(errno)),
        };
        let listed_instances = listed_instances(directory)?;
        Ok((Self { directory: Arc::clone(directory), signs }, listed_instances))
    }

    /// Sockets since the last call.
    pub fn appeared(&self) -> Result<Vec<InstanceId>, RegistryError> {
        match &self.signs {
            SocketSignal::Inotify(inotify) => self.appeared_by(inotify),
            SocketSignal::Timer(timer) => {
                // The number of expirations does not matter.
                let _ = rustix::io::read(timer, &mut [0; 8]);
                sockets(&self.directory)
            }
        }
    }

    fn appeared_by(&self, inotify: &OwnedFd) -> Result<Vec<InstanceId>, RegistryError> {
        let failed = || RegistryError::system(format!("watching the domain {}", self.directory.path().display()));
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        let (mut found, mut is_incomplete) = (Vec::new(), false);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(failed()(errno)),
            };
            is_incomplete |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let named = event.file_name().and_then(|name| InstanceId::of_file(name.to_bytes()));
            found.extend(named.filter(|(_, kind)| *kind == FileKind::Socket).map(|(id, _)| id));
        }
        if is_incomplete {
            found = sockets(&self.directory)?;
        }
        Ok(found)
    }
}

impl AsFd for DirectoryWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.signs {
            SocketSignal::Inotify(fd) | SocketSignal::Timer(fd) => fd.as_fd(),
        }
    }
}

fn timer() -> rustix::io::Result<OwnedFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let interval = Timespec { tv_sec: 0, tv_nsec: LISTING_INTERVAL_NS };
    let times = Itimerspec { it_interval: interval, it_value: interval };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
    Ok(timer)
}

/// Processes in the directory; the sockets of some may be missing.
pub fn listed_instances(directory: &DomainDirectory) -> Result<Vec<InstanceId>, RegistryError> {
    let listed_instances: BTreeSet<_> = directory.list()?.into_iter().map(|(id, _)| id).collect();
    Ok(listed_instances.into_iter().collect())
}

fn sockets(directory: &DomainDirectory) -> Result<Vec<InstanceId>, RegistryError> {
    let found = directory.list()?.into_iter();
    Ok(found.filter(|(_, kind)| *kind == FileKind::Socket).map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::directory::DomainLocation;
    use crate::registry::instance_files::InstanceFiles;

    #[test]
    fn sockets_are_found_without_a_watch() {
        let parent = tempfile::tempdir().unwrap();
        let directory = DomainDirectory::open(&DomainLocation::Path(parent.path().join("domain")), None).unwrap();
        let directory = Arc::new(directory);
        let watch = DirectoryWatch { directory: Arc::clone(&directory), signs: SocketSignal::Timer(timer().unwrap()) };
        let (instance, _socket) = InstanceFiles::create(&directory, |_| ()).unwrap();
        for _ in 0..3 {
            let mut signs = [rustix::event::PollFd::new(&watch, rustix::event::PollFlags::IN)];
            assert_eq!(rustix::event::poll(&mut signs, None), Ok(1));
            assert_eq!(watch.appeared().unwrap(), [instance.id()]);
        }
    }

    #[test]
    fn overflow_misses_no_socket() {
        let parent = tempfile::tempdir().unwrap();
        let directory = DomainDirectory::open(&DomainLocation::Path(parent.path().join("domain")), None).unwrap();
        let directory = Arc::new(directory);
        let (first, _socket) = InstanceFiles::create(&directory, |_| ()).unwrap();
        let (watch, listed_instances) = DirectoryWatch::begin(&directory).unwrap();
        assert_eq!(listed_instances, [first.id()]);
        assert_eq!(watch.appeared().unwrap(), []);
        let (second, _socket) = InstanceFiles::create(&directory, |_| ()).unwrap();
        assert_eq!(watch.appeared().unwrap(), [second.id()]);

        let queued_max = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let queued_max = queued_max.trim().parse::<usize>().unwrap();
        if queued_max > 100_000 {
            println!("SKIPPED: a queue of {queued_max} events takes too long to fill");
            return;
        }
        let names = ["a", "b"].map(|name| directory.path().join(name));
        std::fs::write(&names[0], "").unwrap();
        // Alternating, because the kernel merges equal adjacent events.
        for _ in 0..queued_max.div_ceil(2) {
            std::fs::rename(&names[0], &names[1]).unwrap();
            std::fs::rename(&names[1], &names[0]).unwrap();
        }
        let (third, _socket) = InstanceFiles::create(&directory, |_| ()).unwrap();
        let mut told = watch.appeared().unwrap();
        told.sort();
        let mut expected = [first.id(), second.id(), third.id()];
        expected.sort();
        assert_eq!(told, expected);
        assert_eq!(watch.appeared().unwrap(), []);
    }
}
