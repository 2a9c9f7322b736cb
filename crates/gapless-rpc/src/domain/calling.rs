//! [`Calling`]: the calling half of a domain: the tables of this process, and the copies that they are brought to.
//!
//! The I/O thread tells of copies and routes; callers ask for tables. A table is brought to every copy that serves its route with
//! types that both sides speak.

use super::counter_files;
use crate::caller::routes::{RemoteRoutes, RouteKey, TypeKey, UsedTable, mismatch};
use crate::clock::monotonic_ns;
use crate::context::CallerAddress;
use crate::message::Encoding;
use crate::outcome::CallError;
use crate::registry::{
    ATTACHMENTS_MAX, Attach, CallingSide, CopyNumber, IoHandle, PeerProcess, Refused, RefusedReason, RouteDescription,
    RouteState, TypeDescription,
};
use crate::remote::copy::ServedCallers;
use crate::remote::table::{CopyState, RouteTable, TablelessCounters};
use crate::route_counters::Side;
use crate::route_name::HIDDEN_PREFIX;
use gapless_agent::wake_fd;
use gapless_log::Region;
use gapless_log::bell::BELL_LENGTH;
use gapless_log::call_table::CallTableShape;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Between two looks for a receiver of notices.
const LOOK: Duration = Duration::from_millis(10);

/// How large the tables of a process are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOptions {
    pub(crate) slots: u32,
    pub(crate) payload_length_max: usize,
}

/// Tables of a process at most, as many as one caller may bring to a copy.
const TABLES_MAX: usize = ATTACHMENTS_MAX;
/// So long a table is kept that nobody uses, ns: forwarded calls, notices and callers that are made for one call find it again.
const UNUSED_KEPT_NS: u64 = 1_000_000_000;
/// Between two looks at tables that nobody uses, ns.
const UNUSED_LOOK_NS: u64 = 250_000_000;

/// The calling half of a domain.
pub(crate) struct Calling {
    options: TableOptions,
    /// For tables, which say when nobody uses them any more.
    own: Weak<Self>,
    /// Where calls are counted.
    directory: PathBuf,
    io: OnceLock<IoHandle>,
    state: Mutex<State>,
    /// A copy has answered, or all have.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Every copy that was there at the beginning has told its routes.
    is_discovered: bool,
    copies: BTreeMap<CopyNumber, Copy>,
    /// The number of each table; a number is not used twice.
    tables: HashMap<RouteKey, u64>,
    last_table: u64,
    attached: BTreeMap<u64, AttachedTable>,
    /// All tables, for the I/O thread.
    all: Arc<[Arc<RouteTable>]>,
    /// Tables that nobody uses, with when that began, ns of the monotonic clock. Some may be used again.
    unused: BTreeMap<u64, u64>,
    /// When they are looked at next.
    unused_look_ns: u64,
    /// Who is woken once at the next news of copies.
    awaits_news: Vec<Waker>,
    /// The table of each attachment.
    attachments: HashMap<u64, u64>,
    last_attachment: u64,
    /// Routes that this process serves, by their tokens.
    served: HashMap<u64, Weak<ServedCallers>>,
    last_served: u64,
}

struct Copy {
    process: Arc<PeerProcess>,
    routes: HashMap<String, RouteDescription>,
    /// Routes for notices that it has told of, also those that it has withdrawn.
    notices: usize,
}

/// A table, and the copies that have it.
struct AttachedTable {
    key: RouteKey,
    table: Arc<RouteTable>,
    /// Callers and calls; the table goes when there are none.
    users: Weak<UsedTable>,
    eventfd: Arc<OwnedFd>,
    copies: HashMap<CopyNumber, Attachment>,
}

impl AttachedTable {
    fn is_unused(&self) -> bool {
        self.users.strong_count() == 0
    }
}

enum Attachment {
    /// It was brought under this number, and there is no answer yet.
    Brought(u64),
    Attached(u64),
    /// Both sides do not speak the same, or the copy does not want it.
    Refused(CallError),
}

impl Calling {
    pub(crate) fn new(options: TableOptions, directory: PathBuf) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            options,
            own: Weak::clone(own),
            directory,
            io: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
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

