//! [`Channel`]: the state that the clones of a [`Client`](super::Client) share. Two locks: one of the queue, held for
//! microseconds, and one of the connection, for which no caller waits.

use super::CallOptions;
use super::blocked_threads::BlockedThreads;
use super::call_state::CallState;
use super::connection::Connection;
use super::outbox::Outbox;
use super::waiting_bound::QueueFull;
use super::watch::Watch;
use super::work_lock::WorkLock;
use crate::ClientError;
use crate::polled::PolledClient;
use gapless_agent::foreign;
use gapless_agent::wake_fd;
use gapless_transport::TransportError;
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::Thread;

/// Turns of one caller in a row, before it leaves the work to the watcher.
const TURNS_MAX: usize = 16;
/// Passes of a spinning caller that keeps the lock, for which the watcher may wait: some microseconds.
const SPINNING_PASSES_MAX: usize = 64;

pub(super) struct Channel {
    pub connection: WorkLock<Connection>,
    pub outbox: Outbox,
    pub options: CallOptions,
    next_lane: AtomicUsize,
    /// Calls that have returned `Pending`, and wait for a wake-up.
    pending: AtomicUsize,
    /// The watcher sleeps and takes no replies, because no one waits.
    pub is_idle: AtomicBool,
    /// Held by the thread that takes replies while no caller does.
    pub watch: Mutex<Watch>,
    /// Wakes the watcher.
    pub wake: Arc<OwnedFd>,
    pub blocked: BlockedThreads,
    is_helper_started: AtomicBool,
    pub needs_heartbeats: bool,
    /// Thread that sends heartbeats until there is a helper.
    pub keeper: OnceLock<Thread>,
    is_closed: AtomicBool,
}

impl Channel {
    pub fn new(client: PolledClient, options: CallOptions) -> Result<Self, ClientError> {
        options.check()?;
        let wake = wake_fd::create().map_err(TransportError::system("making an eventfd"))?;
        let needs_heartbeats = client.needs_heartbeats();
        Ok(Self {
            connection: WorkLock::new(Connection::new(client, options.sessions)),
            outbox: Outbox::new(options.sessions + 2, options.waiting_max),
            options,
            next_lane: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            is_idle: AtomicBool::new(false),
            watch: Mutex::default(),
            wake: Arc::new(wake),
            blocked: BlockedThreads::default(),
            is_helper_started: AtomicBool::new(false),
            needs_heartbeats,
            keeper: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        })
    }

    pub fn next_lane(&self) -> usize {
        self.next_lane.fetch_add(1, Ordering::Relaxed) % self.options.sessions
    }

    /// Number of the lane behind those of the sessions.
    pub const fn query_lane(&self) -> usize {
        self.options.sessions
    }

    /// Number of the lane behind that of the queries.
    pub const fn outcome_lane(&self) -> usize {
        self.options.sessions + 1
    }

    /// Queues a command, a query, or a question for an outcome. [`Channel::turn`] sends it.
    pub fn queue(&self, state: &Arc<CallState>) -> Result<(), QueueFull> {
        self.outbox.push(state)?;
        self.connection.announce();
        Ok(())
    }

    /// Queues a command beyond the bound if need be.
    pub fn queue_again(&self, state: &Arc<CallState>) {
        self.outbox.push_again(state);
        self.connection.announce();
    }

    /// Sends and receives, unless another thread is doing that, which then does this thread's part as well.
    pub fn turn(&self) {
        for _ in 0..TURNS_MAX {
            let Some((mut connection, known)) = self.connection.try_lock() else { return };
            let mut wakers = Vec::new();
            let pass = connection.pass_of_caller(&self.outbox, &mut wakers);
            drop(connection);
            wake_all(wakers);
            if pass.needs_watcher {
                self.wake_watcher();
            }
            if !pass.has_input && !self.connection.has_news(known) {
                return;
            }
        }
        self.wake_watcher();
    }

    /// Turns of a spinning caller, some of them in one, until `state` has ended.
    pub fn turns_until(&self, state: &CallState) {
        let Some((mut connection, known)) = self.connection.try_lock() else { return std::hint::spin_loop() };
        let (mut wakers, mut needs_watcher) = (Vec::new(), false);
        for _ in 0..SPINNING_PASSES_MAX {
            needs_watcher |= connection.pass_of_caller(&self.outbox, &mut wakers).needs_watcher;
            if state.is_ended() || needs_watcher || !wakers.is_empty() {
                break;
            }
            std::hint::spin_loop();
        }
        drop(connection);
        wake_all(wakers);
        if needs_watcher {
            self.wake_watcher();
        }
        if self.connection.has_news(known) {
            self.turn();
        }
    }

