//! Maintenance of segments by the helper thread, or by the writer if the next segment is not prepared in time. Every
//! step is short, so that a more urgent one can follow.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::checked_file;
use gapless_agent::fault;

use crate::descriptor::{JOURNALED_MARK_OFFSET, PAGE_LENGTH, SEALED_BIT, TIMES_MARK_OFFSET};
use crate::disk::{DiskOperation, sync_directory};
use crate::error::JournalError;
use crate::history::JournalHistory;
use crate::mapping::FileMapping;
use crate::options::Flush;
use crate::segment::{Segment, SegmentPreparation};
use crate::segment_times::write_last_time;
use crate::shared_journal::{RolledSegment, SegmentMaintenance, SharedJournal};

const POPULATE_STEP_LENGTH: usize = 2 << 20;
const RETIRE_STEP_LENGTH: usize = 2 << 20;
const SYNC_STEP_LENGTH: usize = 8 << 20;
const ROLLED_MAX: usize = 8;
/// The kernel's default age limit for dirty pages.
const SEALED_SYNC_DELAY_NS: u64 = 30_000_000_000;

impl SharedJournal {
    pub(crate) fn prepare_at_once(&self) -> Result<Arc<Segment>, JournalError> {
        let mut maintenance = self.maintenance();
        loop {
            if let Some(prepared) = self.segment_list().prepared.take() {
                return Ok(prepared);
            }
            if self.prepare_step(&mut maintenance)? {
                // There may be no helper thread to do this.
                self.give_final_names(&mut maintenance)?;
                while self.unmap_step(&mut maintenance) {}
                while self.segment_list().rolled.len() > ROLLED_MAX {
                    self.sync_sealed_step(&mut maintenance)?;
                }
            }
        }
    }

    /// Tells whether to prepare the next segment: from half of the active one on. Not earlier, even if writing zeros
    /// takes long, because a helper that writes them takes time from the writer's core.
    pub(crate) fn wants_preparation(&self) -> bool {
        let list = self.segment_list();
        let half = list.active.header.segment_length / 2;
        list.prepared.is_none() && writer_position(&list.active) >= half
    }

    pub(crate) fn prepare_step(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        let options = &self.options;
        let mut preparation = match maintenance.preparation.take() {
            Some(preparation) => preparation,
            None => {
                let header = self.next_header(maintenance.next_number);
                SegmentPreparation::begin(options, header)?
            }
        };
        if !preparation.step()? {
            maintenance.preparation = Some(preparation);
            return Ok(false);
        }
        let segment = preparation.finish(options.flush, options.environment.boot_id)?;
        maintenance.next_number += 1;
        self.make_present(maintenance, &segment)?;
        let mut list = self.segment_list();
        list.reserve();
        list.prepared = Some(Arc::new(segment));
        Ok(true)
    }

