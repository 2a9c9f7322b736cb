//! `OpenSegment`: the mapped segment that a replay reads, in the journal or in an archive.

use super::view::{SegmentView, length_at};
use crate::archived::{ArchiveFormat, ArchiveLocation};
use crate::descriptor as d;
use crate::directory::SurveyedSegment;
use crate::error::JournalError;
use crate::mapping::FileMapping;
use crate::scan::check_frame;
use crate::unpacking::SegmentUnpacker;
use gapless_agent::checked_file;
use gapless_wire::HEADER_LENGTH;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) found: SurveyedSegment,
    pub(super) mapping: FileMapping,
    archive: Option<ArchiveSource>,
}

#[derive(Debug)]
struct ArchiveSource {
    archived: Arc<ArchiveLocation>,
    stub: PathBuf,
    unpacking: Option<SegmentUnpacker>,
}

impl ArchiveSource {
    fn unusable(&self, found: &SurveyedSegment, reason: String) -> JournalError {
        JournalError::ArchiveUnusable {
            path: self.archived.place.clone(),
            stub: self.stub.clone(),
            first: found.first_sequence,
            last: found.journaled.map_or(found.first_sequence, |mark| mark.second),
            reason,
        }
    }
}

impl OpenSegment {
    pub(super) fn open(
        found: &SurveyedSegment,
        directory: &Path,
        segments: &[SurveyedSegment],
        sequence: u64,
    ) -> Result<Self, JournalError> {
        if let Some(archived) = &found.archived {
            return Self::open_archived(found, archived);
        }
        let mut path = found.path.clone();
        let mut opened = checked_file::open(&path);
        if !found.has_final_name && matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            // Renamed after the listing.
            path = directory.join(d::segment_name(found.first_sequence));
            opened = checked_file::open(&path);
        }
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let stub = directory.join(d::archived_name(found.first_sequence));
                return match checked_file::open(&stub) {
                    // Archived after the listing.
                    Ok(file) => {
                        let archived = ArchiveLocation::read(&file, &stub, found.header.frames_offset)?;
                        let found = SurveyedSegment { path: stub, has_final_name: true, ..found.clone() };
                        Self::open_archived(&found, &Arc::new(archived))
                    }
                    // Retention has deleted it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(not_held_error(directory, segments, sequence, None))
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
        let mapping = FileMapping::read_only(&file, length).map_err(|error| JournalError::io("map", &path, error))?;
        Ok(Self { found: SurveyedSegment { path, file_length, ..found.clone() }, mapping, archive: None })
    }

    fn open_archived(found: &SurveyedSegment, archived: &Arc<ArchiveLocation>) -> Result<Self, JournalError> {
        let mut archive = ArchiveSource { archived: Arc::clone(archived), stub: found.path.clone(), unpacking: None };
        let failed = |error: io::Error| error.to_string();
        let length = archived.segment_bytes as usize;
        let opened = archived.open(&found.header).and_then(|stored| match archived.form {
            ArchiveFormat::Plain => FileMapping::read_only(&stored, length).map_err(failed),
            ArchiveFormat::Lz4 => {
                let unpacking = SegmentUnpacker::begin(archived, stored).map_err(failed)?;
                unpacking.unpack(0, found.header.frames_offset.min(archived.segment_bytes)).map_err(failed)?;
                let mapping = FileMapping::read_only(unpacking.memory(), length).map_err(failed);
                archive.unpacking = Some(unpacking);
                mapping
            }
        });
        let mapping = opened.map_err(|reason| archive.unusable(found, reason))?;
        let (path, file_length) = (archived.place.clone(), archived.segment_bytes);
        let found = SurveyedSegment { path, archived: Some(Arc::clone(archived)), file_length, ..found.clone() };
        Ok(Self { found, mapping, archive: Some(archive) })
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.unpacking().is_some()
    }

    fn unpacking(&self) -> Option<&SegmentUnpacker> {
        self.archive.as_ref()?.unpacking.as_ref()
    }

    /// End of the readable range from `position`, at most `limit`: at least the end of the frame there.
    ///
    /// # Errors
    /// Its archive cannot be read.
    #[inline]
    pub(super) fn readable_until(&self, position: usize, limit: usize) -> Result<usize, JournalError> {
        match &self.archive {
            Some(archive @ ArchiveSource { unpacking: Some(unpacking), .. }) => {
                let unpacked = self.unpack_frame(unpacking, position, limit);
                unpacked.map_err(|error| archive.unusable(&self.found, error.to_string()))
            }
            _ => Ok(limit),
        }
    }

    #[cold]
    fn unpack_frame(&self, unpacking: &SegmentUnpacker, position: usize, limit: usize) -> io::Result<usize> {
        let header_end = limit.min(position + HEADER_LENGTH);
        let mut end = unpacking.unpack(position as u64, header_end as u64)? as usize;
        if header_end == position + HEADER_LENGTH {
            let frame_end = limit.min(position + length_at(&self.mapping, position));
            if frame_end > end {
                end = unpacking.unpack(position as u64, frame_end as u64)? as usize;
            }
        }
        Ok(end.min(limit))
    }

    pub(super) fn place_of(&self, position: usize) -> (&Path, u64) {
        let position = position as u64;
        (&self.found.path, self.unpacking().map_or(position, |unpacking| unpacking.stored_at(position)))
    }

    /// Positions are multiples of 8; the frame must be complete before `limit`.
    pub(super) fn frame_checker(&self, limit: usize) -> impl FnMut(u64, usize) -> bool {
        let mut view = SegmentView::with_copies();
        move |sequence, position| {
            let Ok(limit) = self.readable_until(position, limit) else { return false };
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

pub(super) fn not_held_error(
    directory: &Path,
    segments: &[SurveyedSegment],
    sequence: u64,
    last: Option<u64>,
) -> JournalError {
    let last =
        last.or_else(|| segments.last().and_then(|found| found.journaled.map(|mark| mark.second))).unwrap_or_default();
    let first = segments.first().map_or(0, |found| found.first_sequence);
    JournalError::NotHeld { directory: directory.to_owned(), sequence, first, last }
}
