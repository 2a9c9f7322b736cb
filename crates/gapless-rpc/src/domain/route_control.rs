//! [`RouteControl`]: a served route is suspended, resumed, drained and withdrawn, by its own program or, for another process, by the I/O
//! thread. Nothing here waits.

use super::serving::{RouteStates, Serving};
use crate::caller::routes::LocalRoutes;
use crate::error::RpcError;
use crate::local::LocalRoute;
use crate::message::Message;
use crate::remote::copy::ServedCallers;
use gapless_registry::{IoHandle, RouteDescription, RouteState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

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

/// The half of a route that other processes call.
pub(super) struct RemoteControl {
    pub(super) served: Arc<ServedCallers>,
    pub(super) io: IoHandle,
    pub(super) serving: Weak<Serving>,
}

/// What may be done to a served route.
pub(super) struct RouteControl {
    route: String,
    /// Where callers of this process find it.
    routes: Arc<LocalRoutes>,
    /// Nothing once they do no longer, or if they never did.
    local: Mutex<Option<Arc<dyn LocalControl>>>,
    remote: OnceLock<RemoteControl>,
    /// Callers of other processes were told that it is gone: another route may have its name since.
    is_gone: AtomicBool,
    /// One tells callers of other processes at a time: who tells last tells how it is then.
    telling: Mutex<()>,
}

impl RouteControl {
    /// Of a route that nobody can call yet.
    pub(super) fn new(route: String, routes: Arc<LocalRoutes>) -> Arc<Self> {
        let (local, remote, is_gone) = (Mutex::default(), OnceLock::new(), AtomicBool::new(false));
        Arc::new(Self { route, routes, local, remote, is_gone, telling: Mutex::default() })
    }

    /// Callers of this process find it.
    pub(super) fn set_local(&self, local: Arc<dyn LocalControl>) {
        *self.local.lock().unwrap_or_else(PoisonError::into_inner) = Some(local);
    }

    /// Callers of other processes are about to find it.
    pub(super) fn set_remote(&self, remote: RemoteControl) {
        let _ = self.remote.set(remote);
    }

    pub(super) fn route(&self) -> &str {
        &self.route
    }

    fn local(&self) -> Option<Arc<dyn LocalControl>> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nothing is taken until it is resumed.
    pub(super) fn suspend(&self) -> Result<(), RpcError> {
        self.local().iter().for_each(|local| local.suspend());
        self.remote.get().iter().for_each(|remote| remote.served.suspend());
        self.tell()
    }

    pub(super) fn resume(&self) -> Result<(), RpcError> {
        self.local().iter().for_each(|local| local.resume());
        self.remote.get().iter().for_each(|remote| remote.served.resume());
        self.tell()
    }

    /// Nothing new is taken, and its workers end when they have finished what they have.
    pub(super) fn drain(&self) {
        self.local().iter().for_each(|local| local.drain());
        self.leave_this_process();
        self.remote.get().iter().for_each(|remote| remote.served.end());
        if let Err(error) = self.tell() {
            tracing::debug!(%error, "callers are not told that a route drains");
        }
    }

    /// What waits for it in this process ends as not begun.
    pub(super) fn withdraw_here(&self) {
        self.local().iter().for_each(|local| local.withdraw());
    }

    /// Callers of this process no longer find it; its workers go on with what they have.
    pub(super) fn leave_this_process(&self) {
        let local = self.local.lock().unwrap_or_else(PoisonError::into_inner).take();
        if local.is_some() {
            self.routes.remove(&self.route);
        }
    }

    /// Whether it takes calls, now or when it is resumed.
    pub(super) fn is_served(&self) -> bool {
        self.local().is_some() || self.remote.get().is_some_and(|remote| !remote.served.has_ended())
    }

    /// Callers of other processes find it no longer.
    pub(super) fn leave_others(&self) {
        let Some(remote) = self.remote.get() else { return };
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // AcqRel: who does it first does it all.
        if self.is_gone.swap(true, Ordering::AcqRel) {
            return;
        }
        remote.served.end();
        // First, so that no caller is told afterwards that a table was taken that nobody serves.
        remote.serving.upgrade().iter().for_each(|serving| serving.remove(&self.route));
        if let Err(error) = remote.io.change_state(&self.route, RouteState::Gone) {
            tracing::debug!(%error, "callers are not told that a route is gone");
        }
    }

    /// The last worker for other processes has gone: nobody serves them any more, whether it was drained or not.
    pub(super) fn none_left(&self) {
        if self.remote.get().is_some_and(|remote| !remote.served.has_ended()) {
            tracing::error!(
                route = self.route,
                "a route is withdrawn, because its last worker has panicked or was dropped"
            );
        }
        self.leave_others();
    }

    /// Describes it anew to callers of other processes, unless it is gone; its state is the one that it has.
    pub(super) fn announce(&self, mut description: RouteDescription) -> Result<(), RpcError> {
        let Some(remote) = self.remote.get() else { return Ok(()) };
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire: as in `leave_others`.
        if !self.is_gone.load(Ordering::Acquire) {
            description.state = remote.served.state();
            remote.io.announce(description)?;
        }
        Ok(())
    }

    /// Tells callers of other processes how it is now.
    fn tell(&self) -> Result<(), RpcError> {
        let Some(remote) = self.remote.get() else { return Ok(()) };
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire: as in `leave_others`.
        if !self.is_gone.load(Ordering::Acquire) {
            remote.io.change_state(&self.route, remote.served.state())?;
        }
        Ok(())
    }
}

impl RouteStates for RouteControl {
    fn change(&self, to: RouteState) {
        let changed = match to {
            RouteState::Open => self.resume(),
            RouteState::Suspended => self.suspend(),
            RouteState::Draining => {
                self.drain();
                Ok(())
            }
            // No other process may ask for that.
            RouteState::Gone => Ok(()),
        };
        if let Err(error) = changed {
            tracing::debug!(route = self.route, %error, "another process wanted a route to change");
        }
    }
}
