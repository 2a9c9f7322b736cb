//! Lookup of served routes: [`LocalRoutes`] in this process, [`RemoteRoutes`] in others.

use crate::caller::table::{RouteTable, TablelessCounters};
use crate::local::LocalRoute;
use crate::message::Message;
pub(crate) use crate::message::described::TypeKey;
use crate::message::difference::{RouteShapes, of_calls, titles};
use crate::notice_route;
use crate::outcome::CallError;
use gapless_agent::foreign;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::task::Waker;
use std::time::Duration;

/// Longest wait for discovery of the first call, broadcast or forward to a route.
pub(crate) const SETTLE_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    pub(crate) route: Arc<str>,
    pub(crate) request: TypeKey,
    pub(crate) reply: TypeKey,
    /// Requests arrived through a relay already, so no relay may take them again.
    pub(crate) is_relayed: bool,
}

/// Call tables of this process. Implemented by the domain.
pub(crate) trait RemoteRoutes: Send + Sync {
    /// Table of a route. The first call creates it and offers it to the instances.
    fn table(&self, key: &RouteKey) -> Result<Arc<SharedTable>, CallError>;

    fn discover(&self, route: &str) -> Result<(), CallError>;

    /// False if no process can serve the route: every process present at the start has announced its routes, and no
    /// current one has this route.
    fn may_be_served(&self, key: &RouteKey) -> bool;

    /// Counters for calls of a route without a table.
    fn tableless_counters(&self, route: &str) -> Option<TablelessCounters>;

    /// Reports whether every process present at the start has announced its routes.
    fn is_discovered(&self) -> bool;

    /// Reports whether a known instance of this route takes requests.
    fn knows_instance(&self, route: &str) -> bool;

    /// Reports whether an instance that takes requests has attached the table.
    fn has_instance(&self, key: &RouteKey) -> bool;

    /// Tasks to wake when an instance announces something, answers or goes, and when the domain is closed.
    fn news(&self) -> &Arc<WakerSet>;

    /// Reports whether every instance present when the table was made has answered.
    fn is_settled(&self, key: &RouteKey) -> bool;

    /// Error of a call that no instance can take: they refused the table, or an unknown one may exist, or none exists.
    fn no_instance_error(&self, key: &RouteKey) -> CallError;

    /// Serving processes that have not announced their routes.
    fn unknown_servers(&self) -> Vec<u32>;

    /// Processes that were offered the table and have not answered.
    fn unanswering(&self, key: &RouteKey) -> Vec<u32>;

    /// Processes that serve the route without its table, as far as known: with the reason of a refusal that may pass,
    /// or `None` if they have not answered.
    fn without_table(&self, key: &RouteKey) -> Vec<(u32, Option<CallError>)>;

    /// Process id of a connected instance.
    fn process_of(&self, instance: u32) -> Option<u32>;

    /// Wakes the I/O thread, because a deadline is earlier than the end of its sleep.
    fn wake(&self);
}

/// A table shared by callers and calls. The process frees it after the last of them.
pub(crate) struct SharedTable {
    table: Arc<RouteTable>,
    unused: Box<dyn Fn() + Send + Sync>,
}

impl SharedTable {
    /// `unused` is called when the last user is gone.
    pub(crate) fn new(table: Arc<RouteTable>, unused: impl Fn() + Send + Sync + 'static) -> Self {
        Self { table, unused: Box::new(unused) }
    }
}

impl std::ops::Deref for SharedTable {
    type Target = Arc<RouteTable>;

    fn deref(&self) -> &Arc<RouteTable> {
        &self.table
    }
}

impl Drop for SharedTable {
    fn drop(&mut self) {
        (self.unused)();
    }
}

/// Starts the workers of a route, or returns the reason for a failure.
type WorkerStarter = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

struct LocalRouteEntry {
    route: Arc<dyn Any + Send + Sync>,
    shapes: RouteShapes,
    /// Starts the workers, with the first caller.
    start: WorkerStarter,
    is_started: Arc<Mutex<bool>>,
}

/// Routes that this process serves to its own callers, by name.
#[derive(Default)]
pub(crate) struct LocalRoutes {
    routes: RwLock<HashMap<String, LocalRouteEntry>>,
    /// Number of changes, so that callers detect a change without the lock.
    version: AtomicU64,
    /// Tasks to wake when a route is served.
    wakers: Arc<WakerSet>,
    /// Number of notice routes served, 255 for more.
    notices: AtomicU8,
}

impl std::fmt::Debug for LocalRoutes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRoutes").field("version", &self.version).finish_non_exhaustive()
    }
}

