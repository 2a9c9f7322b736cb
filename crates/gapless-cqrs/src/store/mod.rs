//! [`EventIndex`]: finds the released events of an aggregate, of a tag or of a type. It is derived from the stream
//! alone and may be deleted at any time.
//!
//! ```text
//! released frames ──▶ recent (memory) ──full──▶ run ──four of a size──▶ merged run
//! a lookup:  runs in the order of the stream, then recent
//! ```
//!
//! Runs follow each other without a gap, from the first frame on. Only their names tell which frames they cover. The
//! next start removes a run that a merge has left next to its successor. A run that is damaged, of another stream or of
//! another history is rebuilt with all later ones.

mod base;
mod filter;
mod key;
mod merging;
mod postings;
mod recent;
mod run;
mod search;
mod stored;
mod validation;

pub(crate) use base::{BASE_FOLDER, BaseEntries, BaseEntry, BaseFile, BaseWriter};
pub(crate) use filter::BloomFilter;
pub(crate) use key::{IndexKey, words};
pub(crate) use postings::keys_of;
pub(crate) use search::{FilterSearch, first_keys_of};
pub(crate) use stored::StoredIndex;
pub(crate) use validation::ScanError;

use crate::error::IndexFileError;
use crate::events::{EventReader, ReadError};
use crate::identity::Position;
use crate::transaction::RecordedEvent;
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use gapless_agent::private_folder;
use gapless_log::StreamIdentity;
use merging::MergeError;
use recent::RecentPostings;
use run::{IndexRun, RunExtent, RunWriter};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

pub(crate) const INDEX_FOLDER: &str = "index";
const MERGED_AT: usize = 4;
/// Postings are numbered by `u32`.
const POSTINGS_MAX: usize = 1 << 31;
const TURN_FRAMES_MAX: usize = 256;

/// Cheap to clone, for any thread.
#[derive(Clone)]
pub(crate) struct EventIndex(Arc<IndexState>);

struct IndexState {
    recent: RwLock<RecentPostings>,
    /// Changed only while `recent` is locked for writing.
    runs: Mutex<Arc<[Arc<IndexRun>]>>,
    filters_changed: AtomicU64,
    last_sequence: AtomicU64,
    /// Incremented while `recent` is locked for writing.
    rebuilds: AtomicU64,
    /// Changed only while `recent` is locked for writing.
    base: Mutex<Option<Arc<BaseFile>>>,
    deleted_before: AtomicU64,
}

impl EventIndex {
    /// An empty index: until it is built, every key may have events.
    pub fn empty() -> Self {
        Self(Arc::new(IndexState {
            recent: RwLock::new(RecentPostings::new(1, 0)),
            runs: Mutex::new(Arc::default()),
            filters_changed: AtomicU64::new(0),
            last_sequence: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
            base: Mutex::default(),
            deleted_before: AtomicU64::new(0),
        }))
    }

