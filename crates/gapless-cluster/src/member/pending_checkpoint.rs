//! `PendingCheckpoint`: a checkpoint in a temporary file next to the journal, while the journal is cut and its records
//! are removed.

use crate::ClusterError;
use gapless_agent::checked_file;
use gapless_journal::JournalEnvironment;
use gapless_journal::durable_file::{FileReplacement, sync_directory};
use gapless_wire::checksum::crc32c;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use gapless_wire::fields::u32_at;
use std::io::Write;
use std::path::{Path, PathBuf};

/// CRC-32C and length of the rest, little-endian. The rest is the number in `instance`, if the length says so, and the
/// payload.
const HEADER_LENGTH: usize = 8;
/// A checkpoint is shorter than the longest frame.
const LENGTH_MAX: u64 = (HEADER_LENGTH + FRAME_LENGTH_MAX) as u64;
/// The number is there; an earlier version did not write it.
const NUMBERED: u32 = 1 << 31;

#[derive(Debug)]
pub(crate) struct PendingCheckpoint {
    path: PathBuf,
    /// `None`: any number is accepted.
    instance: Option<u64>,
    disk: JournalEnvironment,
}

impl PendingCheckpoint {
    /// The file in the directory of a member whose file `instance` holds this number.
    pub fn new(directory: &Path, instance: u64) -> Self {
        Self { instance: Some(instance), ..Self::of_any_instance(directory) }
    }

    /// `instance` may be lost; for reading only.
    pub fn of_any_instance(directory: &Path) -> Self {
        Self { path: directory.join("checkpoint"), instance: None, disk: JournalEnvironment::default() }
    }

    /// Simulated disk that may fail.
    pub fn on(self, disk: JournalEnvironment) -> Self {
        Self { disk, ..self }
    }

    fn failed(&self, action: &'static str) -> impl Fn(std::io::Error) -> ClusterError {
        let path = self.path.display().to_string();
        move |source| ClusterError::System { action: format!("{action} {path}"), source }
    }

    /// Durable.
    pub fn write(&self, payload: &[u8]) -> Result<(), ClusterError> {
        let partial = self.path.with_extension("new");
        let instance = self.instance.expect("who writes knows the number");
        let rest = [&instance.to_le_bytes(), payload].concat();
        let length = u32::try_from(rest.len()).expect("a checkpoint is shorter than a frame may be");
        let bytes = [&crc32c(&rest).to_le_bytes(), &(length | NUMBERED).to_le_bytes(), &rest[..]].concat();
        let replaced = FileReplacement::begin_on(&self.disk, &self.path, partial, 0o600).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync()?;
            file.put_in_place()
        });
        replaced.map(drop).map_err(self.failed("writing"))
    }

    /// `None` if never written, or removed.
    ///
    /// # Errors
    /// It is damaged, or belongs to another directory.
    pub fn read(&self) -> Result<Option<Vec<u8>>, ClusterError> {
        let bytes = match checked_file::read(&self.path, LENGTH_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("reading")(error)),
        };
        let damaged = || ClusterError::Damaged { path: self.path.clone() };
        let (header, rest) = bytes.split_at_checked(HEADER_LENGTH).ok_or_else(damaged)?;
        let word = |at| u32_at(header, at);
        if (word(4) & !NUMBERED) as usize != rest.len() || word(0) != crc32c(rest) {
            return Err(damaged());
        }
        if word(4) & NUMBERED == 0 {
            return Ok(Some(rest.to_vec()));
        }
        let (found, payload) = rest.split_first_chunk().ok_or_else(damaged)?;
        let is_ours = self.instance.is_none_or(|instance| *found == instance.to_le_bytes());
        if is_ours { Ok(Some(payload.to_vec())) } else { Err(damaged()) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Removes the file, when the journal holds the same checkpoint.
    pub fn remove(&self) -> Result<(), ClusterError> {
        match checked_file::remove(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed("removing")(error)),
            Ok(()) => {
                sync_directory(self.path.parent().expect("it is in a directory")).map_err(self.failed("removing"))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn damaged_pending_checkpoint_fails() {
        let directory = tempfile::tempdir().unwrap();
        let pending = PendingCheckpoint::new(directory.path(), 7);
        assert_eq!(pending.read().unwrap(), None);
        pending.write(b"one").unwrap();
        pending.write(b"another").unwrap();
        assert_eq!(pending.read().unwrap().as_deref(), Some(&b"another"[..]));
        let mut bytes = std::fs::read(&pending.path).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            std::fs::write(&pending.path, &bytes).unwrap();
            assert!(pending.read().unwrap_err().to_string().contains("damaged"), "byte {at}");
            bytes[at] ^= 1;
        }
        for length in 0..bytes.len() {
            std::fs::write(&pending.path, &bytes[..length]).unwrap();
            assert!(pending.read().is_err(), "length {length}");
        }
        std::fs::write(&pending.path, &bytes).unwrap();
        assert!(PendingCheckpoint::new(directory.path(), 8).read().is_err(), "of another directory");
        let unnumbered = [&crc32c(b"old").to_le_bytes(), &3u32.to_le_bytes(), &b"old"[..]].concat();
        std::fs::write(&pending.path, unnumbered).unwrap();
        assert_eq!(pending.read().unwrap().as_deref(), Some(&b"old"[..]));
        pending.remove().unwrap();
        pending.remove().unwrap();
        assert_eq!(pending.read().unwrap(), None);
    }
}
