//! [`BaseFile`]: the file with the states of all aggregates that had events before a sequence. It replaces these events
//! once they are deleted: unlike an index it cannot be rebuilt.
//!
//! ```text
//! blocks: u32 length, u32 checksum, entries
//!   entry: u64 key (see `key`), u32 key of the aggregate's type, u32 version of the state's type, u32 hash of its layout, u64 events so far,
//!          u64 sequence of the last, u8 length of the identifier, u32 length of the state, then both
//! table of blocks: for each, u64 first key, u64 offset
//! the filter's words
//! the last 128 bytes:
//!    0  magic "GAPBASE\x01"
//!    8  u128 stream      24  u64 sequence before which all is in it
//!   32  u64 time stamp of the last frame before that, ns since the epoch
//!   40  u64 entries      48  u64 where the table stands, 56 u64 where the filter stands, 64 u64 length of the file
//!   72  u32 checksum of the table, 76 u32 of the filter
//!   80  zeros, 124 u32 checksum of the bytes before
//! ```
//!
//! Numbers are little-endian, checksums CRC-32C. Entries are sorted by key, type and identifier. The file names the
//! stream and a frame but no incarnation: a restored copy of the journal has another incarnation and the same events.

use super::filter::BloomFilter;
use super::key::IndexKey;
use crate::error::BaseFileError;
use crate::identity::TypeKey;
use gapless_agent::fault::crash_point;
use gapless_agent::{checked_file, private_folder};
use gapless_journal::{FilePoint, FileReplacement, JournalError, JournalReader};
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{FieldReader, u32_at, u64_at, u128_at};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const BASE_FOLDER: &str = "base";
const MAGIC: [u8; 8] = *b"GAPBASE\x01";
const SUMMARY_LENGTH: usize = 128;
const SUMMARY_SUM_AT: usize = 124;
const BLOCK_BYTES: usize = 4096;
const TABLE_ENTRY_LENGTH: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseEntry {
    pub key: IndexKey,
    pub aggregate: TypeKey,
    pub id: Box<[u8]>,
    /// Version of the state's type.
    pub state_version: u32,
    /// Hash of the state's layout; 0 if unknown.
    pub state_layout: u32,
    /// Events so far.
    pub version: u64,
    /// Sequence of the last event.
    pub last_sequence: u64,
    pub state: Vec<u8>,
}

impl BaseEntry {
    /// Sort order of entries.
    pub fn order(&self) -> (IndexKey, TypeKey, &[u8]) {
        (self.key, self.aggregate, &self.id)
    }

    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let length = u32::try_from(self.state.len());
        let length = length.map_err(|_| io::Error::other("the state of an aggregate has more than 4 GiB"))?;
        out.extend_from_slice(&self.key.0.to_le_bytes());
        out.extend_from_slice(&self.aggregate.0.to_le_bytes());
        out.extend_from_slice(&self.state_version.to_le_bytes());
        out.extend_from_slice(&self.state_layout.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.last_sequence.to_le_bytes());
        out.push(self.id.len() as u8);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.state);
        Ok(())
    }

    fn read(fields: &mut FieldReader<'_>) -> Option<Self> {
        let key = IndexKey(fields.u64("a key").ok()?);
        let aggregate = TypeKey(fields.u32("a type").ok()?);
        let (state_version, state_layout) = (fields.u32("a version").ok()?, fields.u32("a layout").ok()?);
        let (version, last_sequence) = (fields.u64("events").ok()?, fields.u64("a sequence").ok()?);
        let (id_length, length) = (fields.u8("a length").ok()?, fields.u32("a length").ok()?);
        let id = fields.bytes(id_length.into(), "an identifier").ok()?.into();
        let state = fields.bytes(length as usize, "a state").ok()?.to_vec();
        Some(Self { key, aggregate, id, state_version, state_layout, version, last_sequence, state })
    }
}

pub(crate) struct BaseFile {
    file: File,
    pub path: PathBuf,
    /// Events before this sequence are folded.
    pub before: u64,
    /// Time of the last folded frame, ns since the epoch.
    pub last_time_ns: u64,
    /// Number of aggregates.
    pub entries: u64,
    /// Length of the file, bytes.
    pub length: u64,
    table: Vec<(IndexKey, u64)>,
    blocks_end: u64,
    pub filter: Arc<BloomFilter>,
}

