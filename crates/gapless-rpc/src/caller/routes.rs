//! Lookup of served routes: `LocalRoutes` in this process, `RemoteRoutes` in others.

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

pub(crate) const SETTLE_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    pub(crate) route: Arc<str>,
    pub(crate) request: TypeKey,
    pub(crate) reply: TypeKey,
    /// Arrived through a relay, so no relay may take the requests again.
    pub(crate) is_relayed: bool,
}

pub(crate) trait RemoteRoutes: Send + Sync {
    /// Created by the first call, and offered to the instances.
    fn table(&self, key: &RouteKey) -> Result<Arc<SharedTable>, CallError>;

    fn discover(&self, route: &str) -> Result<(), CallError>;

    /// False if all processes present at the start have announced their routes, and none has this one.
    fn may_be_served(&self, key: &RouteKey) -> bool;

    fn tableless_counters(&self, route: &str) -> Option<TablelessCounters>;

    fn is_discovered(&self) -> bool;

    fn knows_instance(&self, route: &str) -> bool;

    fn has_instance(&self, key: &RouteKey) -> bool;

    fn news(&self) -> &Arc<WakerSet>;

    fn is_settled(&self, key: &RouteKey) -> bool;

    fn no_instance_error(&self, key: &RouteKey) -> CallError;

    fn unknown_servers(&self) -> Vec<u32>;

    fn unanswering(&self, key: &RouteKey) -> Vec<u32>;

    /// `None`: no answer yet; an error: a refusal that may pass.
    fn without_table(&self, key: &RouteKey) -> Vec<(u32, Option<CallError>)>;

    fn process_of(&self, instance: u32) -> Option<u32>;

    fn wake(&self);
}

pub(crate) struct SharedTable {
    table: Arc<RouteTable>,
    unused: Box<dyn Fn() + Send + Sync>,
}

impl SharedTable {
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

type WorkerStarter = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

struct LocalRouteEntry {
    route: Arc<dyn Any + Send + Sync>,
    shapes: RouteShapes,
    start: WorkerStarter,
    is_started: Arc<Mutex<bool>>,
}

#[derive(Default)]
pub(crate) struct LocalRoutes {
    routes: RwLock<HashMap<String, LocalRouteEntry>>,
    /// Lets callers detect a change without the lock.
    version: AtomicU64,
    wakers: Arc<WakerSet>,
    /// 255 for more.
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
    tasks: Mutex<BTreeMap<(Arc<str>, u64), Waker>>,
    last: AtomicU64,
}

impl WakerSet {
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

#[cold]
pub(crate) fn mismatch(route: &str, caller: &RouteShapes, instance: &RouteShapes, place: &str) -> CallError {
    CallError::Mismatch {
        route: route.to_owned(),
        caller: titles(caller),
        instance: format!("{} ({place})", titles(instance)),
        difference: of_calls(caller, instance),
    }
}