    /// Sets the base.
    pub fn set_base(&self, base: BaseFile) {
        let recent = self.0.recent.write().unwrap_or_else(PoisonError::into_inner);
        let before = base.before;
        *self.0.base.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(base));
        // Pairs with `EventIndex::deleted_before`.
        self.0.deleted_before.store(before, Ordering::Release);
        self.0.filters_changed.fetch_add(1, Ordering::Release);
        drop(recent);
    }

    pub fn base(&self) -> Option<Arc<BaseFile>> {
        self.0.base.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Earlier events are deleted, or may be at any time; 0: none.
    pub fn deleted_before(&self) -> u64 {
        // Pairs with `EventIndex::set_base`.
        self.0.deleted_before.load(Ordering::Acquire)
    }

    /// Deleted events may disappear while they are read.
    fn first_sequence(&self, reader: &EventReader) -> Result<u64, ReadError> {
        Ok(reader.first_held()?.max(self.deleted_before()))
    }

    fn reset(&self, runs: Vec<Arc<IndexRun>>, first_sequence: u64, postings_max: usize) {
        let mut recent = self.0.recent.write().unwrap_or_else(PoisonError::into_inner);
        // First, so that no thread trusts the old filters any more, nor the new ones before they are complete.
        self.0.last_sequence.store(0, Ordering::Release);
        self.0.rebuilds.fetch_add(1, Ordering::Release);
        *self.0.runs.lock().unwrap_or_else(PoisonError::into_inner) = runs.into();
        *recent = RecentPostings::new(first_sequence, postings_max);
        self.0.filters_changed.fetch_add(1, Ordering::Release);
        // Last: a thread that reads it finds the filters of everything up to it.
        self.0.last_sequence.store(first_sequence - 1, Ordering::Release);
    }

    /// Number of rebuilds.
    pub fn rebuilds(&self) -> u64 {
        // Acquire: a lookup that missed events because of a rebuild sees the new number.
        self.0.rebuilds.load(Ordering::Acquire)
    }

    /// Last indexed sequence.
    #[inline]
    pub fn last_sequence(&self) -> u64 {
        // Acquire: pairs with `IndexBuilder::follow`; everything up to it is found, and its keys are in the filters.
        self.0.last_sequence.load(Ordering::Acquire)
    }

    /// At most `limit` positions of a key's events, and of a few others, from `from` on.
    ///
    /// # Errors
    /// A damaged or unreadable index file.
    pub fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, IndexFileError> {
        let (mut found, mut recently) = (Vec::new(), Vec::new());
        let runs = {
            let recent = self.0.recent.read().unwrap_or_else(PoisonError::into_inner);
            recent.find(key, from, limit, &mut recently);
            Arc::clone(&self.0.runs.lock().unwrap_or_else(PoisonError::into_inner))
        };
        for run in runs.iter() {
            run.find(key, from, limit - found.len(), &mut found)?;
            if found.len() == limit {
                return Ok(found);
            }
        }
        recently.truncate(limit - found.len());
        found.append(&mut recently);
        Ok(found)
    }

    /// Runs, their postings, their bytes.
    #[cfg(test)]
    pub fn size(&self) -> (usize, u64, u64) {
        let runs = Arc::clone(&self.0.runs.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = runs.iter().map(|run| run.path.metadata().map_or(0, |metadata| metadata.len())).sum();
        (runs.len(), runs.iter().map(|run| run.postings).sum(), bytes)
    }

    pub fn filters(&self) -> KeyFilters {
        KeyFilters { index: self.clone(), filters_seen: u64::MAX, all: Vec::new() }
    }
}

/// Tells one thread which keys an index may have; no lock unless a run was added.
pub(crate) struct KeyFilters {
    index: EventIndex,
    filters_seen: u64,
    all: Vec<Arc<BloomFilter>>,
}

impl KeyFilters {
    pub fn last_sequence(&self) -> u64 {
        self.index.last_sequence()
    }

    pub fn deleted_before(&self) -> u64 {
        self.index.deleted_before()
    }

    /// Whether the key may have events up to `through`.
    #[inline]
    pub fn may_have(&mut self, key: IndexKey, through: u64) -> bool {
        // Read before the filters, which then have all keys up to here, and again after them: a rebuild resets the
        // sequence first.
        let before = self.index.last_sequence();
        // Acquire: pairs with the builder, which changes the filters before it inserts a key into the new ones.
        let changed = self.index.0.filters_changed.load(Ordering::Acquire);
        if changed != self.filters_seen {
            let recent = self.index.0.recent.read().unwrap_or_else(PoisonError::into_inner);
            let runs = self.index.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
            self.all = runs.iter().map(|run| Arc::clone(&run.filter)).collect();
            self.all.push(Arc::clone(&recent.filter));
            self.all.extend(self.index.base().map(|base| Arc::clone(&base.filter)));
            self.filters_seen = changed;
        }
        before.min(self.index.last_sequence()) < through || self.all.iter().any(|filter| filter.may_have(key))
    }
}

pub(crate) struct IndexBuilder {
    index: EventIndex,
    directory: PathBuf,
    identity: StreamIdentity,
    postings_max: usize,
    /// Raised when a run could not be written.
    sealed_at: usize,
    merging: Option<JoinHandle<Result<IndexRun, MergeError>>>,
    merges_in_turns: bool,
    /// Tried again when the next run is due.
    has_failed: bool,
    /// A transaction that does not decode.
    unreadable: Option<(u64, String)>,
    is_closed: Arc<AtomicBool>,
    /// Sequence and time (ns since the epoch) of the last frame indexed here, if no transaction is open after it.
    last: Option<(u64, u64)>,
}

impl IndexBuilder {
    /// Opens or creates `directory`, and moves `reader` to the end of the valid runs. `postings_max` postings in memory
    /// become a run.
    ///
    /// # Errors
    /// Something is unreadable now; no file is removed for that.
    pub fn open(
        index: EventIndex,
        directory: PathBuf,
        identity: StreamIdentity,
        reader: &mut EventReader,
        postings_max: usize,
    ) -> Result<Self, ScanError> {
        let postings_max = postings_max.clamp(1, POSTINGS_MAX);
        private_folder::create(&directory)?;
        let first = index.first_sequence(reader)?;
        let runs = open_valid_runs(&directory, identity, first, reader)?;
        let first_sequence = runs.last().map_or(first, |run| run.extent.last_sequence + 1);
        reader.seek(Position { sequence: first_sequence, ordinal: 0 });
        index.reset(runs, first_sequence, postings_max);
        Ok(Self {
            index,
            directory,
            identity,
            postings_max,
            sealed_at: postings_max,
            merging: None,
            merges_in_turns: false,
            has_failed: false,
            unreadable: None,
            is_closed: Arc::default(),
            last: None,
        })
    }

    /// Runs merges on the calling thread.
    pub const fn merge_in_turns(&mut self) {
        self.merges_in_turns = true;
    }

    /// Rebuilds the whole index.
    ///
    /// # Errors
    /// The stream cannot be read now; the index has not changed.
    #[cold]
    pub fn rebuild(&mut self, reader: &mut EventReader) -> Result<(), ReadError> {
        let first_sequence = self.index.first_sequence(reader)?;
        tracing::warn!("all of the index of the events is made anew");
        self.end_merge();
        (self.unreadable, self.last) = (None, None);
        let runs = Arc::clone(&self.index.0.runs.lock().unwrap_or_else(PoisonError::into_inner));
        self.index.reset(Vec::new(), first_sequence, self.postings_max);
        reader.seek(Position { sequence: first_sequence, ordinal: 0 });
        for run in runs.iter() {
            if let Err(error) = checked_file::remove(&run.path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::error!("the index file {} cannot be removed: {error}", run.path.display());
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn index(&self) -> EventIndex {
        self.index.clone()
    }

    /// Indexes a part of the released events; returns whether there is more. Calls `note` with a transaction's keys
    /// before lookups find them.
    ///
    /// # Errors
    /// The stream is unreadable. After an undecodable transaction nothing is indexed any more: its events would be
    /// missing without an error.
    pub fn follow(&mut self, reader: &mut EventReader, note: impl FnMut(IndexKey)) -> Result<bool, ReadError> {
        if let Some((sequence, reason)) = self.unreadable.clone() {
            return Err(ReadError::Transaction { sequence, reason });
        }
        let followed = self.index_released(reader, note);
        if let Err(ReadError::Transaction { sequence, reason }) = &followed {
            self.unreadable = Some((*sequence, reason.clone()));
        }
        followed
    }

    fn index_released(&mut self, reader: &mut EventReader, mut note: impl FnMut(IndexKey)) -> Result<bool, ReadError> {
        let shared = Arc::clone(&self.index.0);
        let mut recent = shared.recent.write().unwrap_or_else(PoisonError::into_inner);
        self.last = None;
        let mut add = |event: &RecordedEvent<'_>| {
            postings::keys_of(event).for_each(|key| {
                recent.add(key, event.position);
                note(key);
            });
        };
        let mut is_more = reader.visit(TURN_FRAMES_MAX, &mut add)?;
        // Completeness is known only after a whole transaction. Every turn could end in the middle of one.
        while is_more && !reader.is_between_transactions() {
            is_more = reader.visit(1, &mut add)?;
        }
        if reader.is_between_transactions() {
            let last_sequence = reader.next_sequence() - 1;
            if recent.len() >= self.sealed_at {
                self.seal(&mut recent, last_sequence, reader.last_time_ns());
            }
            self.last = Some((last_sequence, reader.last_time_ns()));
            // Pairs with `EventIndex::last_sequence`.
            shared.last_sequence.store(last_sequence, Ordering::Release);
        }
        drop(recent);
        self.merge();
        Ok(is_more)
    }

    fn seal(&mut self, recent: &mut RecentPostings, last_sequence: u64, last_time_ns: u64) {
        let extent = RunExtent { first_sequence: recent.first_sequence, last_sequence, last_time_ns };
        let write = || {
            let mut writer = RunWriter::begin(&self.directory, self.identity, extent)?;
            recent.try_for_each(|key, positions| writer.put(key, positions))?;
            writer.finish(&recent.filter)
        };
        match write() {
            Ok(run) => {
                let mut runs = self.index.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
                *runs = runs.iter().cloned().chain([Arc::new(run)]).collect();
                *recent = RecentPostings::new(last_sequence + 1, self.postings_max);
                self.index.0.filters_changed.fetch_add(1, Ordering::Release);
                (self.sealed_at, self.has_failed) = (self.postings_max, false);
            }
            // The postings are written with the next run.
            Err(error) => {
                self.sealed_at = recent.len() + self.postings_max;
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::error!("the index of the events stays in memory, because no file can be written: {error}");
                }
            }
        }
    }

    fn merge(&mut self) {
        if let Some(merging) = self.merging.take_if(|merging| merging.is_finished()) {
            match merging.join() {
                Ok(merged) => self.take_merged(merged),
                Err(_) => self.has_failed = true,
            }
        }
        if self.merging.is_some() || self.has_failed {
            return;
        }
        let runs = Arc::clone(&self.index.0.runs.lock().unwrap_or_else(PoisonError::into_inner));
        let size = |run: &IndexRun| run.postings.max(1).ilog2() / 2;
        let Some(last) = runs.last() else { return };
        let alike = runs.iter().rev().take_while(|run| size(run) <= size(last)).count();
        if alike < MERGED_AT {
            return;
        }
        let (directory, identity) = (self.directory.clone(), self.identity);
        let merged = runs[runs.len() - alike..].to_vec();
        let is_closed = Arc::clone(&self.is_closed);
        let merge = move || merging::merge(&directory, identity, &merged, &is_closed);
        if self.merges_in_turns {
            return self.take_merged(merge());
        }
        match std::thread::Builder::new().name("gapless-merge".to_owned()).spawn(merge) {
            Ok(merging) => self.merging = Some(merging),
            Err(error) => {
                tracing::error!("index files are not merged, for want of a thread: {error}");
                self.has_failed = true;
            }
        }
    }

    fn take_merged(&mut self, merged: Result<IndexRun, MergeError>) {
        match merged {
            Ok(run) => self.replace(run),
            Err(error) => {
                tracing::error!("{error}; the index files stay as they are");
                self.has_failed = true;
            }
        }
    }

    fn replace(&self, merged: IndexRun) {
        let extent = merged.extent;
        let is_in =
            |run: &IndexRun| (extent.first_sequence..=extent.last_sequence).contains(&run.extent.first_sequence);
        let merged = Arc::new(merged);
        let recent = self.index.0.recent.write().unwrap_or_else(PoisonError::into_inner);
        let mut runs = self.index.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let before = runs.iter().take_while(|run| !is_in(run)).cloned();
        let later = runs.iter().filter(|run| run.extent.first_sequence > extent.last_sequence).cloned();
        let replaced: Vec<_> = runs.iter().filter(|run| is_in(run)).cloned().collect();
        *runs = before.chain([Arc::clone(&merged)]).chain(later).collect();
        self.index.0.filters_changed.fetch_add(1, Ordering::Release);
        drop((runs, recent));
        crash_point("index_merge_placed");
        // Readers have the files open.
        for run in replaced.iter().filter(|run| run.path != merged.path) {
            if let Err(error) = checked_file::remove(&run.path) {
                tracing::warn!("the index file {}, which was merged, is still there: {error}", run.path.display());
            }
            crash_point("index_merge_removed");
        }
    }
}

impl IndexBuilder {
    /// Ends the builder with a run of all postings, so that the next start need not read the events again.
    pub fn close(mut self) {
        self.end_merge();
        let shared = Arc::clone(&self.index.0);
        let mut recent = shared.recent.write().unwrap_or_else(PoisonError::into_inner);
        if recent.len() > 0
            && let Some((last_sequence, last_time_ns)) = self.last
        {
            self.seal(&mut recent, last_sequence, last_time_ns);
        }
    }

    fn end_merge(&mut self) {
        if let Some(merging) = self.merging.take() {
            self.is_closed.store(true, Ordering::Relaxed);
            // Left next to its sources, the merged file would outlive them.
            if let Ok(Ok(merged)) = merging.join() {
                self.replace(merged);
            }
            self.is_closed = Arc::default();
        }
    }
}

impl Drop for IndexBuilder {
    fn drop(&mut self) {
        self.end_merge();
    }
}

/// Others are removed.
fn open_valid_runs(
    directory: &Path,
    identity: StreamIdentity,
    first: u64,
    reader: &mut EventReader,
) -> Result<Vec<Arc<IndexRun>>, ScanError> {
    let found = validation::scan(directory, Some(identity), first, reader)?;
    for (path, reason) in found.others {
        if let Some(reason) = reason {
            tracing::warn!("the index file {} is made anew: {reason}", path.display());
        }
        crash_point("index_opening");
        checked_file::remove(&path)?;
    }
    Ok(found.runs.into_iter().map(Arc::new).collect())
}

#[cfg(test)]
mod tests;