    /// Where calls of a route are counted. Those of a route that no application serves are not shown.
    fn counters_path(&self, route: &str) -> Option<PathBuf> {
        (!route.starts_with(HIDDEN_PREFIX)).then(|| counter_files::new_path(&self.directory, Side::Caller))
    }

    /// Brings a table to a copy that has its route, unless it has it.
    fn bring(&self, state: &mut State, index: u64, number: CopyNumber) {
        let State { copies, attached, attachments, last_attachment, .. } = state;
        let Some(table) = attached.get_mut(&index) else { return };
        let Some(route) = copies.get(&number).and_then(|copy| copy.routes.get(&*table.key.route)) else { return };
        if table.copies.contains_key(&number) || route.state == RouteState::Draining {
            return;
        }
        let (request, reply) = match agreed(&table.key, route) {
            Ok(agreed) => agreed,
            Err(mismatch) => {
                table.copies.insert(number, Attachment::Refused(mismatch));
                return;
            }
        };
        let reply_older = table.key.reply.place_of_older(reply.fingerprint).map_or(0, |place| place as u8 + 1);
        let shape = table.table.table().shape();
        let attach = Attach {
            attachment: *last_attachment + 1,
            copy_number: 0,
            request_region_bytes: shape.request_region_length() as u64,
            claim_region_bytes: shape.claim_region_length() as u64,
            route: table.key.route.to_string(),
            version: String::new(),
            request,
            reply,
            reply_older,
        };
        *last_attachment += 1;
        let attachment = *last_attachment;
        attachments.insert(attachment, index);
        table.copies.insert(number, Attachment::Brought(attachment));
        // Before it can take a request.
        state.agree_on_version(index);
        let State { attached, attachments, .. } = state;
        let Some(table) = attached.get_mut(&index) else { return };
        let brought = (|| {
            let call_table = table.table.table();
            let requests = Arc::new(call_table.request_region().read_only_fd().ok()?);
            let claims = Arc::new(call_table.claim_region().fd().try_clone_to_owned().ok()?);
            let descriptors = [requests, claims, Arc::clone(&table.eventfd)];
            self.io()?.attach(number, attach, descriptors).ok()
        })();
        if brought.is_none() {
            attachments.remove(&attachment);
            let reason = "this process has no descriptors left for it".to_owned();
            let busy = CallError::Busy { route: table.key.route.to_string(), reason };
            table.copies.insert(number, Attachment::Refused(busy));
            state.agree_on_version(index);
        }
    }

    fn with_table(&self, attachment: u64, number: CopyNumber, then: impl FnOnce(&Copy, &mut AttachedTable)) {
        let mut state = self.lock();
        let State { copies, attached, attachments, .. } = &mut *state;
        if let (Some(index), Some(copy)) = (attachments.remove(&attachment), copies.get(&number))
            && let Some(table) = attached.get_mut(&index)
        {
            then(copy, table);
            state.agree_on_version(index);
        }
        drop(state);
        self.tell();
    }

    fn tables(&self) -> Arc<[Arc<RouteTable>]> {
        Arc::clone(&self.lock().all)
    }

    /// A table for callers and calls, which say when they are gone.
    fn used(&self, number: u64, table: &Arc<RouteTable>) -> Arc<UsedTable> {
        let calling = Weak::clone(&self.own);
        let unused = move || {
            if let Some(calling) = calling.upgrade() {
                calling.let_go(number);
            }
        };
        Arc::new(UsedTable::new(Arc::clone(table), unused))
    }

    /// Nobody uses a table any more. It is kept for a while: who makes a caller for each call finds it again.
    fn let_go(&self, number: u64) {
        let now_ns = monotonic_ns();
        let mut state = self.lock();
        if !state.attached.contains_key(&number) {
            return;
        }
        let is_first = state.unused.is_empty();
        state.unused.insert(number, now_ns);
        if is_first {
            state.unused_look_ns = now_ns + UNUSED_KEPT_NS;
        }
        drop(state);
        if is_first {
            self.io().iter().for_each(|io| io.wake());
        }
    }