fn name_of(before: u64) -> String {
    format!("base-{before:020}")
}

#[derive(Default)]
struct BaseFolder {
    named: Vec<(u64, PathBuf)>,
    /// Left by a crash.
    unfinished: Vec<PathBuf>,
}

fn list(folder: &Path) -> Result<BaseFolder, BaseFileError> {
    let failed = |error: io::Error| BaseFileError { path: folder.to_owned(), reason: error.to_string() };
    let BaseFolder { mut named, mut unfinished } = BaseFolder::default();
    let entries = match std::fs::read_dir(folder) {
        // A cluster member that has fetched a state has a file of this name.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(BaseFolder::default());
        }
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let before = name.strip_prefix("base-").and_then(|number| number.parse().ok());
        match before {
            Some(before) if name_of(before) == name => named.push((before, path)),
            _ if name.ends_with(".new") => unfinished.push(path),
            _ => {}
        }
    }
    named.sort_unstable();
    Ok(BaseFolder { named, unfinished })
}

impl BaseFile {
    /// Opens the newest base, and checks summary, table and filter; blocks when read. `stream_id`: expected stream.
    ///
    /// # Errors
    /// The newest file is damaged, or of another stream.
    pub fn newest(folder: &Path, stream_id: Option<u128>) -> Result<Option<Self>, BaseFileError> {
        let BaseFolder { named, .. } = list(folder)?;
        let Some((before, path)) = named.last() else { return Ok(None) };
        let base = Self::open(path, stream_id)?;
        if base.before != *before {
            return Err(base.unusable("its name is another's"));
        }
        Ok(Some(base))
    }

    /// Opens the newest base next to a journal, with the journal's first sequence; `None` if none is needed. Checks
    /// stream (by default the journal's) and history, but not blocks.
    ///
    /// # Errors
    /// The base is missing, damaged, or of another stream or history ([`BaseFileError`]); the journal is unreadable.
    pub fn next_to(journal: &Path, stream_id: Option<u128>) -> io::Result<Option<(Self, u64)>> {
        let folder = journal.with_file_name(BASE_FOLDER);
        let (stream_id, first) = match JournalReader::open(journal) {
            Ok(reader) => (stream_id.or(Some(reader.stream_id())), reader.first_sequence()),
            Err(JournalError::NoJournal { .. }) => (stream_id, 1),
            Err(error) => return Err(io::Error::other(error)),
        };
        let base = Self::newest(&folder, stream_id).map_err(io::Error::other)?;
        let Some(base) = base.filter(|base| base.before >= first) else {
            if first == 1 {
                return Ok(None);
            }
            let reason = format!(
                "it is missing, or ends before sequence {first}, with which the journal begins: the events before it were deleted"
            );
            return Err(io::Error::other(BaseFileError { path: folder, reason }));
        };
        base.check_history(journal)?;
        Ok(Some((base, first)))
    }

