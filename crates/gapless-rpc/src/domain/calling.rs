//! [`Calling`]: the calling half of a domain: the tables of this process, and the instances that they are offered to.
//!
//! The I/O thread reports instances and routes; callers ask for tables. A table is offered to every instance that
//! serves its route with compatible types.
//!
//! | module | what lives there |
//! |---|---|
//! | `remote_routes` | the interface for callers |
//! | `calling_side` | the interface for the I/O thread |
//! | `receivers` | receivers of notices, and the tables made for them |
//! | `attaching` | the offer of a table to an instance, with the agreed types |
//! | `unheard` | serving processes that have not announced their routes |
//! | `tables` | lifetime of tables: used, kept for a while, freed |
//! | `changing` | requests to instances to suspend, resume or drain a route |
//! | `showing` | counters for other processes |

mod attaching;
mod calling_side;
mod changing;
mod receivers;
mod remote_routes;
mod showing;
mod tables;
mod unheard;

pub(super) use calling_side::identity_of;

use crate::caller::routes::{RouteKey, UsedTable, WakerSet};
use crate::outcome::CallError;
use crate::remote::copy::ServedCallers;
use crate::remote::table::RouteTable;
use gapless_agent::CountersWriter;
use gapless_registry::{CopyNumber, IoHandle, PeerProcess, RouteDescription, RouteState};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
use unheard::UnheardProcesses;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOptions {
    pub(crate) slots: u32,
    pub(crate) payload_length_max: usize,
}

pub(crate) struct Calling {
    options: TableOptions,
    /// For tables, which report when their last user is gone.
    own: Weak<Self>,
    /// Directory of the counter files, written by the I/O thread.
    directory: PathBuf,
    process_name: Arc<str>,
    writer: Arc<CountersWriter>,
    io: Arc<OnceLock<IoHandle>>,
    state: Mutex<State>,
    /// Signalled when an instance has answered, or all have.
    changed: Condvar,
    /// Tasks that wait for the same.
    news: Arc<WakerSet>,
}

#[derive(Default)]
struct State {
    /// Every process present at the start has announced its routes.
    is_discovered: bool,
    copies: BTreeMap<CopyNumber, KnownCopy>,
    unheard: UnheardProcesses,
    /// Number of each table, never reused.
    tables: HashMap<RouteKey, u64>,
    last_table: u64,
    attached: BTreeMap<u64, AttachedTable>,
    /// All tables, for the I/O thread.
    all: Arc<[Arc<RouteTable>]>,
    /// Tables without users, with the time since when, ns of the monotonic clock. Some may be used again.
    unused: BTreeMap<u64, u64>,
    /// Time of the next check of unused tables, ns.
    unused_look_ns: u64,
    /// Time at which the first table is offered again, ns of the monotonic clock.
    again_ns: Option<u64>,
    attachments: HashMap<u64, u64>,
    last_attachment: u64,
    /// Routes that this process serves, by token.
    served: HashMap<u64, Weak<ServedCallers>>,
    last_served: u64,
}

struct KnownCopy {
    process: Arc<PeerProcess>,
    routes: HashMap<String, RouteDescription>,
    /// Number of notice routes that it has announced, including withdrawn ones.
    notices: usize,
}

/// A table, and the instances that it was offered to.
struct AttachedTable {
    key: RouteKey,
    table: Arc<RouteTable>,
    /// Callers and calls; the table is freed after the last of them.
    users: Weak<UsedTable>,
    eventfd: Arc<OwnedFd>,
    copies: HashMap<CopyNumber, Attachment>,
    /// Instances that the table is offered to again.
    again: HashMap<CopyNumber, Again>,
    /// The table belongs to a process that may still announce that it receives notices.
    awaits_receiver: bool,
}

/// Time of the next offer of a table to an instance.
#[derive(Default)]
struct Again {
    /// ns of the monotonic clock; `None` while the last offer has no answer.
    at_ns: Option<u64>,
    pause_ns: u64,
}

impl AttachedTable {
    fn is_unused(&self) -> bool {
        self.users.strong_count() == 0
    }
}

enum Attachment {
    /// Offered under this number, without an answer yet.
    Offered(u64),
    Attached(u64),
    /// The types do not match, or the instance refused.
    Refused(CallError),
}

impl Calling {
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock")
    }

    fn io(&self) -> Option<&IoHandle> {
        self.io.get()
    }

    fn tables(&self) -> Arc<[Arc<RouteTable>]> {
        Arc::clone(&self.lock().all)
    }

    /// Wakes all threads and tasks that wait for news of instances.
    fn tell(&self) {
        self.changed.notify_all();
        self.news.wake_all();
    }

    pub(crate) fn close(&self) {
        self.tables().iter().for_each(|table| table.close());
        self.tell();
    }

    /// Registers a route's eventfd. When callers write it, the I/O thread wakes the route's tasks, and handlers that
    /// wait for cancellation. The token undoes it.
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
        // Tasks may run for longer.
        served.and_then(|served| served.upgrade()).iter().for_each(|served| served.watching().deafen());
        if let Some(io) = self.io() {
            io.unregister_completion(token);
        }
    }

    /// Routes that known instances serve, each with its process.
    pub(crate) fn routes(&self) -> Vec<(Arc<PeerProcess>, RouteDescription)> {
        let state = self.lock();
        let of_copy = |copy: &KnownCopy| {
            let process = Arc::clone(&copy.process);
            copy.routes.values().map(move |route| (Arc::clone(&process), route.clone())).collect::<Vec<_>>()
        };
        state.copies.values().flat_map(of_copy).collect()
    }

    /// Waits until every process present at the start has announced its routes, and those in `answering`, or for
    /// `timeout`.
    pub(crate) fn wait_until_discovered(&self, answering: &[u32], timeout: Duration) {
        self.wait_until(timeout, |state| {
            let has_told = |process_id: &u32| {
                let is_known = state.copies.values().any(|copy| copy.process.process_id == *process_id);
                is_known && !state.is_unheard(*process_id)
            };
            state.is_discovered || answering.iter().all(has_told)
        });
    }

    fn wait_until(&self, timeout: Duration, is_so: impl Fn(&State) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !is_so(state));
        drop(waited.expect("nobody panics with the lock"));
    }
}

impl State {
    fn attached_of(&self, key: &RouteKey) -> Option<&AttachedTable> {
        self.attached.get(self.tables.get(key)?)
    }

    fn knows_copy(&self, route: &str) -> bool {
        let is_open = |copy: &KnownCopy| copy.routes.get(route).is_some_and(|route| route.state == RouteState::Open);
        self.copies.values().any(is_open)
    }

    fn has_copy(&self, key: &RouteKey) -> bool {
        let Some(attached) = self.attached_of(key) else { return false };
        attached.copies.iter().any(|(number, attachment)| {
            let route = self.copies.get(number).and_then(|copy| copy.routes.get(&*key.route));
            matches!(attachment, Attachment::Attached(_)) && route.is_some_and(|route| route.state == RouteState::Open)
        })
    }

    fn is_settled(&self, key: &RouteKey) -> bool {
        let waits = |attached: &AttachedTable| {
            attached.copies.values().any(|attachment| matches!(attachment, Attachment::Offered(_)))
        };
        self.is_discovered && !self.attached_of(key).is_some_and(waits)
    }
}
