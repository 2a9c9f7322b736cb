//! [`Ballot`]: term and vote in a separate small file, because they must be on the device before a vote is sent. The
//! journal has the same record; but a sync of the journal waits for every recently journaled frame. At tier `quorum`
//! these may be hundreds of megabytes, at the very moment when a cluster has no leader.
//!
//! ```text
//! two slots of 4096 bytes, written in turn: each is synced, and then copied over the other one, where the next goes; of each
//!   0  u32  CRC-32C of all bytes after it
//!   4  u32  length after the header, bytes; the highest bit is set if there is a mark
//!   8  u64  number: the slot with the higher one counts
//!  16  u64  of the mark: the number in the file `instance`
//!  24  u64  of the mark: number of starts of the member
//!  32  …    the record, as in the journal; none before the first vote
//! ```
//!
//! Each start writes a mark, and the number of that slot to the file `voting`, which counts the starts, too. So an
//! older copy of one of the two is recognised, as it is of an earlier start; so is a ballot that is missing or belongs
//! to another directory.
//!
//! A slot that a crash tore was not acknowledged, and the other one counts.

use crate::ClusterError;
use gapless_agent::checked_file;
use gapless_journal::durable_file::sync_directory;
use gapless_journal::{DiskOperation, JournalEnvironment};
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const SLOT_LENGTH: usize = 4096;
const FILE_LENGTH: usize = 2 * SLOT_LENGTH;
const HEADER_LENGTH: usize = 16;

const MARKED: u32 = 1 << 31;
const MARK_LENGTH: usize = 16;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredBallot {
    /// Newest record.
    pub record: Option<Vec<u8>>,
    /// Newest slot's; 0 without one.
    pub number: u64,
    /// Starts of the member; 0 without a mark.
    pub starts: u64,
}

impl StoredBallot {
    /// Reads the ballot of a directory with this `instance`; changes nothing.
    pub fn read(directory: &Path, instance: u64) -> Result<Self, ClusterError> {
        let path = directory.join("ballot");
        let mut bytes = match checked_file::read(&path, FILE_LENGTH as u64) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => {
                return Err(ClusterError::System { action: format!("reading {}", path.display()), source });
            }
        };
        bytes.resize(FILE_LENGTH, 0);
        let mut newest = Self::default();
        let mut torn = 0;
        for slot in bytes.chunks_exact(SLOT_LENGTH) {
            match read(slot) {
                BallotSlot::Empty => {}
                BallotSlot::Torn => torn += 1,
                BallotSlot::Record { mark: Some((found, _)), .. } if found != instance => {
                    return Err(ClusterError::Damaged { path });
                }
                BallotSlot::Record { number, mark, record } if number > newest.number => {
                    let record = Some(record).filter(|record| !record.is_empty());
                    newest = Self { record, number, starts: mark.map_or(0, |(_, starts)| starts) };
                }
                BallotSlot::Record { .. } => {}
            }
        }
        match torn {
            0 => {}
            1 => tracing::warn!(path = %path.display(), "a slot is torn or damaged; the other one counts"),
            // One slot is synced before the other is written.
            _ => return Err(ClusterError::Damaged { path }),
        }
        Ok(newest)
    }
}

#[derive(Debug)]
pub(crate) struct Ballot {
    path: PathBuf,
    file: File,
    instance: u64,
    starts: u64,
    number: u64,
    disk: JournalEnvironment,
}

impl Ballot {
    /// Records the start number `starts`, and continues from the found ballot.
    pub fn begin(
        directory: &Path,
        found: &StoredBallot,
        (instance, starts): (u64, u64),
        disk: JournalEnvironment,
    ) -> Result<Self, ClusterError> {
        let path = directory.join("ballot");
        let failed = |source| ClusterError::System { action: format!("opening {}", path.display()), source };
        gapless_journal::own_file(&path).map_err(failed)?;
        let file = checked_file::open_or_create(&path, 0o600).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len().min(FILE_LENGTH as u64);
        if length < FILE_LENGTH as u64 {
            // Zeros, so that a later sync is of data alone. A crash before the end leaves the file short.
            let zeros = vec![0; FILE_LENGTH - length as usize];
            file.write_all_at(&zeros, length).and_then(|()| file.sync_all()).map_err(failed)?;
            sync_directory(directory).map_err(failed)?;
        }
        let mut ballot = Self { path, file, instance, starts, number: found.number, disk };
        ballot.write(found.record.as_deref().unwrap_or_default())?;
        Ok(ballot)
    }

    /// Last written slot.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns once `record` is on the device.
    pub fn write(&mut self, record: &[u8]) -> Result<(), ClusterError> {
        self.number += 1;
        let mut slot = vec![0; HEADER_LENGTH];
        slot[4..8].copy_from_slice(&(MARKED | (MARK_LENGTH + record.len()) as u32).to_le_bytes());
        slot[8..16].copy_from_slice(&self.number.to_le_bytes());
        slot.extend_from_slice(&self.instance.to_le_bytes());
        slot.extend_from_slice(&self.starts.to_le_bytes());
        slot.extend_from_slice(record);
        assert!(slot.len() <= SLOT_LENGTH, "term and vote are a few bytes");
        let crc = crc32c(&slot[4..]);
        slot[..4].copy_from_slice(&crc.to_le_bytes());
        let [at, other] = [self.number % 2, (self.number + 1) % 2].map(|slot| slot * SLOT_LENGTH as u64);
        let written = self.disk.check_disk(DiskOperation::Write).and_then(|()| self.file.write_all_at(&slot, at));
        let synced =
            written.and_then(|()| self.disk.check_disk(DiskOperation::Sync)).and_then(|()| self.file.sync_data());
        synced
            .and_then(|()| self.file.write_all_at(&slot, other))
            .map_err(|source| ClusterError::System { action: format!("writing {}", self.path.display()), source })
    }
}

