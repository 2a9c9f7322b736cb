//! [`RouteControl`]: state changes of a served route, for its own program or, through the I/O thread, for another
//! process. Never blocks.

use crate::caller::routes::LocalRoutes;
use crate::error::RpcError;
use crate::local::LocalRoute;
use crate::message::Message;
use crate::registry::{IoHandle, RouteDescription, RouteState};
use crate::server::attachments::{RouteStates, ServedRoutes};
use crate::server::puller::ServedCallers;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

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

pub(super) struct RemoteControl {
    pub(super) served: Arc<ServedCallers>,
    pub(super) io: IoHandle,
    pub(super) serving: Weak<ServedRoutes>,
}

pub(super) struct RouteControl {
    route: String,
    routes: Arc<LocalRoutes>,
    /// `None` if callers of this process cannot find it.
    local: Mutex<Option<Arc<dyn LocalControl>>>,
    remote: OnceLock<RemoteControl>,
    /// Announced; another route may have its name since.
    is_gone: AtomicBool,
    /// Serializes announcements, so that the last one has the final state.
    telling: Mutex<()>,
}

impl RouteControl {
    pub(super) fn new(route: String, routes: Arc<LocalRoutes>) -> Arc<Self> {
        let (local, remote, is_gone) = (Mutex::default(), OnceLock::new(), AtomicBool::new(false));
        Arc::new(Self { route, routes, local, remote, is_gone, telling: Mutex::default() })
    }

    pub(super) fn set_local(&self, local: Arc<dyn LocalControl>) {
        *self.local.lock().unwrap_or_else(PoisonError::into_inner) = Some(local);
    }

    pub(super) fn set_remote(&self, remote: RemoteControl) {
        let _ = self.remote.set(remote);
    }

    pub(super) fn route(&self) -> &str {
        &self.route
    }

    fn local(&self) -> Option<Arc<dyn LocalControl>> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

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

    pub(super) fn drain(&self) {
        self.local().iter().for_each(|local| local.drain());
        self.leave_this_process();
        self.remote.get().iter().for_each(|remote| remote.served.end());
        if let Err(error) = self.tell() {
            tracing::debug!(%error, "callers are not told that a route drains");
        }
    }

    /// Queued requests end as not begun.
    pub(super) fn withdraw_here(&self) {
        self.local().iter().for_each(|local| local.withdraw());
    }

    pub(super) fn leave_this_process(&self) {
        let local = self.local.lock().unwrap_or_else(PoisonError::into_inner).take();
        if local.is_some() {
            self.routes.remove(&self.route);
        }
    }

    pub(super) fn is_served(&self) -> bool {
        self.local().is_some() || self.remote.get().is_some_and(|remote| !remote.served.has_ended())
    }

    pub(super) fn leave_others(&self) {
        let Some(remote) = self.remote.get() else { return };
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // AcqRel: the first thread here does all of it, and the loads elsewhere see it.
        if self.is_gone.swap(true, Ordering::AcqRel) {
            return;
        }
        remote.served.end();
        // First, so that no caller is told afterwards that its table was taken.
        remote.serving.upgrade().iter().for_each(|serving| serving.remove(&self.route));
        if let Err(error) = remote.io.change_state(&self.route, RouteState::Gone) {
            tracing::debug!(%error, "callers are not told that a route is gone");
        }
    }

    pub(super) fn none_left(&self) {
        if self.remote.get().is_some_and(|remote| !remote.served.has_ended()) {
            tracing::error!(
                route = self.route,
                "a route is withdrawn, because its last worker has panicked or was dropped"
            );
        }
        self.leave_others();
    }

    pub(super) fn announce(&self, mut description: RouteDescription) -> Result<(), RpcError> {
        let Some(remote) = self.remote.get() else { return Ok(()) };
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire: pairs with `leave_others`.
        if !self.is_gone.load(Ordering::Acquire) {
            description.state = remote.served.state();
            remote.io.announce(description)?;
        }
        Ok(())
    }

    fn tell(&self) -> Result<(), RpcError> {
        let Some(remote) = self.remote.get() else { return Ok(()) };
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire: pairs with `leave_others`.
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
            // No other process may request that.
            RouteState::Gone => Ok(()),
        };
        if let Err(error) = changed {
            tracing::debug!(route = self.route, %error, "another process wanted a route to change");
        }
    }
}
