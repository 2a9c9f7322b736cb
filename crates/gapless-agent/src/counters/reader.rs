//! The file is untrusted and never mapped: a file that shrinks under a mapping causes a signal, under a read an error.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::descriptor::{
    CAPACITY_MAX, CAPACITY_OFFSET, HEADER_LENGTH, MAGIC, NAMESPACE_OFFSET, PID_OFFSET, RECORD_LENGTH, USED_OFFSET,
    VERSION, VERSION_OFFSET, check_label, file_length, label_offset, process_namespace, value_offset,
};
use crate::checked_file;
use crate::error::Error;
use crate::file_lock;

#[derive(Debug)]
pub struct CountersReader {
    path: PathBuf,
    file: File,
    header: CountersHeader,
}

#[derive(Clone, Copy, Debug)]
struct CountersHeader {
    capacity: usize,
    used: usize,
    pid: u32,
    namespace: u64,
}

impl CountersReader {
    /// Opens and checks the file.
    ///
    /// # Errors
    /// [`Error::CountersIo`]; [`Error::CountersDamaged`], with the position, if it is not a counters file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let file = checked_file::open(&path);
        let file = file.map_err(|source| Error::CountersIo { path: path.clone(), action: "open it", source })?;
        let mut reader = Self { path, file, header: CountersHeader { capacity: 0, used: 0, pid: 0, namespace: 0 } };
        reader.header = reader.read_header()?;
        Ok(reader)
    }

    /// Labels and values, in the order of addition. Two values may be from different moments.
    ///
    /// # Errors
    /// As for [`CountersReader::open`], if the file has been damaged since.
    pub fn read(&self) -> Result<Vec<(String, u64)>, Error> {
        let CountersHeader { capacity, used, .. } = self.read_header()?;
        // The file's length was compared with the capacity.
        let labels = self.read_at(label_offset(0), used * RECORD_LENGTH)?;
        let values = self.read_at(value_offset(capacity, 0), used * RECORD_LENGTH)?;
        let records = labels.chunks_exact(RECORD_LENGTH).zip(values.chunks_exact(RECORD_LENGTH)).enumerate();
        records
            .map(|(index, (label, value))| {
                let position = label_offset(index);
                let length = u32_at(label, 0) as usize;
                let text = label.get(4..4_usize.saturating_add(length)).ok_or("must have 1 to 124 bytes");
                let text = text.and_then(check_label).map_err(|reason| {
                    self.damaged(position, format!("a label, which {reason}"), format!("{length} bytes"))
                })?;
                Ok((text.to_owned(), u64_at(value, 0)))
            })
            .collect()
    }

    /// Process id of the writer, in its own namespace.
    #[must_use]
    pub fn owner_pid(&self) -> u32 {
        self.header.pid
    }

    /// Whether the file was removed or replaced: its owner has ended or restarted; open it again.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.file.metadata().map_or(true, |metadata| metadata.nlink() == 0)
    }

    /// Whether a process owns the file, even one of another namespace.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        !self.is_removed() && file_lock::is_locked(&self.file).unwrap_or(false)
    }

    /// Whether [`owner_pid`](Self::owner_pid) is of this process's namespace; otherwise it may name an unrelated
    /// process.
    #[must_use]
    pub fn is_owner_of_this_namespace(&self) -> bool {
        // Earlier versions write 0.
        [0, process_namespace()].contains(&self.header.namespace)
    }

    fn read_header(&self) -> Result<CountersHeader, Error> {
        let length = self.file.metadata().map_err(|source| self.io("look at it", source))?.len();
        if length < HEADER_LENGTH as u64 {
            return Err(self.damaged(0, format!("a header of {HEADER_LENGTH} bytes"), format!("{length} bytes")));
        }
        let bytes = self.read_at(0, HEADER_LENGTH)?;
        if bytes[..MAGIC.len()] != MAGIC {
            let found = bytes[..MAGIC.len()].escape_ascii().to_string();
            return Err(self.damaged(0, format!("the magic bytes {}", MAGIC.escape_ascii()), found));
        }
        let version = u32_at(&bytes, VERSION_OFFSET);
        if version != VERSION {
            return Err(self.damaged(VERSION_OFFSET, format!("version {VERSION}"), version.to_string()));
        }
        let capacity = u32_at(&bytes, CAPACITY_OFFSET) as usize;
        if !(1..=CAPACITY_MAX).contains(&capacity) {
            let expected = format!("a capacity from 1 to {CAPACITY_MAX}");
            return Err(self.damaged(CAPACITY_OFFSET, expected, capacity.to_string()));
        }
        if length != file_length(capacity) as u64 {
            let expected = format!("a file of {} bytes for {capacity} counters", file_length(capacity));
            return Err(self.damaged(CAPACITY_OFFSET, expected, format!("{length} bytes")));
        }
        let used = u32_at(&bytes, USED_OFFSET) as usize;
        if used > capacity {
            return Err(self.damaged(USED_OFFSET, format!("at most {capacity} counters"), used.to_string()));
        }
        let (pid, namespace) = (u32_at(&bytes, PID_OFFSET), u64_at(&bytes, NAMESPACE_OFFSET));
        Ok(CountersHeader { capacity, used, pid, namespace })
    }

    fn read_at(&self, position: usize, length: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            match rustix::io::pread(&self.file, &mut bytes[done..], (position + done) as u64) {
                Ok(0) => {
                    let expected = format!("{} bytes more", length - done);
                    return Err(self.damaged(position + done, expected, "the end of the file".to_owned()));
                }
                Ok(read) => done += read,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(self.io("read it", errno.into())),
            }
        }
        Ok(bytes)
    }

    fn damaged(&self, position: usize, expected: String, found: String) -> Error {
        Error::CountersDamaged { path: self.path.clone(), position: position as u64, expected, found }
    }

    fn io(&self, action: &'static str, source: io::Error) -> Error {
        Error::CountersIo { path: self.path.clone(), action, source }
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("a record has the field"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("a record has the field"))
}