    /// Frees tables that nobody has used since then, ns of the monotonic clock, once the last request that nobody waits for is answered.
    fn free_unused(&self, since_ns: u64) {
        let mut state = self.lock();
        let State { unused, attached, .. } = &mut *state;
        unused.retain(|number, _| attached.get(number).is_some_and(AttachedTable::is_unused));
        let due = unused.iter().filter(|(_, began_ns)| **began_ns <= since_ns);
        let table = |number: &u64| Arc::clone(&attached[number].table);
        let mut ended: Vec<_> = due.map(|(number, began_ns)| (*number, *began_ns, table(number))).collect();
        drop(state);
        // Without the lock: it may wake tasks.
        ended.retain(|(.., table)| table.has_ended());
        let mut state = self.lock();
        let mut gone = Vec::new();
        for (number, began_ns, _) in &ended {
            // Neither used again nor used since.
            let is_unused = state.attached.get(number).is_some_and(AttachedTable::is_unused);
            if is_unused && state.unused.get(number) == Some(began_ns) {
                gone.extend(self.take_table(&mut state, *number));
            }
        }
        drop(state);
        // Their memory goes without the lock.
        drop(gone);
    }

    /// The table of a route, if there is one.
    fn known(&self, state: &mut State, key: &RouteKey) -> Option<Arc<UsedTable>> {
        let number = *state.tables.get(key)?;
        let attached = state.attached.get_mut(&number)?;
        Some(attached.users.upgrade().unwrap_or_else(|| {
            let used = self.used(number, &attached.table);
            attached.users = Arc::downgrade(&used);
            used
        }))
    }

    /// Takes out a table; its copies let it go, too. To be dropped without the lock, with the tasks that wait there.
    fn take_table(&self, state: &mut State, number: u64) -> Option<AttachedTable> {
        let gone = state.remove_table(number)?;
        if let Some(io) = self.io() {
            io.unregister_completion(token_of_table(number));
            for (copy, attachment) in &gone.copies {
                if let Attachment::Brought(attachment) | Attachment::Attached(attachment) = attachment {
                    io.detach(*copy, *attachment);
                }
            }
        }
        Some(gone)
    }

    /// There is news of copies.
    fn tell(&self) {
        self.changed.notify_all();
        let woken = std::mem::take(&mut self.lock().awaits_news);
        // Without the lock: they may call at once.
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends all calls.
    pub(crate) fn close(&self) {
        self.tables().iter().for_each(|table| table.close());
        self.tell();
    }

    /// From now on the tasks of a route, and handlers that wait for the ends of their calls, are woken when callers write its
    /// eventfd. The token takes that back.
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
        // Tasks may be at work for longer.
        served.and_then(|served| served.upgrade()).iter().for_each(|served| served.watching().deafen());
        if let Some(io) = self.io() {
            io.unregister_completion(token);
        }
    }

    /// What the copies that are known serve: each with its process.
    pub(crate) fn routes(&self) -> Vec<(Arc<PeerProcess>, RouteDescription)> {
        let state = self.lock();
        let of_copy = |copy: &Copy| {
            let process = Arc::clone(&copy.process);
            copy.routes.values().map(move |route| (Arc::clone(&process), route.clone())).collect::<Vec<_>>()
        };
        state.copies.values().flat_map(of_copy).collect()
    }