    pub fn wake_watcher(&self) {
        wake_fd::signal(&*self.wake);
    }

    /// Counts a call that waits for a wake-up.
    pub fn enter_pending(&self) {
        self.pending.fetch_add(1, Ordering::SeqCst);
        // Pairs with the fence in `sleeps_idly`: one of both sees the other.
        fence(Ordering::SeqCst);
        if self.is_idle.load(Ordering::Relaxed) {
            self.wake_watcher();
        }
    }

    pub fn leave_pending(&self) {
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether the watcher may sleep without taking replies. It sets `is_idle` to false after its sleep.
    pub fn sleeps_idly(&self) -> bool {
        if self.pending.load(Ordering::Relaxed) > 0 {
            return false;
        }
        self.is_idle.store(true, Ordering::SeqCst);
        // Pairs with the fence in `enter_pending`.
        fence(Ordering::SeqCst);
        let is_idle = self.pending.load(Ordering::Relaxed) == 0;
        if !is_idle {
            self.is_idle.store(false, Ordering::Relaxed);
        }
        is_idle
    }

    /// `false` if there is no helper, and none can be started now.
    pub fn start_helper(self: &Arc<Self>) -> bool {
        self.is_helper_started.load(Ordering::Relaxed) || self.start_helper_once()
    }

    #[cold]
    fn start_helper_once(self: &Arc<Self>) -> bool {
        if self.is_helper_started.swap(true, Ordering::SeqCst) {
            return true;
        }
        let channel = Arc::clone(self);
        let spawned = std::thread::Builder::new().name(HELPER_NAME.to_owned()).spawn(move || channel.run_helper());
        if let Err(error) = &spawned {
            tracing::error!("no thread for a client: {error}; its calls poll meanwhile");
            self.is_helper_started.store(false, Ordering::SeqCst);
        }
        spawned.is_ok()
    }

    /// Starts a thread that sends heartbeats while no one calls, if the connection needs them and has no helper.
    pub fn start_keeper(self: &Arc<Self>) {
        if !self.needs_heartbeats || self.is_kept_by_others() {
            return;
        }
        let channel = Arc::clone(self);
        let spawned = std::thread::Builder::new().name(KEEPER_NAME.to_owned()).spawn(move || channel.run_keeper());
        match spawned {
            Ok(keeper) => _ = self.keeper.set(keeper.thread().clone()),
            Err(error) => {
                tracing::error!(
                    "no thread for the heartbeats of a client: {error}; the service may end its connection"
                );
            }
        }
    }

    /// Whether there is a helper, or no client any more.
    pub fn is_kept_by_others(&self) -> bool {
        self.is_helper_started.load(Ordering::SeqCst) || self.is_closed.load(Ordering::SeqCst)
    }

    /// The calling thread is going to be the helper.
    pub fn claim_helper(&self) {
        self.is_helper_started.store(true, Ordering::SeqCst);
    }

    /// Makes the calling thread the helper, until the last client is dropped.
    pub fn run_helper(self: Arc<Self>) {
        foreign::own_this_thread();
        let mut watch = lock(&self.watch);
        let is_closed = || self.is_closed.load(Ordering::SeqCst);
        while let Err(panic) = foreign::catch_panic(|| self.watch(&mut watch, None, &is_closed)) {
            self.end_after(&panic);
        }
    }

    /// Without a helper no call would be woken.
    #[cold]
    fn end_after(&self, panic: &str) {
        let mut wakers = Vec::new();
        let (mut connection, _) = self.connection.lock();
        // The helper of an ended client only sleeps.
        assert!(!connection.has_ended(), "the helper panics again: {panic}");
        connection.end(&format!("its helper has panicked: {panic}"), &self.outbox, &mut wakers);
        drop(connection);
        wake_all(wakers);
    }

    /// Ends the helper.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.wake_watcher();
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }
}

/// Name of the helper thread.
pub(super) const HELPER_NAME: &str = "gapless-client";
/// Name of the thread that sends heartbeats.
pub(super) const KEEPER_NAME: &str = "gapless-beats";

impl Drop for Channel {
    fn drop(&mut self) {
        self.connection.lock().0.close();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes with no lock held.
pub(super) fn wake_all(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(foreign::wake);
}
