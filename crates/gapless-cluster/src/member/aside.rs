//! [`Aside`]: a checkpoint beside the journal, for the moment in which the journal is cut and its records go.

use crate::ClusterError;
use gapless_journal::{DiskWork, Environment};
use gapless_wire::checksum::crc32c;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Before the payload: its CRC-32C and its length, little-endian.
const HEADER_LENGTH: usize = 8;

/// The file.
#[derive(Debug)]
pub(crate) struct Aside {
    path: PathBuf,
    disk: Environment,
}

impl Aside {
    /// In the directory of a member.
    pub fn new(directory: &Path) -> Self {
        Self { path: directory.join("checkpoint"), disk: Environment::default() }
    }

    /// The same on a disk that may refuse.
    pub fn on(self, disk: Environment) -> Self {
        Self { disk, ..self }
    }

    fn failed(&self, action: &'static str) -> impl Fn(std::io::Error) -> ClusterError {
        let path = self.path.display().to_string();
        move |source| ClusterError::System { action: format!("{action} {path}"), source }
    }

    /// Writes it, durably.
    pub fn write(&self, payload: &[u8]) -> Result<(), ClusterError> {
        let partial = self.path.with_extension("new");
        let length = u32::try_from(payload.len()).expect("a checkpoint is shorter than a frame may be");
        let room = self.disk.ask(DiskWork::Allocate);
        let mut file = room.and_then(|()| File::create(&partial)).map_err(self.failed("writing"))?;
        let mut bytes = Vec::with_capacity(HEADER_LENGTH + payload.len());
        bytes.extend_from_slice(&crc32c(payload).to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(payload);
        let written = file.write_all(&bytes).and_then(|()| self.disk.ask(DiskWork::Sync));
        written.and_then(|()| file.sync_all()).map_err(self.failed("writing"))?;
        std::fs::rename(&partial, &self.path).map_err(self.failed("renaming"))?;
        self.sync_directory()
    }

    /// What was written, if it was not removed since.
    pub fn read(&self) -> Result<Option<Vec<u8>>, ClusterError> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("reading")(error)),
        };
        let damaged = || ClusterError::Damaged { path: self.path.clone() };
        let (header, payload) = bytes.split_at_checked(HEADER_LENGTH).ok_or_else(damaged)?;
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let is_right = word(4) as usize == payload.len() && word(0) == crc32c(payload);
        if is_right { Ok(Some(payload.to_vec())) } else { Err(damaged()) }
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Removes it: the journal says the same.
    pub fn remove(&self) -> Result<(), ClusterError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed("removing")(error)),
            Ok(()) => self.sync_directory(),
        }
    }

    fn sync_directory(&self) -> Result<(), ClusterError> {
        let directory = self.path.parent().expect("it stands in a directory");
        File::open(directory).and_then(|opened| opened.sync_all()).map_err(self.failed("syncing the directory of"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_until_it_is_removed_and_damage_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let aside = Aside::new(directory.path());
        assert_eq!(aside.read().unwrap(), None);
        aside.write(b"one").unwrap();
        aside.write(b"another").unwrap();
        assert_eq!(aside.read().unwrap().as_deref(), Some(&b"another"[..]));
        let mut bytes = std::fs::read(&aside.path).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            std::fs::write(&aside.path, &bytes).unwrap();
            assert!(aside.read().unwrap_err().to_string().contains("damaged"), "byte {at}");
            bytes[at] ^= 1;
        }
        for length in 0..bytes.len() {
            std::fs::write(&aside.path, &bytes[..length]).unwrap();
            assert!(aside.read().is_err(), "length {length}");
        }
        aside.remove().unwrap();
        aside.remove().unwrap();
        assert_eq!(aside.read().unwrap(), None);
    }
}
