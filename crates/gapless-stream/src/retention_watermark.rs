//! [`RetentionWatermark`]: the deletable part of a journal with several users: only frames that the states of all of
//! them cover.

use gapless_journal::SegmentPreparer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Watermark of one user, whose state files cover the beginning of a journal.
#[derive(Clone, Debug)]
pub struct RetentionWatermark {
    preparer: SegmentPreparer,
    /// Last sequence covered by each user.
    sequences: Arc<[AtomicU64]>,
    own: usize,
}

impl RetentionWatermark {
    /// Creates one watermark for each user of the journal of `preparer`. `sequences` has for each the last sequence
    /// that its state covers now; 0 for none.
    #[must_use]
    pub fn shared<const N: usize>(preparer: &SegmentPreparer, sequences: [u64; N]) -> [Self; N] {
        let all: Arc<[AtomicU64]> = sequences.map(AtomicU64::new).into();
        let of = |own| Self { preparer: preparer.clone(), sequences: Arc::clone(&all), own };
        let shared = std::array::from_fn(of);
        for each in &shared {
            each.notify();
        }
        shared
    }

    /// Marks frames up to and including `sequence` as covered by this user.
    pub fn mark_covered(&self, sequence: u64) {
        // AcqRel, so that of two concurrent calls one sees both values. If neither did, retention would lag by one
        // state, which is harmless.
        self.sequences[self.own].fetch_max(sequence, Ordering::AcqRel);
        self.notify();
    }

    fn notify(&self) {
        // Acquire: as above.
        let least = self.sequences.iter().map(|each| each.load(Ordering::Acquire)).min().unwrap_or(0);
        if least > 0 {
            self.preparer.set_snapshot_sequence(least);
        }
    }
}
