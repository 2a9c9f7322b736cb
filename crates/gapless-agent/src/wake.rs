//! The owning thread parks on a waker; all others only call [`Waker::wake`] after publishing work. Another process gets
//! a duplicate of the eventfd, and learns from shared memory, where agents announce it in `arm`, when to write to it
//! ([`WakeFd`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::park_flag::ParkFlag;

/// Wakes one thread; clones wake the same one.
#[derive(Clone, Debug)]
pub struct Waker {
    inner: Arc<SharedWaker>,
}

#[derive(Debug)]
struct SharedWaker {
    // Every sender reads it, only parking writes it.
    flag: CacheLine<ParkFlag>,
    fd: OwnedFd,
}

#[derive(Debug)]
#[repr(align(128))]
struct CacheLine<T>(T);

impl Waker {
    /// Creates a waker for one thread.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inner: Arc::new(SharedWaker { flag: CacheLine(ParkFlag::new()), fd }) })
    }

    /// Wakes the thread after work was published: one fence and one load, or one load if it never parks. A system call
    /// only if the thread is parked and no other waker is signalling it.
    #[inline]
    pub fn wake(&self) {
        if self.inner.flag.0.claim_wake() {
            self.interrupt();
        }
    }

    /// Ends the thread's wait, announced or not: a system call each time. For stopping, not for work.
    #[cold]
    pub fn interrupt(&self) {
        signal(self.inner.fd.as_fd());
    }

    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.inner.fd.as_fd()
    }

    /// Duplicates the eventfd for another process.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn duplicate_fd(&self) -> io::Result<OwnedFd> {
        self.inner.fd.try_clone()
    }

    /// Whether the thread waits or is about to; a hint.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.inner.flag.0.is_parked()
    }

    /// Owner: parks until woken or for `timeout_ns`, unless `found_work` returns true. `found_work` runs after the
    /// announcement, so no concurrently published work is missed. Returns true if it found work.
    ///
    /// ```
    /// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// let waker = gapless_agent::Waker::new()?;
    /// let ready = Arc::new(AtomicBool::new(false));
    /// let (remote_waker, remote_ready) = (waker.clone(), ready.clone());
    /// let sender = std::thread::spawn(move || {
    ///     remote_ready.store(true, Ordering::Release);
    ///     remote_waker.wake();
    /// });
    /// while !ready.load(Ordering::Acquire) {
    ///     waker.park(1_000_000_000, || ready.load(Ordering::Acquire));
    /// }
    /// # sender.join().unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn park(&self, timeout_ns: u64, found_work: impl FnOnce() -> bool) -> bool {
        self.announce();
        let found = found_work();
        if !found {
            self.wait(timeout_ns);
        }
        self.withdraw();
        found
    }

    /// Owner: requests wake-ups. Look for work once more, then [`Waker::wait`], then [`Waker::withdraw`].
    pub fn announce(&self) {
        self.inner.flag.0.announce();
    }

    /// Owner: waits for a signal, at most `timeout_ns`; spurious returns are possible.
    pub fn wait(&self, timeout_ns: u64) {
        self.wait_watching(timeout_ns, &[]);
    }

    /// Like [`Waker::wait`]; also ends when one of `descriptors` is readable.
    pub fn wait_watching(&self, timeout_ns: u64, descriptors: &[BorrowedFd<'_>]) {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ns % 1_000_000_000) as _,
        };
        let own = PollFd::new(&self.inner.fd, PollFlags::IN);
        let (mut alone, mut several);
        let fds = if descriptors.is_empty() {
            alone = [own];
            &mut alone[..]
        } else {
            let others = descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
            several = std::iter::once(own).chain(others).collect::<Vec<_>>();
            &mut several[..]
        };
        // An interrupted or refused wait is an early return: the caller polls its agents and waits again.
        if matches!(poll(fds, Some(&timeout)), Ok(ready) if ready > 0) && !fds[0].revents().is_empty() {
            let mut count = [0_u8; 8];
            // A failure can be ignored: another thread has reset the counter.
            let _ = rustix::io::read(&self.inner.fd, &mut count);
        }
    }

    /// Owner: withdraws the request, if any, so that wakers need no system call.
    pub fn withdraw(&self) {
        self.inner.flag.0.withdraw();
    }

    pub(crate) fn set_never_parks(&self) {
        self.inner.flag.0.set_never_parks();
    }
}

#[derive(Debug)]
pub struct WakeFd {
    fd: OwnedFd,
}

impl WakeFd {
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// One system call; only if shared memory shows that the thread is parked.
    pub fn signal(&self) {
        signal(self.fd.as_fd());
    }
}

fn signal(fd: BorrowedFd<'_>) {
    loop {
        match rustix::io::write(fd, &1_u64.to_ne_bytes()) {
            Err(Errno::INTR) => {}
            // EAGAIN: the counter is full, so the thread is being woken already. An open eventfd has no other errors.
            _ => return,
        }
    }
}
