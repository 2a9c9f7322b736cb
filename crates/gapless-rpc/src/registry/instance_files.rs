//! [`InstanceFiles`]: socket and lock of a serving process, and [`sweep`]: the removal of the files of dead ones.
//!
//! The lock is held before the socket appears, until the process dies. Only its holder removes files, the lock last, so
//! there is never a socket without a lock. Two races remain between opening a lock's file and locking it: a second
//! sweeper sees that the file has no name any more, and leaves; a starting process whose file was swept takes another
//! name. Names are never reused.

use super::directory::{DomainDirectory, FileKind, InstanceId, path_in};
use crate::registry::error::RegistryError;
use gapless_agent::counters::descriptor::process_namespace;
use gapless_agent::fault::crash_point;
use gapless_agent::file_lock;
use gapless_agent::socket_file;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, test_kill_process};
use std::path::Path;
use std::sync::Arc;

const LOCK_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Attempts while sweepers are faster.
const NAMES_MAX: usize = 1000;
const BACKLOG: i32 = 1024;

/// Socket and lock of a serving process, removed on drop.
#[derive(Debug)]
pub struct InstanceFiles {
    directory: Arc<DomainDirectory>,
    id: InstanceId,
    lock: OwnedFd,
}

impl InstanceFiles {
    /// Passes the name to `about_to_appear` before any other process can see the socket. Returns the listening socket,
    /// too.
    pub fn create(
        directory: &Arc<DomainDirectory>,
        about_to_appear: impl FnOnce(InstanceId),
    ) -> Result<(Self, OwnedFd), RegistryError> {
        let (id, lock) = make_lock(directory)?;
        // From here on, an error removes the files.
        let files = Self { directory: Arc::clone(directory), id, lock };
        crash_point("serve_lock_taken");
        about_to_appear(id);
        let socket = files.listen()?;
        Ok((files, socket))
    }

    pub fn exist(&self) -> bool {
        let has_socket = rustix::fs::statat(self.directory.fd(), &*self.id.file(FileKind::Socket), AtFlags::empty());
        has_socket.is_ok() && self.has_lock()
    }

    fn has_lock(&self) -> bool {
        let listed_instances =
            rustix::fs::statat(self.directory.fd(), &*self.id.file(FileKind::Lock), AtFlags::SYMLINK_NOFOLLOW);
        matches!((listed_instances, rustix::fs::fstat(&self.lock)), (Ok(listed_instances), Ok(own))
            if (listed_instances.st_dev, listed_instances.st_ino) == (own.st_dev, own.st_ino))
    }

    /// Creates removed files again, under the name that callers know; returns the new listening socket.
    pub fn restore(&mut self) -> Result<OwnedFd, RegistryError> {
        if !self.has_lock() {
            let lock = lock_named(&self.directory, self.id)?;
            let failed = RegistryError::system(format!("locking in the domain {}", self.directory.path().display()));
            self.lock = lock.ok_or_else(|| failed(Errno::AGAIN))?;
        }
        self.listen()
    }

    fn listen(&self) -> Result<OwnedFd, RegistryError> {
        let (directory, id) = (&self.directory, self.id);
        let failed = || RegistryError::system(format!("serving in the domain {}", directory.path().display()));
        let new = id.file(FileKind::NewSocket);
        let folder = directory.fd();
        let address = SocketAddrUnix::new(path_in(&folder, &new)).map_err(failed())?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let socket = socket.map_err(failed())?;
        rustix::net::bind(&socket, &address).map_err(failed())?;
        socket_file::limit(&folder, Path::new(&new), directory.socket_mode(), directory.group()).map_err(failed())?;
        // Listens before the socket appears: a socket that refuses belongs to a dead process.
        rustix::net::listen(&socket, BACKLOG).map_err(failed())?;
        crash_point("serve_before_rename");
        let name = id.file(FileKind::Socket);
        rustix::fs::renameat(&folder, &*new, &folder, &*name).map_err(failed())?;
        crash_point("serve_listening");
        Ok(socket)
    }

    #[cfg(test)]
    pub const fn id(&self) -> InstanceId {
        self.id
    }
}

impl Drop for InstanceFiles {
    fn drop(&mut self) {
        remove_files(&self.directory, self.id);
    }
}

fn make_lock(directory: &DomainDirectory) -> Result<(InstanceId, OwnedFd), RegistryError> {
    for _ in 0..NAMES_MAX {
        let id = InstanceId::random();
        if let Some(lock) = lock_named(directory, id)? {
            return Ok((id, lock));
        }
    }
    let reason = format!("{NAMES_MAX} new locks one after the other were removed by other processes");
    Err(RegistryError::Domain { path: directory.path().to_owned(), reason })
}

