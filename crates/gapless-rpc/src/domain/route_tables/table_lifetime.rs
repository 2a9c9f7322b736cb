//! Lifetime of this process's tables: used, kept for a while without a user, freed.

use super::{AttachedTable, Attachment, RouteTables, TablesState};
use crate::caller::routes::{RouteKey, SharedTable};
use crate::caller::table::RouteTable;
use crate::error::RpcError;
use crate::outcome::CallError;
use crate::registry::ATTACHMENTS_MAX;
use crate::route_counters::Side;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wake_fd;
use gapless_log::call_table::CallTableShape;
use rustix::fd::OwnedFd;
use std::sync::{Arc, MutexGuard, Weak};

const TABLES_MAX: usize = ATTACHMENTS_MAX;
/// Forwards, notices and callers made for one call find the table again.
pub(super) const UNUSED_KEPT_NS: u64 = 1_000_000_000;
pub(super) const UNUSED_CHECK_INTERVAL_NS: u64 = 250_000_000;

impl RouteTables {
    /// The last drop of a user reports back.
    pub(super) fn used(&self, number: u64, table: &Arc<RouteTable>) -> Arc<SharedTable> {
        let calling = Weak::clone(&self.own);
        let unused = move || {
            if let Some(calling) = calling.upgrade() {
                calling.let_go(number);
            }
        };
        Arc::new(SharedTable::new(Arc::clone(table), unused))
    }

    fn let_go(&self, number: u64) {
        let now_ns = monotonic_ns();
        let mut state = self.lock();
        if !state.attached.contains_key(&number) {
            return;
        }
        let is_first = state.unused.is_empty();
        state.unused.insert(number, now_ns);
        if is_first {
            state.unused_check_ns = now_ns + UNUSED_KEPT_NS;
        }
        drop(state);
        if is_first {
            self.io().iter().for_each(|io| io.wake());
        }
    }

    /// Tables are freed once their last one-way request is answered.
    pub(super) fn free_unused(&self, since_ns: u64) {
        let mut state = self.lock();
        let TablesState { unused, attached, .. } = &mut *state;
        unused.retain(|number, _| attached.get(number).is_some_and(AttachedTable::is_unused));
        let due = unused.iter().filter(|(_, began_ns)| **began_ns <= since_ns);
        let table = |number: &u64| Arc::clone(&attached[number].table);
        let mut ended: Vec<_> = due.map(|(number, began_ns)| (*number, *began_ns, table(number))).collect();
        let in_vain: Vec<u64> = {
            let is_in_vain = |number: &u64| state.is_in_vain(&state.attached[number]);
            ended.iter().map(|(number, ..)| *number).filter(is_in_vain).collect()
        };
        drop(state);
        // Without the lock: it may wake tasks.
        ended.retain(|(number, _, table)| in_vain.contains(number) || table.has_ended());
        let mut state = self.lock();
        let mut gone = Vec::new();
        for (number, began_ns, _) in &ended {
            let is_unused = state.attached.get(number).is_some_and(AttachedTable::is_unused);
            if is_unused && state.unused.get(number) == Some(began_ns) {
                gone.extend(self.take_table(&mut state, *number));
            }
        }
        drop(state);
        // Memory is freed without the lock.
        drop(gone);
    }

    pub(super) fn known(&self, state: &mut TablesState, key: &RouteKey) -> Option<Arc<SharedTable>> {
        let number = *state.tables.get(key)?;
        let attached = state.attached.get_mut(&number)?;
        Some(attached.users.upgrade().unwrap_or_else(|| {
            let used = self.used(number, &attached.table);
            attached.users = Arc::downgrade(&used);
            used
        }))
    }

    /// `None` if there is room for a new table.
    pub(super) fn known_or_room(
        &self,
        key: &RouteKey,
    ) -> Result<(MutexGuard<'_, TablesState>, Option<Arc<SharedTable>>), CallError> {
        let mut state = self.lock();
        let is_full = |state: &TablesState| state.attached.len() >= TABLES_MAX && !state.tables.contains_key(key);
        if is_full(&state) {
            drop(state);
            self.free_unused(u64::MAX);
            state = self.lock();
        }
        if is_full(&state) {
            let reason = format!(
                "this process calls {TABLES_MAX} routes of other processes, which is the limit; a route counts for as long as there is \
                 a caller or a call of it"
            );
            return Err(CallError::Busy { route: key.route.to_string(), reason });
        }
        let used = self.known(&mut state, key);
        Ok((state, used))
    }

    /// Call it without the lock, which the handling of deaths needs.
    pub(super) fn create_table(&self, key: &RouteKey) -> Result<(Arc<RouteTable>, Arc<OwnedFd>), RpcError> {
        let shape = CallTableShape::new(self.options.slots, self.options.payload_length_max)?;
        let request = (key.request.fingerprint, key.request.rewrite());
        let table = RouteTable::create(Arc::clone(&key.route), shape, request, &self.shown(&key.route, Side::Caller))?;
        let eventfd = wake_fd::create().map_err(RpcError::system("making an eventfd"))?;
        Ok((Arc::new(table), Arc::new(eventfd)))
    }

    /// Drop the result without the lock, because waiting tasks are dropped with it.
    pub(super) fn take_table(&self, state: &mut TablesState, number: u64) -> Option<AttachedTable> {
        let gone = state.remove_table(number)?;
        if let Some(io) = self.io() {
            io.unregister_completion(token_of_table(number));
            for (instance, attachment) in &gone.instances {
                if let Attachment::Offered(attachment) | Attachment::Attached(attachment) = attachment {
                    io.detach(*instance, *attachment);
                }
            }
        }
        Some(gone)
    }
}

impl TablesState {
    pub(super) fn tables_changed(&mut self) {
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
}

/// Token of a table's eventfd. Even tokens are tables, odd ones are served routes.
pub(super) const fn token_of_table(number: u64) -> u64 {
    number * 2
}