    #[allow(unsafe_code)]
    fn make_present(&self, maintenance: &mut SegmentMaintenance, segment: &Segment) -> Result<(), JournalError> {
        let frames_offset = segment.header.frames_offset as usize;
        match segment.mapping.populate(0..frames_offset) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
            Err(error) => return Err(JournalError::io("populate", segment.path(), error)),
        }
        if maintenance.populates {
            maintenance.populates = false;
            tracing::info!("the kernel cannot populate pages on request; whole segments are touched ahead of use");
        }
        if self.options.populate_ahead_bytes > 0 {
            // SAFETY: the segment is full of zeros and not in use: no other thread knows it.
            unsafe { segment.mapping.touch(frames_offset..segment.mapping.length()) };
            segment.populated_until.store(segment.mapping.length(), Ordering::SeqCst);
        }
        Ok(())
    }

    /// Returns `true` if there was a segment to name. The header is synced first: a power failure would otherwise leave
    /// a name without a segment. Afterwards the history names the segment, and both neighbours have the time stamp of
    /// the frame between them.
    pub(crate) fn give_final_names(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        let mut did_work = false;
        loop {
            let oldest = self.segment_list().unnamed.front().cloned();
            let Some((segment, first_sequence)) = oldest else { return Ok(did_work) };
            let (from, to) = (segment.path(), self.segment_path(first_sequence));
            let (before, left) = {
                let list = self.segment_list();
                let before = list.entries.iter().rfind(|entry| entry.first_sequence < first_sequence).copied();
                let is_it =
                    |rolled: &&RolledSegment| before.is_some_and(|it| it.first_sequence == rolled.first_sequence);
                (before, list.rolled.iter().find(is_it).map(|rolled| Arc::clone(&rolled.file)))
            };
            if let Some(before) = before {
                let path = self.segment_path(before.first_sequence);
                // Not checked since its last frames were written. A segment that is not in the list has been synced
                // since.
                if let Some(file) = left {
                    self.check_finished(maintenance, &file, &path, before.length)?;
                }
                let before_ns = write_last_time(&path, before.first_sequence, first_sequence - 1)?;
                segment.write_mark(TIMES_MARK_OFFSET, before_ns, 0);
            }
            let environment = &self.options.environment;
            if let Err(error) = environment.check_disk(DiskOperation::Sync).and_then(|()| segment.sync_header()) {
                return Err(self.sync_failed(from, error));
            }
            // The segment has frames already, which would be lost with it.
            self.check_unnamed(&segment)?;
            checked_file::rename(&from, &to).map_err(|error| JournalError::io("rename", &from, error))?;
            segment.set_path(to);
            sync_directory(&self.options.directory)?;
            fault::crash_point("after_segment_name");
            let history = maintenance.history.history();
            self.set_history(maintenance, JournalHistory { newest_sequence: first_sequence, ..history })?;
            self.segment_list().unnamed.pop_front();
            did_work = true;
        }
    }

    /// Syncs the list of required segments. If that fails, no more frames are synced.
    pub(crate) fn set_history(
        &self,
        maintenance: &mut SegmentMaintenance,
        history: JournalHistory,
    ) -> Result<(), JournalError> {
        maintenance.history.set(history, &self.options.environment).inspect_err(|error| self.poison(error))
    }

    pub(crate) fn populate_step(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        let window = self.options.populate_ahead_bytes as usize;
        if self.options.flush != Flush::Mapped || window == 0 || !maintenance.populates {
            return Ok(false);
        }
        let (active, prepared) = {
            let list = self.segment_list();
            (list.active.clone(), list.prepared.clone())
        };
        let length = active.mapping.length();
        let position = writer_position(&active) as usize;
        if populate_towards(&active, position, length.min(position + window))? {
            return Ok(true);
        }
        let beyond = (position + window).saturating_sub(length);
        match prepared {
            Some(next) if beyond > 0 => {
                let start = next.header.frames_offset as usize;
                populate_towards(&next, start, next.mapping.length().min(start + beyond))
            }
            _ => Ok(false),
        }
    }

    /// Returns `true` if there were pages to unmap. While mapped, writing each of them to the device interrupts the
    /// writer's processor.
    pub(crate) fn retire_step(&self, _maintenance: &mut SegmentMaintenance) -> bool {
        if self.options.flush != Flush::Mapped {
            return false;
        }
        let active = self.segment_list().active.clone();
        let until = writer_position(&active) as usize / RETIRE_STEP_LENGTH * RETIRE_STEP_LENGTH;
        // Relaxed: ordered by the mutex of `maintenance`.
        let from = active.retired_until.load(Ordering::Relaxed);
        if from >= until {
            return false;
        }
        active.mapping.retire(from.next_multiple_of(PAGE_LENGTH)..until);
        active.retired_until.store(until, Ordering::Relaxed);
        true
    }

    pub(crate) fn unmap_step(&self, _maintenance: &mut SegmentMaintenance) -> bool {
        let segment = self.segment_list().rolled.iter_mut().find_map(|rolled| rolled.segment.take());
        // Dropped here, outside the lock that the writer takes.
        segment.is_some()
    }

    /// Returns `true` if there was work. No tier needs this sync: it moves the synced mark, so that after a power
    /// failure damage in old bytes is an error instead of the journal's end. It waits until the kernel has written most
    /// of the segment by itself.
    pub(crate) fn sync_sealed_step(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        let now_ns = (self.options.environment.epoch_ns)();
        let due = {
            let list = self.segment_list();
            let is_due = |rolled: &RolledSegment| now_ns.saturating_sub(rolled.sealed_ns) >= SEALED_SYNC_DELAY_NS;
            let are_many = list.rolled.len() > ROLLED_MAX;
            list.rolled.front().filter(|rolled| are_many || is_due(rolled)).cloned()
        };
        let Some(rolled) = due else { return Ok(false) };
        let path = || self.segment_path(rolled.first_sequence);
        let (mapping, from) = match maintenance.sealed_sync.take() {
            Some((first_sequence, mapping, from)) if first_sequence == rolled.first_sequence => (mapping, from),
            _ => {
                let mapping = FileMapping::read_only(&rolled.file, rolled.end as usize);
                (mapping.map_err(|error| JournalError::io("map", path(), error))?, 0)
            }
        };
        if from < mapping.length() {
            let until = from + SYNC_STEP_LENGTH;
            mapping.sync(from..until).map_err(|error| self.sync_failed(path(), error))?;
            maintenance.sealed_sync = Some((rolled.first_sequence, mapping, until));
            return Ok(true);
        }
        let _syncing = self.syncing();
        self.sync_file(&rolled.file, path)?;
        let active = {
            let mut list = self.segment_list();
            // Another thread may have synced and removed it meanwhile.
            if list.rolled.front().is_some_and(|front| front.first_sequence == rolled.first_sequence) {
                list.rolled.pop_front();
            }
            list.active.clone()
        };
        self.move_synced(&active, rolled.last_sequence, 0)?;
        Ok(true)
    }
}

fn populate_towards(segment: &Segment, position: usize, target: usize) -> Result<bool, JournalError> {
    // Relaxed: ordered by the mutex of `maintenance`.
    let from = segment.populated_until.load(Ordering::Relaxed).max(position / PAGE_LENGTH * PAGE_LENGTH);
    if from >= target {
        return Ok(false);
    }
    let until = target.next_multiple_of(PAGE_LENGTH).min(from + POPULATE_STEP_LENGTH);
    segment.mapping.populate(from..until).map_err(|error| JournalError::io("populate", segment.path(), error))?;
    segment.populated_until.store(until, Ordering::Relaxed);
    Ok(true)
}

fn writer_position(segment: &Segment) -> u64 {
    segment.mark(JOURNALED_MARK_OFFSET).map_or(segment.header.frames_offset, |mark| mark.first & !SEALED_BIT)
}
