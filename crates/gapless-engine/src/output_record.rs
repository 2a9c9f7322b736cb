//! Record of the handlers' outputs and of the program that produced them, kept next to the journal. A replay with other
//! outputs, because the program has changed or is not deterministic, stops and names the place.
//!
//! The file `outputs` in the service's directory, little-endian. It is written without a sync, once a second or when
//! the service is idle, so it may lack the last second before a crash. Frames without a record are replayed without a
//! comparison.
//!
//! ```text
//!  header, 64 bytes                              then records of 560 bytes
//!   0  8 B  magic "GAPOUTP\5"                     0  u64  first frame
//!   8  u128 stream id                             8  u64  last frame
//!  24  u64  incarnation                          16  u64  hash of their outputs
//!  32  u64  program of the frames after them     24  u64  time stamp of the last frame, ns
//!  40  20 B reserved, 0                          32  u64  program that handled them
//!  60  u32  CRC-32C of bytes 0–59                40  u32  frames from one check to the next
//!                                                44  256 × u16  checks: lowest bits of the hash after that many
//!                                                    frames, after twice as many …; 0 after the last check
//!                                               556  u32  CRC-32C of bytes 0–555
//! ```
//!
//! A record ends at [`FRAMES_MAX`] frames, at a snapshot and at a start; the last one is rewritten as it grows. If the
//! journal has another time stamp for a record's last frame, its frames were truncated: the record is dropped without a
//! comparison.

mod checks;
mod comparison;
mod hash;
mod program;

use checks::{CHECK_LENGTH, CHECKS_MAX, OutputChecks};
pub(crate) use comparison::{ComparingSink, OutputDifference};
pub(crate) use hash::OutputHash;
use program::program;

use crate::fold::{Fold, OnOtherProgram};
use crate::{EngineError, snapshot};
use gapless_agent::checked_file;
use gapless_agent::wait_notices::WaitNotices;
use gapless_log::StreamIdentity;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub const FILE_NAME: &str = "outputs";
/// Limit of frames in a record.
pub const FRAMES_MAX: u64 = 16_384;

const MAGIC: [u8; 8] = *b"GAPOUTP\x05";
const HEADER_LENGTH: usize = 64;
const CHECKS_AT: usize = 44;
pub(crate) const RECORD_LENGTH: usize = CHECKS_AT + CHECKS_MAX * CHECK_LENGTH + 4;
const WRITE_INTERVAL_NS: u64 = 1_000_000_000;
const IDLE_NS: u64 = 20_000_000;
const UNWRITTEN_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutputHashRecord {
    first: u64,
    last: u64,
    hash: u64,
    timestamp_ns: u64,
    program: u64,
    checks: OutputChecks,
}

impl OutputHashRecord {
    fn to_bytes(self) -> [u8; RECORD_LENGTH] {
        let mut bytes = [0; RECORD_LENGTH];
        let words = [self.first, self.last, self.hash, self.timestamp_ns, self.program];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let checks = self.checks.step_frames().to_le_bytes().into_iter().chain(self.checks.to_bytes());
        bytes[CHECKS_AT - 4..].iter_mut().zip(checks).for_each(|(place, byte)| *place = byte);
        let sum = crc32c(&bytes[..RECORD_LENGTH - 4]);
        bytes[RECORD_LENGTH - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [first, last, hash, timestamp_ns, program] = [0, 8, 16, 24, 32].map(|at| u64_at(bytes, at));
        if first == 0 || first > last {
            return None;
        }
        let checks = OutputChecks::from_bytes(u32_at(bytes, CHECKS_AT - 4), last - first + 1, &bytes[CHECKS_AT..])?;
        let record = Self { first, last, hash, timestamp_ns, program, checks };
        (record.to_bytes() == bytes).then_some(record)
    }
}

pub struct RecordedOutputs {
    path: PathBuf,
    identity: StreamIdentity,
    program: Option<u64>,
    records: Vec<OutputHashRecord>,
}

impl RecordedOutputs {
    /// Reads the file in `directory`. Keeps the intact start of a damaged file, nothing of another history's; logs a
    /// warning.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(directory: &Path, identity: StreamIdentity) -> Result<Self, EngineError> {
        let mut recorded = Self::nothing(directory, identity);
        let failed = |error| EngineError::system(format!("reading {}", recorded.path.display()))(error);
        let mut file = match checked_file::open(&recorded.path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(recorded),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.by_ref().take(HEADER_LENGTH as u64).read_to_end(&mut bytes).map_err(failed)?;
        let is_whole = bytes.len() >= HEADER_LENGTH
            && bytes[..8] == MAGIC
            && bytes[60..HEADER_LENGTH] == crc32c(&bytes[..60]).to_le_bytes();
        if !is_whole {
            tracing::warn!(path = %recorded.path.display(), "the record of outputs is damaged, or of another version, and is begun anew");
            return Ok(recorded);
        }
        let of = StreamIdentity::at(&bytes, 8);
        if of != identity {
            tracing::warn!(path = %recorded.path.display(), "the record of outputs is of another history, and is begun anew");
            return Ok(recorded);
        }
        recorded.program = Some(u64_at(&bytes, 32));
        // Record by record, so that a long damaged tail takes no memory.
        let (mut records, mut last) = (Vec::new(), 0);
        loop {
            bytes.clear();
            file.by_ref().take(RECORD_LENGTH as u64).read_to_end(&mut bytes).map_err(failed)?;
            let record = Some(&bytes).filter(|bytes| bytes.len() == RECORD_LENGTH);
            match record.and_then(|bytes| OutputHashRecord::from_bytes(bytes)) {
                Some(record) if record.first > last => {
                    last = record.last;
                    records.push(record);
                }
                _ => break,
            }
        }
        recorded.records = records;
        Ok(recorded)
    }

