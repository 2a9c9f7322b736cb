//! [`Watch`]: the state of a channel's watcher.

use gapless_transport::interest::Interest;

/// State of the watcher, handed on with the role.
#[derive(Default)]
pub(super) struct Watch {
    /// Copies of the descriptors of a connection, by its number.
    pub interest: Option<(u64, Interest)>,
    /// The ring wakes the watcher.
    pub is_armed: bool,
    /// A sleep has failed; logged once.
    pub has_failed: bool,
}
