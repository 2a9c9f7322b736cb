//! Destination of a caller's first calls: discovery of the route, and its table.

use super::{Caller, CallerShared, InheritedTerms, KEYED_SETTLE_MAX};
use crate::block_on::block_on;
use crate::caller::remote_call::Destination;
use crate::caller::routes::{RemoteRoutes, RouteKey, SharedTable};
use crate::caller::table::CallEnd;
use crate::caller::timeout::in_time;
use crate::message::Message;
use crate::options::CallOptions;
use crate::outcome::CallError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

impl<Request: Message, Reply: Message> Caller<Request, Reply> {
    #[cold]
    pub(super) fn wait_for_destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        options: &CallOptions,
        inherited: &InheritedTerms,
    ) -> Result<&Destination, CallError> {
        block_on(self.find_destination(routes, options, inherited))
    }

    pub(super) async fn find_destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        options: &CallOptions,
        inherited: &InheritedTerms,
    ) -> Result<&Destination, CallError> {
        if let Some(to) = self.shared.destination.get().filter(|_| !self.waits_for_all(options)) {
            return Ok(to);
        }
        let (CallerShared { key, settle_max, .. }, wait_for_route) =
            (&*self.shared, options.wait_for_route.unwrap_or_default());
        routes.discover(&key.route)?;
        if wait_for_route.is_zero() {
            let is_known = || routes.is_discovered() || routes.knows_instance(&key.route);
            until(routes, key, inherited.left(*settle_max), is_known).await;
        }
        if inherited.is_over() {
            return Err(self.timed_out(routes, inherited.timeout));
        }
        let table = self.open_table(routes, wait_for_route)?;
        until(routes, key, inherited.left(*settle_max), || routes.has_instance(key) || routes.is_settled(key)).await;
        if self.waits_for_all(options) {
            let left = inherited.left(KEYED_SETTLE_MAX.min(*settle_max));
            until(routes, key, left, || routes.is_settled(key)).await;
            self.has_waited_for_all();
        }
        Ok(self.set_destination(routes, table))
    }

    pub(super) fn has_waited_for_all(&self) {
        self.shared.has_waited_for_all.store(true, Ordering::Relaxed);
    }

    /// No route if every process has announced its routes and none serves this one.
    #[cold]
    pub(super) fn timed_out(&self, routes: &Arc<dyn RemoteRoutes>, after: Duration) -> CallError {
        let not_taken_by = [routes.unanswering(&self.shared.key), routes.unknown_servers()].concat();
        if not_taken_by.is_empty() && routes.is_discovered() && !routes.knows_instance(self.route()) {
            return CallError::no_route(self.route());
        }
        CallError::TimedOut { route: self.route().to_owned(), after, begun: false, not_taken_by }
    }

    pub(super) fn open_table(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        wait_for_route: Duration,
    ) -> Result<Arc<SharedTable>, CallError> {
        let key = &self.shared.key;
        if wait_for_route.is_zero() && !routes.may_be_served(key) {
            // Before the table is made, so that callers of ever new names create none.
            return Err(routes.no_instance_error(key));
        }
        routes.table(key)
    }

    pub(super) fn set_destination(&self, routes: &Arc<dyn RemoteRoutes>, table: Arc<SharedTable>) -> &Destination {
        if self.shared.backlog.is_some() {
            table.keep_reserve();
        }
        let to = Destination { routes: Arc::clone(routes), key: Arc::clone(&self.shared.key), table };
        self.shared.destination.get_or_init(|| to)
    }

    #[cold]
    pub(super) fn count_tableless(&self, routes: &Arc<dyn RemoteRoutes>, end: CallEnd) {
        let counters = self.shared.tableless.get_or_init(|| routes.tableless_counters(&self.shared.key.route));
        counters.iter().for_each(|counters| counters.count(end));
    }
}

pub(super) async fn until(routes: &Arc<dyn RemoteRoutes>, key: &RouteKey, timeout: Duration, is_so: impl Fn() -> bool) {
    let mut entered = None;
    in_time(timeout, |task| {
        // Before the check, so that later news wakes the task.
        entered = Some(routes.news().enter(&key.route, task.waker().clone()));
        if is_so() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