/// The lock contains this process's id; `None` if a sweeper was faster.
fn lock_named(directory: &DomainDirectory, id: InstanceId) -> Result<Option<OwnedFd>, RegistryError> {
    let failed = || RegistryError::system(format!("locking in the domain {}", directory.path().display()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(directory.fd(), &*id.file(FileKind::Lock), flags, LOCK_MODE).map_err(failed())?;
    // Independent of the umask: other processes of this user open it to sweep.
    rustix::fs::fchmod(&lock, LOCK_MODE).map_err(failed())?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if has_name(&lock)? => {}
        Ok(()) | Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(failed()(errno)),
    }
    // Only for [`holder`]; the file stays empty on a full disk.
    let _ = rustix::io::pwrite(&lock, format!("{} {}", std::process::id(), process_namespace()).as_bytes(), 0);
    Ok(Some(lock))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Id in its own process namespace.
    pub process_id: u32,
    /// Inode number; 0 from an earlier version, or without `/proc`.
    namespace: u64,
}

impl LockHolder {
    /// Whether its id belongs to this process's namespace; elsewhere it means another process, or no process.
    pub fn is_of_this_namespace(self) -> bool {
        [0, process_namespace()].contains(&self.namespace)
    }
}

/// `None` if the file cannot be read.
pub fn holder(directory: &DomainDirectory, id: InstanceId) -> Option<LockHolder> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(directory.fd(), &*id.file(FileKind::Lock), flags, Mode::empty()).ok()?;
    let mut text = [0; 32];
    let length = rustix::io::pread(&lock, &mut text, 0).ok()?;
    let mut words = std::str::from_utf8(&text[..length]).ok()?.split(' ');
    let process_id = words.next()?.parse().ok()?;
    let namespace = words.next().map_or(Ok(0), str::parse).ok()?;
    Some(LockHolder { process_id, namespace })
}

/// The live process whose lock exists and whose socket was removed: it may be stopped. `None` too where that cannot be
/// seen, as for another container.
pub fn without_socket(directory: &DomainDirectory, id: InstanceId) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(directory.fd(), &*id.file(FileKind::Lock), flags, Mode::empty()).ok()?;
    let LockHolder { process_id, .. } = holder(directory, id).filter(|holder| holder.is_of_this_namespace())?;
    let process = Pid::from_raw(process_id.try_into().ok()?)?;
    let lives = matches!(test_kill_process(process), Ok(()) | Err(Errno::PERM));
    (lives && file_lock::is_locked(&lock.into()).ok()?).then_some(process_id)
}

/// Removes the files of dead processes and returns their number; failures are logged.
pub fn sweep(directory: &DomainDirectory) -> Result<usize, RegistryError> {
    let locks = directory.list()?.into_iter().filter(|(_, kind)| *kind == FileKind::Lock);
    Ok(locks.filter(|(id, _)| sweep_one(directory, *id)).count())
}

/// Returns whether the process was dead.
pub fn sweep_one(directory: &DomainDirectory, id: InstanceId) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // Members of a group may look and connect, but neither lock nor remove.
    let Ok(lock) = rustix::fs::openat(directory.fd(), &*id.file(FileKind::Lock), flags, Mode::empty()) else {
        return false;
    };
    let is_dead = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && has_name(&lock).unwrap_or(false);
    if is_dead {
        crash_point("sweep_lock_taken");
        remove_files(directory, id);
    }
    is_dead
}

fn has_name(file: impl AsFd) -> Result<bool, RegistryError> {
    rustix::fs::fstat(file).map(|stat| stat.st_nlink > 0).map_err(RegistryError::system("looking at a lock"))
}

