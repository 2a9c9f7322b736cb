//! [`UnknownServers`]: stopped, overloaded or incompatible processes, which have not announced their routes. One of
//! them may serve any route without a known instance.

use crate::outcome::CallError;
use crate::registry::{InstanceId, PROTOCOL_VERSION, UnknownServer};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

#[derive(Debug, Default)]
pub(super) struct UnknownServers(BTreeMap<InstanceId, UnknownServer>);

impl UnknownServers {
    pub(super) fn set(&mut self, id: InstanceId, unknown_servers: Option<UnknownServer>) {
        match (self.0.entry(id), unknown_servers) {
            (Entry::Occupied(_), Some(UnknownServer { version: None, .. })) | (Entry::Vacant(_), None) => {}
            (Entry::Occupied(known), None) => drop(known.remove()),
            (Entry::Occupied(mut known), Some(unknown_servers)) => drop(known.insert(unknown_servers)),
            (Entry::Vacant(free), Some(unknown_servers)) => drop(free.insert(unknown_servers)),
        }
    }

    pub(super) fn process_ids(&self) -> impl Iterator<Item = u32> {
        self.0.values().filter_map(|server| server.process_id)
    }

    /// `None` if it is known whether the route is served.
    pub(super) fn why_unknown(&self, route: &str) -> Option<CallError> {
        let of_other_version = self.0.values().find_map(|server| Some((server.process_id?, server.version?)));
        if let Some((process_id, found)) = of_other_version {
            return Some(CallError::OtherProtocol {
                route: route.to_owned(),
                process_id,
                own: PROTOCOL_VERSION,
                found,
            });
        }
        // A process worth waiting for comes before those that cannot be called.
        let server = self.0.values().min_by_key(|server| server.is_of_other_namespace)?;
        let which = server.process_id.map(|process_id| format!("process {process_id}"));
        let reason = match (which, server.is_of_other_namespace) {
            (Some(process), false) => format!("{process} does not say what it serves"),
            (None, false) => {
                "a process whose number cannot be read lets nobody in, and does not say what it serves".to_owned()
            }
            (process, true) => format!(
                "{} lives in another process namespace, as of another container, and does not say what it serves: such processes do \
                 not call each other",
                process.as_deref().unwrap_or("a process that serves in this domain")
            ),
        };
        Some(CallError::Unavailable { route: route.to_owned(), reason })
    }
}
