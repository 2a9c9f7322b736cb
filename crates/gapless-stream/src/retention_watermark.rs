//! `RetentionWatermark`: the deletable part of a journal with several users: only frames that the states of all of them
//! cover.

use gapless_journal::SegmentPreparer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Watermark of one of a journal's users; only frames covered by the states of all may be deleted.
#[derive(Clone, Debug)]
pub struct RetentionWatermark {
    preparer: SegmentPreparer,
    sequences: Arc<[AtomicU64]>,
    own: usize,
}

impl RetentionWatermark {
    /// A watermark for each user; `sequences`: last covered, 0 for none.
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

    /// Covers frames up to and including `sequence`.
    pub fn mark_covered(&self, sequence: u64) {
        // AcqRel: of two concurrent calls one sees both values, or retention would lag by one state, harmlessly.
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
