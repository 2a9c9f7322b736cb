//! `truncate_after`: takes back frames that nobody has acted on yet (decision D2).

use std::fs::OpenOptions;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::descriptor::{FAILED_MARK_OFFSET, JOURNALED_MARK_OFFSET, SEALED_BIT, SYNCED_MARK_OFFSET};
use crate::directory::sync_directory;
use crate::error::JournalError;
use crate::index;
use crate::journal::Journal;
use crate::scan;
use crate::segment::{Segment, end_of_nonzero, write_zeros};
use crate::shared::Entry;

impl Journal {
    /// Removes every frame behind `sequence`, on the device too, so that none of them ever comes
    /// back; the next append continues with `sequence + 1`. Blocks; not for the hot path. Does
    /// nothing if there is no such frame.
    ///
    /// # Errors
    /// [`JournalError::TruncatesReleased`] if one of them is released (see
    /// [`Journal::set_released`]); [`JournalError::NotHeld`] if `sequence` is before the journal's
    /// beginning. Neither changes anything. After any other failure the journal refuses everything.
    pub fn truncate_after(&mut self, sequence: u64) -> Result<(), JournalError> {
        if sequence < self.released_sequence.min(self.last_sequence()) {
            return Err(JournalError::TruncatesReleased { sequence, released: self.released_sequence });
        }
        if sequence >= self.last_sequence {
            return Ok(());
        }
        if sequence + 1 < self.first_sequence() {
            return Err(JournalError::NotHeld {
                directory: self.directory().to_owned(),
                sequence,
                first: self.first_sequence(),
                last: self.last_sequence,
            });
        }
        self.commit()?;
        self.cut(sequence).inspect_err(|error| self.shared.poison(error))
    }

    fn cut(&mut self, sequence: u64) -> Result<(), JournalError> {
        let shared = self.shared.clone();
        let mut works = shared.works();
        shared.settle(&mut works)?;
        let _syncing = shared.syncing();
        let entries: Vec<Entry> = shared.state().entries.iter().copied().collect();
        let keep = entries.iter().rposition(|entry| entry.first_sequence <= sequence).unwrap_or(0);
        let kept = entries[keep];
        let segment = if keep + 1 == entries.len() { self.active.clone() } else { self.reopen(kept)? };

        let (position, last_sequence) = position_behind(&segment, kept.first_sequence, sequence)?;
        assert_eq!(last_sequence, sequence, "the journal holds every frame up to its last");

        // Marks first: from here on nothing vouches for what is about to go, so that an interrupted
        // cut is found as frames (not cut) or as rubbish behind the marks (cut by recovery).
        segment.write_mark(JOURNALED_MARK_OFFSET, position as u64, sequence);
        // Relaxed: only holders of `syncing` write it.
        let synced = shared.synced_sequence.0.load(Ordering::Relaxed).min(sequence);
        segment.write_mark(SYNCED_MARK_OFFSET, synced, 0);
        shared.synced_sequence.0.store(synced, Ordering::Release);
        self.sync(&segment)?;
        self.remove_behind(&entries[keep..])?;

        let length = segment.header.segment_length;
        let end = end_of_nonzero(&segment.file, position as u64, length)
            .map_err(|error| JournalError::io("read", segment.path(), error))?;
        if let Some(end) = end {
            write_zeros(&segment.file, position as u64, end)
                .map_err(|error| JournalError::io("cut", segment.path(), error))?;
        }
        index::clear_from(segment.index(), position);
        self.sync(&segment)?;

        {
            let mut state = shared.state();
            state.entries.truncate(keep + 1);
            state.rolled.retain(|rolled| rolled.last_sequence < kept.first_sequence);
            state.active = segment.clone();
        }
        works.sealed_sync = None;
        drop(works);
        self.active = segment;
        self.stand_at(position);
        self.last_sequence = sequence;
        self.move_mark()
    }

    /// Opens a sealed segment for writing again.
    fn reopen(&self, entry: Entry) -> Result<Arc<Segment>, JournalError> {
        let path = self.shared.segment_path(entry.first_sequence);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| JournalError::io("open for writing", &path, error))?;
        let mut bytes = [0; crate::descriptor::FIXED_LENGTH];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0)
            .map_err(|error| JournalError::io("read", &path, error))?;
        let header = crate::descriptor::FixedHeader::from_bytes(&bytes).map_err(|fault| {
            let reason = format!("{fault:?}");
            JournalError::HeaderDamaged { segment: path.clone(), position: 0, reason }
        })?;
        Segment::map(path, file, header, self.shared.options.flush).map(Arc::new)
    }

    /// Removes the segments behind the first of `entries`, newest first; each is removed only when
    /// the one before it is no longer sealed, so that recovery does not miss it.
    fn remove_behind(&self, entries: &[Entry]) -> Result<(), JournalError> {
        for pair in entries.windows(2).rev() {
            let (before, last) = (pair[0], pair[1]);
            let segment = self.reopen(before)?;
            if let Some(mark) = segment.mark(JOURNALED_MARK_OFFSET).filter(|mark| mark.first & SEALED_BIT != 0) {
                segment.write_mark(JOURNALED_MARK_OFFSET, mark.first & !SEALED_BIT, mark.second);
            }
            let path = self.shared.segment_path(last.first_sequence);
            std::fs::remove_file(&path).map_err(|error| JournalError::io("remove", &path, error))?;
            sync_directory(self.directory())?;
        }
        Ok(())
    }

    fn sync(&self, segment: &Segment) -> Result<(), JournalError> {
        segment.file.sync_data().map_err(|source| {
            segment.write_mark(FAILED_MARK_OFFSET, 1, 0);
            JournalError::SyncFailed { segment: segment.path(), source }
        })
    }
}

/// Where the frame of `sequence` ends.
fn position_behind(segment: &Segment, first_sequence: u64, sequence: u64) -> Result<(usize, u64), JournalError> {
    let header = &segment.header;
    let frames_offset = header.frames_offset as usize;
    if sequence < first_sequence {
        return Ok((frames_offset, sequence));
    }
    let mapping = crate::mapping::Mapping::read_only(&segment.file, header.segment_length as usize)
        .map_err(|error| JournalError::io("map", segment.path(), error))?;
    // SAFETY: this is the one writer, and it writes nothing while it looks.
    #[allow(unsafe_code)]
    let bytes = unsafe { mapping.bytes(0..mapping.length()) };
    let limit = header.frame_length_max as usize;
    let (mut at, mut position) = index::nearest(segment.index(), bytes, frames_offset, sequence, limit)
        .unwrap_or((first_sequence, frames_offset));
    while at <= sequence {
        match scan::check_frame(&bytes[position..], at, limit) {
            Ok(frame) => position += gapless_wire::aligned_length(frame.length()),
            Err(reason) => {
                return Err(JournalError::Corrupt {
                    segment: segment.path(),
                    position: position as u64,
                    sequence: at,
                    reason,
                    mark: crate::error::MarkName::Journaled,
                    mark_sequence: sequence,
                });
            }
        }
        at += 1;
    }
    Ok((position, at - 1))
}
