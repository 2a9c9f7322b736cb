//! State shared by the writer and its helper threads. The writer takes these mutexes only to swap a few pointers at a
//! roll. A thread that does I/O holds `maintenance` or `syncing`, never `segment_list`. Lock order: `maintenance`,
//! `syncing`, `segment_list`.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::descriptor::{FixedHeader, frames_offset, segment_name};
use crate::directory::DirectoryLock;
use crate::disk::unpoisoned;
use crate::error::{FileLoss, JournalError};
use crate::file_check::KnownFrames;
use crate::history::HistoryFile;
use crate::mapping::FileMapping;
use crate::options::JournalOptions;
use crate::records::SegmentRecords;
use crate::segment::{Segment, SegmentPreparation};
use crate::wake::WakeSignal;

/// On its own pair of cache lines, for processors that fetch pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentEntry {
    pub(crate) first_sequence: u64,
    pub(crate) opened_ns: u64,
    pub(crate) length: u64,
    /// Covers journaled records only.
    pub(crate) segment_records: SegmentRecords,
}

/// May not be on the device yet.
#[derive(Clone, Debug)]
pub(crate) struct RolledSegment {
    pub(crate) file: Arc<File>,
    /// Mapping, until the helper thread removes it, which takes long.
    pub(crate) segment: Option<Arc<Segment>>,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) end: u64,
    pub(crate) sealed_ns: u64,
}

/// Locked only for moments.
#[derive(Debug)]
pub(crate) struct SegmentList {
    /// Oldest first; the last is the active one.
    pub(crate) entries: VecDeque<SegmentEntry>,
    pub(crate) active: Arc<Segment>,
    pub(crate) prepared: Option<Arc<Segment>>,
    /// Oldest first.
    pub(crate) rolled: VecDeque<RolledSegment>,
    /// In use under the name of a prepared one; oldest first.
    pub(crate) unnamed: VecDeque<(Arc<Segment>, u64)>,
}

impl SegmentList {
    /// The writer need not allocate when it rolls.
    pub(crate) fn reserve(&mut self) {
        self.entries.reserve(2);
        self.rolled.reserve(2);
        self.unnamed.reserve(2);
    }
}

/// Locked during I/O.
#[derive(Debug)]
pub(crate) struct SegmentMaintenance {
    pub(crate) preparation: Option<SegmentPreparation>,
    pub(crate) next_number: u64,
    pub(crate) history: HistoryFile,
    /// First sequence, and synced length.
    pub(crate) sealed_sync: Option<(u64, FileMapping, usize)>,
    pub(crate) deletion_blocker: String,
    pub(crate) populates: bool,
    pub(crate) known_frames: Option<KnownFrames>,
}

#[derive(Debug)]
enum Poison {
    /// Every refused operation returns this error.
    FileLost {
        path: PathBuf,
        loss: FileLoss,
    },
    Failed {
        reason: String,
    },
}

#[derive(Debug)]
pub(crate) struct SharedJournal {
    pub(crate) options: JournalOptions,
    pub(crate) incarnation: u64,
    pub(crate) journaled_sequence: CachePadded<AtomicU64>,
    pub(crate) synced_sequence: CachePadded<AtomicU64>,
    /// Number of journaled records, and how many of them are on the device. A segment of an earlier process counts as
    /// one.
    pub(crate) journaled_records: AtomicU64,
    pub(crate) synced_records: AtomicU64,
    pub(crate) snapshot_sequence: AtomicU64,
    /// 0: none.
    pub(crate) delete_before: AtomicU64,
    pub(crate) first_sequence: AtomicU64,
    pub(crate) removed_tail_bytes: u64,
    pub(crate) is_poisoned: CachePadded<AtomicBool>,
    poison: Mutex<Option<Poison>>,
    pub(crate) wake: WakeSignal,
    segment_list: Mutex<SegmentList>,
    maintenance: Mutex<SegmentMaintenance>,
    syncing: Mutex<()>,
    #[cfg(any(test, debug_assertions))]
    pub(crate) fails_next_sync: AtomicBool,
    /// Held until the last handle is dropped, because every handle writes.
    _lock: DirectoryLock,
}

