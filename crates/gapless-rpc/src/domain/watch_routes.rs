//! `RouteWatch`: a callback for changes of other processes' routes, for supervising programs.

use super::opening::Domain;
use crate::caller::routes::{RemoteRoutes as _, WakerRegistration};
use crate::error::RpcError;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Registration of a callback for changes, until it is dropped: [`Domain::watch_routes`].
#[must_use = "nobody is told any more when this is dropped"]
pub struct RouteWatch {
    _registration: Option<WakerRegistration>,
}

impl std::fmt::Debug for RouteWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteWatch").finish_non_exhaustive()
    }
}

impl Domain {
    /// Calls `changed` whenever the routes of other processes may have changed ([`Domain::offered_routes`]), or one of
    /// them has attached a caller's table. It runs on the domain's thread and must not block. A domain of one process
    /// never calls it.
    ///
    /// # Errors
    /// The directory cannot be watched.
    pub fn watch_routes(&self, changed: impl Fn() + Send + Sync + 'static) -> Result<RouteWatch, RpcError> {
        self.shared.check_process()?;
        let Some(machine) = &self.shared.machine else { return Ok(RouteWatch { _registration: None }) };
        let registration = machine.calling.news().enter(&Arc::from(""), Waker::from(Arc::new(FnWaker(changed))));
        machine.io.discover()?;
        Ok(RouteWatch { _registration: Some(registration) })
    }

    /// Serving processes that have not announced their routes: stopped, overloaded, or just started.
    #[must_use]
    pub fn unknown_servers(&self) -> Vec<u32> {
        self.shared.machine.as_ref().map_or_else(Vec::new, |machine| machine.calling.unknown_servers())
    }

    /// Reports whether every process present when this one began to look has announced its routes or has timed out.
    #[must_use]
    pub fn has_discovered(&self) -> bool {
        self.shared.machine.as_ref().is_none_or(|machine| machine.calling.is_discovered())
    }
}

struct FnWaker<Function>(Function);

impl<Function: Fn() + Send + Sync> Wake for FnWaker<Function> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}
