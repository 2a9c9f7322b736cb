//! `DomainShared`: this process's state of a domain, for as long as it is in use.

use super::route_tables::RouteTables;
use crate::caller::routes::{LocalRoutes, RemoteRoutes};
use crate::caller::{Caller, CallerOptions};
use crate::error::RpcError;
use crate::message::Message;
use crate::registry::{IoHandle, IoThread};
use crate::route_name;
use crate::server::attachments::ServedRoutes;
use gapless_agent::process_mark::ProcessMark;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct DomainShared {
    pub(super) name: String,
    pub(super) process_name: String,
    pub(super) started_ns: u64,
    pub(super) local: Arc<LocalRoutes>,
    pub(super) machine: Option<DomainMembership>,
    pub(super) opened_by: ProcessMark,
}

pub(super) struct DomainMembership {
    pub(super) directory: PathBuf,
    pub(super) io: IoHandle,
    pub(super) calling: Arc<RouteTables>,
    pub(super) serving: Arc<ServedRoutes>,
    /// Dropped last: it leaves the domain.
    #[expect(dead_code, reason = "it is kept, not used")]
    pub(super) thread: IoThread,
}

impl DomainShared {
    /// A caller keeps the domain open.
    pub(super) fn caller<Request: Message, Reply: Message>(
        self: &Arc<Self>,
        route: &str,
        options: CallerOptions,
    ) -> Result<Caller<Request, Reply>, RpcError> {
        self.check_process()?;
        route_name::check(route)?;
        let remote = self.machine.as_ref().map(|machine| Arc::clone(&machine.calling) as Arc<dyn RemoteRoutes>);
        Caller::new(route.into(), options, Arc::clone(&self.local), remote, Arc::clone(self))
    }

    pub(super) fn check_process(&self) -> Result<(), RpcError> {
        if self.opened_by.is_here() {
            return Ok(());
        }
        let path = self.machine.as_ref().map_or_else(|| PathBuf::from(&self.name), |machine| machine.directory.clone());
        let reason = "it was opened by the process that forked this one; a child opens it anew".to_owned();
        Err(RpcError::Domain { path, reason })
    }
}

impl Drop for DomainShared {
    fn drop(&mut self) {
        if !self.opened_by.is_here() {
            // Belongs to the parent, whose threads and locks do not exist here.
            return std::mem::forget((self.machine.take(), std::mem::take(&mut self.local)));
        }
        if let Some(machine) = &self.machine {
            machine.calling.close();
        }
    }
}