    /// Passes if the journal cannot be read.
    fn check_history(&self, journal: &Path) -> io::Result<()> {
        let (sequence, timestamp_ns) = (self.before - 1, Some(self.last_time_ns));
        let point = FilePoint { path: self.path.clone(), identity: None, sequence, timestamp_ns };
        match JournalReader::open(journal).and_then(|reader| reader.check_point(&point)) {
            // The frame is in a missing archive, and is going to be deleted.
            Ok(()) | Err(JournalError::ArchiveUnusable { .. }) => Ok(()),
            Err(JournalError::OtherHistory { fault, .. }) => {
                let reason = format!("it is of another history than the journal, by the frame {sequence}: {fault}");
                Err(io::Error::other(self.unusable(reason)))
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Removes older bases and unfinished files.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_others(&self) -> Result<(), BaseFileError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let BaseFolder { named, unfinished } = list(folder)?;
        let older = named.into_iter().filter(|(before, _)| *before < self.before).map(|(_, path)| path);
        for path in older.chain(unfinished) {
            checked_file::remove(&path).map_err(|error| BaseFileError { path, reason: error.to_string() })?;
        }
        Ok(())
    }

    fn open(path: &Path, stream_id: Option<u128>) -> Result<Self, BaseFileError> {
        let unusable = |reason: String| BaseFileError { path: path.to_owned(), reason };
        let failed = |error: io::Error| unusable(error.to_string());
        let file = checked_file::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let summary_at = length.checked_sub(SUMMARY_LENGTH as u64);
        let summary_at = summary_at.ok_or_else(|| unusable(format!("it has {length} bytes")))?;
        let mut summary = [0; SUMMARY_LENGTH];
        file.read_exact_at(&mut summary, summary_at).map_err(failed)?;
        if summary[..8] != MAGIC {
            return Err(unusable("it is none, or of another version".to_owned()));
        }
        if u32_at(&summary, SUMMARY_SUM_AT) != crc32c(&summary[..SUMMARY_SUM_AT]) {
            return Err(unusable("its summary is damaged".to_owned()));
        }
        if stream_id.is_some_and(|stream_id| u128_at(&summary, 8) != stream_id) {
            return Err(unusable("it is of another stream".to_owned()));
        }
        let (table_at, filter_at, whole) = (u64_at(&summary, 48), u64_at(&summary, 56), u64_at(&summary, 64));
        if whole != length || !(table_at <= filter_at && filter_at <= summary_at) {
            return Err(unusable(format!("it has {length} bytes, and its summary says {whole}")));
        }
        let part = |from: u64, to: u64, sum_at: usize, what: &str| {
            let mut bytes = vec![0; (to - from) as usize];
            file.read_exact_at(&mut bytes, from).map_err(failed)?;
            match crc32c(&bytes) == u32_at(&summary, sum_at) {
                true => Ok(bytes),
                false => Err(unusable(format!("its {what} is damaged"))),
            }
        };
        let table = part(table_at, filter_at, 72, "table")?;
        let table = table.chunks_exact(TABLE_ENTRY_LENGTH).map(|entry| (IndexKey(u64_at(entry, 0)), u64_at(entry, 8)));
        let table: Vec<_> = table.collect();
        if !table.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1) || table.iter().any(|(_, at)| *at >= table_at) {
            return Err(unusable("its table is none".to_owned()));
        }
        let filter = BloomFilter::from_bytes(&part(filter_at, summary_at, 76, "filter")?);
        let filter = Arc::new(filter.ok_or_else(|| unusable("its filter is none".to_owned()))?);
        let (before, last_time_ns, entries) = (u64_at(&summary, 24), u64_at(&summary, 32), u64_at(&summary, 40));
        let (path, blocks_end) = (path.to_owned(), table_at);
        Ok(Self { file, path, before, last_time_ns, entries, length, table, blocks_end, filter })
    }

    fn unusable(&self, reason: impl ToString) -> BaseFileError {
        BaseFileError { path: self.path.clone(), reason: reason.to_string() }
    }

    fn block(&self, number: usize) -> Result<Vec<u8>, BaseFileError> {
        let at = self.table[number].1;
        let end = self.table.get(number + 1).map_or(self.blocks_end, |(_, at)| *at);
        let length = usize::try_from(end - at).ok().filter(|length| *length >= 8);
        let length = length.ok_or_else(|| self.unusable(format!("block {number} has {} bytes", end - at)))?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at).map_err(|error| self.unusable(error))?;
        let (head, body) = bytes.split_at(8);
        if u32_at(head, 0) as usize != body.len() || u32_at(head, 4) != crc32c(body) {
            return Err(self.unusable(format!("block {number} is damaged")));
        }
        bytes.drain(..8);
        Ok(bytes)
    }

    /// State of an aggregate; `None` if it has no events before [`BaseFile::before`].
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn find(&self, aggregate: TypeKey, id: &[u8]) -> Result<Option<BaseEntry>, BaseFileError> {
        let key = IndexKey::of_aggregate(aggregate, id);
        if !self.filter.may_have(key) {
            return Ok(None);
        }
        let first = self.table.partition_point(|(block_key, _)| *block_key < key).saturating_sub(1);
        let mut entries = self.entries_from(first);
        while let Some(entry) = entries.next()? {
            if entry.order() >= (key, aggregate, id) {
                return Ok((entry.order() == (key, aggregate, id)).then_some(entry));
            }
        }
        Ok(None)
    }