impl LocalRoutes {
    pub(crate) fn version(&self) -> u64 {
        // Acquire: pairs with the Release of a change.
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn notices(&self) -> u8 {
        // Relaxed: the thread that begins to receive notices reads its own write.
        self.notices.load(Ordering::Relaxed)
    }

    fn count_notices(&self, routes: &HashMap<String, LocalRouteEntry>) {
        let count = routes.keys().filter(|route| notice_route::is_one(route)).count();
        self.notices.store(u8::try_from(count).unwrap_or(u8::MAX), Ordering::Relaxed);
    }

    /// The route, if it is served here.
    ///
    /// # Errors
    /// [`CallError::Mismatch`] if it is served with other types, [`CallError::Busy`] if no worker can be started now.
    pub(crate) fn get<Request: Message, Reply: Message>(
        &self,
        route: &str,
    ) -> Result<Option<LocalRoute<Request, Reply>>, CallError> {
        let routes = self.routes.read().expect("nobody panics with the lock");
        let Some(found) = routes.get(route) else { return Ok(None) };
        match found.route.downcast_ref::<LocalRoute<Request, Reply>>() {
            Some(local) => {
                let (local, start, is_started) =
                    (local.clone(), Arc::clone(&found.start), Arc::clone(&found.is_started));
                drop(routes);
                // Concurrent callers wait for the workers too.
                let mut is_started = is_started.lock().expect("nobody panics with the lock");
                if !*is_started {
                    start().map_err(|reason| CallError::Busy { route: route.to_owned(), reason })?;
                    *is_started = true;
                }
                Ok(Some(local))
            }
            None => Err(mismatch(route, &(Request::shape(), Reply::shape()), &found.shapes, "in this process")),
        }
    }

    /// Serves the route from now on; false if it is served already.
    pub(crate) fn insert<Request: Message, Reply: Message>(
        &self,
        route: &str,
        local: LocalRoute<Request, Reply>,
        start: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> bool {
        let mut routes = self.routes.write().expect("nobody panics with the lock");
        if routes.contains_key(route) {
            return false;
        }
        let (shapes, start) = ((Request::shape(), Reply::shape()), Arc::new(start));
        let served = LocalRouteEntry { route: Arc::new(local), shapes, start, is_started: Arc::default() };
        routes.insert(route.to_owned(), served);
        self.count_notices(&routes);
        self.version.fetch_add(1, Ordering::Release);
        drop(routes);
        // A task that looked before is registered and woken; a later one finds the route.
        self.wakers.wake(route);
        true
    }

    /// Wakes a task whenever the route is served here, until the result is dropped. Must be registered before the
    /// lookup.
    pub(crate) fn wake_when_served(&self, route: &Arc<str>, task: Waker) -> WakerRegistration {
        self.wakers.enter(route, task)
    }

    pub(crate) fn remove(&self, route: &str) {
        let mut routes = self.routes.write().expect("nobody panics with the lock");
        let removed = routes.remove(route);
        self.count_notices(&routes);
        drop(routes);
        drop(removed);
        self.version.fetch_add(1, Ordering::Release);
    }
}

#[derive(Default)]
pub(crate) struct WakerSet {
    /// Keyed by route and number.
    tasks: Mutex<BTreeMap<(Arc<str>, u64), Waker>>,
    last: AtomicU64,
}

impl WakerSet {
    /// Wakes a task at every change, until the result is dropped.
    pub(crate) fn enter(self: &Arc<Self>, route: &Arc<str>, task: Waker) -> WakerRegistration {
        // Relaxed: only a unique number.
        let key = (Arc::clone(route), self.last.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(key.clone(), task);
        WakerRegistration { set: Arc::clone(self), key }
    }

    fn wake(&self, route: &str) {
        let of_route = (route.into(), 0)..=(route.into(), u64::MAX);
        let woken: Vec<_> = self.lock().range(of_route).map(|(_, task)| task.clone()).collect();
        // Without the lock: a woken task may call.
        woken.into_iter().for_each(foreign::wake);
    }

    pub(crate) fn wake_all(&self) {
        let woken: Vec<_> = self.lock().values().cloned().collect();
        woken.into_iter().for_each(foreign::wake);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Arc<str>, u64), Waker>> {
        self.tasks.lock().expect("nobody panics with the lock")
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Registration of a task in a [`WakerSet`], removed on drop.
pub(crate) struct WakerRegistration {
    set: Arc<WakerSet>,
    key: (Arc<str>, u64),
}

impl Drop for WakerRegistration {
    fn drop(&mut self) {
        let task = self.set.lock().remove(&self.key);
        // Without the lock: dropping a waker may drop another registration.
        drop(task);
    }
}

/// Error of a caller and an instance that give a route different types; `place` names the instance's location.
#[cold]
pub(crate) fn mismatch(route: &str, caller: &RouteShapes, instance: &RouteShapes, place: &str) -> CallError {
    CallError::Mismatch {
        route: route.to_owned(),
        caller: titles(caller),
        instance: format!("{} ({place})", titles(instance)),
        difference: of_calls(caller, instance),
    }
}