    pub(crate) fn has(&self, sequence: u64) -> bool {
        self.records.iter().any(|record| (record.first..=record.last).contains(&sequence))
    }

    pub(crate) fn nothing(directory: &Path, identity: StreamIdentity) -> Self {
        Self { path: directory.join(FILE_NAME), identity, program: None, records: Vec::new() }
    }

    /// Checks the programs of the frames from the first to the last, which the handlers of `fold` replay next.
    ///
    /// # Errors
    /// Another program has handled some of these frames, and the policy refuses that.
    pub(crate) fn check_program(&self, fold: &Fold, (first, last): (u64, u64)) -> Result<(), EngineError> {
        let policy = fold.policy();
        if !fold.runs_handlers() {
            return Ok(());
        }
        let of_others = self.handled_by_other_programs(program(policy.program.as_deref()), (first, last));
        let Some((first, last)) = of_others else { return Ok(()) };
        let error = EngineError::OtherProgram { first, last };
        if policy.on_other_program == OnOtherProgram::Refuse {
            return Err(error);
        }
        tracing::warn!(
            first,
            last,
            "another program has handled the frames that are replayed: what it did is compared with what this one does, as far as it is recorded"
        );
        Ok(())
    }

    fn handled_by_other_programs(&self, own: u64, (first, last): (u64, u64)) -> Option<(u64, u64)> {
        let behind = self.records.last().map_or(0, |record| record.last) + 1;
        let later = self.program.map(|program| (behind, u64::MAX, program));
        let all = self.records.iter().map(|record| (record.first, record.last, record.program)).chain(later);
        let others = all.filter(|(from, to, program)| *program != own && *from <= last && *to >= first);
        let others = others.map(|(from, to, _)| (from.max(first), to.min(last)));
        others.reduce(|(from, _), (_, to)| (from, to))
    }

    /// `snapshots`: their directory.
    ///
    /// # Errors
    /// The snapshots cannot be listed, or the file cannot be written.
    pub(crate) fn resume_after(self, fold: &Fold, snapshots: &Path) -> Result<OutputRecord, EngineError> {
        let oldest = snapshot::list(snapshots)?.first().map_or(0, |(sequence, _)| *sequence);
        self.resume(program(fold.policy().program.as_deref()), oldest + 1, fold.last_sequence())
    }

