//! Rate of a run on the part of the journal that was prepared before the node was ready, and after.

use super::failed;
use crate::Result;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::inspect;
use gapless_measure::Row;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) struct PreparedJournal(PathBuf);

impl PreparedJournal {
    /// `None` if the node, which has not been started, goes on with an earlier journal.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let journal = StreamLayout::new(directory).journal();
        (!inspect::holds_journal(&journal)).then_some(Self(journal))
    }

    /// Adds the prepared bytes and both rates. `progress` has times in ns, in order, with numbers of replies; it is
    /// empty for a run at a rate. The node must have ended.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub(super) fn put_into(&self, row: &mut Row, progress: &[(u64, u64)]) -> Result<()> {
        let Some(&(replied, _)) = progress.last() else { return Ok(()) };
        let info = inspect::info(&self.0).map_err(failed)?;
        let used: u64 = info.segments.iter().map(|segment| segment.used_bytes).sum();
        let Some(first) = info.segments.first().filter(|_| used > 0) else { return Ok(()) };
        row.extra.insert("prepared_bytes".to_owned(), json!(first.length_bytes));
        let lasts_for = (u128::from(replied) * u128::from(first.length_bytes) / u128::from(used)) as u64;
        let rates = Rates::of(progress, lasts_for);
        for (name, per_s) in [("prepared_per_s", rates.prepared_per_s), ("steady_per_s", rates.steady_per_s)] {
            if let Some(per_s) = per_s {
                row.extra.insert(name.to_owned(), json!(per_s.round()));
            }
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct Rates {
    /// Rate of the first segment, without its first quarter; `None` if the run was too short.
    prepared_per_s: Option<f64>,
    /// Rate of the run's last quarter.
    steady_per_s: Option<f64>,
}

impl Rates {
    /// The first `lasts_for` replies were of messages in the first segment.
    fn of(progress: &[(u64, u64)], lasts_for: u64) -> Self {
        let all = progress.last().map_or(0, |(replied, _)| *replied);
        let prepared = lasts_for.min(all);
        Self {
            prepared_per_s: rate(progress, prepared / 4, prepared),
            steady_per_s: rate(progress, prepared.max(all - all / 4), all).filter(|_| lasts_for < all),
        }
    }
}

/// The rate from the first note at or after `from` replies to the last one at or before `to`.
fn rate(progress: &[(u64, u64)], from: u64, to: u64) -> Option<f64> {
    let first = progress.iter().find(|(replied, _)| *replied >= from)?;
    let last = progress.iter().rfind(|(replied, _)| *replied <= to)?;
    let (replied, ns) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1)?);
    (replied > 0 && ns > 0).then(|| replied as f64 * 1e9 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note each 10 messages: the first 500 take 1 us each, the others 4.
    fn slower_after_500() -> Vec<(u64, u64)> {
        let at_ns = |replied: u64| replied * 1000 + replied.saturating_sub(500) * 3000;
        (0..=100).map(|note| (note * 10, at_ns(note * 10))).collect()
    }

    #[test]
    fn prepared_and_steady_rates_differ() {
        let rates = Rates::of(&slower_after_500(), 500);
        assert_eq!((rates.prepared_per_s, rates.steady_per_s), (Some(1e6), Some(250_000.0)));
        let rates = Rates::of(&slower_after_500(), 950);
        assert!(rates.prepared_per_s.is_some_and(|rate| rate < 1e6) && rates.steady_per_s == Some(250_000.0));
    }

    #[test]
    fn short_run_has_no_steady_rate() {
        let rates = Rates::of(&slower_after_500()[..=50], 501);
        assert_eq!((rates.prepared_per_s, rates.steady_per_s), (Some(1e6), None));
        for progress in [vec![], vec![(0, 7)], vec![(0, 7), (0, 7)]] {
            assert_eq!(Rates::of(&progress, 5), Rates { prepared_per_s: None, steady_per_s: None }, "{progress:?}");
        }
    }
}
