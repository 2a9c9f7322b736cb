//! [`IndexRun`]: an immutable file with the sorted keys of all events of a part of the stream, and its writer.
//!
//! ```text
//! blocks: u32 length, u32 checksum, entries (see `postings`); a key may have several consecutive entries
//! table of blocks: for each, u64 first key, u64 offset
//! the filter's words
//! the last 128 bytes:
//!    0  magic "GAPINDX\x01"
//!    8  u128 stream      24  u64 incarnation
//!   32  u64 first and 40 u64 last sequence: the frames that it is made of
//!   48  u64 time stamp of the last one, ns since the epoch
//!   56  u64 postings     64  u64 keys
//!   72  u64 where the blocks' table stands, 80 u64 where the filter stands, 88 u64 length of the file
//!   96  u32 checksum of the table, 100 u32 of the filter
//!  104  zeros, 124 u32 checksum of the bytes before
//! ```
//!
//! Numbers are little-endian, checksums CRC-32C. The file name tells which frames it covers.

use super::filter::BloomFilter;
use super::key::IndexKey;
use super::postings::{put_entry, take_entry};
use crate::error::IndexFileError;
use crate::identity::Position;
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use gapless_journal::FileReplacement;
use gapless_log::StreamIdentity;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at, u128_at};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 7] = *b"GAPINDX";
const FORMAT: u8 = 1;
const SUMMARY_LENGTH: usize = 128;
const SUMMARY_SUM_AT: usize = 124;
const BLOCK_BYTES: usize = 4096;
const ENTRY_POSITIONS_MAX: usize = 1024;
const TABLE_ENTRY_LENGTH: usize = 16;
/// An entry more than a full block.
const BLOCK_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunExtent {
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// Time of the last frame.
    pub last_time_ns: u64,
}

pub(super) struct IndexRun {
    file: File,
    pub path: PathBuf,
    pub extent: RunExtent,
    pub postings: u64,
    pub keys: u64,
    table: Vec<(IndexKey, u64)>,
    blocks_end: u64,
    pub filter: Arc<BloomFilter>,
}

pub(super) fn name_of(first_sequence: u64, last_sequence: u64) -> String {
    format!("run-{first_sequence:020}-{last_sequence:020}")
}

/// `None` for other files.
pub(super) fn extent_of_name(name: &str) -> Option<(u64, u64)> {
    let (first, last) = name.strip_prefix("run-")?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (name_of(first, last) == name && first <= last).then_some((first, last))
}

enum RunOpenError {
    Unusable(String),
    System(io::Error),
}

impl RunOpenError {
    fn of(error: io::Error) -> Self {
        match error.raw_os_error() {
            None => Self::Unusable(error.to_string()),
            Some(_) => Self::System(error),
        }
    }
}

impl IndexRun {
    /// Opens a run, and checks summary, table and filter; blocks when read. `identity`: expected stream. The inner
    /// error is a fault of the file.
    ///
    /// # Errors
    /// An error of the system, which says nothing about the file.
    pub fn open(path: &Path, identity: Option<StreamIdentity>) -> io::Result<Result<Self, IndexFileError>> {
        match Self::open_checked(path, identity) {
            Ok(run) => Ok(Ok(run)),
            Err(RunOpenError::Unusable(reason)) => Ok(Err(IndexFileError { path: path.to_owned(), reason })),
            Err(RunOpenError::System(error)) => {
                Err(io::Error::new(error.kind(), IndexFileError { path: path.to_owned(), reason: error.to_string() }))
            }
        }
    }

