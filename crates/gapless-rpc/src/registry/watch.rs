//! [`DirectoryWatch`]: which sockets appear in a domain's directory.
//!
//! A socket appears by being renamed, so that is all that is watched; that one disappears is not, because connections and
//! pidfds say more about its process. The watch begins before the first listing, and after an overflow of the kernel's queue
//! there is another listing: a socket may be told twice, but none is missed.

use super::directory::{CopyId, DomainDirectory, FileKind};
use crate::error::RpcError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Room for some hundred events.
const BUFFER_BYTES: usize = 32 << 10;

/// Which sockets appear in a domain's directory.
#[derive(Debug)]
pub struct DirectoryWatch {
    directory: Arc<DomainDirectory>,
    inotify: OwnedFd,
}

impl DirectoryWatch {
    /// Begins to watch. Also returns the sockets that are there.
    pub fn begin(directory: &Arc<DomainDirectory>) -> Result<(Self, Vec<CopyId>), RpcError> {
        let failed = || RpcError::system(format!("watching the domain {}", directory.path().display()));
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(failed())?;
        let flags = WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        inotify::add_watch(&inotify, directory.own_path(), flags).map_err(failed())?;
        let there = sockets(directory)?;
        Ok((Self { directory: Arc::clone(directory), inotify }, there))
    }

    /// The sockets that have appeared since.
    pub fn appeared(&self) -> Result<Vec<CopyId>, RpcError> {
        let failed = || RpcError::system(format!("watching the domain {}", self.directory.path().display()));
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let (mut found, mut is_incomplete) = (Vec::new(), false);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(failed()(errno)),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                is_incomplete = true;
            } else if event.events().contains(ReadFlags::IGNORED) {
                let path = self.directory.path().display();
                tracing::error!("the domain's directory {path} was removed: processes that open it anew are not found");
            }
            let named = event.file_name().and_then(|name| CopyId::of_file(name.to_bytes()));
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
        self.inotify.as_fd()
    }
}

fn sockets(directory: &DomainDirectory) -> Result<Vec<CopyId>, RpcError> {
    let found = directory.list()?.into_iter();
    Ok(found.filter(|(_, kind)| *kind == FileKind::Socket).map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::copy_files::CopyFiles;
    use crate::registry::directory::Place;

    #[test]
    fn what_is_there_and_what_appears_is_told_even_after_an_overflow() {
        let parent = tempfile::tempdir().unwrap();
        let directory = DomainDirectory::open(&Place::Path(parent.path().join("domain")), None).unwrap();
        let directory = Arc::new(directory);
        let (first, _socket) = CopyFiles::create(&directory, |_| ()).unwrap();
        let (watch, there) = DirectoryWatch::begin(&directory).unwrap();
        assert_eq!(there, [first.id()]);
        assert_eq!(watch.appeared().unwrap(), []);
        let (second, _socket) = CopyFiles::create(&directory, |_| ()).unwrap();
        assert_eq!(watch.appeared().unwrap(), [second.id()]);

        let queued_max = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let queued_max = queued_max.trim().parse::<usize>().unwrap();
        if queued_max > 100_000 {
            println!("SKIPPED: a queue of {queued_max} events takes too long to fill");
            return;
        }
        let names = ["a", "b"].map(|name| directory.path().join(name));
        std::fs::write(&names[0], "").unwrap();
        // Two by two, because the kernel puts equal events together only when they follow each other.
        for _ in 0..queued_max.div_ceil(2) {
            std::fs::rename(&names[0], &names[1]).unwrap();
            std::fs::rename(&names[1], &names[0]).unwrap();
        }
        let (third, _socket) = CopyFiles::create(&directory, |_| ()).unwrap();
        let mut told = watch.appeared().unwrap();
        told.sort();
        let mut expected = [first.id(), second.id(), third.id()];
        expected.sort();
        assert_eq!(told, expected);
        assert_eq!(watch.appeared().unwrap(), []);
    }
}
