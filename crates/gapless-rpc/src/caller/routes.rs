//! Where routes are served: [`LocalRoutes`] in this process, [`RemoteRoutes`] in others.

use crate::local::LocalRoute;
use crate::message::Message;
pub(crate) use crate::message::described::TypeKey;
use crate::message::difference::{Shapes, of_calls, titles};
use crate::notice_route;
use crate::outcome::CallError;
use crate::remote::table::{RouteTable, TablelessCounters};
use gapless_agent::foreign;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::task::Waker;
use std::time::Duration;

/// How long what comes first to a route, a call, a broadcast or a forwarded request, waits for the copies that are there.
pub(crate) const SETTLE_MAX: Duration = Duration::from_secs(1);

/// A route with the types that it is called with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    pub(crate) route: Arc<str>,
    pub(crate) request: TypeKey,
    pub(crate) reply: TypeKey,
    /// Its calls come over a bridge already: no copy that stands for instances elsewhere takes them.
    pub(crate) is_relayed: bool,
}

/// The tables of this process. Implemented by the domain.
pub(crate) trait RemoteRoutes: Send + Sync {
    /// The table of a route, made and offered to the copies that there are if it is asked for the first time.
    fn table(&self, key: &RouteKey) -> Result<Arc<UsedTable>, CallError>;

    /// Looks for the copies that there are.
    fn discover(&self, route: &str) -> Result<(), CallError>;

    /// False if a table would be made for nobody: every copy that was there at the beginning has told its routes, and none that is
    /// there now has this one.
    fn may_be_served(&self, key: &RouteKey) -> bool;

    /// Counters for the calls of a route without a table.
    fn tableless_counters(&self, route: &str) -> Option<TablelessCounters>;

    /// Whether every copy that was there at the beginning has told its routes.
    fn is_discovered(&self) -> bool;

    /// Whether a copy is known that serves this route and takes requests.
    fn knows_copy(&self, route: &str) -> bool;

    /// Whether a copy that takes requests has the table.
    fn has_copy(&self, key: &RouteKey) -> bool;

    /// The tasks that are woken when a copy has told something, has answered or has gone, and when the domain is closed.
    fn news(&self) -> &Arc<WakerSet>;

    /// Whether every copy that was there when the table was made has answered.
    fn is_settled(&self, key: &RouteKey) -> bool;

    /// How a call ends that no copy may take: copies have refused the table, or there may be one that is not known, or there is none.
    fn nobody(&self, key: &RouteKey) -> CallError;

    /// Processes that serve, and have not said what.
    fn unheard(&self) -> Vec<u32>;

    /// Processes of copies that the table was offered to, and that have not answered.
    fn unanswering(&self, key: &RouteKey) -> Vec<u32>;

    /// Processes that serve the route and have no table of it, as far as that is known: with why they have refused it for now, or `None` if
    /// they have not answered.
    fn without_table(&self, key: &RouteKey) -> Vec<(u32, Option<CallError>)>;

    /// The process id of a copy that is connected.
    fn process_of(&self, copy: u32) -> Option<u32>;

    /// Wakes the I/O thread, because a deadline is earlier than its sleep.
    fn wake(&self);
}

/// A table as callers and calls share it. The process frees the table after the last of them.
pub(crate) struct UsedTable {
    table: Arc<RouteTable>,
    unused: Box<dyn Fn() + Send + Sync>,
}

impl UsedTable {
    /// `unused` is called when nobody uses it any more.
    pub(crate) fn new(table: Arc<RouteTable>, unused: impl Fn() + Send + Sync + 'static) -> Self {
        Self { table, unused: Box::new(unused) }
    }
}

impl std::ops::Deref for UsedTable {
    type Target = Arc<RouteTable>;

    fn deref(&self) -> &Arc<RouteTable> {
        &self.table
    }
}

impl Drop for UsedTable {
    fn drop(&mut self) {
        (self.unused)();
    }
}

/// Starts the workers of a route, or says why there is none.
type Start = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A route of this process, whatever its types.
struct Served {
    route: Arc<dyn Any + Send + Sync>,
    shapes: Shapes,
    /// Starts its workers, with the first caller.
    start: Start,
    is_started: Arc<Mutex<bool>>,
}

