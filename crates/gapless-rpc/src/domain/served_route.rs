//! [`ServedRoute`]: a route that this process serves: suspended, drained, withdrawn.

use super::membership::Shared;
use super::route_control::RouteControl;
use crate::error::RpcError;
use crate::overflow::{ElasticQueue, OverflowCounters};
use crate::remote::copy::ServedCallers;
use crate::served::counters::{CopyCounters, CopyStatistics};
use crate::served::workers::{Living, Workers};
use crate::spill::Refill;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The half of it that other processes call.
pub(super) struct Remote {
    pub(super) served: Arc<ServedCallers>,
    /// Of the route's eventfd.
    pub(super) token: Option<u64>,
    pub(super) workers: Mutex<Option<Workers>>,
    pub(super) living: Arc<Living>,
}

/// A route that this process serves, until this is dropped: what waits for it in this process has not begun then, and no more comes.
/// Dropping it waits for the route's threads to finish what they have begun, except for the one that drops it; tasks end by themselves.
#[must_use = "a route is withdrawn when this is dropped"]
pub struct ServedRoute {
    pub(super) domain: Arc<Shared>,
    pub(super) control: Arc<RouteControl>,
    pub(super) remote: Option<Remote>,
    pub(super) counters: Arc<CopyCounters>,
    /// The threads for calls of this process.
    pub(super) workers: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// Threads and tasks for calls of this process.
    pub(super) living_here: Arc<Living>,
    pub(super) refill: Refill,
    pub(super) overflow: Option<Arc<ElasticQueue>>,
    is_over: bool,
}

impl std::fmt::Debug for ServedRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedRoute").field("route", &self.route()).finish_non_exhaustive()
    }
}

impl ServedRoute {
    /// A route that nobody can call yet.
    pub(super) fn new(domain: Arc<Shared>, route: String, counters: Arc<CopyCounters>) -> Self {
        Self {
            control: RouteControl::new(route, Arc::clone(&domain.local)),
            domain,
            remote: None,
            counters,
            workers: Arc::default(),
            living_here: Living::new(|| {}),
            refill: Refill::default(),
            overflow: None,
            is_over: false,
        }
    }

    /// Its name.
    #[must_use]
    pub fn route(&self) -> &str {
        self.control.route()
    }

    /// Whether it takes calls, now or when it is resumed. It takes none any more once another process has drained it
    /// ([`Domain::drain_route`](super::Domain::drain_route)), or its last worker has gone.
    #[must_use]
    pub fn is_served(&self) -> bool {
        !self.is_of_parent() && self.control.is_served()
    }

    /// What it has counted.
    #[must_use]
    pub fn statistics(&self) -> CopyStatistics {
        self.counters.statistics()
    }

    /// What its overflow holds and has done, if it has one.
    #[must_use]
    pub fn overflow_counters(&self) -> Option<OverflowCounters> {
        let overflow = self.overflow.as_ref().filter(|_| !self.is_of_parent());
        overflow.map(|queue| queue.counters())
    }

    /// Other processes whose tables are attached.
    #[must_use]
    pub fn callers(&self) -> usize {
        let remote = self.remote.as_ref().filter(|_| !self.is_of_parent());
        remote.map_or(0, |remote| remote.served.callers())
    }

    /// Takes no requests until it is resumed; those that come wait, or are taken by other copies. A worker for other processes that is just
    /// taking one goes on with it.
    ///
    /// # Errors
    /// A domain that is closed.
    pub fn suspend(&self) -> Result<(), RpcError> {
        self.domain.check_process()?;
        self.control.suspend()
    }

    /// Takes requests again.
    ///
    /// # Errors
    /// As [`ServedRoute::suspend`].
    pub fn resume(&self) -> Result<(), RpcError> {
        self.domain.check_process()?;
        self.control.resume()
    }

    /// Whether it is the route of the process that has forked this one.
    fn is_of_parent(&self) -> bool {
        !self.domain.opened_by.is_here()
    }

    /// What it has is its parent's: nothing of it is touched here.
    fn leave_to_parent(&mut self) {
        self.is_over = true;
        let taken = (self.remote.take(), Arc::clone(&self.control), self.overflow.take());
        std::mem::forget((taken, Arc::clone(&self.workers), Arc::clone(&self.counters), Arc::clone(&self.living_here)));
        std::mem::forget(std::mem::take(&mut self.refill));
    }

    /// Takes nothing new, finishes what has begun, and withdraws the route. Waits for its threads, except the one that asks; tasks
    /// end by themselves.
    pub fn drain(mut self) {
        if self.is_of_parent() {
            return;
        }
        self.control.drain();
        self.finish();
    }

    /// As [`ServedRoute::drain`], but waits for tasks, too, and keeps no thread waiting; if the future is dropped, that goes on as `drain`
    /// does. A handler of the route that awaits it waits for its own end.
    pub async fn drain_async(mut self) {
        if self.is_of_parent() {
            return;
        }
        self.control.drain();
        std::future::poll_fn(|task| self.living_here.poll_none(task)).await;
        if let Some(remote) = &self.remote {
            std::future::poll_fn(|task| remote.living.poll_none(task)).await;
        }
        // The threads have ended, or are about to.
        self.finish();
    }

    fn finish(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.control.leave_this_process();
        if let Some(remote) = &self.remote {
            remote.served.end();
            let workers = remote.workers.lock().expect("nobody panics with the lock").take();
            workers.into_iter().for_each(Workers::join);
            if let Some(machine) = &self.domain.machine {
                self.control.leave_others();
                remote.token.into_iter().for_each(|token| machine.calling.unregister_served(token));
            }
        }
        let threads = std::mem::take(&mut *self.workers.lock().expect("nobody panics with the lock"));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a worker's thread has panicked outside of its handler");
            }
        }
    }
}

impl Drop for ServedRoute {
    fn drop(&mut self) {
        if self.is_of_parent() {
            self.leave_to_parent();
        } else if !self.is_over {
            self.control.withdraw_here();
            self.finish();
        }
    }
}
