//! Interface for the I/O thread: `CallingSide`.

use super::table_lifetime::{UNUSED_CHECK_INTERVAL_NS, UNUSED_KEPT_NS};
use super::{Attachment, KnownInstance, RouteTables, TablesState};
use crate::caller::follow_sent;
use crate::caller::remote_call::Destination;
use crate::caller::routes::{RouteKey, TypeKey, mismatch};
use crate::caller::table::{InstanceState, RouteTable};
use crate::notice_route;
use crate::outcome::CallError;
use crate::registry::{
    AttachRefusal, AttachRefusalReason, CallingSide, InstanceId, InstanceNumber, PeerProcess, RouteDescription,
    RouteState, UnknownServer,
};
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wake_fd;
use gapless_log::Region;
use gapless_log::bell::BELL_LENGTH;
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

impl CallingSide for RouteTables {
    fn unknown_server(&self, id: InstanceId, unknown_servers: Option<UnknownServer>) {
        self.lock().unknown_servers.set(id, unknown_servers);
    }

    fn instance_found(&self, instance: InstanceNumber, process: &Arc<PeerProcess>) {
        let found = KnownInstance { process: Arc::clone(process), routes: HashMap::new(), notices: 0 };
        self.lock().instances.insert(instance, found);
    }

    fn route_changed(&self, number: InstanceNumber, route: &RouteDescription) {
        let mut state = self.lock();
        let Some(instance) = state.instances.get_mut(&number) else { return };
        let mut is_of_other_type = false;
        if route.state == RouteState::Gone {
            instance.routes.remove(&route.name);
        } else {
            let known = instance.routes.insert(route.name.clone(), route.clone());
            is_of_other_type = known.as_ref().is_some_and(|known| known.request != route.request);
            instance.notices += usize::from(known.is_none() && notice_route::is_one(&route.name));
        }
        let of_route = state.attached.iter().filter(|(_, attached)| *attached.key.route == *route.name);
        let indexes: Vec<u64> = of_route.map(|(index, _)| *index).collect();
        let mut tables = Vec::new();
        for index in indexes {
            self.attach(&mut state, index, number);
            if is_of_other_type {
                state.agree_on_version(index);
            }
            let TablesState { attached, attachments, .. } = &mut *state;
            let Some(attached) = attached.get_mut(&index) else { continue };
            // An instance reports its state with its answer. The table may still name the route before its withdrawal,
            // whose bell wakes no one.
            if matches!(attached.instances.get(&number), Some(Attachment::Attached(_))) {
                tables.push(Arc::clone(&attached.table));
            }
            if route.state == RouteState::Gone
                && let Some(Attachment::Offered(attachment) | Attachment::Attached(attachment)) =
                    attached.instances.remove(&number)
            {
                attached.again.remove(&number);
                // A late answer belongs to the withdrawn route.
                attachments.remove(&attachment);
                self.io().iter().for_each(|io| io.detach(number, attachment));
                state.agree_on_version(index);
            }
        }
        let gone = self.take_receivers_gone(&mut state);
        drop(state);
        drop(gone);
        // Without the lock: this wakes tasks, which may call at once.
        let stands_for = route.stands_for.clone().into();
        tables.iter().for_each(|table| table.set_instance_state(number.0, state_of(route.state), &stands_for));
        self.notify_waiters();
    }

    fn instance_listed(&self, _instance: InstanceNumber) {
        self.notify_waiters();
    }

    fn settled(&self) {
        self.lock().is_discovered = true;
        self.notify_waiters();
    }

    fn attached(&self, number: InstanceNumber, attachment: u64, bell: OwnedFd, eventfd: OwnedFd) {
        let bell = Region::open(bell, BELL_LENGTH, true).map_err(|error| error.to_string());
        let bell = bell.and_then(|bell| wake_fd::check(&eventfd).map(|()| bell));
        let state = self.lock();
        let attached = state.attachments.get(&attachment).and_then(|index| state.attached.get(index));
        let (Some(attached), Some(instance)) = (attached, state.instances.get(&number)) else { return };
        let route = instance.routes.get(&*attached.key.route);
        let stands_for = route.map_or_else(Arc::default, |route| route.stands_for.clone().into());
        let instance_state = route.map_or(InstanceState::Draining, |route| state_of(route.state));
        let (table, identity) = (Arc::clone(&attached.table), identity_of(&instance.process));
        drop(state);
        // Without the lock: this wakes tasks. Before the table counts as attached: a thread that waits for that expects
        // the instance in it.
        let outcome = match bell {
            Ok(bell) => {
                table.add_instance((number.0, identity), (bell, eventfd), (instance_state, stands_for));
                Ok(())
            }
            Err(error) => {
                self.io().iter().for_each(|io| io.detach(number, attachment));
                Err(error)
            }
        };
        self.with_table(attachment, number, |instance, attached| match outcome {
            Ok(()) => {
                attached.again.remove(&number);
                attached.instances.insert(number, Attachment::Attached(attachment));
                None
            }
            Err(error) => {
                let reason = format!("process {} has brought no bell: {error}", instance.process.process_id);
                Some(CallError::Busy { route: attached.key.route.to_string(), reason })
            }
        });
    }