    /// Waits until the process of an address has told that it receives such notices, or for `timeout`. It is waited for only if
    /// it is there (`is_there`) and has not told all yet that it was about to tell when it called.
    pub(crate) fn wait_for_receiver(
        &self,
        address: &CallerAddress,
        route: &str,
        is_there: impl Fn() -> bool,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let look = |state: &State| {
            let Some(copy) = state.copies.values().find(|copy| copy.process.is_at(address)) else {
                return if state.is_discovered && !(address.notices != 0 && is_there()) { Some(false) } else { None };
            };
            let is_known = copy.routes.contains_key(route);
            (is_known || copy.notices >= address.notices.into()).then_some(is_known)
        };
        let (until, route) = (Instant::now() + timeout, || route.to_owned());
        let mut state = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match look(&state) {
                Some(true) => return Ok(()),
                Some(false) => return Err(CallError::NoRoute { route: route() }),
                None if left.is_zero() => {
                    let reason = "its process has not answered yet".to_owned();
                    return Err(CallError::Busy { route: route(), reason });
                }
                // Now and then, because the end of a caller that is no copy is not told here.
                None => {
                    state = self.changed.wait_timeout(state, left.min(LOOK)).expect("nobody panics with the lock").0
                }
            }
        }
    }

    /// A notice found nobody: what was made for it goes.
    pub(crate) fn forget_receivers(&self) {
        let gone = self.take_receivers_gone(&mut self.lock());
        drop(gone);
    }

    /// Takes out the tables whose copy has gone: of routes for notices, of which each process has its own.
    fn take_receivers_gone(&self, state: &mut State) -> Vec<AttachedTable> {
        let is_gone =
            |attached: &AttachedTable| attached.key.route.starts_with(HIDDEN_PREFIX) && attached.copies.is_empty();
        let gone = state.attached.iter().filter(|(_, attached)| is_gone(attached));
        let gone: Vec<u64> = gone.map(|(index, _)| *index).collect();
        gone.into_iter().filter_map(|index| self.take_table(state, index)).collect()
    }

    /// Waits until every copy that was there at the beginning has told its routes.
    pub(crate) fn wait_until_discovered(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, timeout, |state| !state.is_discovered);
        waited.expect("nobody panics with the lock").0.is_discovered
    }
}

/// The types that both sides speak, as the copy is told.
fn agreed(key: &RouteKey, route: &RouteDescription) -> Result<(TypeDescription, TypeDescription), CallError> {
    // A request in JSON is answered in JSON, whatever the copy's types are.
    let asks_json = key.request.encoding == Encoding::Json;
    let agreed_type = |own: &TypeKey, other: &TypeDescription| {
        let fingerprint = match (own.fingerprint, other.fingerprint) {
            (own, 0) => Some(own),
            (0, _) => Some(0),
            (ours, theirs) if ours == theirs || own.place_of_older(theirs).is_some() => Some(theirs),
            // The copy may be newer, and read what this program writes: it says so.
            (ours, _) => Some(ours),
        }?;
        let is_same = own.encoding == other.encoding
            || own.encoding == Encoding::Bytes
            || other.encoding == Encoding::Bytes
            || asks_json;
        is_same.then(|| TypeDescription { fingerprint, ..own.description() })
    };
    let request = agreed_type(&key.request, &route.request);
    let reply = agreed_type(&key.reply, &route.reply);
    let is_request = request.is_none();
    request.zip(reply).ok_or_else(|| {
        let (what, own, other) = match is_request {
            true => ("request", &key.request, &route.request),
            false => ("reply", &key.reply, &route.reply),
        };
        CallError::Mismatch {
            route: key.route.to_string(),
            caller: format!("{} → {}", key.request.description(), key.reply.description()),
            copy: format!("{} → {}", route.request, route.reply),
            difference: format!("the {what} is {:?} at the caller and {:?} at the copy", own.encoding, other.encoding),
        }
    })
}

const fn state_of(state: RouteState) -> CopyState {
    match state {
        RouteState::Open => CopyState::Open,
        RouteState::Suspended => CopyState::Suspended,
        RouteState::Draining | RouteState::Gone => CopyState::Draining,
    }
}

/// The same in every process that calls this copy.
fn identity_of(process: &PeerProcess) -> u64 {
    process.started_ns ^ u64::from(process.process_id) << 40
}