    /// Drops records of frames before `needed_from`, where no replay starts any more, and of frames that the journal
    /// has lost.
    ///
    /// # Errors
    /// The file cannot be written.
    fn resume(self, program: u64, needed_from: u64, last_sequence: u64) -> Result<OutputRecord, EngineError> {
        let Self { path, identity, mut records, .. } = self;
        records.retain(|record| record.last >= needed_from && record.last <= last_sequence);
        let temporary = path.with_extension("new");
        let write = || {
            let mut file = checked_file::create(&temporary, 0o600)?;
            let mut bytes = header(identity, program).to_vec();
            records.iter().for_each(|record| bytes.extend_from_slice(&record.to_bytes()));
            file.write_all(&bytes)?;
            // Not synced: a file damaged by a power failure is recreated.
            checked_file::rename(&temporary, &path)?;
            Ok(file)
        };
        let file = write().map_err(EngineError::system(format!("writing {}", path.display())))?;
        Ok(OutputRecord {
            file,
            path,
            program,
            number: records.len() as u64,
            first: last_sequence + 1,
            last: last_sequence,
            timestamp_ns: 0,
            written: last_sequence,
            hash: OutputHash::new(),
            settled: OutputHash::new(),
            checks: OutputChecks::new(),
            written_ns: 0,
            unwritten_since_ns: 0,
            unwritten: VecDeque::new(),
            is_failing: false,
            notices: WaitNotices::at_once(),
        })
    }
}

fn header(identity: StreamIdentity, program: u64) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..24].copy_from_slice(&identity.stream_id.to_le_bytes());
    bytes[24..32].copy_from_slice(&identity.incarnation.to_le_bytes());
    bytes[32..40].copy_from_slice(&program.to_le_bytes());
    let sum = crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

pub struct OutputRecord {
    file: File,
    path: PathBuf,
    program: u64,
    number: u64,
    first: u64,
    last: u64,
    timestamp_ns: u64,
    written: u64,
    /// Outputs of an unfinished batch are never written.
    pub(crate) hash: OutputHash,
    settled: OutputHash,
    checks: OutputChecks,
    written_ns: u64,
    unwritten_since_ns: u64,
    unwritten: VecDeque<(u64, OutputHashRecord)>,
    is_failing: bool,
    notices: WaitNotices,
}

impl OutputRecord {
    #[inline]
    pub(crate) fn after_frame(&mut self) {
        self.checks.after_frame(self.hash);
    }

    #[inline]
    pub(crate) fn after_batch(&mut self, (last, timestamp_ns): (u64, u64), now_ns: u64) {
        if last != self.last {
            (self.last, self.timestamp_ns, self.settled) = (last, timestamp_ns, self.hash);
            self.unwritten_since_ns = now_ns;
            if last - self.first < FRAMES_MAX - 1 && now_ns.saturating_sub(self.written_ns) < WRITE_INTERVAL_NS {
                return;
            }
        } else if self.is_written() || now_ns < self.next_write_ns() {
            return;
        }
        self.write(now_ns);
    }

    fn is_written(&self) -> bool {
        self.written == self.last && self.unwritten.is_empty()
    }

    const fn next_write_ns(&self) -> u64 {
        if self.is_failing { self.written_ns + WRITE_INTERVAL_NS } else { self.unwritten_since_ns + IDLE_NS }
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        (!self.is_written()).then(|| self.next_write_ns())
    }

    #[cold]
    fn write(&mut self, now_ns: u64) {
        self.written_ns = now_ns;
        match self.write_records() {
            Ok(()) if std::mem::take(&mut self.is_failing) => {
                self.notices.end();
                tracing::info!(path = %self.path.display(), "outputs are recorded again");
            }
            Ok(()) => {}
            Err(error) => {
                self.is_failing = true;
                if self.notices.take_due(now_ns).is_some() {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "outputs cannot be recorded now; it is tried again each second");
                }
            }
        }
        if self.last >= self.first && self.last - self.first >= FRAMES_MAX - 1 {
            self.begin_record();
        }
    }

    fn write_records(&mut self) -> io::Result<()> {
        let write = |(number, record): (u64, OutputHashRecord)| {
            let offset = HEADER_LENGTH as u64 + number * RECORD_LENGTH as u64;
            self.file.write_all_at(&record.to_bytes(), offset)
        };
        while let Some(unwritten) = self.unwritten.front() {
            write(*unwritten)?;
            self.unwritten.pop_front();
        }
        if self.written != self.last {
            write((self.number, self.current_record()))?;
            self.written = self.last;
        }
        Ok(())
    }

    fn current_record(&self) -> OutputHashRecord {
        let Self { first, last, timestamp_ns, program, .. } = *self;
        let checks = self.checks.of_first(last + 1 - first);
        OutputHashRecord { first, last, hash: self.settled.0, timestamp_ns, program, checks }
    }

    fn begin_record(&mut self) {
        if self.written == self.last {
            self.number += 1;
        } else if self.unwritten.len() < UNWRITTEN_MAX {
            self.unwritten.push_back((self.number, self.current_record()));
            self.number += 1;
        } else {
            let Self { first, last, .. } = *self;
            tracing::warn!(first, last, "what these frames have put out is not recorded, nor compared by a replay");
        }
        (self.first, self.written) = (self.last + 1, self.last);
        (self.hash, self.settled, self.checks) = (OutputHash::new(), OutputHash::new(), OutputChecks::new());
    }

    /// Called after a snapshot of the last handled frame: replays start there.
    #[cold]
    pub(crate) fn end_record(&mut self, now_ns: u64) {
        self.write(now_ns);
        if self.last >= self.first {
            self.begin_record();
        }
    }
}

