//! [`RouteWatch`]: a function is called when the routes of other processes change, for programs that supervise them.

use super::opening::Domain;
use crate::caller::routes::{RemoteRoutes as _, WakerRegistration};
use crate::error::RpcError;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// A function that is told of changes, until this is dropped: [`Domain::watch_routes`].
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
    /// Calls `changed` whenever what other processes serve may have changed, or one of them has taken a caller's table, on the thread of the
    /// domain: it must not sleep. [`Domain::offered_routes`] says what is served then. In a domain of one process it is never called.
    ///
    /// # Errors
    /// A directory that cannot be watched.
    pub fn watch_routes(&self, changed: impl Fn() + Send + Sync + 'static) -> Result<RouteWatch, RpcError> {
        self.shared.check_process()?;
        let Some(machine) = &self.shared.machine else { return Ok(RouteWatch { _registration: None }) };
        let registration = machine.calling.news().enter(&Arc::from(""), Waker::from(Arc::new(WakesBy(changed))));
        machine.io.discover()?;
        Ok(RouteWatch { _registration: Some(registration) })
    }

    /// The processes that serve here and have not said what: they are stopped or too busy, or have only just come.
    #[must_use]
    pub fn unheard_processes(&self) -> Vec<u32> {
        self.shared.machine.as_ref().map_or_else(Vec::new, |machine| machine.calling.unheard())
    }

    /// Whether every process that served when this one began to look has told what it serves, or has let its time pass.
    #[must_use]
    pub fn has_discovered(&self) -> bool {
        self.shared.machine.as_ref().is_none_or(|machine| machine.calling.is_discovered())
    }
}

struct WakesBy<Function>(Function);

impl<Function: Fn() + Send + Sync> Wake for WakesBy<Function> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}