impl SharedJournal {
    pub(crate) fn new(
        options: JournalOptions,
        incarnation: u64,
        sequences: (u64, u64),
        list: SegmentList,
        removed_tail_bytes: u64,
        (next_number, history): (u64, HistoryFile),
        lock: DirectoryLock,
    ) -> Self {
        let (journaled, synced) = sequences;
        let first_sequence = list.entries.front().map_or(1, |entry| entry.first_sequence);
        Self {
            options,
            incarnation,
            journaled_sequence: CachePadded(AtomicU64::new(journaled)),
            synced_sequence: CachePadded(AtomicU64::new(synced)),
            journaled_records: AtomicU64::new(0),
            synced_records: AtomicU64::new(0),
            snapshot_sequence: AtomicU64::new(0),
            delete_before: AtomicU64::new(0),
            first_sequence: AtomicU64::new(first_sequence),
            removed_tail_bytes,
            is_poisoned: CachePadded(AtomicBool::new(false)),
            poison: Mutex::new(None),
            wake: WakeSignal::default(),
            segment_list: Mutex::new(list),
            maintenance: Mutex::new(SegmentMaintenance {
                preparation: None,
                next_number,
                history,
                sealed_sync: None,
                deletion_blocker: String::new(),
                populates: true,
                known_frames: None,
            }),
            syncing: Mutex::new(()),
            #[cfg(any(test, debug_assertions))]
            fails_next_sync: AtomicBool::new(false),
            _lock: lock,
        }
    }

    pub(crate) fn segment_list(&self) -> MutexGuard<'_, SegmentList> {
        unpoisoned(self.segment_list.lock())
    }

    pub(crate) fn maintenance(&self) -> MutexGuard<'_, SegmentMaintenance> {
        unpoisoned(self.maintenance.lock())
    }

    pub(crate) fn syncing(&self) -> MutexGuard<'_, ()> {
        unpoisoned(self.syncing.lock())
    }

    pub(crate) fn segment_path(&self, first_sequence: u64) -> PathBuf {
        self.options.directory.join(segment_name(first_sequence))
    }

    pub(crate) fn next_header(&self, number: u64) -> FixedHeader {
        let options = &self.options;
        let twice = self.segment_list().active.header.segment_length.saturating_mul(2);
        let segment_length = twice.clamp(options.first_segment_length_bytes, options.segment_length_bytes);
        FixedHeader {
            stream_id: options.stream_id,
            incarnation: self.incarnation,
            number,
            segment_length,
            frames_offset: frames_offset(segment_length),
            frame_length_max: options.frame_length_max as u32,
        }
    }

    pub(crate) fn poison(&self, error: &JournalError) {
        unpoisoned(self.poison.lock()).get_or_insert_with(|| match error {
            JournalError::FileLost { path, loss } => Poison::FileLost { path: path.clone(), loss: *loss },
            _ => Poison::Failed { reason: error.to_string() },
        });
        // Pairs with the acquire of `check_poison`; the reason is there before the flag.
        self.is_poisoned.0.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn check_poison(&self) -> Result<(), JournalError> {
        // Pairs with the release of `poison`.
        if self.is_poisoned.0.load(Ordering::Acquire) { Err(self.poisoned_error()) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn poisoned_error(&self) -> JournalError {
        match &*unpoisoned(self.poison.lock()) {
            Some(Poison::FileLost { path, loss }) => JournalError::FileLost { path: path.clone(), loss: *loss },
            Some(Poison::Failed { reason }) => JournalError::Poisoned { reason: reason.clone() },
            None => JournalError::Poisoned { reason: String::new() },
        }
    }
}
