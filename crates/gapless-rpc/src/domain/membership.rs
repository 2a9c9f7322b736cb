//! [`Shared`]: what this process has of a domain, for as long as somebody here uses it.

use super::calling::Calling;
use super::serving::Serving;
use crate::caller::routes::{LocalRoutes, RemoteRoutes};
use crate::caller::{Caller, CallerOptions};
use crate::error::RpcError;
use crate::message::Message;
use crate::registry::{IoHandle, IoThread};
use crate::route_name;
use std::path::PathBuf;
use std::sync::Arc;

/// What this process has of a domain.
pub(super) struct Shared {
    pub(super) name: String,
    /// When this process came into it, ns of the monotonic clock.
    pub(super) started_ns: u64,
    pub(super) local: Arc<LocalRoutes>,
    pub(super) machine: Option<Machine>,
}

/// What a domain of several processes has.
pub(super) struct Machine {
    pub(super) directory: PathBuf,
    pub(super) io: IoHandle,
    pub(super) calling: Arc<Calling>,
    pub(super) serving: Arc<Serving>,
    /// Dropped last: it leaves the domain.
    #[expect(dead_code, reason = "it is kept, not used")]
    pub(super) thread: IoThread,
}

impl Shared {
    /// A caller of a route. The domain stays open for as long as it lives.
    pub(super) fn caller<Request: Message, Reply: Message>(
        self: &Arc<Self>,
        route: &str,
        options: CallerOptions,
    ) -> Result<Caller<Request, Reply>, RpcError> {
        route_name::check(route)?;
        let remote = self.machine.as_ref().map(|machine| Arc::clone(&machine.calling) as Arc<dyn RemoteRoutes>);
        Caller::new(route.into(), options, Arc::clone(&self.local), remote, Arc::clone(self))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(machine) = &self.machine {
            machine.calling.close();
        }
    }
}
