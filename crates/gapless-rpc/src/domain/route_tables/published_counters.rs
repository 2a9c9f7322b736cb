//! Counters of served and called routes, for other processes.

use super::RouteTables;
use crate::domain::counter_files;
use crate::route_counters::{CounterDestination, Side};
use crate::route_name::HIDDEN_PREFIX;
use std::sync::Arc;

impl RouteTables {
    /// `None` for the library's hidden routes.
    pub(in crate::domain) fn shown(&self, route: &str, side: Side) -> CounterDestination {
        if route.starts_with(HIDDEN_PREFIX) {
            return CounterDestination::in_memory();
        }
        let path = Some(counter_files::new_path(&self.directory, side));
        CounterDestination { writer: Arc::clone(&self.writer), path, process_name: Arc::clone(&self.process_name) }
    }

    pub(in crate::domain) fn show_counters(&self) {
        self.writer.write();
    }
}
