//! In the place of `bar` where the feature `progress` is not built: it counts, and draws nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clones are one bar, as those that are drawn.
#[derive(Debug, Clone)]
pub(super) struct Bar(Arc<AtomicU64>);

impl Bar {
    pub(super) fn new(_length: u64, _label: &str, _visible: bool) -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    pub(super) fn set_label(&self, _label: &str) {}

    pub(super) fn set_position(&self, position: u64) {
        // Relaxed: the number guards no data.
        self.0.store(position, Ordering::Relaxed);
    }

    pub(super) fn position(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn line(&self, text: &str) {
        eprintln!("{text}");
    }

    pub(super) fn finish(&self) {}

    #[cfg(test)]
    pub(super) fn is_hidden(&self) -> bool {
        true
    }
}
