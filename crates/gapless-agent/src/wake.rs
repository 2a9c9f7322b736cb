//! `Waker`: how a parked thread is woken, from this process or another.
//!
//! The thread that owns a waker parks on it; everybody else only calls [`Waker::wake`] after
//! publishing work. Another process gets a duplicate of the eventfd ([`Waker::duplicate_fd`]) and
//! learns from shared memory, where agents announce it in `arm`, when to write it ([`WakeFd`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::park_flag::ParkFlag;

/// Wakes one thread. Clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Waker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    // On a line of its own: every sender reads it, only parking writes it.
    flag: CacheLine<ParkFlag>,
    fd: OwnedFd,
}

#[derive(Debug)]
#[repr(align(128))]
struct CacheLine<T>(T);

impl Waker {
    /// A waker for one thread.
    ///
    /// # Errors
    /// The system's, when it has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inner: Arc::new(Inner { flag: CacheLine(ParkFlag::new()), fd }) })
    }

    /// Call after publishing work: one fence and one load, and a system call only if the thread is
    /// parked and nobody else is already waking it. Not even the fence if the thread never parks.
    #[inline]
    pub fn wake(&self) {
        if self.inner.flag.0.claim_wake() {
            self.interrupt();
        }
    }

    /// Ends the thread's wait whether it has announced one or not: a system call each time. For
    /// stopping, not for work.
    #[cold]
    pub fn interrupt(&self) {
        signal(self.inner.fd.as_fd());
    }

    /// The eventfd. Another process gets a duplicate of it.
    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.inner.fd.as_fd()
    }

    /// A duplicate of the eventfd, to be sent to another process.
    ///
    /// # Errors
    /// The system's, when it has no file descriptor left.
    pub fn duplicate_fd(&self) -> io::Result<OwnedFd> {
        self.inner.fd.try_clone()
    }

    /// Whether the thread has announced that it waits or is about to. A hint.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.inner.flag.0.is_parked()
    }

    /// Owner: parks until woken or until `timeout_ns` have passed, unless `found_work` says that
    /// there is work. `found_work` runs after the announcement, so nothing published meanwhile is
    /// missed. True if it found work.
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

    /// Owner: from now on it wants wake-ups. Look for work once more, then [`Waker::wait`], then
    /// [`Waker::withdraw`].
    pub fn announce(&self) {
        self.inner.flag.0.announce();
    }

    /// Owner: waits for a signal, at most `timeout_ns`. Also returns early for no reason.
    pub fn wait(&self, timeout_ns: u64) {
        self.wait_watching(timeout_ns, &[]);
    }

    /// As [`Waker::wait`]; it also ends when one of `descriptors` is readable.
    pub fn wait_watching(&self, timeout_ns: u64, descriptors: &[BorrowedFd<'_>]) {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ns % 1_000_000_000) as _,
        };
        let own = PollFd::new(&self.inner.fd, PollFlags::IN);
        // Mostly there are none, and a thread that waits allocates nothing.
        let (mut alone, mut several);
        let fds = if descriptors.is_empty() {
            alone = [own];
            &mut alone[..]
        } else {
            let others = descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
            several = std::iter::once(own).chain(others).collect::<Vec<_>>();
            &mut several[..]
        };
        // An interrupted or refused wait is an early return: the caller polls its agents and comes back.
        if matches!(poll(fds, Some(&timeout)), Ok(ready) if ready > 0) && !fds[0].revents().is_empty() {
            let mut count = [0_u8; 8];
            // Nothing to do about a failure: it means that somebody else has reset it.
            let _ = rustix::io::read(&self.inner.fd, &mut count);
        }
    }

    /// Owner: awake again, wakers need no system call. Without an announcement it does nothing.
    pub fn withdraw(&self) {
        self.inner.flag.0.withdraw();
    }

    /// Owner: this thread never parks, so that `wake` costs one load. For good.
    pub(crate) fn set_never_parks(&self) {
        self.inner.flag.0.set_never_parks();
    }
}

/// The eventfd of a thread in another process.
#[derive(Debug)]
pub struct WakeFd {
    fd: OwnedFd,
}

impl WakeFd {
    /// Takes over a duplicate of another thread's eventfd.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Wakes the thread: one system call. Call it only if shared memory says that the thread is parked.
    pub fn signal(&self) {
        signal(self.fd.as_fd());
    }
}

fn signal(fd: BorrowedFd<'_>) {
    loop {
        match rustix::io::write(fd, &1_u64.to_ne_bytes()) {
            Err(Errno::INTR) => {}
            // EAGAIN: the counter is full, so the thread is being woken already. Nothing else can
            // happen to an eventfd that is open.
            _ => return,
        }
    }
}
