//! Interface for callers: `RemoteRoutes`.

use super::table_lifetime::token_of_table;
use super::{AttachedTable, Attachment, KnownInstance, RouteTables};
use crate::caller::routes::{RemoteRoutes, RouteKey, SharedTable, WakerSet};
use crate::caller::table::TablelessCounters;
use crate::domain::counter_files::read_domain;
use crate::notice_route;
use crate::outcome::CallError;
use crate::registry::InstanceNumber;
use crate::route_counters::Side;
use std::collections::HashMap;
use std::sync::Arc;

impl RemoteRoutes for RouteTables {
    fn table(&self, key: &RouteKey) -> Result<Arc<SharedTable>, CallError> {
        let io = self.io().ok_or(CallError::Closed)?;
        RemoteRoutes::discover(self, &key.route)?;
        if let (_, Some(used)) = self.known_or_room(key)? {
            return Ok(used);
        }
        let made = self.create_table(key);
        let (table, eventfd) =
            made.map_err(|error| CallError::Busy { route: key.route.to_string(), reason: error.to_string() })?;
        let (mut state, used) = self.known_or_room(key)?;
        if let Some(used) = used {
            // A concurrent call was faster.
            return Ok(used);
        }
        let number = state.last_table;
        state.last_table += 1;
        io.register_completion(token_of_table(number), Arc::clone(&eventfd));
        let used = self.used(number, &table);
        let users = Arc::downgrade(&used);
        let awaits_receiver = notice_route::is_one(&key.route);
        let (instances, again) = (HashMap::new(), HashMap::new());
        let attached = AttachedTable { key: key.clone(), table, users, eventfd, instances, again, awaits_receiver };
        state.attached.insert(number, attached);
        state.tables.insert(key.clone(), number);
        state.tables_changed();
        let instances: Vec<_> = state.instances.keys().copied().collect();
        instances.into_iter().for_each(|instance| self.attach(&mut state, number, instance));
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
        let is_served = |instance: &KnownInstance| instance.routes.contains_key(&*key.route);
        !state.is_discovered || state.tables.contains_key(key) || state.instances.values().any(is_served)
    }

    fn tableless_counters(&self, route: &str) -> Option<TablelessCounters> {
        let made = TablelessCounters::create(route, &self.shown(route, Side::Caller));
        made.inspect_err(|error| tracing::debug!(route, %error, "calls that nobody serves are not counted")).ok()
    }

    fn is_discovered(&self) -> bool {
        self.lock().is_discovered
    }

    fn news(&self) -> &Arc<WakerSet> {
        &self.news
    }

    fn knows_instance(&self, route: &str) -> bool {
        self.lock().knows_instance(route)
    }

    fn has_instance(&self, key: &RouteKey) -> bool {
        self.lock().has_instance(key)
    }

    fn is_settled(&self, key: &RouteKey) -> bool {
        self.lock().is_settled(key)
    }

    fn no_instance_error(&self, key: &RouteKey) -> CallError {
        let state = self.lock();
        let mut instances = state.attached_of(key).into_iter().flat_map(|attached| attached.instances.values());
        let refusal = instances.find_map(|attachment| match attachment {
            Attachment::Refused(error) => Some(error.clone()),
            Attachment::Offered(_) | Attachment::Attached(_) => None,
        });
        let why = refusal.or_else(|| state.unknown_servers.why_unknown(&key.route));
        why.unwrap_or_else(|| CallError::no_route(&*key.route))
    }

    fn unknown_servers(&self) -> Vec<u32> {
        self.lock().unknown_servers.process_ids().collect()
    }

    fn unanswering(&self, key: &RouteKey) -> Vec<u32> {
        let state = self.lock();
        let instances = state.attached_of(key).into_iter().flat_map(|attached| &attached.instances);
        let offered = instances.filter(|(_, attachment)| matches!(attachment, Attachment::Offered(_)));
        offered
            .filter_map(|(number, _)| state.instances.get(number))
            .map(|instance| instance.process.process_id)
            .collect()
    }

    fn without_table(&self, key: &RouteKey) -> Vec<(u32, Option<CallError>)> {
        let mut silent = self.unanswering(key);
        let unknown_servers = self.unknown_servers();
        if !unknown_servers.is_empty() {
            // These processes have not announced their routes, but their counter files name them.
            let counted = read_domain(&self.directory).map(|reading| reading.instances).unwrap_or_default();
            let counted = counted
                .into_iter()
                .filter(|instance| *instance.route == *key.route)
                .map(|instance| instance.process_id);
            silent.extend(counted.filter(|process_id| unknown_servers.contains(process_id)));
        }
        silent.sort_unstable();
        silent.dedup();
        let state = self.lock();
        let instances = state.attached_of(key).into_iter().flat_map(|attached| &attached.instances);
        let busy = instances.filter_map(|(number, attachment)| match attachment {
            Attachment::Refused(busy @ CallError::Busy { .. }) => {
                Some((state.instances.get(number)?.process.process_id, Some(busy.clone())))
            }
            _ => None,
        });
        silent.into_iter().map(|process_id| (process_id, None)).chain(busy).collect()
    }

    fn process_of(&self, instance: u32) -> Option<u32> {
        self.lock().instances.get(&InstanceNumber(instance)).map(|instance| instance.process.process_id)
    }

    fn wake(&self) {
        if let Some(io) = self.io() {
            io.wake();
        }
    }
}