impl RemoteRoutes for Calling {
    fn table(&self, key: &RouteKey) -> Result<Arc<UsedTable>, CallError> {
        let busy = |reason: String| CallError::Busy { route: key.route.to_string(), reason };
        let io = self.io().ok_or(CallError::Closed)?;
        RemoteRoutes::discover(self, &key.route)?;
        let mut state = self.lock();
        if let Some(used) = self.known(&mut state, key) {
            return Ok(used);
        }
        if state.attached.len() >= TABLES_MAX {
            drop(state);
            self.free_unused(u64::MAX);
            state = self.lock();
            if let Some(used) = self.known(&mut state, key) {
                return Ok(used);
            }
        }
        if state.attached.len() >= TABLES_MAX {
            let reason = format!(
                "this process calls {TABLES_MAX} routes of other processes, which is the limit; a route counts for as long as there is \
                 a caller or a call of it"
            );
            return Err(busy(reason));
        }
        let shape = CallTableShape::new(self.options.slots, self.options.payload_length_max);
        let table = shape
            .map_err(crate::RpcError::from)
            .and_then(|shape| {
                let (path, request) =
                    (self.counters_path(&key.route), (key.request.fingerprint, key.request.functions.rewrite));
                RouteTable::create(Arc::clone(&key.route), shape, request, path.as_deref())
            })
            .map_err(|error| busy(error.to_string()))?;
        let eventfd = wake_fd::create();
        let (table, eventfd) = (Arc::new(table), Arc::new(eventfd.map_err(|errno| busy(errno.to_string()))?));
        let number = state.last_table;
        state.last_table += 1;
        io.register_completion(token_of_table(number), Arc::clone(&eventfd));
        let used = self.used(number, &table);
        let users = Arc::downgrade(&used);
        let attached = AttachedTable { key: key.clone(), table, users, eventfd, copies: HashMap::new() };
        state.attached.insert(number, attached);
        state.tables.insert(key.clone(), number);
        state.tables_changed();
        let copies: Vec<_> = state.copies.keys().copied().collect();
        copies.into_iter().for_each(|copy| self.bring(&mut state, number, copy));
        Ok(used)
    }

    fn discover(&self, route: &str) -> Result<(), CallError> {
        let io = self.io().ok_or(CallError::Closed)?;
        io.discover().map_err(|error| match error {
            _ if io.is_closed() => CallError::Closed,
            error => CallError::Unavailable { route: route.to_owned(), reason: error.to_string() },
        })
    }

    fn may_be_served(&self, key: &RouteKey) -> bool {
        let state = self.lock();
        let is_served = |copy: &Copy| copy.routes.contains_key(&*key.route);
        !state.is_discovered || state.tables.contains_key(key) || state.copies.values().any(is_served)
    }

    fn tableless_counters(&self, route: &str) -> Option<TablelessCounters> {
        let made = TablelessCounters::create(route, self.counters_path(route).as_deref());
        made.inspect_err(|error| tracing::debug!(route, %error, "calls that nobody serves are not counted")).ok()
    }

    fn is_discovered(&self) -> bool {
        self.lock().is_discovered
    }

    fn wake_at_news(&self, task: Waker) {
        self.lock().awaits_news.push(task);
    }

    fn wait_until_discovered(&self, timeout: Duration) {
        let _ = Self::wait_until_discovered(self, timeout);
    }

    fn wait_until_settled(&self, key: &RouteKey, timeout: Duration) {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !state.is_settled(key));
        drop(waited.expect("nobody panics with the lock"));
    }

    fn is_settled(&self, key: &RouteKey) -> bool {
        self.lock().is_settled(key)
    }

    fn mismatch(&self, key: &RouteKey) -> Option<CallError> {
        let state = self.lock();
        state.attached_of(key)?.copies.values().find_map(|attachment| match attachment {
            Attachment::Refused(error) => Some(error.clone()),
            Attachment::Brought(_) | Attachment::Attached(_) => None,
        })
    }

    fn process_of(&self, copy: u32) -> Option<u32> {
        self.lock().copies.get(&CopyNumber(copy)).map(|copy| copy.process.process_id)
    }

    fn wake(&self) {
        if let Some(io) = self.io() {
            io.wake();
        }
    }
}

impl State {
    fn attached_of(&self, key: &RouteKey) -> Option<&AttachedTable> {
        self.attached.get(self.tables.get(key)?)
    }

    fn tables_changed(&mut self) {
        self.all = self.attached.values().map(|attached| Arc::clone(&attached.table)).collect();
    }

    fn remove_table(&mut self, number: u64) -> Option<AttachedTable> {
        let gone = self.attached.remove(&number)?;
        self.tables.remove(&gone.key);
        self.unused.remove(&number);
        self.attachments.retain(|_, table| *table != number);
        self.tables_changed();
        Some(gone)
    }

