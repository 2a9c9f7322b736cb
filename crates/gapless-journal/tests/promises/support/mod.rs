#![allow(clippy::unwrap_used, reason = "a test says where it failed")]
#![allow(dead_code, reason = "each of the programs that share this uses a part of it")]

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gapless_journal::descriptor::FixedHeader;
use gapless_journal::{
    BootId, ConsensusRecord, Disk, DiskOperation, Flush, Journal, JournalEnvironment, JournalError, JournalOptions,
    JournalReader,
};
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};

pub const STREAM: u128 = 0x5eed;
pub const SEGMENT_LENGTH: u64 = 64 * 1024;
pub const FRAME_LENGTH_MAX: usize = 2048;

pub fn options(directory: &Path) -> JournalOptions {
    let mut options = JournalOptions::new(directory, STREAM);
    options.segment_length_bytes = SEGMENT_LENGTH;
    options.frame_length_max = FRAME_LENGTH_MAX;
    options.environment = boot(1);
    options
}

/// The clock stands still.
pub fn boot(number: u128) -> JournalEnvironment {
    JournalEnvironment { boot_id: Some(BootId(number)), epoch_ns: || 1_000_000_000, disk: None }
}

pub fn payload(sequence: u64, salt: u64) -> Vec<u8> {
    let length = (sequence.wrapping_mul(37).wrapping_add(salt * 11) % 300) as usize;
    (0..length).map(|i| (sequence as usize + i * 7 + salt as usize) as u8).collect()
}

pub fn push_frame(bytes: &mut Vec<u8>, sequence: u64, payload: &[u8]) {
    push_frame_of(bytes, sequence, sequence, payload);
}

pub fn push_frame_of(bytes: &mut Vec<u8>, sequence: u64, timestamp_ns: u64, payload: &[u8]) {
    let start = bytes.len();
    bytes.resize(start + aligned_length(HEADER_LENGTH + payload.len()), 0);
    let mut writer = FrameWriter::new(&mut bytes[start..]);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    writer.finish(&FrameHeader { sequence, timestamp_ns, ..FrameHeader::default() }, payload.len());
}

pub fn batch(first: u64, count: u64, salt: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sequence in first..first + count {
        push_frame_of(&mut bytes, sequence, timestamp_ns(sequence, salt), &payload(sequence, salt));
    }
    bytes
}

/// Differs between histories with different salts.
pub fn timestamp_ns(sequence: u64, salt: u64) -> u64 {
    sequence + salt * 1_000_000
}

pub fn append(journal: &mut Journal, count: u64, size: u64, salt: u64) {
    let end = journal.last_sequence() + count;
    while journal.last_sequence() < end {
        let first = journal.last_sequence() + 1;
        let size = size.min(end + 1 - first);
        journal.append(&batch(first, size, salt), first, first + size - 1).unwrap();
        assert_eq!(journal.commit().unwrap(), first + size - 1);
    }
}

pub fn read_all(
    directory: &Path,
    environment: JournalEnvironment,
    from: u64,
) -> Result<Vec<(u64, Vec<u8>)>, JournalError> {
    let mut replay = JournalReader::open_in(directory, environment)?.replay(from)?;
    let mut frames = Vec::new();
    while let Some(frame) = replay.next_frame()? {
        frames.push((frame.sequence(), frame.payload().to_vec()));
    }
    Ok(frames)
}

pub fn assert_holds(directory: &Path, environment: JournalEnvironment, first: u64, last: u64, salt: u64) {
    let frames = read_all(directory, environment, first).unwrap();
    assert_eq!(frames.len() as u64, last + 1 - first, "frames from {first} to {last}");
    for ((sequence, found), expected) in frames.into_iter().zip(first..) {
        assert_eq!(sequence, expected);
        assert_eq!(found, payload(expected, salt), "payload of {expected}");
    }
}

pub fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    paths.sort();
    paths
}

/// Position, and length with padding.
pub fn find_frame(segment: &Path, sequence: u64) -> (u64, u64) {
    let bytes = std::fs::read(segment).unwrap();
    let header = gapless_journal::descriptor::FixedHeader::from_bytes(bytes[..128].try_into().unwrap()).unwrap();
    let mut position = header.frames_offset as usize;
    while let Ok(frame) = gapless_wire::Frame::parse(&bytes[position..]) {
        let length = aligned_length(frame.length());
        if frame.sequence() == sequence {
            return (position as u64, length as u64);
        }
        position += length;
    }
    panic!("sequence {sequence} is not in {}", segment.display());
}

pub fn end_of_frames(segment: &Path) -> u64 {
    let bytes = std::fs::read(segment).unwrap();
    let header = gapless_journal::descriptor::FixedHeader::from_bytes(bytes[..128].try_into().unwrap()).unwrap();
    let mut position = header.frames_offset as usize;
    while let Ok(frame) = gapless_wire::Frame::parse(&bytes[position..]) {
        position += aligned_length(frame.length());
    }
    position as u64
}

