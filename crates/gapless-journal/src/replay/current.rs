//! [`Current`]: the segment that a replay reads, mapped; wherever it lies by now.

use super::view::View;
use crate::archived::{ArchiveForm, Archived};
use crate::descriptor as d;
use crate::directory::Found;
use crate::error::JournalError;
use crate::mapping::Mapping;
use crate::scan::check_frame;
use gapless_agent::checked_file;
use std::io;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Current {
    pub(super) found: Found,
    pub(super) mapping: Mapping,
}

impl Current {
    pub(super) fn open(
        found: &Found,
        directory: &Path,
        segments: &[Found],
        sequence: u64,
    ) -> Result<Self, JournalError> {
        if let Some(archived) = &found.archived {
            return Self::open_archived(found, archived);
        }
        let mut path = found.path.clone();
        let mut opened = checked_file::open(&path);
        if !found.has_final_name && matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            // It has got its final name since it was listed.
            path = directory.join(d::segment_name(found.first_sequence));
            opened = checked_file::open(&path);
        }
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let stub = directory.join(d::archived_name(found.first_sequence));
                return match checked_file::open(&stub) {
                    // It was archived since it was listed.
                    Ok(file) => {
                        let archived = Archived::read(&file, &stub, found.header.frames_offset)?;
                        let found = Found { path: stub, has_final_name: true, ..found.clone() };
                        Self::open_archived(&found, &Arc::new(archived))
                    }
                    // Retention has deleted it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(not_held(directory, segments, sequence, None))
                    }
                    Err(error) => Err(JournalError::io("open", stub, error)),
                };
            }
            Err(error) => return Err(JournalError::io("open", path, error)),
        };
        let file_length = file.metadata().map_err(|error| JournalError::io("examine", &path, error))?.len();
        let length = file_length.min(found.header.segment_length) as usize;
        if length < d::HEADER_PAGE_LENGTH {
            let reason = "the file was cut while it was read".to_owned();
            return Err(JournalError::HeaderDamaged { segment: path, position: length as u64, reason });
        }
        let mapping = Mapping::read_only(&file, length).map_err(|error| JournalError::io("map", &path, error))?;
        Ok(Self { found: Found { path, file_length, ..found.clone() }, mapping })
    }

    fn open_archived(found: &Found, archived: &Arc<Archived>) -> Result<Self, JournalError> {
        let opened = archived.open(&found.header).and_then(|file| {
            Mapping::read_only(&file, archived.segment_bytes as usize).map_err(|error| error.to_string())
        });
        let mapping = opened.map_err(|reason| JournalError::ArchiveUnusable {
            path: archived.place.clone(),
            stub: found.path.clone(),
            first: found.first_sequence,
            last: found.journaled.map_or(found.first_sequence, |mark| mark.second),
            reason,
        })?;
        let file_length = archived.segment_bytes;
        Ok(Self { found: Found { archived: Some(Arc::clone(archived)), file_length, ..found.clone() }, mapping })
    }

    /// Whether it takes memory as long as it is mapped.
    pub(super) fn is_in_memory(&self) -> bool {
        self.found.archived.as_ref().is_some_and(|archived| archived.form == ArchiveForm::Lz4)
    }

    /// Looks whether the frame of a sequence stands at a position, a multiple of 8, and whole before `limit`.
    pub(super) fn look(&self, limit: usize) -> impl FnMut(u64, usize) -> bool {
        let mut view = View::copying();
        move |sequence, position| {
            view.begin(position);
            let bytes = view.frame_at(&self.mapping, position, limit);
            check_frame(bytes, sequence, self.found.header.frame_length_max as usize).is_ok()
        }
    }

    pub(super) fn index(&self) -> Option<&[std::sync::atomic::AtomicU64]> {
        let header = &self.found.header;
        let is_whole = self.mapping.length() as u64 >= header.frames_offset;
        is_whole.then(|| self.mapping.words(d::INDEX_OFFSET, d::index_entries(header.segment_length) * 2))
    }
}

pub(super) fn not_held(directory: &Path, segments: &[Found], sequence: u64, last: Option<u64>) -> JournalError {
    let last =
        last.or_else(|| segments.last().and_then(|found| found.journaled.map(|mark| mark.second))).unwrap_or_default();
    let first = segments.first().map_or(0, |found| found.first_sequence);
    JournalError::NotHeld { directory: directory.to_owned(), sequence, first, last }
}