enum BallotSlot {
    Empty,
    Torn,
    Record { number: u64, mark: Option<(u64, u64)>, record: Vec<u8> },
}

fn read(slot: &[u8]) -> BallotSlot {
    if slot.iter().all(|byte| *byte == 0) {
        return BallotSlot::Empty;
    }
    let (word, long) = (|at| u32_at(slot, at), |at| u64_at(slot, at));
    let (is_marked, length) = (word(4) & MARKED != 0, (word(4) & !MARKED) as usize);
    let mark_length = if is_marked { MARK_LENGTH } else { 0 };
    let is_long_enough = if is_marked { length >= MARK_LENGTH } else { length > 0 };
    if !is_long_enough || length > SLOT_LENGTH - HEADER_LENGTH || word(0) != crc32c(&slot[4..HEADER_LENGTH + length]) {
        return BallotSlot::Torn;
    }
    let mark = is_marked.then(|| (long(HEADER_LENGTH), long(HEADER_LENGTH + 8)));
    let record = slot[HEADER_LENGTH + mark_length..HEADER_LENGTH + length].to_vec();
    BallotSlot::Record { number: long(8), mark, record }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    const INSTANCE: u64 = 7;

    fn found(directory: &tempfile::TempDir) -> StoredBallot {
        StoredBallot::read(directory.path(), INSTANCE).unwrap()
    }

    fn begin(directory: &tempfile::TempDir, starts: u64) -> Ballot {
        Ballot::begin(directory.path(), &found(directory), (INSTANCE, starts), JournalEnvironment::default()).unwrap()
    }

    #[test]
    fn torn_slot_is_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ballot");
        let is_read = |bytes: &[u8], expected: &str, what: &str| {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(found(&directory).record.as_deref(), Some(expected.as_bytes()), "{what}");
        };
        assert_eq!(found(&directory), StoredBallot::default());
        let mut ballot = begin(&directory, 1);
        ballot.write(b"one").unwrap();
        for (before, now) in [("one", "two"), ("two", "three"), ("three", "four")] {
            let old = checked_file::read(&path, FILE_LENGTH as u64).unwrap();
            ballot.write(now.as_bytes()).unwrap();
            let whole = checked_file::read(&path, FILE_LENGTH as u64).unwrap();
            let at = (ballot.number % 2) as usize * SLOT_LENGTH;
            let slot = at..at + SLOT_LENGTH;
            for byte in 0..HEADER_LENGTH + MARK_LENGTH + now.len() {
                for start in [0, SLOT_LENGTH] {
                    let mut bytes = whole.clone();
                    bytes[start + byte] ^= 1;
                    is_read(&bytes, now, "the other slot has a copy");
                }
                let mut torn = old.clone();
                torn[slot.clone()].copy_from_slice(&whole[slot.clone()]);
                is_read(&torn, now, "the copy was not made");
                torn[at + byte] ^= 1;
                is_read(&torn, before, "it was not synced");
            }
            std::fs::write(&path, &whole).unwrap();
        }
        let whole = checked_file::read(&path, FILE_LENGTH as u64).unwrap();
        is_read(&whole[..SLOT_LENGTH + 3], "four", "cut off, and what is there counts");
        assert_eq!(begin(&directory, 2).number(), 6);
        std::fs::write(&path, &whole[..20]).unwrap();
        assert_eq!(found(&directory), StoredBallot::default());
        let mut bytes = whole;
        (bytes[9], bytes[SLOT_LENGTH + 9]) = (1, 1);
        std::fs::write(&path, bytes).unwrap();
        let refused = StoredBallot::read(directory.path(), INSTANCE).unwrap_err().to_string();
        assert!(refused.contains("ballot is damaged"), "no crash tears both: {refused}");
    }

    #[test]
    fn start_keeps_the_vote() {
        let directory = tempfile::tempdir().unwrap();
        let mut ballot = begin(&directory, 1);
        assert_eq!(found(&directory), StoredBallot { record: None, number: 1, starts: 1 });
        ballot.write(b"vote").unwrap();
        drop(begin(&directory, 2));
        assert_eq!(found(&directory), StoredBallot { record: Some(b"vote".to_vec()), number: 3, starts: 2 });
        let refused = StoredBallot::read(directory.path(), INSTANCE + 1).unwrap_err().to_string();
        assert!(refused.contains("ballot is damaged, or belongs to another directory"), "{refused}");
    }

    #[test]
    fn slot_without_a_mark_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let mut slot = [&[0; 4][..], &4u32.to_le_bytes(), &9u64.to_le_bytes(), b"vote"].concat();
        let crc = crc32c(&slot[4..]);
        slot[..4].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(directory.path().join("ballot"), slot).unwrap();
        assert_eq!(found(&directory), StoredBallot { record: Some(b"vote".to_vec()), number: 9, starts: 0 });
        drop(begin(&directory, 1));
        assert_eq!(found(&directory), StoredBallot { record: Some(b"vote".to_vec()), number: 10, starts: 1 });
    }
}
