//! [`LogKeeper`]: on its own thread, so that neither an unresponsive disk nor endless output delays the supervisor.

use super::rotation::rotate;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::time::Timespec;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Output during this time may exceed the limit.
const PAUSE: Duration = Duration::from_millis(20);
const CHECK_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 1_000 });
/// More than one, to limit the number of events.
const ROOM_BLOCKS: u64 = 16;

/// Keeps logs below their limit until it is dropped.
#[derive(Debug)]
pub struct LogKeeper {
    shared: Arc<KeeperShared>,
}

/// Finding of the log keeper, reported once until it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFinding {
    DiskFull(PathBuf),
    DiskHasRoom(PathBuf),
    NotRotated(PathBuf, String),
}

#[derive(Debug)]
struct KeeperShared {
    settings: Mutex<KeeperSettings>,
    found: Mutex<Vec<LogFinding>>,
    wake: OwnedFd,
}

#[derive(Clone, Debug, Default)]
struct KeeperSettings {
    logs: BTreeSet<PathBuf>,
    bytes_max: u64,
    kept: u32,
    is_over: bool,
}

impl LogKeeper {
    /// Starts the thread; limits are bytes of each log and rotated files.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(bytes_max: u64, kept: u32) -> std::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let settings = Mutex::new(KeeperSettings { bytes_max, kept, ..KeeperSettings::default() });
        let shared = Arc::new(KeeperShared { settings, found: Mutex::default(), wake });
        let its = Arc::clone(&shared);
        std::thread::Builder::new().name("gapless-logs".to_owned()).spawn(move || RotationWorker::new(its).run())?;
        Ok(Self { shared })
    }

    /// Adds a log, whose directory must exist.
    pub fn add(&self, log: &Path) {
        if !lock(&self.shared.settings).logs.contains(log) {
            self.change(|settings| settings.logs.extend([log.to_owned()]));
        }
    }

    pub fn set_limits(&self, bytes_max: u64, kept: u32) {
        self.change(|settings| (settings.bytes_max, settings.kept) = (bytes_max, kept));
    }

    #[must_use]
    pub fn take_findings(&self) -> Vec<LogFinding> {
        std::mem::take(&mut *lock(&self.shared.found))
    }

    fn change(&self, change: impl FnOnce(&mut KeeperSettings)) {
        change(&mut lock(&self.shared.settings));
        // If the counter is full, the eventfd is readable already.
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for LogKeeper {
    fn drop(&mut self) {
        self.change(|settings| settings.is_over = true);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Held for single statements only: the data is consistent after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct RotationWorker {
    shared: Arc<KeeperShared>,
    /// Without inotify, all logs are checked at each interval.
    inotify: Option<OwnedFd>,
    watched: BTreeMap<PathBuf, i32>,
    full: BTreeSet<PathBuf>,
    failed: BTreeSet<PathBuf>,
}

impl RotationWorker {
    fn new(shared: Arc<KeeperShared>) -> Self {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        let inotify = inotify.inspect_err(|errno| tracing::warn!("logs are looked at once a second: {errno}")).ok();
        Self { shared, inotify, watched: BTreeMap::new(), full: BTreeSet::new(), failed: BTreeSet::new() }
    }

    fn run(mut self) {
        let mut next_check = Instant::now();
        loop {
            let settings = lock(&self.shared.settings).clone();
            if settings.is_over {
                return;
            }
            self.watch(&settings);
            let touched = self.touched();
            let is_due = Instant::now() >= next_check;
            for log in &settings.logs {
                if is_due || touched.as_ref().is_none_or(|touched| touched.contains(log)) {
                    self.check(log, &settings);
                }
            }
            if is_due {
                self.check_disks();
                next_check = Instant::now() + CHECK_INTERVAL;
            }
            self.sleep(next_check);
        }
    }

    fn watch(&mut self, settings: &KeeperSettings) {
        for folder in settings.logs.iter().filter_map(|log| log.parent()) {
            if self.watched.contains_key(folder) {
                continue;
            }
            let added = self.inotify.as_ref().map(|inotify| inotify::add_watch(inotify, folder, WatchFlags::MODIFY));
            let number = match added {
                Some(Ok(number)) => number,
                Some(Err(errno)) => {
                    tracing::warn!("logs in {} are looked at once a second: {errno}", folder.display());
                    -1
                }
                None => -1,
            };
            self.watched.insert(folder.to_owned(), number);
        }
    }

    fn touched(&self) -> Option<BTreeSet<PathBuf>> {
        let mut touched = BTreeSet::new();
        let Some(inotify) = &self.inotify else { return Some(touched) };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        let mut has_lost = false;
        while let Ok(event) = reader.next() {
            has_lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let folder = self.watched.iter().find(|(_, number)| **number == event.wd());
            if let (Some((folder, _)), Some(name)) = (folder, event.file_name()) {
                touched.insert(folder.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
            }
        }
        (!has_lost).then_some(touched)
    }

    fn check(&mut self, log: &Path, settings: &KeeperSettings) {
        if std::fs::symlink_metadata(log).is_ok_and(|file| file.len() < settings.bytes_max) {
            self.failed.remove(log);
            return;
        }
        match rotate(log, settings.bytes_max, settings.kept) {
            Ok(_) => {
                self.failed.remove(log);
            }
            Err(error) => {
                if self.failed.insert(log.to_owned()) {
                    self.report(LogFinding::NotRotated(log.to_owned(), error.to_string()));
                }
            }
        }
    }

    fn check_disks(&mut self) {
        for folder in self.watched.keys().cloned().collect::<Vec<_>>() {
            let Ok(disk) = rustix::fs::statvfs(&folder) else { continue };
            // File systems without a size are never full.
            let is_full = disk.f_blocks > 0 && disk.f_bavail == 0;
            if is_full && self.full.insert(folder.clone()) {
                self.report(LogFinding::DiskFull(folder));
            } else if disk.f_bavail >= ROOM_BLOCKS && self.full.remove(&folder) {
                self.report(LogFinding::DiskHasRoom(folder));
            }
        }
    }

    fn report(&self, found: LogFinding) {
        lock(&self.shared.found).push(found);
    }

    fn sleep(&self, until: Instant) {
        std::thread::sleep(PAUSE);
        let most = until.saturating_duration_since(Instant::now());
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        let fds = std::iter::once(&self.shared.wake).chain(&self.inotify);
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // The result does not matter: the loop checks everything.
        let _ = poll(&mut fds, Some(&most));
        let _was_none = rustix::io::read(&self.shared.wake, &mut [0; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::until;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn growing_logs_are_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let [mut at_a, mut at_b] = [&a, &b].map(|path| File::options().append(true).create(true).open(path).unwrap());
        let keeper = LogKeeper::start(1 << 20, 1).unwrap();
        keeper.add(&a);
        at_a.write_all(&vec![b'x'; 3 << 20]).unwrap();
        at_b.write_all(&vec![b'x'; 3 << 20]).unwrap();
        let is_below = |path: &Path, most: u64| std::fs::metadata(path).unwrap().len() < most;
        until("it is below its limit", || is_below(&a, 1 << 20));
        assert!(!is_below(&b, 1 << 20), "that log is not watched");
        keeper.add(&b);
        keeper.set_limits(8192, 1);
        until("both are below the new limit", || is_below(&a, 8192) && is_below(&b, 8192));
        assert_eq!(keeper.take_findings(), []);
    }

    #[test]
    fn full_disk_is_reported_once() {
        let Some(disk) = gapless_testkit::folder::SmallDisk::new(200) else { return };
        let log = disk.path.join("a.1.log");
        let mut file = File::options().append(true).create(true).open(&log).unwrap();
        while file.write_all(&[b'x'; 512]).is_ok() {}
        let keeper = LogKeeper::start(1 << 20, 1).unwrap();
        keeper.add(&log);
        let mut found = Vec::new();
        until("the full disk is reported", || {
            found.extend(keeper.take_findings());
            !found.is_empty()
        });
        keeper.set_limits(1 << 21, 1);
        std::thread::sleep(CHECK_INTERVAL * 2);
        found.extend(keeper.take_findings());
        assert_eq!(found, [LogFinding::DiskFull(disk.path.clone())]);
        file.set_len(0).unwrap();
        until("the free space is reported", || {
            found.extend(keeper.take_findings());
            found.len() == 2
        });
        assert_eq!(found[1], LogFinding::DiskHasRoom(disk.path.clone()));
    }
}