pub fn flip(path: &Path, position: u64, mask: u8) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).unwrap();
    file.write_all_at(&[byte[0] ^ mask], position).unwrap();
}

pub fn overwrite(path: &Path, position: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, position).unwrap();
}

pub fn record_payload(number: u64) -> Vec<u8> {
    let length = (number.wrapping_mul(53) % 200) as usize;
    (0..length).map(|i| (number as usize * 13 + i * 5 + 3) as u8).collect()
}

pub fn record(after_sequence: u64, is_checkpoint: bool, payload: Vec<u8>) -> ConsensusRecord {
    ConsensusRecord { after_sequence, is_checkpoint, payload }
}

pub fn read_records(directory: &Path, environment: JournalEnvironment) -> Result<Vec<ConsensusRecord>, JournalError> {
    Ok(JournalReader::open_in(directory, environment)?.records()?.collect())
}

pub fn find_records(segment: &Path) -> Vec<(u64, u64, Vec<u8>)> {
    let bytes = std::fs::read(segment).unwrap();
    let header = gapless_journal::descriptor::FixedHeader::from_bytes(bytes[..128].try_into().unwrap()).unwrap();
    let mut position = header.frames_offset as usize;
    let mut found = Vec::new();
    while let Ok(frame) = gapless_wire::Frame::parse_journaled(&bytes[position..]) {
        let length = aligned_length(frame.length());
        if frame.kind() == gapless_wire::Kind::Consensus {
            found.push((position as u64, length as u64, frame.payload().to_vec()));
        }
        position += length;
    }
    found
}

pub fn work_off(journal: &Journal) {
    while journal.preparer().run_once().unwrap() {}
}

pub fn append_until(journal: &mut Journal, length: usize, mut is_enough: impl FnMut(&mut Journal) -> bool) {
    while !is_enough(journal) {
        let sequence = journal.last_sequence() + 1;
        let mut bytes = Vec::new();
        push_frame(&mut bytes, sequence, &vec![sequence as u8; length]);
        journal.append(&bytes, sequence, sequence).unwrap();
        journal.commit().unwrap();
    }
}

pub fn first_of(segment: &Path) -> u64 {
    mark_of(segment, gapless_journal::descriptor::OPENED_MARK_OFFSET).0
}

pub fn frames_offset(segment: &Path) -> u64 {
    let bytes = std::fs::read(segment).unwrap();
    FixedHeader::from_bytes(bytes[..128].try_into().unwrap()).unwrap().frames_offset
}

pub fn mark_of(segment: &Path, offset: usize) -> (u64, u64) {
    let bytes = std::fs::read(segment).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let newer = [offset, offset + 32].into_iter().max_by_key(|at| word(at + 16)).unwrap();
    (word(newer), word(newer + 8))
}

pub fn set_mark(segment: &Path, offset: usize, first: u64, second: u64) {
    let mut slot = Vec::new();
    for word in [first, second, 1000] {
        slot.extend_from_slice(&u64::to_le_bytes(word));
    }
    let sum = 1 << 32 | u64::from(gapless_wire::checksum::crc32c(&slot));
    slot.extend_from_slice(&sum.to_le_bytes());
    overwrite(segment, offset as u64, &slot);
}

#[derive(Debug, Default)]
pub struct RefusingDisk {
    pub work: Mutex<Option<DiskOperation>>,
    pub syncs: AtomicU64,
    pub failing_sync: AtomicU64,
}

impl RefusingDisk {
    pub fn refuse(&self, work: Option<DiskOperation>) {
        *self.work.lock().unwrap() = work;
    }
}

impl Disk for RefusingDisk {
    fn check(&self, operation: DiskOperation) -> std::io::Result<()> {
        let syncs = self.syncs.fetch_add(u64::from(operation == DiskOperation::Sync), Ordering::SeqCst) + 1;
        if operation == DiskOperation::Sync && syncs == self.failing_sync.load(Ordering::SeqCst) {
            return Err(Error::other("refused"));
        }
        match *self.work.lock().unwrap() {
            Some(refused) if refused != operation => Ok(()),
            None => Ok(()),
            Some(DiskOperation::Allocate) => Err(ErrorKind::StorageFull.into()),
            Some(_) => Err(Error::other("refused")),
        }
    }
}

pub fn on(directory: &Path, disk: &Arc<RefusingDisk>, flush: Flush) -> JournalOptions {
    let disk: Arc<dyn Disk> = Arc::clone(disk) as _;
    JournalOptions {
        flush,
        marks: flush,
        environment: JournalEnvironment { disk: Some(disk), ..boot(1) },
        ..options(directory)
    }
}
