//! The file `history` next to the segments: the journal's identity, and which segments must exist.
//!
//! Without it a missing newest or oldest segment would go unnoticed, because the rest is intact. It is on the device
//! before anything depends on it: a segment is added before a frame in it counts as synced, and removed before it is
//! deleted or truncated.
//!
//! The file is one page, allocated at its creation, so that a full disk cannot fail a write. It has two slots, written
//! in turn, so that one is always intact.
//!
//! ```text
//! slot, at 0 and at 2048
//!    0                   8
//!    +-------------------+
//!  0 |  magic "GAPHIST\1"|
//!  8 |  generation       |  the whole slot with the higher one counts
//! 16 |  stream id, low   |
//! 24 |  stream id, high  |
//! 32 |  incarnation      |
//! 40 |  replaced         |  the incarnation before, while its files get the new one; else 0
//! 48 |  first sequence   |  retention has deleted what is before
//! 56 |  newest segment   |  the sequence of its first frame
//! 64 |  reserved, 0 …    |
//! 124|          | CRC-32C |  of bytes 0–123
//!    +-------------------+
//! ```

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gapless_agent::checked_file;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at, u128_at};

use crate::descriptor::{HISTORY_NAME, PAGE_LENGTH};
use crate::disk::DiskOperation;
use crate::durable_file::FileReplacement;
use crate::error::{FileLoss, JournalError};
use crate::file_check::{check_place, lost_file};
use crate::options::JournalEnvironment;
use crate::own_file::open_to_write;

const MAGIC: [u8; 8] = *b"GAPHIST\x01";
const SLOT_LENGTH: usize = 128;
const SLOT_OFFSETS: [u64; 2] = [0, 2048];
const CRC_OFFSET: usize = 124;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalHistory {
    pub(crate) stream_id: u128,
    pub(crate) incarnation: u64,
    /// 0: no restore in progress.
    pub(crate) replaced: u64,
    /// The oldest segment must not begin after this sequence.
    pub(crate) first_sequence: u64,
    /// No older segment may be the newest.
    pub(crate) newest_sequence: u64,
}

impl JournalHistory {
    fn to_bytes(self, generation: u64) -> [u8; SLOT_LENGTH] {
        let mut bytes = [0; SLOT_LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&generation.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.stream_id.to_le_bytes());
        let words = [self.incarnation, self.replaced, self.first_sequence, self.newest_sequence];
        for (field, word) in bytes[32..64].chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32c(&bytes[..CRC_OFFSET]);
        bytes[CRC_OFFSET..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; SLOT_LENGTH]) -> Option<(u64, Self)> {
        let word = |at: usize| u64_at(bytes, at);
        let is_whole = bytes[..8] == MAGIC && u32_at(bytes, CRC_OFFSET) == crc32c(&bytes[..CRC_OFFSET]);
        let history = Self {
            stream_id: u128_at(bytes, 16),
            incarnation: word(32),
            replaced: word(40),
            first_sequence: word(48),
            newest_sequence: word(56),
        };
        is_whole.then_some((word(8), history))
    }
}

#[derive(Debug)]
pub(crate) struct HistoryFile {
    file: File,
    path: PathBuf,
    generation: u64,
    history: JournalHistory,
}

impl HistoryFile {
    pub(crate) fn create(directory: &Path, history: JournalHistory) -> Result<Self, JournalError> {
        let (path, temporary) = (directory.join(HISTORY_NAME), directory.join(format!("{HISTORY_NAME}.new")));
        let failed = |what| {
            let temporary = temporary.clone();
            move |error| JournalError::io(what, temporary, error)
        };
        let mut replacement = FileReplacement::begin(&path, temporary.clone(), 0o600).map_err(failed("create"))?;
        let mut page = [0; PAGE_LENGTH];
        page[..SLOT_LENGTH].copy_from_slice(&history.to_bytes(1));
        replacement.write_all(&page).and_then(|()| replacement.sync()).map_err(failed("write"))?;
        let file = replacement.put_in_place().map_err(failed("rename"))?;
        Ok(Self { file, path, generation: 1, history })
    }