/// The caller holds the lock, which is removed last.
fn remove_files(directory: &DomainDirectory, id: InstanceId) {
    for kind in [FileKind::NewSocket, FileKind::Socket, FileKind::Lock] {
        match rustix::fs::unlinkat(directory.fd(), &*id.file(kind), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => crash_point("sweep_between_files"),
            Err(errno) => {
                tracing::warn!("removing {} in {}: {errno}", id.file(kind), directory.path().display());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::connection::PeerConnection;
    use crate::registry::directory::DomainLocation;
    use gapless_testkit::random::Random;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn domain() -> (tempfile::TempDir, Arc<DomainDirectory>) {
        let parent = tempfile::tempdir().unwrap();
        let directory = DomainDirectory::open(&DomainLocation::Path(parent.path().join("domain")), None).unwrap();
        (parent, Arc::new(directory))
    }

    fn names(directory: &DomainDirectory) -> Vec<String> {
        let mut names = directory.list().unwrap().iter().map(|(id, kind)| id.file(*kind)).collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn only_dead_files_are_swept() {
        let (_parent, directory) = domain();
        let mut told = None;
        let (files, socket) = InstanceFiles::create(&directory, |id| told = Some(id)).unwrap();
        let id = files.id();
        assert_eq!(told, Some(id));
        assert_eq!(names(&directory), [id.file(FileKind::Lock), id.file(FileKind::Socket)]);
        let path = directory.path().join(id.file(FileKind::Socket));
        let metadata = std::fs::metadata(path).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.mode() & 0o777, 0o600);
        assert_eq!(sweep(&directory).unwrap(), 0);
        drop(PeerConnection::connect(&directory, id).unwrap());
        drop(socket);
        assert_eq!(PeerConnection::connect(&directory, id).err(), Some(Errno::CONNREFUSED));
        drop(files);
        assert_eq!(names(&directory), [] as [String; 0]);
        assert_eq!(PeerConnection::connect(&directory, id).err(), Some(Errno::NOENT));

        for kinds in [&[][..], &[FileKind::NewSocket], &[FileKind::Socket]] {
            let id = InstanceId::random();
            for kind in [FileKind::Lock].iter().chain(kinds) {
                std::fs::write(directory.path().join(id.file(*kind)), "").unwrap();
            }
        }
        std::fs::write(directory.path().join("something else"), "").unwrap();
        assert_eq!(sweep(&directory).unwrap(), 3);
        assert_eq!(names(&directory), [] as [String; 0]);
        assert!(directory.path().join("something else").exists());
    }

    #[test]
    fn removed_files_are_made_again() {
        let (_parent, directory) = domain();
        let (mut files, first) = InstanceFiles::create(&directory, |_| ()).unwrap();
        let id = files.id();
        let own = holder(&directory, id).unwrap();
        assert!(files.exist() && own.process_id == std::process::id() && own.is_of_this_namespace());
        let lock = directory.path().join(id.file(FileKind::Lock));
        for (text, is_of_this_namespace) in [("7", true), ("7 8", false)] {
            std::fs::write(&lock, text).unwrap();
            let found = holder(&directory, id).unwrap();
            assert_eq!((found.process_id, found.is_of_this_namespace()), (7, is_of_this_namespace));
        }
        for removed in [&[FileKind::Socket][..], &[FileKind::Lock], &[FileKind::Socket, FileKind::Lock]] {
            for kind in removed {
                std::fs::remove_file(directory.path().join(id.file(*kind))).unwrap();
            }
            assert!(!files.exist());
            let _socket = files.restore().unwrap();
            assert!(files.exist() && names(&directory).len() == 2);
            drop(PeerConnection::connect(&directory, id).unwrap());
            assert_eq!(sweep(&directory).unwrap(), 0, "it is locked");
        }
        std::fs::remove_dir_all(directory.path()).unwrap();
        assert!(!files.exist() && directory.renew().unwrap());
        let _socket = files.restore().unwrap();
        assert!(files.exist() && names(&directory).len() == 2);
        drop(first);
    }

    #[test]
    fn deep_directory_serves_and_connects() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(200));
        let directory = Arc::new(DomainDirectory::open(&DomainLocation::Path(long), None).unwrap());
        let (files, _socket) = InstanceFiles::create(&directory, |_| ()).unwrap();
        drop(PeerConnection::connect(&directory, files.id()).unwrap());
    }

    #[test]
    fn group_may_open_sockets() {
        let parent = tempfile::tempdir().unwrap();
        let group = rustix::process::getegid().as_raw();
        let place = DomainLocation::Path(parent.path().join("domain"));
        let directory = Arc::new(DomainDirectory::open(&place, Some(group)).unwrap());
        let (files, _socket) = InstanceFiles::create(&directory, |_| ()).unwrap();
        let mode = |kind| std::fs::metadata(directory.path().join(files.id().file(kind))).unwrap().mode() & 0o777;
        assert_eq!((mode(FileKind::Socket), mode(FileKind::Lock)), (0o660, 0o600));
    }

    #[test]
    fn starters_and_sweepers_coexist() {
        let (_parent, directory) = domain();
        let (started, swept) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_over = AtomicBool::new(false);
        let seed = gapless_testkit::random::printed_seed();
        let starts = gapless_testkit::random::rounds(300, 100) as usize;
        std::thread::scope(|scope| {
            let sweepers = (0..3).map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        swept.fetch_add(sweep(&directory).unwrap(), Ordering::SeqCst);
                    }
                })
            });
            let sweepers = sweepers.collect::<Vec<_>>();
            let starters = (0..3u64).map(|number| {
                let (directory, started) = (&directory, &started);
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ number);
                    for _ in 0..starts {
                        let (files, socket) = InstanceFiles::create(directory, |_| ()).unwrap();
                        for _ in 0..random.below(3) {
                            std::thread::yield_now();
                            drop(PeerConnection::connect(directory, files.id()).unwrap());
                        }
                        assert!(directory.path().join(files.id().file(FileKind::Lock)).exists());
                        if random.happens(300) {
                            flock(&files.lock, FlockOperation::Unlock).unwrap();
                            std::mem::forget(files);
                        }
                        drop(socket);
                        started.fetch_add(1, Ordering::SeqCst);
                    }
                })
            });
            starters.collect::<Vec<_>>().into_iter().for_each(|starter| starter.join().unwrap());
            is_over.store(true, Ordering::SeqCst);
            sweepers.into_iter().for_each(|sweeper| sweeper.join().unwrap());
        });
        sweep(&directory).unwrap();
        assert_eq!(names(&directory), [] as [String; 0]);
        assert_eq!(started.load(Ordering::SeqCst), 3 * starts);
        assert!(swept.load(Ordering::SeqCst) > 0);
    }
}
