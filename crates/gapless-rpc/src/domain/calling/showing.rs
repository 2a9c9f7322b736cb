//! Where other processes see what is counted of the routes that this one serves and calls.

use super::Calling;
use crate::domain::counter_files;
use crate::route_counters::{Shown, Side};
use crate::route_name::HIDDEN_PREFIX;
use std::sync::Arc;

impl Calling {
    /// Where the counters of a route are shown. Those of a route that no application serves are not.
    pub(in crate::domain) fn shown(&self, route: &str, side: Side) -> Shown {
        if route.starts_with(HIDDEN_PREFIX) {
            return Shown::nowhere();
        }
        let path = Some(counter_files::new_path(&self.directory, side));
        Shown { writer: Arc::clone(&self.writer), path, process_name: Arc::clone(&self.process_name) }
    }

    /// Shows what was counted by now.
    pub(in crate::domain) fn show_counters(&self) {
        self.writer.write();
    }
}
