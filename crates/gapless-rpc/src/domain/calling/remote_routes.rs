//! Interface for callers: [`RemoteRoutes`].

use super::tables::token_of_table;
use super::{AttachedTable, Attachment, Calling, KnownCopy};
use crate::caller::routes::{RemoteRoutes, RouteKey, UsedTable, WakerSet};
use crate::domain::counter_files::read_domain;
use crate::notice_route;
use crate::outcome::CallError;
use crate::remote::table::TablelessCounters;
use crate::route_counters::Side;
use gapless_registry::CopyNumber;
use std::collections::HashMap;
use std::sync::Arc;

impl RemoteRoutes for Calling {
    fn table(&self, key: &RouteKey) -> Result<Arc<UsedTable>, CallError> {
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
        let (copies, again) = (HashMap::new(), HashMap::new());
        let attached = AttachedTable { key: key.clone(), table, users, eventfd, copies, again, awaits_receiver };
        state.attached.insert(number, attached);
        state.tables.insert(key.clone(), number);
        state.tables_changed();
        let copies: Vec<_> = state.copies.keys().copied().collect();
        copies.into_iter().for_each(|copy| self.attach(&mut state, number, copy));
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
        let is_served = |copy: &KnownCopy| copy.routes.contains_key(&*key.route);
        !state.is_discovered || state.tables.contains_key(key) || state.copies.values().any(is_served)
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

    fn knows_copy(&self, route: &str) -> bool {
        self.lock().knows_copy(route)
    }

    fn has_copy(&self, key: &RouteKey) -> bool {
        self.lock().has_copy(key)
    }

    fn is_settled(&self, key: &RouteKey) -> bool {
        self.lock().is_settled(key)
    }

    fn nobody(&self, key: &RouteKey) -> CallError {
        let state = self.lock();
        let mut copies = state.attached_of(key).into_iter().flat_map(|attached| attached.copies.values());
        let refusal = copies.find_map(|attachment| match attachment {
            Attachment::Refused(error) => Some(error.clone()),
            Attachment::Offered(_) | Attachment::Attached(_) => None,
        });
        let why = refusal.or_else(|| state.unheard.why_unknown(&key.route));
        why.unwrap_or_else(|| CallError::no_route(&*key.route))
    }

    fn unheard(&self) -> Vec<u32> {
        self.lock().unheard.process_ids().collect()
    }

    fn unanswering(&self, key: &RouteKey) -> Vec<u32> {
        let state = self.lock();
        let copies = state.attached_of(key).into_iter().flat_map(|attached| &attached.copies);
        let offered = copies.filter(|(_, attachment)| matches!(attachment, Attachment::Offered(_)));
        offered.filter_map(|(number, _)| state.copies.get(number)).map(|copy| copy.process.process_id).collect()
    }

    fn without_table(&self, key: &RouteKey) -> Vec<(u32, Option<CallError>)> {
        let mut silent = self.unanswering(key);
        let unheard = self.unheard();
        if !unheard.is_empty() {
            // These processes have not announced their routes, but their counter files name them.
            let counted = read_domain(&self.directory).map(|reading| reading.copies).unwrap_or_default();
            let counted = counted.into_iter().filter(|copy| *copy.route == *key.route).map(|copy| copy.process_id);
            silent.extend(counted.filter(|process_id| unheard.contains(process_id)));
        }
        silent.sort_unstable();
        silent.dedup();
        let state = self.lock();
        let copies = state.attached_of(key).into_iter().flat_map(|attached| &attached.copies);
        let busy = copies.filter_map(|(number, attachment)| match attachment {
            Attachment::Refused(busy @ CallError::Busy { .. }) => {
                Some((state.copies.get(number)?.process.process_id, Some(busy.clone())))
            }
            _ => None,
        });
        silent.into_iter().map(|process_id| (process_id, None)).chain(busy).collect()
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