    fn refused(&self, number: InstanceNumber, attachment: u64, refused: AttachRefusal) {
        self.with_table(attachment, number, |instance, attached| {
            let route = attached.key.route.to_string();
            let place = format!("process {}", instance.process.process_id);
            let said = format!("{} ({place})", refused.text);
            let error = match refused.reason {
                AttachRefusalReason::Limit | AttachRefusalReason::Memory => {
                    return Some(CallError::Busy { route, reason: said });
                }
                AttachRefusalReason::NoRoute => CallError::no_route(route),
                AttachRefusalReason::Mismatch => match instance.routes.get(&*route) {
                    Some(described) if !attached.key.request.is_known() => {
                        mismatch_of_described(&attached.key, described, &refused.shapes, &place)
                    }
                    _ => {
                        let own = TypeKey::shapes(&attached.key.request, &attached.key.reply);
                        mismatch(&route, &own, &refused.shapes, &place)
                    }
                },
            };
            attached.again.remove(&number);
            attached.instances.insert(number, Attachment::Refused(error));
            None
        });
    }

    fn instance_closed(&self, number: InstanceNumber) {
        self.tables().iter().for_each(|table| table.close_instance(number.0));
        let mut state = self.lock();
        state.instances.remove(&number);
        let TablesState { attached, attachments, .. } = &mut *state;
        for attached in attached.values_mut() {
            attached.again.remove(&number);
            if let Some(Attachment::Offered(attachment)) = attached.instances.remove(&number) {
                attachments.remove(&attachment);
            }
        }
        state.attached.keys().for_each(|index| state.agree_on_version(*index));
        let gone = self.take_receivers_gone(&mut state);
        drop(state);
        drop(gone);
        self.notify_waiters();
    }

    fn instance_dead(&self, number: InstanceNumber) {
        for table in &*self.tables() {
            table.remove_instance(number.0);
            self.give_notices(table);
        }
    }

    fn completions(&self, token: u64) {
        if token % 2 == 1 {
            let served = self.lock().served.get(&token).and_then(Weak::upgrade);
            served.iter().for_each(|served| served.handle_ring());
            return;
        }
        let table = self.lock().attached.get(&(token / 2)).map(|attached| Arc::clone(&attached.table));
        if let Some(table) = table {
            self.give_notices(&table);
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let state = self.lock();
        let (tables, check_ns) = (Arc::clone(&state.all), (!state.unused.is_empty()).then_some(state.unused_check_ns));
        let again_ns = state.again_ns;
        drop(state);
        let write_ns = self.writer.next_ns(monotonic_ns());
        tables.iter().filter_map(|table| table.next_deadline_ns()).chain(check_ns).chain(write_ns).chain(again_ns).min()
    }

    fn tick(&self, now_ns: u64) {
        self.writer.tick(now_ns);
        for table in &*self.tables() {
            table.expire();
        }
        self.attach_again(now_ns);
        let mut state = self.lock();
        if !state.unused.is_empty() && state.unused_check_ns <= now_ns {
            state.unused_check_ns = now_ns + UNUSED_CHECK_INTERVAL_NS;
            drop(state);
            self.free_unused(now_ns.saturating_sub(UNUSED_KEPT_NS));
        }
    }

    fn may_sleep(&self) -> bool {
        let mut has_given = false;
        for table in &*self.tables() {
            table.table().announce_reactor();
            has_given |= self.give_notices(table);
        }
        !has_given
    }

    fn woken(&self) {
        self.tables().iter().for_each(|table| table.table().withdraw_reactor());
    }

    fn ended(&self) {
        self.close();
        let served: Vec<_> = self.lock().served.values().filter_map(Weak::upgrade).collect();
        served.iter().for_each(|served| served.watchers().stop_signals());
    }
}

impl RouteTables {
    /// True if there was any work.
    fn give_notices(&self, table: &Arc<RouteTable>) -> bool {
        let is_any = table.give_notices();
        if table.has_forwarded()
            && let Some(routes) = self.own.upgrade()
        {
            let mut state = self.lock();
            let key = state.attached.values().find(|attached| Arc::ptr_eq(&attached.table, table));
            let key = key.map(|attached| attached.key.clone());
            // Taken first, so that the table is not freed.
            let used = key.and_then(|key| Some((self.known(&mut state, &key)?, Arc::new(key))));
            drop(state);
            if let Some((table, key)) = used {
                for ticket in table.take_forwarded() {
                    let (routes, key, table) = (Arc::clone(&routes) as _, Arc::clone(&key), Arc::clone(&table));
                    follow_sent(Destination { routes, key, table }, ticket);
                }
            }
        }
        is_any
    }
}

const fn state_of(state: RouteState) -> InstanceState {
    match state {
        RouteState::Open => InstanceState::Open,
        RouteState::Suspended => InstanceState::Suspended,
        RouteState::Draining | RouteState::Gone => InstanceState::Draining,
    }
}

/// Error of a relayed call and an instance of other types; only names and fingerprints of the caller's types are known
/// here.
#[cold]
fn mismatch_of_described(
    key: &RouteKey,
    described: &RouteDescription,
    (request, reply): &(String, String),
    place: &str,
) -> CallError {
    let is_request = key.request.fingerprint != described.request.fingerprint;
    let (what, own, other, shape) = match is_request {
        true => ("request", &key.request, &described.request, request),
        false => ("reply", &key.reply, &described.reply, reply),
    };
    CallError::Mismatch {
        route: key.route.to_string(),
        caller: format!("{} → {}", key.request.description(), key.reply.description()),
        instance: format!("{} → {} ({place})", described.request, described.reply),
        difference: format!(
            "the {what} has the fingerprint {:#x} at the caller and {:#x} at the instance, where it is {shape}",
            own.fingerprint, other.fingerprint
        ),
    }
}

pub(in crate::domain) fn identity_of(process: &PeerProcess) -> u64 {
    process.started_ns ^ u64::from(process.process_id) << 40
}
