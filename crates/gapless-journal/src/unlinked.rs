//! [`UnlinkedSegment`]: frames in a file without a name, never recovered; for data that is on disk only because memory
//! is too small: the backlog of calls. No header, marks, index or sync; the user keeps the positions. `pwrite` and
//! `pread` make a full or failing disk an error, never a signal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gapless_agent::checked_file;
use gapless_wire::aligned_length;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::disk::{Disk, DiskOperation};
use crate::error::{FrameFault, JournalError};
use crate::frame_batch::FrameBatch;
use crate::scan::check_frame;

/// Frames are readable at any position. One thread writes and reads.
#[derive(Debug)]
pub struct UnlinkedSegment {
    file: File,
    directory: PathBuf,
    disk: Option<Arc<dyn Disk>>,
    length_bytes: u64,
}

impl UnlinkedSegment {
    /// In the file system of `directory`; each write asks `disk` first.
    ///
    /// # Errors
    /// The directory is missing or accepts no files.
    pub fn create(directory: &Path, disk: Option<Arc<dyn Disk>>) -> Result<Self, JournalError> {
        let made = disk.as_ref().map_or(Ok(()), |disk| disk.check(DiskOperation::Allocate));
        let file = made
            .and_then(|()| nameless(directory))
            .map_err(|source| refused("make an unlinked segment in", directory, source))?;
        Ok(Self { file, directory: directory.to_owned(), disk, length_bytes: 0 })
    }

    #[must_use]
    pub const fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Appends whole frames with their padding; returns their position.
    ///
    /// # Errors
    /// Error of the disk; the frames were not appended, and may be given again.
    pub fn append(&mut self, frames: &[u8]) -> Result<u64, JournalError> {
        let position = self.length_bytes;
        let asked = self.disk.as_ref().map_or(Ok(()), |disk| disk.check(DiskOperation::Write));
        if let Err(source) = asked.and_then(|()| self.file.write_all_at(frames, position)) {
            // Frees the space of a partial write. If that fails too, the next frames overwrite it.
            let _given_back = self.file.set_len(position);
            return Err(refused("write to an unlinked segment in", &self.directory, source));
        }
        self.length_bytes += frames.len() as u64;
        Ok(position)
    }

    /// `position`: where a batch was appended. Checks both checksums, sequences that continue from `first_sequence`,
    /// and that nothing remains.
    ///
    /// # Errors
    /// Error of the disk, or [`JournalError::UnlinkedDamaged`] with the position of the first changed frame.
    pub fn read<'a>(
        &self,
        position: u64,
        first_sequence: u64,
        frames: &'a mut [u8],
    ) -> Result<FrameBatch<'a>, JournalError> {
        let damaged = |offset: usize, sequence, reason| JournalError::UnlinkedDamaged {
            directory: self.directory.clone(),
            position: position + offset as u64,
            sequence,
            reason,
        };
        self.file.read_exact_at(frames, position).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                let file_bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
                damaged(0, first_sequence, FrameFault::EndOfFile { file_bytes })
            } else {
                refused("read an unlinked segment in", &self.directory, error)
            }
        })?;
        let (mut offset, mut sequence) = (0, first_sequence);
        while offset < frames.len() {
            let frame = check_frame(&frames[offset..], sequence, FRAME_LENGTH_MAX)
                .map_err(|reason| damaged(offset, sequence, reason))?;
            offset += aligned_length(frame.length());
            sequence += 1;
        }
        Ok(FrameBatch::new(frames, first_sequence))
    }
}

/// The remedy for a journal without space does not apply here.
fn refused(action: &'static str, directory: &Path, source: io::Error) -> JournalError {
    JournalError::Io { action, path: directory.to_owned(), source }
}

/// Unlinks a named file if the file system has no unnamed ones.
fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => unlinked(directory),
        Err(error) => Err(error.into()),
    }
}

fn unlinked(directory: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        // Relaxed: the numbers only have to differ.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".unlinked-{}-{number}.segment", std::process::id()));
        match checked_file::create_new(&path, 0o600) {
            Ok(file) => return checked_file::remove(&path).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frames::frames;

    fn segment() -> (tempfile::TempDir, UnlinkedSegment) {
        let directory = tempfile::tempdir().unwrap();
        let segment = UnlinkedSegment::create(directory.path(), None).unwrap();
        (directory, segment)
    }

    #[test]
    fn appended_frames_are_read_back() {
        let (directory, mut segment) = segment();
        let (first, second) = (frames(1, 3, 100), frames(4, 2, 9));
        assert_eq!(segment.append(&first).unwrap(), 0);
        assert_eq!(segment.append(&second).unwrap(), first.len() as u64);
        let mut bytes = vec![0; second.len()];
        let batch = segment.read(first.len() as u64, 4, &mut bytes).unwrap();
        assert_eq!(batch.map(|frame| frame.sequence()).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(bytes, second);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(segment.length_bytes(), (first.len() + second.len()) as u64);
    }

    #[test]
    fn fallback_file_loses_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = unlinked(directory.path()).unwrap();
        file.write_all_at(b"whole", 0).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn every_changed_byte_is_damage() {
        let (directory, mut segment) = segment();
        let whole = frames(7, 2, 20);
        let position = segment.append(&whole).unwrap();
        let mut bytes = vec![0; whole.len()];
        for (at, byte) in whole.iter().enumerate() {
            segment.file.write_all_at(&[byte ^ 1], at as u64).unwrap();
            let error = segment.read(position, 7, &mut bytes).unwrap_err();
            assert!(matches!(error, JournalError::UnlinkedDamaged { .. }), "byte {at}: {error}");
            segment.file.write_all_at(&[*byte], at as u64).unwrap();
        }
        let error = segment.read(position, 8, &mut bytes).unwrap_err();
        assert!(error.to_string().contains("sequence 8"), "{error}");
        segment.file.set_len(whole.len() as u64 - 1).unwrap();
        let error = segment.read(position, 7, &mut bytes).unwrap_err().to_string();
        assert!(error.contains(&directory.path().display().to_string()), "{error}");
        assert!(error.contains("the file ends after"), "{error}");
    }

    #[test]
    fn missing_directory_is_named() {
        let error = UnlinkedSegment::create(Path::new("/nowhere/at/all"), None).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
