//! [`ArchiveLocation`]: a segment of the journal that was moved to an archive. A *stub*, `….archived`, takes its place
//! in the journal's folder. It has the segment's bytes before its frames, and the location of the rest.
//!
//! ```text
//!   0 … the segment's first bytes unchanged: header page and index, up to the first frame
//!  then the summary:
//!    0  magic "GAPARCH\x01"
//!    8  u32 form: 0 unchanged, 1 LZ4 (see `compressed`)   12  u32 length of the path
//!   16  u64 length of the archived file                   24  u64 bytes of the segment in it
//!   32  the path, then u32 CRC-32C of the summary up to here
//! ```
//!
//! Numbers are little-endian. If both segment and stub exist, the segment counts: its archiving is not finished.

use crate::descriptor::{FIXED_LENGTH, FixedHeader};
use crate::error::JournalError;
use gapless_agent::folder::Folder;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"GAPARCH\x01";
const SUMMARY_LENGTH: usize = 32;
const PATH_LENGTH_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArchiveFormat {
    #[default]
    Plain,
    /// Compressed to a third or less for most applications; a reader unpacks the needed parts into memory.
    Lz4,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArchiveLocation {
    pub(crate) place: PathBuf,
    pub(crate) form: ArchiveFormat,
    pub(crate) stored_bytes: u64,
    pub(crate) segment_bytes: u64,
}

impl ArchiveLocation {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let path = self.place.as_os_str().as_bytes();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&u32::from(self.form == ArchiveFormat::Lz4).to_le_bytes());
        bytes.extend_from_slice(&(path.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.stored_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.segment_bytes.to_le_bytes());
        bytes.extend_from_slice(path);
        let sum = crc32c(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(crate) fn read(stub: &File, path: &Path, from: u64) -> Result<Self, JournalError> {
        let damaged = |reason: &str| JournalError::HeaderDamaged {
            segment: path.to_owned(),
            position: from,
            reason: reason.to_owned(),
        };
        let read = |bytes: &mut [u8], at| match stub.read_exact_at(bytes, from + at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("the summary is cut")),
            read => read.map_err(|error| JournalError::io("read", path, error)),
        };
        let mut bytes = vec![0; SUMMARY_LENGTH];
        read(&mut bytes, 0)?;
        let (form, path_length) = (u32_at(&bytes, 8), u32_at(&bytes, 12) as usize);
        if bytes[..8] != MAGIC || path_length > PATH_LENGTH_MAX {
            return Err(damaged("there is no summary of an archived segment"));
        }
        bytes.resize(SUMMARY_LENGTH + path_length + 4, 0);
        read(&mut bytes[SUMMARY_LENGTH..], SUMMARY_LENGTH as u64)?;
        let (summary, sum) = bytes.split_at(SUMMARY_LENGTH + path_length);
        let form = match form {
            0 => ArchiveFormat::Plain,
            1 => ArchiveFormat::Lz4,
            _ => return Err(damaged("the form of the archived segment is none")),
        };
        if u32_at(sum, 0) != crc32c(summary) {
            return Err(damaged("the checksum of the summary is not that of its bytes"));
        }
        Ok(Self {
            place: PathBuf::from(OsStr::from_bytes(&summary[SUMMARY_LENGTH..])),
            form,
            stored_bytes: u64_at(summary, 16),
            segment_bytes: u64_at(summary, 24),
        })
    }

    /// Opens the archived file, and checks that it is the segment with the stub's header.
    ///
    /// # Errors
    /// The archived file is missing, or is not the segment with the stub's header.
    pub(crate) fn open(&self, ours: &FixedHeader) -> Result<File, String> {
        let found = self.find(ours)?;
        found.map(|(_, file)| file).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).to_string())
    }

    /// `None` if the file is missing.
    ///
    /// # Errors
    /// The folder is missing, or the file is not this segment.
    pub(crate) fn find(&self, ours: &FixedHeader) -> Result<Option<(Folder, File)>, String> {
        let failed = |error: io::Error| error.to_string();
        let folder = Folder::open(self.place.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        let Some(file) = folder.open_file(self.name(), OFlags::RDONLY).map_err(failed)? else { return Ok(None) };
        let length = file.metadata().map_err(failed)?.len();
        if length != self.stored_bytes {
            return Err(format!("it has {length} bytes, and had {}", self.stored_bytes));
        }
        let mut fixed = [0; FIXED_LENGTH];
        file.read_exact_at(&mut fixed, 0).map_err(failed)?;
        match FixedHeader::from_bytes(&fixed) {
            // A restore may have changed the journal's incarnation since.
            Ok(header) if (header.stream_id, header.number) == (ours.stream_id, ours.number) => {
                Ok(Some((folder, file)))
            }
            Ok(_) => Err("it is of another journal".to_owned()),
            Err(_) => Err("its header is damaged".to_owned()),
        }
    }

    pub(crate) fn name(&self) -> &OsStr {
        self.place.file_name().unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn damaged_summary_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stub");
        for form in [ArchiveFormat::Plain, ArchiveFormat::Lz4] {
            let archived = ArchiveLocation {
                place: PathBuf::from("/mnt/archive/ü"),
                form,
                stored_bytes: 1 << 40,
                segment_bytes: 77,
            };
            let bytes = archived.to_bytes();
            let read = |bytes: &[u8]| {
                std::fs::write(&path, [&[7; 100], bytes].concat()).unwrap();
                ArchiveLocation::read(&File::open(&path).unwrap(), &path, 100)
            };
            assert_eq!(read(&bytes).unwrap(), archived);
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(read(&flipped).is_err(), "bit {bit}");
            }
            (0..bytes.len()).for_each(|length| assert!(read(&bytes[..length]).is_err(), "cut at {length}"));
        }
    }
}
