//! `ServedRoute`: a route that this process serves, to be suspended, drained or withdrawn.

use super::membership::DomainShared;
use super::route_control::RouteControl;
use crate::error::RpcError;
use crate::overflow::{ElasticQueue, OverflowCounters};
use crate::server::counters::{InstanceCounters, InstanceStatistics};
use crate::server::puller::ServedCallers;
use crate::server::workers::{WorkerCount, Workers};
use crate::spill::Refill;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub(super) struct RemoteService {
    pub(super) served: Arc<ServedCallers>,
    pub(super) token: Option<u64>,
    pub(super) workers: Mutex<Option<Workers>>,
    pub(super) worker_count: Arc<WorkerCount>,
}

/// A route that this process serves. Dropping it withdraws the route: queued requests of this process end as not begun,
/// and the drop waits for the route's other threads to finish their requests, but not for tasks.
#[must_use = "a route is withdrawn when this is dropped"]
pub struct ServedRoute {
    pub(super) domain: Arc<DomainShared>,
    pub(super) control: Arc<RouteControl>,
    pub(super) remote: Option<RemoteService>,
    pub(super) counters: Arc<InstanceCounters>,
    pub(super) workers: Arc<Mutex<Vec<JoinHandle<()>>>>,
    pub(super) living_here: Arc<WorkerCount>,
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
    pub(super) fn new(domain: Arc<DomainShared>, route: String, counters: Arc<InstanceCounters>) -> Self {
        Self {
            control: RouteControl::new(route, Arc::clone(&domain.local)),
            domain,
            remote: None,
            counters,
            workers: Arc::default(),
            living_here: WorkerCount::new(|| {}),
            refill: Refill::default(),
            overflow: None,
            is_over: false,
        }
    }

    /// Name of the route.
    #[must_use]
    pub fn route(&self) -> &str {
        self.control.route()
    }

    /// Reports whether it takes calls, now or after a resume; false once drained, also by another process
    /// ([`Domain::drain_route`](super::Domain::drain_route)), or without workers.
    #[must_use]
    pub fn is_served(&self) -> bool {
        !self.is_of_parent() && self.control.is_served()
    }

    /// Statistics of this instance.
    #[must_use]
    pub fn statistics(&self) -> InstanceStatistics {
        self.counters.statistics()
    }

    /// Statistics of the overflow queue, if there is one.
    #[must_use]
    pub fn overflow_counters(&self) -> Option<OverflowCounters> {
        let overflow = self.overflow.as_ref().filter(|_| !self.is_of_parent());
        overflow.map(|queue| queue.counters())
    }

    /// Number of other processes whose tables are attached.
    #[must_use]
    pub fn callers(&self) -> usize {
        let remote = self.remote.as_ref().filter(|_| !self.is_of_parent());
        remote.map_or(0, |remote| remote.served.callers())
    }

    /// Takes no requests until it is resumed; new ones wait or go to other instances.
    ///
    /// # Errors
    /// The domain is closed.
    pub fn suspend(&self) -> Result<(), RpcError> {
        self.domain.check_process()?;
        self.control.suspend()
    }

    /// Takes requests again.
    ///
    /// # Errors
    /// Like [`ServedRoute::suspend`].
    pub fn resume(&self) -> Result<(), RpcError> {
        self.domain.check_process()?;
        self.control.resume()
    }

    fn is_of_parent(&self) -> bool {
        !self.domain.opened_by.is_here()
    }

    fn leave_to_parent(&mut self) {
        self.is_over = true;
        let taken = (self.remote.take(), Arc::clone(&self.control), self.overflow.take());
        std::mem::forget((taken, Arc::clone(&self.workers), Arc::clone(&self.counters), Arc::clone(&self.living_here)));
        std::mem::forget(std::mem::take(&mut self.refill));
    }

    /// Takes no new requests, finishes those that have begun, and withdraws the route. Waits for its other threads, not
    /// for tasks.
    pub fn drain(mut self) {
        if self.is_of_parent() {
            return;
        }
        self.control.drain();
        self.finish();
    }

    /// Like [`ServedRoute::drain`], but waits for tasks too, without blocking a thread. If the future is dropped, the
    /// drain goes on. A handler of the route that awaits it deadlocks.
    pub async fn drain_async(mut self) {
        if self.is_of_parent() {
            return;
        }
        self.control.drain();
        std::future::poll_fn(|task| self.living_here.poll_none(task)).await;
        if let Some(remote) = &self.remote {
            std::future::poll_fn(|task| remote.worker_count.poll_none(task)).await;
        }
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