impl Drop for OutputRecord {
    fn drop(&mut self) {
        self.write(self.written_ns);
        if !self.is_written() {
            let first = self.unwritten.front().map_or(self.first, |(_, record)| record.first);
            tracing::warn!(
                first,
                last = self.last,
                "what these frames have put out is not recorded, nor compared by a replay"
            );
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::fold::Sink;
    use gapless_testkit::random::rounds;

    const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 7 << 90 | 3, incarnation: 5 };

    fn record(directory: &Path, last: u64) -> OutputRecord {
        RecordedOutputs::read(directory, IDENTITY).unwrap().resume(9, 0, last).unwrap()
    }

    fn records(directory: &Path) -> Vec<(u64, u64)> {
        let recorded = RecordedOutputs::read(directory, IDENTITY).unwrap();
        recorded.records.iter().map(|record| (record.first, record.last)).collect()
    }

    fn handle(record: &mut OutputRecord, last: u64, now_ns: u64) {
        (record.last..last).for_each(|_| record.after_frame());
        record.after_batch((last, 7), now_ns);
    }

    #[test]
    fn record_ends_at_start_limit() {
        let directory = tempfile::tempdir().unwrap();
        let mut record_of = record(directory.path(), 0);
        handle(&mut record_of, 10, 5);
        assert_eq!(records(directory.path()), [], "a growing record is written later");
        handle(&mut record_of, 10, 5 + IDLE_NS);
        assert_eq!(records(directory.path()), [(1, 10)]);
        handle(&mut record_of, 20, 6 + WRITE_INTERVAL_NS + IDLE_NS);
        assert_eq!(records(directory.path()), [(1, 20)]);
        record_of.end_record(0);
        record_of.end_record(0);
        handle(&mut record_of, FRAMES_MAX + 30, 0);
        handle(&mut record_of, FRAMES_MAX + 31, 0);
        drop(record_of);
        let end = FRAMES_MAX + 31;
        assert_eq!(records(directory.path()), [(1, 20), (21, end - 1), (end, end)]);
        drop(RecordedOutputs::read(directory.path(), IDENTITY).unwrap().resume(9, 21, end - 1).unwrap());
        assert_eq!(records(directory.path()), [(21, end - 1)]);
    }

    #[test]
    fn full_disk_delays_records() {
        let directory = tempfile::tempdir().unwrap();
        let mut written = record(directory.path(), 0);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut other = std::mem::replace(&mut written.file, full);
        handle(&mut written, 10, 0);
        written.end_record(0);
        handle(&mut written, 20, 0);
        handle(&mut written, 20, IDLE_NS);
        assert_eq!(written.next_deadline_ns(), Some(WRITE_INTERVAL_NS), "the next attempt is due in a second");
        std::mem::swap(&mut written.file, &mut other);
        handle(&mut written, 20, WRITE_INTERVAL_NS - 1);
        assert_eq!(records(directory.path()), []);
        handle(&mut written, 20, WRITE_INTERVAL_NS);
        assert_eq!((records(directory.path()), written.next_deadline_ns()), (vec![(1, 10), (11, 20)], None));
        std::mem::swap(&mut written.file, &mut other);
        for last in 21..=21 + UNWRITTEN_MAX as u64 {
            written.end_record(0);
            handle(&mut written, last, 0);
        }
        written.end_record(0);
        handle(&mut written, 2_000, 0);
        std::mem::swap(&mut written.file, &mut other);
        drop(written);
        let records = records(directory.path());
        let expected = (21..21 + UNWRITTEN_MAX as u64).map(|at| (at, at));
        let missing = 21 + UNWRITTEN_MAX as u64;
        let expected: Vec<_> = [(1, 10), (11, 20)].into_iter().chain(expected).chain([(missing + 1, 2_000)]).collect();
        assert_eq!(records, expected);
    }

    #[test]
    fn unfinished_batch_is_not_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let hash = || RecordedOutputs::read(directory.path(), IDENTITY).unwrap().records[0].hash;
        let mut written = record(directory.path(), 0);
        written.hash.timer(1, 2);
        written.after_batch((10, 7), 0);
        drop(written);
        let whole = hash();
        let mut written = record(directory.path(), 0);
        written.hash.timer(1, 2);
        written.after_batch((10, 7), 0);
        written.hash.timer(3, 4);
        drop(written);
        assert_eq!(hash(), whole);
    }