    pub(crate) fn open(directory: &Path) -> Result<Option<Self>, JournalError> {
        let path = directory.join(HISTORY_NAME);
        let file = match open_to_write(&path) {
            Ok(file) => file,
            Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (generation, history) = read_slots(&file, &path)?;
        Ok(Some(Self { file, path, generation, history }))
    }

    pub(crate) fn history(&self) -> JournalHistory {
        self.history
    }

    pub(crate) fn check(&self) -> Result<(), JournalError> {
        check_place(&self.file, &self.path, PAGE_LENGTH as u64)?;
        match read_slots(&self.file, &self.path) {
            Ok((generation, history)) if (generation, history) == (self.generation, self.history) => Ok(()),
            Ok(_) | Err(JournalError::HistoryDamaged { .. }) => {
                Err(lost_file(&self.path, FileLoss::Overwritten { position: 0 }))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn set(
        &mut self,
        history: JournalHistory,
        environment: &JournalEnvironment,
    ) -> Result<(), JournalError> {
        if history == self.history {
            return Ok(());
        }
        let generation = self.generation + 1;
        let offset = SLOT_OFFSETS[(generation as usize + 1) % 2];
        environment
            .check_disk(DiskOperation::Sync)
            .and_then(|()| self.file.write_all_at(&history.to_bytes(generation), offset))
            .and_then(|()| self.file.sync_data())
            .map_err(|error| JournalError::io("write", &self.path, error))?;
        (self.generation, self.history) = (generation, history);
        Ok(())
    }
}

pub(crate) fn read(directory: &Path) -> Result<Option<JournalHistory>, JournalError> {
    let path = directory.join(HISTORY_NAME);
    match checked_file::open(&path) {
        Ok(file) => read_slots(&file, &path).map(|(_, history)| Some(history)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(JournalError::io("open", path, error)),
    }
}

fn read_slots(file: &File, path: &Path) -> Result<(u64, JournalHistory), JournalError> {
    let read = |offset| {
        let mut bytes = [0; SLOT_LENGTH];
        match file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(JournalHistory::from_bytes(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(JournalError::io("read", path, error)),
        }
    };
    let slots = [read(SLOT_OFFSETS[0])?, read(SLOT_OFFSETS[1])?];
    let newest = slots.into_iter().flatten().max_by_key(|(generation, _)| *generation);
    newest.ok_or_else(|| JournalError::HistoryDamaged { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(newest_sequence: u64) -> JournalHistory {
        JournalHistory { stream_id: 7 << 80 | 5, incarnation: 3, replaced: 0, first_sequence: 1, newest_sequence }
    }

    #[test]
    fn latest_history_is_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
        let environment = JournalEnvironment::default();
        let mut file = HistoryFile::create(directory.path(), history(1)).unwrap();
        for newest in [1, 20, 300, 20] {
            file.set(history(newest), &environment).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Some(history(newest)));
            assert_eq!(HistoryFile::open(directory.path()).unwrap().unwrap().history(), history(newest));
        }
    }

    #[test]
    fn torn_slot_keeps_the_previous() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = HistoryFile::create(directory.path(), history(1)).unwrap();
        file.set(history(20), &JournalEnvironment::default()).unwrap();
        let path = directory.path().join(HISTORY_NAME);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..SLOT_LENGTH * 8 {
            let mut torn = whole.clone();
            torn[2048 + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Some(history(1)), "bit {bit}");
            torn[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &torn).unwrap();
            assert!(matches!(read(directory.path()), Err(JournalError::HistoryDamaged { .. })), "bit {bit}");
        }
        for length in [0, 1, SLOT_LENGTH - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(read(directory.path()), Err(JournalError::HistoryDamaged { .. })), "{length} bytes");
        }
    }
}
