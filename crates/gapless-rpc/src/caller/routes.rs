//! Where routes are served: [`LocalRoutes`] in this process, [`RemoteRoutes`] in others.

use crate::local::LocalRoute;
use crate::message::Message;
pub(crate) use crate::message::described::TypeKey;
use crate::message::difference::{Shapes, of_calls, titles};
use crate::outcome::CallError;
use crate::remote::table::{RouteTable, TablelessCounters};
use crate::route_name::HIDDEN_PREFIX;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, RwLock};
use std::task::Waker;
use std::time::Duration;

/// A route with the types that it is called with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    pub(crate) route: Arc<str>,
    pub(crate) request: TypeKey,
    pub(crate) reply: TypeKey,
}

/// The tables of this process. Implemented by the domain.
pub(crate) trait RemoteRoutes: Send + Sync {
    /// The table of a route, made and brought to the copies that there are if it is asked for the first time.
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

    /// Wakes a task once when a copy has told something, has answered or has gone, or when the domain is closed.
    fn wake_at_news(&self, task: Waker);

    /// Waits until every copy that was there at the beginning has told its routes, or for `timeout`.
    fn wait_until_discovered(&self, timeout: Duration);

    /// Waits until every copy that was there when the table was made has answered, or for `timeout`.
    fn wait_until_settled(&self, key: &RouteKey, timeout: Duration);

    /// Whether every copy that was there when the table was made has answered.
    fn is_settled(&self, key: &RouteKey) -> bool;

    /// Why copies have refused the table.
    fn mismatch(&self, key: &RouteKey) -> Option<CallError>;

    /// The process id of a copy that is connected.
    fn process_of(&self, copy: u32) -> Option<u32>;

    /// The I/O thread sleeps too long.
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

/// A route of this process, whatever its types.
struct Served {
    route: Arc<dyn Any + Send + Sync>,
    shapes: Shapes,
    /// Starts its workers, with the first caller.
    start: Arc<dyn Fn() + Send + Sync>,
    is_started: Arc<Once>,
}

/// The routes that this process serves to itself, by name.
#[derive(Default)]
pub(crate) struct LocalRoutes {
    routes: RwLock<HashMap<String, Served>>,
    /// Counts changes, so that callers need not lock to see that there was none.
    version: AtomicU64,
    /// Who is woken when a route is served, by its name and a number.
    awaited: Mutex<BTreeMap<(Arc<str>, u64), Waker>>,
    last_awaited: AtomicU64,
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
        let count = routes.keys().filter(|route| route.starts_with(HIDDEN_PREFIX)).count();
        self.notices.store(u8::try_from(count).unwrap_or(u8::MAX), Ordering::Relaxed);
    }

    /// The route, if it is served here.
    ///
    /// # Errors
    /// [`CallError::Mismatch`] if it is served with other types.
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
                is_started.call_once(|| start());
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
        start: impl Fn() + Send + Sync + 'static,
    ) -> bool {
        let mut routes = self.routes.write().expect("nobody panics with the lock");
        if routes.contains_key(route) {
            return false;
        }
        let (shapes, start) = ((Request::shape(), Reply::shape()), Arc::new(start));
        let served = Served { route: Arc::new(local), shapes, start, is_started: Arc::new(Once::new()) };
        routes.insert(route.to_owned(), served);
        self.count_notices(&routes);
        self.version.fetch_add(1, Ordering::Release);
        drop(routes);
        // Who looked before this stands here, who comes after it finds the route. Without a lock: what is woken may call.
        let mut awaited = self.awaited.lock().expect("nobody panics with the lock");
        let mut from_here = awaited.split_off(&(route.into(), 0));
        let others = from_here.keys().find(|(name, _)| **name != *route).cloned();
        others.iter().for_each(|first| awaited.append(&mut from_here.split_off(first)));
        drop(awaited);
        from_here.into_values().for_each(Waker::wake);
        true
    }

    /// Wakes a task when the route is served here, until the result is dropped. To be asked for before the look that finds
    /// nothing.
    pub(crate) fn wake_when_served(self: &Arc<Self>, route: &Arc<str>, task: Waker) -> Awaited {
        // Relaxed: only a number that nobody else has.
        let key = (Arc::clone(route), self.last_awaited.fetch_add(1, Ordering::Relaxed));
        self.awaited.lock().expect("nobody panics with the lock").insert(key.clone(), task);
        Awaited { routes: Arc::clone(self), key }
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

/// A task that is woken when a route is served.
pub(crate) struct Awaited {
    routes: Arc<LocalRoutes>,
    key: (Arc<str>, u64),
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let task = self.routes.awaited.lock().expect("nobody panics with the lock").remove(&self.key);
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