    fn open_checked(path: &Path, identity: Option<StreamIdentity>) -> Result<Self, RunOpenError> {
        let unusable = RunOpenError::Unusable;
        let failed = RunOpenError::of;
        let file = checked_file::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut summary = [0; SUMMARY_LENGTH];
        let summary_at = length.checked_sub(SUMMARY_LENGTH as u64);
        let summary_at = summary_at.ok_or_else(|| unusable(format!("it has {length} bytes")))?;
        file.read_exact_at(&mut summary, summary_at).map_err(failed)?;
        if summary[..7] != MAGIC {
            return Err(unusable("it does not end as an index does".to_owned()));
        }
        if summary[7] != FORMAT {
            return Err(unusable(format!("it has format {}, and this program reads {FORMAT}", summary[7])));
        }
        if u32_at(&summary, SUMMARY_SUM_AT) != crc32c(&summary[..SUMMARY_SUM_AT]) {
            return Err(unusable("its summary is damaged".to_owned()));
        }
        let found = StreamIdentity { stream_id: u128_at(&summary, 8), incarnation: u64_at(&summary, 24) };
        if identity.is_some_and(|identity| identity != found) {
            return Err(unusable("it is of another stream".to_owned()));
        }
        let extent = RunExtent {
            first_sequence: u64_at(&summary, 32),
            last_sequence: u64_at(&summary, 40),
            last_time_ns: u64_at(&summary, 48),
        };
        let (table_at, filter_at, whole) = (u64_at(&summary, 72), u64_at(&summary, 80), u64_at(&summary, 88));
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
        let table = part(table_at, filter_at, 96, "table")?;
        let table = table.chunks_exact(TABLE_ENTRY_LENGTH).map(|entry| (IndexKey(u64_at(entry, 0)), u64_at(entry, 8)));
        let table: Vec<_> = table.collect();
        if !table.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1) || table.iter().any(|(_, at)| *at >= table_at) {
            return Err(unusable("its table is none".to_owned()));
        }
        let filter = BloomFilter::from_bytes(&part(filter_at, summary_at, 100, "filter")?);
        let filter = Arc::new(filter.ok_or_else(|| unusable("its filter is none".to_owned()))?);
        let (postings, keys) = (u64_at(&summary, 56), u64_at(&summary, 64));
        Ok(Self { file, path: path.to_owned(), extent, postings, keys, table, blocks_end: table_at, filter })
    }

    fn unusable(&self, reason: impl ToString) -> IndexFileError {
        IndexFileError { path: self.path.clone(), reason: reason.to_string() }
    }

    fn block(&self, number: usize) -> Result<Vec<u8>, IndexFileError> {
        let at = self.table[number].1;
        let end = self.table.get(number + 1).map_or(self.blocks_end, |(_, at)| *at);
        let length = usize::try_from(end - at).ok().filter(|length| (8..=BLOCK_BYTES_MAX).contains(length));
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

    /// Appends the first `limit` positions of a key.
    pub fn find(
        &self,
        key: IndexKey,
        from: Position,
        limit: usize,
        found: &mut Vec<Position>,
    ) -> Result<(), IndexFileError> {
        if from.sequence > self.extent.last_sequence || !self.filter.may_have(key) {
            return Ok(());
        }
        let begin = found.len();
        // The key may begin in the block before the first one that begins with it.
        let first = self.table.partition_point(|(block_key, _)| *block_key < key).saturating_sub(1);
        let mut entry = Vec::new();
        for number in first..self.table.len() {
            if self.table[number].0 > key {
                break;
            }
            let block = self.block(number)?;
            let mut bytes = &block[..];
            while !bytes.is_empty() {
                entry.clear();
                let taken = take_entry(&mut bytes, self.extent.first_sequence, &mut entry);
                let taken = taken.ok_or_else(|| self.unusable(format!("block {number} has bytes that are none")))?;
                if taken > key {
                    return Ok(());
                }
                if taken == key {
                    found.extend(entry.iter().filter(|position| **position >= from));
                    if found.len() - begin >= limit {
                        found.truncate(begin + limit);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// All entries, in the order of their keys.
    pub const fn entries(&self) -> RunEntries<'_> {
        RunEntries { run: self, next_block: 0, block: Vec::new(), at: 0 }
    }
}

pub(super) struct RunEntries<'a> {
    run: &'a IndexRun,
    next_block: usize,
    block: Vec<u8>,
    at: usize,
}

impl RunEntries<'_> {
    /// Next key, its positions in `positions`; `None` after the last.
    pub fn next(&mut self, positions: &mut Vec<Position>) -> Result<Option<IndexKey>, IndexFileError> {
        positions.clear();
        while self.at == self.block.len() {
            if self.next_block == self.run.table.len() {
                return Ok(None);
            }
            self.block = self.run.block(self.next_block)?;
            (self.next_block, self.at) = (self.next_block + 1, 0);
        }
        let mut bytes = &self.block[self.at..];
        let key = take_entry(&mut bytes, self.run.extent.first_sequence, positions);
        self.at = self.block.len() - bytes.len();
        key.map(Some).ok_or_else(|| self.run.unusable("a block has bytes that are none"))
    }
}

pub(super) struct RunWriter {
    out: BufWriter<FileReplacement>,
    path: PathBuf,
    identity: StreamIdentity,
    extent: RunExtent,
    at: u64,
    block: Vec<u8>,
    block_key: IndexKey,
    table: Vec<u8>,
    last_key: Option<IndexKey>,
    keys: u64,
    postings: u64,
}

impl RunWriter {
    /// Begins a run of the frames of `extent`.
    pub fn begin(directory: &Path, identity: StreamIdentity, extent: RunExtent) -> io::Result<Self> {
        crash_point("index_run_begun");
        let name = name_of(extent.first_sequence, extent.last_sequence);
        let path = directory.join(&name);
        let file = FileReplacement::begin(&path, directory.join(format!("{name}.new")), 0o600)?;
        Ok(Self {
            out: BufWriter::with_capacity(1 << 18, file),
            path,
            identity,
            extent,
            at: 0,
            block: Vec::new(),
            block_key: IndexKey(0),
            table: Vec::new(),
            last_key: None,
            keys: 0,
            postings: 0,
        })
    }

    /// Appends positions, ascending, of a key not below the previous one.
    pub fn put(&mut self, key: IndexKey, positions: &[Position]) -> io::Result<()> {
        debug_assert!(self.last_key.is_none_or(|last| last <= key));
        self.keys += u64::from(self.last_key != Some(key));
        self.last_key = Some(key);
        self.postings += positions.len() as u64;
        for positions in positions.chunks(ENTRY_POSITIONS_MAX) {
            if self.block.is_empty() {
                self.block_key = key;
            }
            put_entry(&mut self.block, key, self.extent.first_sequence, positions);
            if self.block.len() >= BLOCK_BYTES {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.table.extend_from_slice(&self.block_key.0.to_le_bytes());
        self.table.extend_from_slice(&self.at.to_le_bytes());
        self.out.write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.out.write_all(&crc32c(&self.block).to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.at += 8 + self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Moves the run into place; `filter` has its keys.
    pub fn finish(mut self, filter: &BloomFilter) -> io::Result<IndexRun> {
        self.end_block()?;
        let filter = filter.to_bytes();
        let (table_at, filter_at) = (self.at, self.at + self.table.len() as u64);
        self.out.write_all(&self.table)?;
        self.out.write_all(&filter)?;
        let mut summary = Vec::with_capacity(SUMMARY_LENGTH);
        summary.extend_from_slice(&MAGIC);
        summary.push(FORMAT);
        summary.extend_from_slice(&self.identity.stream_id.to_le_bytes());
        let RunExtent { first_sequence, last_sequence, last_time_ns } = self.extent;
        let numbers = [
            self.identity.incarnation,
            first_sequence,
            last_sequence,
            last_time_ns,
            self.postings,
            self.keys,
            table_at,
            filter_at,
            filter_at + (filter.len() + SUMMARY_LENGTH) as u64,
        ];
        numbers.iter().for_each(|number| summary.extend_from_slice(&number.to_le_bytes()));
        summary.extend_from_slice(&crc32c(&self.table).to_le_bytes());
        summary.extend_from_slice(&crc32c(&filter).to_le_bytes());
        summary.resize(SUMMARY_SUM_AT, 0);
        let sum = crc32c(&summary);
        summary.extend_from_slice(&sum.to_le_bytes());
        self.out.write_all(&summary)?;
        let mut file = self.out.into_inner().map_err(|error| error.into_error())?;
        file.sync()?;
        crash_point("index_run_written");
        drop(file.put_in_place()?);
        crash_point("index_run_placed");
        IndexRun::open(&self.path, Some(self.identity))?.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::{printed_seed, rounds};

    const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 7, incarnation: 1 };
    const EXTENT: RunExtent = RunExtent { first_sequence: 10, last_sequence: 9_000, last_time_ns: 5 };

    fn position(sequence: u64) -> Position {
        Position { sequence, ordinal: 0 }
    }

    fn write(directory: &Path) -> IndexRun {
        let filter = BloomFilter::for_keys(301);
        let mut writer = RunWriter::begin(directory, IDENTITY, EXTENT).unwrap();
        for key in 0..=300 {
            filter.insert(IndexKey(key));
            let positions = if key == 150 { (10..9_000).map(position).collect() } else { vec![position(10 + key)] };
            writer.put(IndexKey(key), &positions).unwrap();
        }
        writer.finish(&filter).unwrap()
    }

    #[test]
    fn run_finds_each_key() {
        let directory = tempfile::tempdir().unwrap();
        let run = write(directory.path());
        assert_eq!((run.extent, run.keys, run.postings), (EXTENT, 301, 300 + 8_990));
        let find = |key, from, limit| {
            let mut found = Vec::new();
            run.find(IndexKey(key), position(from), limit, &mut found).unwrap();
            found.into_iter().map(|position| position.sequence).collect::<Vec<_>>()
        };
        for key in (0..=300).filter(|key| *key != 150) {
            assert_eq!((find(key, 0, 9), find(key, 11 + key, 9)), (vec![10 + key], vec![]));
        }
        assert_eq!(find(150, 0, usize::MAX), (10..9_000).collect::<Vec<_>>());
        assert_eq!((find(150, 8_998, 9), find(150, 4_000, 2)), (vec![8_998, 8_999], vec![4_000, 4_001]));
        assert!(find(301, 0, 9).is_empty());
        let (mut entries, mut positions, mut sum) = (run.entries(), Vec::new(), 0);
        while entries.next(&mut positions).unwrap().is_some() {
            sum += positions.len() as u64;
        }
        assert_eq!(sum, run.postings);
    }

    #[test]
    fn run_damage_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let run = write(directory.path());
        let whole = std::fs::read(&run.path).unwrap();
        let all = |run: &IndexRun| {
            let mut found = Vec::new();
            for key in 0..=301 {
                run.find(IndexKey(key), Position::default(), usize::MAX, &mut found)?;
            }
            Ok::<_, IndexFileError>(found)
        };
        let expected = all(&run).unwrap();
        let step = rounds(61, 610) as usize;
        let first = printed_seed() as usize % step;
        for at in (first..whole.len()).step_by(step).chain(whole.len() - SUMMARY_LENGTH..whole.len()) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&run.path, &damaged).unwrap();
            if let Ok(found) = IndexRun::open(&run.path, Some(IDENTITY)).unwrap().and_then(|run| all(&run)) {
                panic!("byte {at} is damaged, and {} positions are found", found.len());
            }
        }
        for length in [0, 100, 128, whole.len() - 1] {
            std::fs::write(&run.path, &whole[..length]).unwrap();
            assert!(IndexRun::open(&run.path, Some(IDENTITY)).unwrap().is_err(), "cut at {length}");
        }
        std::fs::write(&run.path, &whole).unwrap();
        assert_eq!(all(&IndexRun::open(&run.path, Some(IDENTITY)).unwrap().unwrap()).unwrap(), expected);
        let other =
            IndexRun::open(&run.path, Some(StreamIdentity { incarnation: 2, ..IDENTITY })).unwrap().err().unwrap();
        assert!(other.to_string().ends_with("it is of another stream"), "{other}");
    }

    #[test]
    fn extent_is_parsed_from_file_name() {
        assert_eq!(extent_of_name(&name_of(3, 17)), Some((3, 17)));
        for name in
            ["run-3-17", "run-00000000000000000017-00000000000000000003", &format!("{}.new", name_of(3, 17)), "x"]
        {
            assert_eq!(extent_of_name(name), None, "{name}");
        }
    }
}