    #[test]
    fn damaged_records_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let mut written = record(directory.path(), 0);
        for end in [10, 20, 30] {
            written.after_batch((end, 7), 0);
            written.end_record(0);
        }
        drop(written);
        let path = directory.path().join(FILE_NAME);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(records(directory.path()).len(), 3);
        for bit in (0..whole.len() * 8).step_by(rounds(1, 9) as usize) {
            let mut other = whole.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &other).unwrap();
            let left = (bit / 8).saturating_sub(HEADER_LENGTH) / RECORD_LENGTH;
            let left = if bit / 8 < HEADER_LENGTH { 0 } else { left };
            assert_eq!(records(directory.path()).len(), left, "bit {bit}");
        }
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(records(directory.path()).len(), length.saturating_sub(HEADER_LENGTH) / RECORD_LENGTH);
        }
        std::fs::write(&path, &whole).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(records(directory.path()).len(), 3, "later bytes are not read");
        std::fs::write(&path, &whole).unwrap();
        for other in [StreamIdentity { incarnation: 6, ..IDENTITY }, StreamIdentity { stream_id: 7, ..IDENTITY }] {
            let recorded = RecordedOutputs::read(directory.path(), other).unwrap();
            assert!(recorded.records.is_empty() && recorded.program.is_none());
        }
    }

    #[test]
    fn record_of_lost_frames_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let mut written = record(directory.path(), 0);
        for (end, timestamp_ns) in [(10, 100), (20, 200)] {
            written.hash.timer(1, end);
            written.after_batch((end, timestamp_ns), 0);
            written.end_record(0);
        }
        drop(written);
        // A power failure has lost the second record's frames, and others took their place.
        let mut recorded = RecordedOutputs::read(directory.path(), IDENTITY).unwrap();
        let mut sink = crate::fold::NoSink;
        let mut compared = ComparingSink::new(&mut sink, &mut recorded);
        for sequence in 1..=20 {
            compared.before(sequence);
            if sequence == 10 {
                compared.set_timer(1, 10);
            }
            compared.after(sequence, 10 * sequence + u64::from(sequence > 10)).unwrap();
        }
        drop(recorded.resume(9, 0, 20).unwrap());
        assert_eq!(records(directory.path()), [(1, 10)]);
    }

    #[test]
    fn other_programs_frames_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let read = || RecordedOutputs::read(directory.path(), IDENTITY).unwrap();
        for (program, last) in [(1, 10), (2, 20), (1, 30)] {
            let mut written = read().resume(program, 0, last - 10).unwrap();
            written.after_batch((last, last), 0);
        }
        assert_eq!(read().handled_by_other_programs(1, (1, 30)), Some((11, 20)));
        assert_eq!(read().handled_by_other_programs(1, (15, 30)), Some((15, 20)));
        assert_eq!(read().handled_by_other_programs(1, (21, 40)), None);
        assert_eq!(read().handled_by_other_programs(2, (1, 40)), Some((1, 40)));
        assert_eq!(read().handled_by_other_programs(3, (12, 12)), Some((12, 12)));
    }

    #[test]
    fn hash_covers_order_and_all_bits() {
        let of = |parts: &[&[u8]]| {
            let mut hash = OutputHash::new();
            parts.iter().for_each(|part| hash.add(1, part.len(), crc32c(part)));
            hash
        };
        let bytes: Vec<u8> = (0..40).collect();
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(of(&[&other]), of(&[&bytes]), "bit {bit}");
        }
        assert_ne!(of(&[b"a", b"b"]), of(&[b"b", b"a"]));
        assert_ne!(of(&[b"ab"]), of(&[b"a", b"b"]));
        assert_ne!(of(&[b"a"]), of(&[b"a\0"]));
        assert_ne!(of(&[&[0; 8], &[0; 8]]), of(&[&[0; 8]]));
    }
}
