//! [`RouteTables`]: the calling half of a domain: the tables of this process, each offered to every instance that
//! serves its route with compatible types.

mod attaching;
mod published_counters;
mod receivers;
mod registry_callbacks;
mod remote_routes;
mod state_changes;
mod table_lifetime;
mod unknown_servers;

pub(super) use registry_callbacks::identity_of;

use crate::caller::routes::{RouteKey, SharedTable, WakerSet};
use crate::caller::table::RouteTable;
use crate::outcome::CallError;
use crate::registry::{InstanceNumber, IoHandle, PeerProcess, RouteDescription, RouteState};
use crate::server::puller::ServedCallers;
use gapless_agent::CountersWriter;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
use unknown_servers::UnknownServers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOptions {
    pub(crate) slots: u32,
    pub(crate) payload_length_max: usize,
}

pub(crate) struct RouteTables {
    options: TableOptions,
    own: Weak<Self>,
    directory: PathBuf,
    process_name: Arc<str>,
    writer: Arc<CountersWriter>,
    io: Arc<OnceLock<IoHandle>>,
    state: Mutex<TablesState>,
    changed: Condvar,
    news: Arc<WakerSet>,
}

#[derive(Default)]
struct TablesState {
    is_discovered: bool,
    instances: BTreeMap<InstanceNumber, KnownInstance>,
    unknown_servers: UnknownServers,
    /// Numbers are never reused.
    tables: HashMap<RouteKey, u64>,
    last_table: u64,
    attached: BTreeMap<u64, AttachedTable>,
    all: Arc<[Arc<RouteTable>]>,
    /// Time since when, ns of the monotonic clock; some may be used again.
    unused: BTreeMap<u64, u64>,
    unused_check_ns: u64,
    again_ns: Option<u64>,
    attachments: HashMap<u64, u64>,
    last_attachment: u64,
    /// Routes that this process serves, by token.
    served: HashMap<u64, Weak<ServedCallers>>,
    last_served: u64,
}

struct KnownInstance {
    process: Arc<PeerProcess>,
    routes: HashMap<String, RouteDescription>,
    /// Includes withdrawn ones.
    notices: usize,
}

struct AttachedTable {
    key: RouteKey,
    table: Arc<RouteTable>,
    /// The table is freed after the last of them.
    users: Weak<SharedTable>,
    eventfd: Arc<OwnedFd>,
    instances: HashMap<InstanceNumber, Attachment>,
    again: HashMap<InstanceNumber, OfferRetry>,
    /// The table belongs to a process that may still announce a receiver of notices.
    awaits_receiver: bool,
}

#[derive(Default)]
struct OfferRetry {
    /// `None` while the last offer has no answer.
    at_ns: Option<u64>,
    pause_ns: u64,
}

impl AttachedTable {
    fn is_unused(&self) -> bool {
        self.users.strong_count() == 0
    }
}

enum Attachment {
    Offered(u64),
    Attached(u64),
    Refused(CallError),
}

impl RouteTables {
    pub(crate) fn new(options: TableOptions, directory: PathBuf, process_name: &str) -> Arc<Self> {
        let io = Arc::<OnceLock<IoHandle>>::default();
        let woken = Arc::clone(&io);
        Arc::new_cyclic(|own| Self {
            options,
            own: Weak::clone(own),
            directory,
            process_name: process_name.into(),
            writer: CountersWriter::new(move || woken.get().into_iter().for_each(IoHandle::wake)),
            io,
            state: Mutex::default(),
            changed: Condvar::new(),
            news: Arc::default(),
        })
    }

    pub(crate) fn set_io(&self, io: IoHandle) {
        let _ = self.io.set(io);
    }

    fn lock(&self) -> MutexGuard<'_, TablesState> {
        self.state.lock().expect("nobody panics with the lock")
    }

    fn io(&self) -> Option<&IoHandle> {
        self.io.get()
    }

    fn tables(&self) -> Arc<[Arc<RouteTable>]> {
        Arc::clone(&self.lock().all)
    }

    fn notify_waiters(&self) {
        self.changed.notify_all();
        self.news.wake_all();
    }

    pub(crate) fn close(&self) {
        self.tables().iter().for_each(|table| table.close());
        self.notify_waiters();
    }

    /// The I/O thread wakes tasks and waiting handlers when callers write the eventfd. The token undoes it.
    pub(crate) fn register_served(&self, served: &Arc<ServedCallers>) -> std::io::Result<u64> {
        let eventfd = Arc::new(served.eventfd().try_clone()?);
        let mut state = self.lock();
        let token = state.last_served * 2 + 1;
        state.last_served += 1;
        state.served.insert(token, Arc::downgrade(served));
        drop(state);
        if let Some(io) = self.io() {
            io.register_completion(token, eventfd);
        }
        Ok(token)
    }

    pub(crate) fn unregister_served(&self, token: u64) {
        let served = self.lock().served.remove(&token);
        served.and_then(|served| served.upgrade()).iter().for_each(|served| served.watchers().stop_signals());
        if let Some(io) = self.io() {
            io.unregister_completion(token);
        }
    }

    pub(crate) fn routes(&self) -> Vec<(Arc<PeerProcess>, RouteDescription)> {
        let state = self.lock();
        let of_instance = |instance: &KnownInstance| {
            let process = Arc::clone(&instance.process);
            instance.routes.values().map(move |route| (Arc::clone(&process), route.clone())).collect::<Vec<_>>()
        };
        state.instances.values().flat_map(of_instance).collect()
    }

    pub(crate) fn wait_until_discovered(&self, answering: &[u32], timeout: Duration) {
        self.wait_until(timeout, |state| {
            let has_told = |process_id: &u32| {
                let is_known = state.instances.values().any(|instance| instance.process.process_id == *process_id);
                is_known && !state.is_unknown(*process_id)
            };
            state.is_discovered || answering.iter().all(has_told)
        });
    }

    fn wait_until(&self, timeout: Duration, is_so: impl Fn(&TablesState) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !is_so(state));
        drop(waited.expect("nobody panics with the lock"));
    }
}

impl TablesState {
    fn attached_of(&self, key: &RouteKey) -> Option<&AttachedTable> {
        self.attached.get(self.tables.get(key)?)
    }

    fn knows_instance(&self, route: &str) -> bool {
        let is_open =
            |instance: &KnownInstance| instance.routes.get(route).is_some_and(|route| route.state == RouteState::Open);
        self.instances.values().any(is_open)
    }

    fn has_instance(&self, key: &RouteKey) -> bool {
        let Some(attached) = self.attached_of(key) else { return false };
        attached.instances.iter().any(|(number, attachment)| {
            let route = self.instances.get(number).and_then(|instance| instance.routes.get(&*key.route));
            matches!(attachment, Attachment::Attached(_)) && route.is_some_and(|route| route.state == RouteState::Open)
        })
    }

    fn is_settled(&self, key: &RouteKey) -> bool {
        let waits = |attached: &AttachedTable| {
            attached.instances.values().any(|attachment| matches!(attachment, Attachment::Offered(_)))
        };
        self.is_discovered && !self.attached_of(key).is_some_and(waits)
    }
}
