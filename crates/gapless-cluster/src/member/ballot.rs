//! [`Ballot`]: term and vote in a small file of their own, because they have to be on the device before a vote is given.
//! The journal has the same record; but to sync that is to wait for every frame that was journaled lately, which at tier
//! `quorum` may be hundreds of megabytes, in the very moment in which a cluster has no leader.
//!
//! ```text
//! two slots of 4096 bytes, written in turn; of each
//!   0  u32  CRC-32C of bytes 4 to 16 + length
//!   4  u32  length of the record, bytes; 0 in a slot that was never written
//!   8  u64  number: the slot with the higher one counts
//!  16  …    the record, as in the journal
//! ```
//!
//! A slot that a crash tore was not answered for, and the other one counts; what it lacks the journal has, unless the power
//! was lost as well.

use crate::ClusterError;
use gapless_journal::{DiskWork, Environment};
use gapless_wire::checksum::crc32c;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const SLOT_LENGTH: usize = 4096;
const HEADER_LENGTH: usize = 16;

/// The file.
#[derive(Debug)]
pub(crate) struct Ballot {
    path: PathBuf,
    file: File,
    number: u64,
    disk: Environment,
}

impl Ballot {
    /// Opens or makes that of the member in `directory`. Returns the record that it holds, if any.
    pub fn open(directory: &Path) -> Result<(Self, Option<Vec<u8>>), ClusterError> {
        let path = directory.join("ballot");
        let failed = |source| ClusterError::System { action: format!("opening {}", path.display()), source };
        let options = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options().map_err(failed)?;
        let mut bytes = [0; 2 * SLOT_LENGTH];
        if file.metadata().map_err(failed)?.len() < bytes.len() as u64 {
            // Room and zeros, so that later a sync is of data alone. A crash before the end leaves it short.
            let parent = File::open(directory).map_err(failed)?;
            file.write_all_at(&bytes, 0).and_then(|()| file.sync_all()).map_err(failed)?;
            parent.sync_all().map_err(failed)?;
        }
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let mut newest: Option<(u64, Vec<u8>)> = None;
        for slot in bytes.chunks_exact(SLOT_LENGTH) {
            match read(slot) {
                Slot::Empty => {}
                Slot::Torn => tracing::warn!(path = %path.display(), "a slot is torn or damaged; the other one counts"),
                Slot::Record(number, record) => {
                    if newest.as_ref().is_none_or(|(other, _)| *other < number) {
                        newest = Some((number, record));
                    }
                }
            }
        }
        let (number, record) = newest.map_or((0, None), |(number, record)| (number, Some(record)));
        Ok((Self { path, file, number, disk: Environment::default() }, record))
    }

    /// The same on a disk that may refuse.
    pub fn on(self, disk: Environment) -> Self {
        Self { disk, ..self }
    }

    /// Writes `record` and waits until it is on the device.
    pub fn write(&mut self, record: &[u8]) -> Result<(), ClusterError> {
        let mut slot = vec![0; HEADER_LENGTH];
        self.number += 1;
        slot[4..8].copy_from_slice(&(record.len() as u32).to_le_bytes());
        slot[8..16].copy_from_slice(&self.number.to_le_bytes());
        slot.extend_from_slice(record);
        assert!(slot.len() <= SLOT_LENGTH, "term and vote are a few bytes");
        let crc = crc32c(&slot[4..]);
        slot[..4].copy_from_slice(&crc.to_le_bytes());
        let at = (self.number % 2) * SLOT_LENGTH as u64;
        let written = self.disk.ask(DiskWork::Write).and_then(|()| self.file.write_all_at(&slot, at));
        let synced = written.and_then(|()| self.disk.ask(DiskWork::Sync)).and_then(|()| self.file.sync_data());
        synced.map_err(|source| ClusterError::System { action: format!("writing {}", self.path.display()), source })
    }
}

enum Slot {
    Empty,
    Torn,
    Record(u64, Vec<u8>),
}

fn read(slot: &[u8]) -> Slot {
    if slot.iter().all(|byte| *byte == 0) {
        return Slot::Empty;
    }
    let word = |at: usize| u32::from_le_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]]);
    let length = word(4) as usize;
    if length == 0 || length > SLOT_LENGTH - HEADER_LENGTH || word(0) != crc32c(&slot[4..HEADER_LENGTH + length]) {
        return Slot::Torn;
    }
    let number = u64::from(word(8)) | u64::from(word(12)) << 32;
    Slot::Record(number, slot[HEADER_LENGTH..HEADER_LENGTH + length].to_vec())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_is_read_and_a_torn_one_gives_way_to_that_before() {
        let directory = tempfile::tempdir().unwrap();
        let (mut ballot, found) = Ballot::open(directory.path()).unwrap();
        assert_eq!(found, None);
        ballot.write(b"one").unwrap();
        for (before, now) in [("one", "two"), ("two", "three"), ("three", "four")] {
            ballot.write(now.as_bytes()).unwrap();
            let read = || Ballot::open(directory.path()).unwrap().1.unwrap();
            assert_eq!(read(), now.as_bytes());
            let at = (ballot.number % 2) * SLOT_LENGTH as u64;
            for byte in 0..HEADER_LENGTH as u64 + now.len() as u64 {
                let mut bytes = [0];
                ballot.file.read_exact_at(&mut bytes, at + byte).unwrap();
                ballot.file.write_all_at(&[bytes[0] ^ 1], at + byte).unwrap();
                assert_eq!(read(), before.as_bytes(), "byte {byte}");
                ballot.file.write_all_at(&bytes, at + byte).unwrap();
            }
        }
        drop(ballot);
        let (mut ballot, found) = Ballot::open(directory.path()).unwrap();
        assert_eq!(found.as_deref(), Some(&b"four"[..]));
        ballot.write(b"five").unwrap();
        assert_eq!(Ballot::open(directory.path()).unwrap().1.as_deref(), Some(&b"five"[..]));
        // Cut off while it was made.
        ballot.file.set_len(100).unwrap();
        assert!(Ballot::open(directory.path()).is_ok());
    }
}
