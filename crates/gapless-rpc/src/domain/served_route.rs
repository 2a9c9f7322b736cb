//! [`ServedRoute`]: a route that this process serves: suspended, drained, withdrawn.

use super::membership::Shared;
use crate::error::RpcError;
use crate::local::LocalRoute;
use crate::message::Message;
use crate::overflow::{ElasticQueue, OverflowCounters};
use crate::registry::RouteState;
use crate::remote::copy::ServedCallers;
use crate::served::counters::{CopyCounters, CopyStatistics};
use crate::served::workers::{Living, Workers};
use crate::spill::Refill;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The states of a route in this process, whatever its types.
pub(super) trait LocalControl: Send + Sync {
    fn suspend(&self);
    fn resume(&self);
    fn drain(&self);
    fn withdraw(&self);
}

impl<Request: Message, Reply: Message> LocalControl for LocalRoute<Request, Reply> {
    fn suspend(&self) {
        Self::suspend(self);
    }

    fn resume(&self) {
        Self::resume(self);
    }

    fn drain(&self) {
        Self::drain(self);
    }

    fn withdraw(&self) {
        Self::withdraw(self);
    }
}

/// The half of it that other processes call.
pub(super) struct Remote {
    pub(super) served: Arc<ServedCallers>,
    /// Of the route's eventfd.
    pub(super) token: Option<u64>,
    pub(super) workers: Mutex<Option<Workers>>,
    pub(super) living: Arc<Living>,
}

/// A route that this process serves, until this is dropped.
#[must_use = "a route is withdrawn when this is dropped"]
pub struct ServedRoute {
    pub(super) domain: Arc<Shared>,
    pub(super) route: String,
    pub(super) remote: Option<Remote>,
    pub(super) local: Option<Box<dyn LocalControl>>,
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
        f.debug_struct("ServedRoute").field("route", &self.route).finish_non_exhaustive()
    }
}

impl ServedRoute {
    /// A route that nobody can call yet.
    pub(super) fn new(domain: Arc<Shared>, route: String, counters: Arc<CopyCounters>) -> Self {
        Self {
            domain,
            route,
            remote: None,
            local: None,
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
        &self.route
    }

    /// What it has counted.
    #[must_use]
    pub fn statistics(&self) -> CopyStatistics {
        self.counters.statistics()
    }

    /// What its overflow holds and has done, if it has one.
    #[must_use]
    pub fn overflow_counters(&self) -> Option<OverflowCounters> {
        self.overflow.as_ref().map(|queue| queue.counters())
    }

    /// Other processes that have brought their tables.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.remote.as_ref().map_or(0, |remote| remote.served.callers())
    }

    /// Takes no requests until it is resumed; those that come wait, or are taken by other copies.
    ///
    /// # Errors
    /// A domain that is closed.
    pub fn suspend(&self) -> Result<(), RpcError> {
        self.local.iter().for_each(|local| local.suspend());
        self.remote.iter().for_each(|remote| remote.served.suspend());
        self.tell(RouteState::Suspended)
    }

    /// Takes requests again.
    ///
    /// # Errors
    /// As [`ServedRoute::suspend`].
    pub fn resume(&self) -> Result<(), RpcError> {
        self.local.iter().for_each(|local| local.resume());
        self.remote.iter().for_each(|remote| remote.served.resume());
        self.tell(RouteState::Open)
    }

    fn tell(&self, state: RouteState) -> Result<(), RpcError> {
        match (&self.domain.machine, &self.remote) {
            (Some(machine), Some(_)) => machine.io.change_state(&self.route, state).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Takes nothing new, finishes what has begun, and withdraws the route. Waits for its threads, except the one that asks; tasks
    /// end by themselves.
    pub fn drain(mut self) {
        self.begin_draining();
        self.finish();
    }

    /// As [`ServedRoute::drain`], but waits for tasks, too, and keeps no thread waiting; if the future is dropped, that goes on as `drain`
    /// does. A handler of the route that awaits it waits for its own end.
    pub async fn drain_async(mut self) {
        self.begin_draining();
        std::future::poll_fn(|task| self.living_here.poll_none(task)).await;
        if let Some(remote) = &self.remote {
            std::future::poll_fn(|task| remote.living.poll_none(task)).await;
        }
        // The threads have ended, or are about to.
        self.finish();
    }

    fn begin_draining(&mut self) {
        if let Err(error) = self.tell(RouteState::Draining) {
            tracing::debug!(%error, "callers are not told that a route drains");
        }
        self.local.iter().for_each(|local| local.drain());
        self.leave_this_process();
        self.remote.iter().for_each(|remote| remote.served.end());
    }

    /// Callers of this process no longer find it; its workers go on with what they have.
    fn leave_this_process(&mut self) {
        if self.local.take().is_some() {
            self.domain.local.remove(&self.route);
        }
    }

    fn finish(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.leave_this_process();
        if let Some(remote) = &self.remote {
            remote.served.end();
            let workers = remote.workers.lock().expect("nobody panics with the lock").take();
            workers.into_iter().for_each(Workers::join);
            if let Some(machine) = &self.domain.machine {
                // First, so that no caller is told afterwards that a table was taken that nobody serves.
                machine.serving.remove(&self.route);
                if let Err(error) = machine.io.change_state(&self.route, RouteState::Gone) {
                    tracing::debug!(%error, "callers are not told that a route is gone");
                }
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
        if !self.is_over {
            self.local.iter().for_each(|local| local.withdraw());
            self.finish();
        }
    }
}