/// The routes that this process serves to itself, by name.
#[derive(Default)]
pub(crate) struct LocalRoutes {
    routes: RwLock<HashMap<String, Served>>,
    /// Counts changes, so that callers need not lock to see that there was none.
    version: AtomicU64,
    /// The tasks that are woken when a route is served.
    wakers: Arc<WakerSet>,
    /// Routes for notices that it serves, 255 for more.
    notices: AtomicU8,
}

impl std::fmt::Debug for LocalRoutes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRoutes").field("version", &self.version).finish_non_exhaustive()
    }
}

impl LocalRoutes {
    /// Counts changes.
    pub(crate) fn version(&self) -> u64 {
        // Acquire: pairs with the Release of a change.
        self.version.load(Ordering::Acquire)
    }

    /// How many kinds of notices this process receives.
    pub(crate) fn notices(&self) -> u8 {
        // Relaxed: who has begun to receive them reads his own write.
        self.notices.load(Ordering::Relaxed)
    }

    fn count_notices(&self, routes: &HashMap<String, Served>) {
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
                // Who comes meanwhile waits for the workers, too.
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

    /// Serves it from now on; false if it is served already.
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
        let served = Served { route: Arc::new(local), shapes, start, is_started: Arc::default() };
        routes.insert(route.to_owned(), served);
        self.count_notices(&routes);
        self.version.fetch_add(1, Ordering::Release);
        drop(routes);
        // Who looked before this stands there, who comes after it finds the route.
        self.wakers.wake(route);
        true
    }

    /// Wakes a task whenever the route is served here, until the result is dropped. To be asked for before the look that finds
    /// nothing.
    pub(crate) fn wake_when_served(&self, route: &Arc<str>, task: Waker) -> WakerRegistration {
        self.wakers.enter(route, task)
    }

    /// Serves it no more.
    pub(crate) fn remove(&self, route: &str) {
        let mut routes = self.routes.write().expect("nobody panics with the lock");
        let removed = routes.remove(route);
        self.count_notices(&routes);
        drop(routes);
        drop(removed);
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// Tasks that wait for what becomes of routes.
#[derive(Default)]
pub(crate) struct WakerSet {
    /// By their routes and numbers.
    tasks: Mutex<BTreeMap<(Arc<str>, u64), Waker>>,
    last: AtomicU64,
}

impl WakerSet {
    /// Wakes a task at everything that comes, until the result is dropped.
    pub(crate) fn enter(self: &Arc<Self>, route: &Arc<str>, task: Waker) -> WakerRegistration {
        // Relaxed: only a number that nobody else has.
        let key = (Arc::clone(route), self.last.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(key.clone(), task);
        WakerRegistration { set: Arc::clone(self), key }
    }

    /// Wakes those that wait for this route.
    fn wake(&self, route: &str) {
        let of_route = (route.into(), 0)..=(route.into(), u64::MAX);
        let woken: Vec<_> = self.lock().range(of_route).map(|(_, task)| task.clone()).collect();
        // Without the lock: what is woken may call.
        woken.into_iter().for_each(foreign::wake);
    }

    /// Wakes all.
    pub(crate) fn wake_all(&self) {
        let woken: Vec<_> = self.lock().values().cloned().collect();
        woken.into_iter().for_each(foreign::wake);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Arc<str>, u64), Waker>> {
        self.tasks.lock().expect("nobody panics with the lock")
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// A task that waits for what becomes of a route.
pub(crate) struct WakerRegistration {
    set: Arc<WakerSet>,
    key: (Arc<str>, u64),
}

impl Drop for WakerRegistration {
    fn drop(&mut self) {
        let task = self.set.lock().remove(&self.key);
        // Without the lock: with it may go what waits itself.
        drop(task);
    }
}

/// The error of a caller and a copy that mean different types by a route; `place` says where the copy is.
#[cold]
pub(crate) fn mismatch(route: &str, caller: &Shapes, copy: &Shapes, place: &str) -> CallError {
    CallError::Mismatch {
        route: route.to_owned(),
        caller: titles(caller),
        copy: format!("{} ({place})", titles(copy)),
        difference: of_calls(caller, copy),
    }
}
