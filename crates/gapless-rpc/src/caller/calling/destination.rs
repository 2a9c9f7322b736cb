//! Destination of a caller's calls: the route in this process, or the table shared with instances in others.

use super::{Caller, FoundHere, KEYED_SETTLE_MAX, RelayedBytes, Shared};
use crate::block_on::block_on;
use crate::caller::caller_options::Reach;
use crate::caller::in_time::in_time;
use crate::caller::inherited::Inherited;
use crate::caller::remote_call::Destination;
use crate::caller::routes::{RemoteRoutes, RouteKey, UsedTable};
use crate::message::Message;
use crate::options::CallOptions;
use crate::outcome::CallError;
use crate::remote::table::End;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

impl<Request: Message, Reply: Message> Caller<Request, Reply> {
    /// The route in this process, if it is served here and this caller may use it.
    pub(super) fn local(&self) -> Result<FoundHere<Request, Reply>, CallError> {
        if self.shared.options.reach == Reach::OtherProcesses {
            return Ok(None);
        }
        let version = self.shared.local_routes.version();
        // Relaxed: caches the result of a lookup at that version, and guards nothing.
        if self.shared.not_local.load(Ordering::Relaxed) == version {
            return Ok(None);
        }
        let mut local = self.local.lock().expect("nobody panics with the lock");
        if local.0 != version {
            *local = (version, self.shared.local_routes.get(&self.shared.key.route)?.map(Arc::new));
        }
        match &local.1 {
            None => {
                self.shared.not_local.store(version, Ordering::Relaxed);
                Ok(None)
            }
            found => Ok(found.clone()),
        }
    }

    /// Destination of its calls. The first thread waits for discovery, within the timeout of its call.
    #[inline]
    pub(super) fn destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        options: &CallOptions,
        inherited: &Inherited,
    ) -> Result<&Destination, CallError> {
        match self.shared.destination.get() {
            Some(to) if !self.waits_for_all(options) => Ok(to),
            _ => self.wait_for_destination(routes, options, inherited),
        }
    }

    #[cold]
    fn wait_for_destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        options: &CallOptions,
        inherited: &Inherited,
    ) -> Result<&Destination, CallError> {
        block_on(self.find_destination(routes, options, inherited))
    }

    pub(super) async fn find_destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        options: &CallOptions,
        inherited: &Inherited,
    ) -> Result<&Destination, CallError> {
        if let Some(to) = self.shared.destination.get().filter(|_| !self.waits_for_all(options)) {
            return Ok(to);
        }
        let (Shared { key, settle_max, .. }, wait_for_route) =
            (&*self.shared, options.wait_for_route.unwrap_or_default());
        routes.discover(&key.route)?;
        if wait_for_route.is_zero() {
            let is_known = || routes.is_discovered() || routes.knows_copy(&key.route);
            until(routes, key, inherited.left(*settle_max), is_known).await;
        }
        if inherited.is_over() {
            return Err(self.timed_out(routes, inherited.timeout));
        }
        let table = self.open_table(routes, wait_for_route)?;
        until(routes, key, inherited.left(*settle_max), || routes.has_copy(key) || routes.is_settled(key)).await;
        if self.waits_for_all(options) {
            let left = inherited.left(KEYED_SETTLE_MAX.min(*settle_max));
            until(routes, key, left, || routes.is_settled(key)).await;
            self.has_waited_for_all();
        }
        Ok(self.set_destination(routes, table))
    }

    /// Reports whether the destination of the request is still unknown.
    #[inline]
    pub(super) fn is_to_discover(&self, request: &Request, options: &CallOptions) -> bool {
        let Some(to) = self.shared.destination.get() else { return true };
        let is_unknown = |instance| to.table.copy_of_identity(instance).is_none();
        let instance = RelayedBytes::of(request).and_then(|relayed| relayed.instance);
        self.waits_for_all(options) || instance.is_some_and(is_unknown)
    }

    /// Reports whether the key may belong to an undiscovered instance, so that all of them must be discovered first.
    #[inline]
    pub(super) fn waits_for_all(&self, options: &CallOptions) -> bool {
        // Relaxed: guards nothing.
        options.key.is_some() && !self.shared.has_waited_for_all.load(Ordering::Relaxed)
    }

    pub(super) fn has_waited_for_all(&self) {
        self.shared.has_waited_for_all.store(true, Ordering::Relaxed);
    }

    /// Error of a call that found no instance within `after`: no route if every process has announced its routes
    /// and none serves this one.
    #[cold]
    pub(super) fn timed_out(&self, routes: &Arc<dyn RemoteRoutes>, after: Duration) -> CallError {
        let not_taken_by = [routes.unanswering(&self.shared.key), routes.unheard()].concat();
        if not_taken_by.is_empty() && routes.is_discovered() && !routes.knows_copy(self.route()) {
            return CallError::no_route(self.route());
        }
        CallError::TimedOut { route: self.route().to_owned(), after, begun: false, not_taken_by }
    }

    pub(super) fn open_table(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        wait_for_route: Duration,
    ) -> Result<Arc<UsedTable>, CallError> {
        let key = &self.shared.key;
        if wait_for_route.is_zero() && !routes.may_be_served(key) {
            // Checked before the table is made, so that callers of ever new names create none.
            return Err(routes.nobody(key));
        }
        routes.table(key)
    }

    pub(super) fn set_destination(&self, routes: &Arc<dyn RemoteRoutes>, table: Arc<UsedTable>) -> &Destination {
        if self.shared.backlog.is_some() {
            table.keep_reserve();
        }
        let to = Destination { routes: Arc::clone(routes), key: Arc::clone(&self.shared.key), table };
        self.shared.destination.get_or_init(|| to)
    }

    #[cold]
    pub(super) fn count_tableless(&self, routes: &Arc<dyn RemoteRoutes>, end: End) {
        let counters = self.shared.tableless.get_or_init(|| routes.tableless_counters(&self.shared.key.route));
        counters.iter().for_each(|counters| counters.count(end));
    }
}

/// Waits until `is_so` holds, checked at each news of the route, or for `timeout`.
pub(super) async fn until(routes: &Arc<dyn RemoteRoutes>, key: &RouteKey, timeout: Duration, is_so: impl Fn() -> bool) {
    let mut entered = None;
    in_time(timeout, |task| {
        // Registered before the check, so that later news wakes the task.
        entered = Some(routes.news().enter(&key.route, task.waker().clone()));
        if is_so() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
