//! Merges consecutive runs into one.

use super::filter::BloomFilter;
use super::key::IndexKey;
use super::run::{IndexRun, RunEntries, RunExtent, RunWriter};
use crate::error::IndexFileError;
use crate::identity::Position;
use gapless_agent::fault::crash_point;
use gapless_log::StreamIdentity;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The runs stay.
#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error(transparent)]
    Read(#[from] IndexFileError),
    #[error("a merged index file cannot be written: {0}")]
    Write(#[from] io::Error),
    #[error("the index is closed")]
    Closed,
}

struct MergeSource<'a> {
    entries: RunEntries<'a>,
    key: Option<IndexKey>,
    positions: Vec<Position>,
}

impl MergeSource<'_> {
    fn advance(&mut self) -> Result<(), IndexFileError> {
        self.key = self.entries.next(&mut self.positions)?;
        Ok(())
    }
}

/// Writes one run that replaces `runs`, which are consecutive and stay; ends early when `is_closed` is set.
pub(super) fn merge(
    directory: &Path,
    identity: StreamIdentity,
    runs: &[Arc<IndexRun>],
    is_closed: &AtomicBool,
) -> Result<IndexRun, MergeError> {
    crash_point("index_merge_begun");
    let (first, last) = (runs[0].extent, runs[runs.len() - 1].extent);
    let extent = RunExtent { first_sequence: first.first_sequence, ..last };
    // Counts keys in several runs more than once, which only enlarges the filter.
    let keys: u64 = runs.iter().map(|run| run.keys).sum();
    let filter = BloomFilter::for_keys(keys as usize);
    let mut writer = RunWriter::begin(directory, identity, extent)?;
    let mut sources = Vec::new();
    for run in runs {
        let mut source = MergeSource { entries: run.entries(), key: None, positions: Vec::new() };
        source.advance()?;
        sources.push(source);
    }
    // Sources are few. For the same key the earlier run comes first, so positions ascend.
    while let Some(key) = sources.iter().filter_map(|source| source.key).min() {
        // Relaxed: the flag guards no data.
        if is_closed.load(Ordering::Relaxed) {
            return Err(MergeError::Closed);
        }
        filter.insert(key);
        for source in sources.iter_mut() {
            while source.key == Some(key) {
                writer.put(key, &source.positions)?;
                source.advance()?;
            }
        }
    }
    Ok(writer.finish(&filter)?)
}