    /// Reads all entries in order.
    pub const fn entries(&self) -> BaseEntries<'_> {
        self.entries_from(0)
    }

    const fn entries_from(&self, next_block: usize) -> BaseEntries<'_> {
        BaseEntries { base: self, next_block, block: Vec::new(), at: 0 }
    }

    /// Reads and checks the whole file.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), BaseFileError> {
        let (mut entries, mut count) = (self.entries(), 0);
        let mut before: Option<BaseEntry> = None;
        while let Some(entry) = entries.next()? {
            if before.as_ref().is_some_and(|before| before.order() >= entry.order()) || !self.filter.may_have(entry.key)
            {
                return Err(self.unusable("its entries are in no order"));
            }
            count += 1;
            before = Some(entry);
        }
        if count != self.entries {
            return Err(self.unusable(format!("it has {count} entries, and its summary says {}", self.entries)));
        }
        Ok(())
    }
}

pub(crate) struct BaseEntries<'a> {
    base: &'a BaseFile,
    next_block: usize,
    block: Vec<u8>,
    at: usize,
}

impl BaseEntries<'_> {
    /// Next entry; `None` after the last.
    pub fn next(&mut self) -> Result<Option<BaseEntry>, BaseFileError> {
        while self.at == self.block.len() {
            if self.next_block == self.base.table.len() {
                return Ok(None);
            }
            self.block = self.base.block(self.next_block)?;
            (self.next_block, self.at) = (self.next_block + 1, 0);
        }
        let mut fields = FieldReader::new(&self.block[self.at..]);
        let entry = BaseEntry::read(&mut fields);
        self.at = self.block.len() - fields.rest().len();
        entry.map(Some).ok_or_else(|| self.base.unusable("a block has bytes that are none"))
    }
}

pub(crate) struct BaseWriter {
    out: BufWriter<FileReplacement>,
    path: PathBuf,
    stream_id: u128,
    before: u64,
    last_time_ns: u64,
    at: u64,
    block: Vec<u8>,
    block_key: IndexKey,
    table: Vec<u8>,
    keys: Vec<IndexKey>,
}

impl BaseWriter {
    /// Begins a base; `last_time_ns`: time of the last frame before `before`.
    pub fn begin(folder: &Path, stream_id: u128, before: u64, last_time_ns: u64) -> io::Result<Self> {
        private_folder::create(folder)?;
        // Sync the folder's own name before anything depends on its files.
        gapless_journal::durable_file::sync_directory(folder.parent().unwrap_or(Path::new(".")))?;
        let name = name_of(before);
        let path = folder.join(&name);
        let file = FileReplacement::begin(&path, folder.join(format!("{name}.new")), 0o600)?;
        Ok(Self {
            out: BufWriter::with_capacity(1 << 18, file),
            path,
            stream_id,
            before,
            last_time_ns,
            at: 0,
            block: Vec::new(),
            block_key: IndexKey(0),
            table: Vec::new(),
            keys: Vec::new(),
        })
    }