    /// Requests are of the newest version that every copy reads: the oldest of those of the copies that have the table.
    fn agree_on_version(&self, index: u64) {
        let Some(AttachedTable { key, table, copies, .. }) = self.attached.get(&index) else { return };
        let RouteKey { route, request, .. } = key;
        let age = |(number, attachment): (&CopyNumber, &Attachment)| {
            let route = self.copies.get(number)?.routes.get(&**route)?;
            let reads = matches!(attachment, Attachment::Brought(_) | Attachment::Attached(_));
            // The newest stands first.
            request.place_of_older(route.request.fingerprint).filter(|_| reads)
        };
        let oldest = copies.iter().filter_map(age).max();
        table.set_request_fingerprint(oldest.map_or(request.fingerprint, |age| request.older[age].fingerprint));
    }

    fn is_settled(&self, key: &RouteKey) -> bool {
        let waits = |attached: &AttachedTable| {
            attached.copies.values().any(|attachment| matches!(attachment, Attachment::Brought(_)))
        };
        self.is_discovered && !self.attached_of(key).is_some_and(waits)
    }
}

/// Tokens of completion eventfds: even ones are tables, odd ones routes that this process serves with tasks.
const fn token_of_table(number: u64) -> u64 {
    number * 2
}

impl CallingSide for Calling {
    fn copy_found(&self, copy: CopyNumber, process: &Arc<PeerProcess>) {
        let found = Copy { process: Arc::clone(process), routes: HashMap::new(), notices: 0 };
        self.lock().copies.insert(copy, found);
    }

    fn route_changed(&self, number: CopyNumber, route: &RouteDescription) {
        let mut state = self.lock();
        let Some(copy) = state.copies.get_mut(&number) else { return };
        if route.state == RouteState::Gone {
            copy.routes.remove(&route.name);
        } else {
            let known = copy.routes.insert(route.name.clone(), route.clone());
            copy.notices += usize::from(known.is_none() && route.name.starts_with(HIDDEN_PREFIX));
        }
        let of_route = state.attached.iter().filter(|(_, attached)| *attached.key.route == *route.name);
        let indexes: Vec<u64> = of_route.map(|(index, _)| *index).collect();
        let mut tables = Vec::new();
        for index in indexes {
            self.bring(&mut state, index, number);
            let State { attached, attachments, .. } = &mut *state;
            let Some(attached) = attached.get_mut(&index) else { continue };
            // One that has not answered yet is of the state that the route has then: what stands in the table may be the route
            // as it was before it was withdrawn, with a bell that wakes nobody.
            if matches!(attached.copies.get(&number), Some(Attachment::Attached(_))) {
                tables.push(Arc::clone(&attached.table));
            }
            if route.state == RouteState::Gone
                && let Some(Attachment::Brought(attachment) | Attachment::Attached(attachment)) =
                    attached.copies.remove(&number)
            {
                // Served again, it is asked again; an answer that is on its way is of the route that is gone.
                attachments.remove(&attachment);
                self.io().iter().for_each(|io| io.detach(number, attachment));
                state.agree_on_version(index);
            }
        }
        let gone = self.take_receivers_gone(&mut state);
        drop(state);
        drop(gone);
        // Without the lock: this wakes tasks, which may call at once.
        tables.iter().for_each(|table| table.set_copy_state(number.0, state_of(route.state)));
        self.tell();
    }

    fn copy_listed(&self, _copy: CopyNumber) {
        self.tell();
    }

    fn settled(&self) {
        self.lock().is_discovered = true;
        self.tell();
    }