    /// Appends the next entry in the order.
    pub fn put(&mut self, entry: &BaseEntry) -> io::Result<()> {
        debug_assert!(self.keys.last().is_none_or(|last| *last <= entry.key));
        if self.block.is_empty() {
            self.block_key = entry.key;
        }
        self.keys.push(entry.key);
        entry.write(&mut self.block)?;
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
            crash_point("deletion_in_base");
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(self.block.len()).map_err(|_| io::Error::other("a block has more than 4 GiB"))?;
        self.table.extend_from_slice(&self.block_key.0.to_le_bytes());
        self.table.extend_from_slice(&self.at.to_le_bytes());
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&crc32c(&self.block).to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.at += 8 + self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Moves into place, syncs and reads back; no base is left on an error.
    pub fn finish(self) -> io::Result<BaseFile> {
        let path = self.path.clone();
        self.put_in_place().inspect_err(|_| {
            // A start would use the file. It may not exist.
            let _removed = checked_file::remove(path);
        })
    }

    fn put_in_place(mut self) -> io::Result<BaseFile> {
        self.end_block()?;
        let filter = BloomFilter::for_keys(self.keys.len());
        self.keys.iter().for_each(|key| filter.insert(*key));
        let filter = filter.to_bytes();
        let (table_at, filter_at) = (self.at, self.at + self.table.len() as u64);
        self.out.write_all(&self.table)?;
        self.out.write_all(&filter)?;
        let mut summary = MAGIC.to_vec();
        summary.extend_from_slice(&self.stream_id.to_le_bytes());
        let length = filter_at + (filter.len() + SUMMARY_LENGTH) as u64;
        for number in [self.before, self.last_time_ns, self.keys.len() as u64, table_at, filter_at, length] {
            summary.extend_from_slice(&number.to_le_bytes());
        }
        summary.extend_from_slice(&crc32c(&self.table).to_le_bytes());
        summary.extend_from_slice(&crc32c(&filter).to_le_bytes());
        summary.resize(SUMMARY_SUM_AT, 0);
        let sum = crc32c(&summary);
        summary.extend_from_slice(&sum.to_le_bytes());
        self.out.write_all(&summary)?;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync()?;
        drop(file.put_in_place()?);
        let base = BaseFile::open(&self.path, Some(self.stream_id)).map_err(io::Error::other)?;
        base.check().map_err(io::Error::other)?;
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::{printed_seed, rounds};

    fn entry(number: u64) -> BaseEntry {
        let (aggregate, id) = (TypeKey(1 + (number % 2) as u32), number.to_le_bytes());
        BaseEntry {
            key: IndexKey::of_aggregate(aggregate, &id),
            aggregate,
            id: id.into(),
            state_version: 3,
            state_layout: 5,
            version: number + 1,
            last_sequence: 2 * number,
            state: vec![number as u8; if number == 7 { 10_000 } else { number as usize % 50 }],
        }
    }

    fn write(folder: &Path, count: u64) -> BaseFile {
        let mut entries: Vec<_> = (0..count).map(entry).collect();
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut writer = BaseWriter::begin(folder, 7, 1_000, 5).unwrap();
        entries.iter().for_each(|entry| writer.put(entry).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn base_finds_each_aggregate() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("base");
        assert!(BaseFile::newest(&folder, Some(7)).unwrap().is_none());
        let written = write(&folder, 500);
        let base = BaseFile::newest(&folder, Some(7)).unwrap().unwrap();
        assert_eq!((base.before, base.last_time_ns, base.entries), (1_000, 5, 500));
        assert_eq!(base.length, written.path.metadata().unwrap().len());
        for number in 0..500 {
            let entry = entry(number);
            assert_eq!(base.find(entry.aggregate, &entry.id).unwrap(), Some(entry.clone()));
            assert_eq!(base.find(TypeKey(3), &entry.id).unwrap(), None);
        }
        assert_eq!(base.find(TypeKey(1), &500u64.to_le_bytes()).unwrap(), None);
        let refused = BaseFile::newest(&folder, Some(8)).err().unwrap().to_string();
        assert!(refused.contains("of another stream") && refused.contains("base-"), "{refused}");
        std::fs::write(folder.join("base-00000000000000000500"), b"older").unwrap();
        std::fs::write(folder.join("base-00000000000000002000.new"), b"unfinished").unwrap();
        BaseFile::newest(&folder, Some(7)).unwrap().unwrap().remove_others().unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn base_damage_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let base = write(directory.path(), 100);
        let whole = std::fs::read(&base.path).unwrap();
        let step = rounds(61, 610) as usize;
        let first = printed_seed() as usize % step;
        for at in (first..whole.len()).step_by(step).chain(whole.len() - SUMMARY_LENGTH..whole.len()) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&base.path, &whole[..at]).unwrap();
            assert!(BaseFile::newest(directory.path(), Some(7)).is_err(), "cut at {at}");
            std::fs::write(&base.path, &damaged).unwrap();
            let Ok(Some(opened)) = BaseFile::newest(directory.path(), Some(7)) else { continue };
            assert!(opened.check().is_err(), "byte {at}");
            for number in 0..100 {
                let entry = entry(number);
                if let Ok(found) = opened.find(entry.aggregate, &entry.id) {
                    assert_eq!(found, Some(entry), "byte {at}");
                }
            }
        }
    }
}