    fn attached(&self, number: CopyNumber, attachment: u64, bell: OwnedFd, eventfd: OwnedFd) {
        let bell = Region::open(bell, BELL_LENGTH, true).map_err(|error| error.to_string());
        let bell = bell.and_then(|bell| wake_fd::check(&eventfd).map(|()| bell));
        let state = self.lock();
        let attached = state.attachments.get(&attachment).and_then(|index| state.attached.get(index));
        let (Some(attached), Some(copy)) = (attached, state.copies.get(&number)) else { return };
        let route = copy.routes.get(&*attached.key.route);
        let copy_state = route.map_or(CopyState::Draining, |route| state_of(route.state));
        let (table, identity) = (Arc::clone(&attached.table), identity_of(&copy.process));
        drop(state);
        // Without the lock, because this wakes tasks, which may call at once; and before the table counts as attached, because
        // who waits for that expects to find the copy in it.
        let outcome = match bell {
            Ok(bell) => {
                table.add_copy(number.0, identity, (bell, eventfd), copy_state);
                Ok(())
            }
            Err(error) => {
                self.io().iter().for_each(|io| io.detach(number, attachment));
                Err(error)
            }
        };
        self.with_table(attachment, number, |copy, attached| {
            let outcome = outcome.map_or_else(
                |error| {
                    let reason = format!("process {} has brought no bell: {error}", copy.process.process_id);
                    Attachment::Refused(CallError::Busy { route: attached.key.route.to_string(), reason })
                },
                |()| Attachment::Attached(attachment),
            );
            attached.copies.insert(number, outcome);
        });
    }

    fn refused(&self, number: CopyNumber, attachment: u64, refused: Refused) {
        self.with_table(attachment, number, |copy, attached| {
            let route = attached.key.route.to_string();
            let place = format!("process {}", copy.process.process_id);
            let said = format!("{} ({place})", refused.text);
            let error = match refused.reason {
                RefusedReason::NoRoute => CallError::NoRoute { route },
                RefusedReason::Mismatch => {
                    let own = TypeKey::shapes(&attached.key.request, &attached.key.reply);
                    mismatch(&route, &own, &refused.shapes, &place)
                }
                RefusedReason::Limit | RefusedReason::Memory => CallError::Busy { route, reason: said },
            };
            attached.copies.insert(number, Attachment::Refused(error));
        });
    }

    fn copy_closed(&self, number: CopyNumber) {
        self.tables().iter().for_each(|table| table.close_copy(number.0));
        let mut state = self.lock();
        state.copies.remove(&number);
        let State { attached, attachments, .. } = &mut *state;
        for attached in attached.values_mut() {
            if let Some(Attachment::Brought(attachment)) = attached.copies.remove(&number) {
                attachments.remove(&attachment);
            }
        }
        state.attached.keys().for_each(|index| state.agree_on_version(*index));
        let gone = self.take_receivers_gone(&mut state);
        drop(state);
        drop(gone);
        self.tell();
    }

    fn copy_dead(&self, number: CopyNumber) {
        self.tables().iter().for_each(|table| table.remove_copy(number.0));
    }

    fn completions(&self, token: u64) {
        if token % 2 == 1 {
            let served = self.lock().served.get(&token).and_then(Weak::upgrade);
            served.iter().for_each(|served| served.rung());
            return;
        }
        let table = self.lock().attached.get(&(token / 2)).map(|attached| Arc::clone(&attached.table));
        if let Some(table) = table {
            table.give_notices();
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let state = self.lock();
        let (tables, look_ns) = (Arc::clone(&state.all), (!state.unused.is_empty()).then_some(state.unused_look_ns));
        drop(state);
        tables.iter().filter_map(|table| table.next_deadline_ns()).chain(look_ns).min()
    }

    fn tick(&self, now_ns: u64) {
        for table in &*self.tables() {
            table.expire();
        }
        let mut state = self.lock();
        if !state.unused.is_empty() && state.unused_look_ns <= now_ns {
            state.unused_look_ns = now_ns + UNUSED_LOOK_NS;
            drop(state);
            self.free_unused(now_ns.saturating_sub(UNUSED_KEPT_NS));
        }
    }

    fn may_sleep(&self) -> bool {
        let mut has_given = false;
        for table in &*self.tables() {
            table.table().announce_reactor();
            has_given |= table.give_notices();
        }
        !has_given
    }

    fn woken(&self) {
        self.tables().iter().for_each(|table| table.table().withdraw_reactor());
    }

    fn ended(&self) {
        self.close();
        let served: Vec<_> = self.lock().served.values().filter_map(Weak::upgrade).collect();
        served.iter().for_each(|served| served.watching().deafen());
    }
}
