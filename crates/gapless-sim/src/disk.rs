//! Damage to a member's directory. The files are real, written by the shipped journal; unsynced bytes are damaged as a
//! device may do it.

use crate::random::Random;
use gapless_journal::descriptor::{BOOT_MARK_OFFSET, MARK_WORDS, SYNCED_MARK_OFFSET, frames_offset};
use gapless_wire::checksum::crc32c;
use gapless_wire::{Frame, aligned_length};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const SLOT_BYTES: usize = MARK_WORDS / 2 * 8;
const SECTOR_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PowerLoss {
    /// Last frame up to which the journal is complete.
    pub kept_sequence: u64,
    /// Bytes of frames without a completed sync.
    pub unsynced_bytes: u64,
}

fn segments(journal: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(journal)?;
    let mut found = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    found.sort();
    Ok(found)
}

/// Newest first: values, generation, position.
fn slots(file: &File, offset: usize) -> io::Result<Vec<([u64; 3], u64)>> {
    let mut found = Vec::new();
    for slot in 0..2 {
        let position = (offset + slot * SLOT_BYTES) as u64;
        let mut bytes = [0; SLOT_BYTES];
        file.read_exact_at(&mut bytes, position)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
        if word(3) == check_word(&bytes[..24]) {
            found.push(([word(0), word(1), word(2)], position));
        }
    }
    found.sort_by_key(|(values, _)| std::cmp::Reverse(values[2]));
    Ok(found)
}

fn check_word(values: &[u8]) -> u64 {
    1 << 32 | u64::from(crc32c(values))
}

/// Keeps synced bytes; each later byte is kept, lost, torn or changed. The machine starts again with another boot
/// identifier.
pub(crate) fn lose_power(journal: &Path, random: &mut Random) -> io::Result<PowerLoss> {
    let mut loss = PowerLoss::default();
    let paths = segments(journal)?;
    let mut files = Vec::new();
    for path in &paths {
        files.push(OpenOptions::new().read(true).write(true).open(path)?);
    }
    for file in &files {
        let synced = slots(file, SYNCED_MARK_OFFSET)?.first().map_or([0; 3], |(values, _)| *values);
        loss.kept_sequence = loss.kept_sequence.max(synced[0]);
    }
    for (at, file) in files.iter().enumerate() {
        let synced_position = slots(file, SYNCED_MARK_OFFSET)?.first().map_or(0, |(values, _)| values[1]);
        // Synced bytes in a later segment imply that this one was synced.
        let is_followed = files[at + 1..].iter().any(|later| {
            slots(later, SYNCED_MARK_OFFSET)
                .is_ok_and(|found| found.first().is_some_and(|(values, _)| values[0] > 0 || values[1] > 0))
        });
        let length = file.metadata()?.len();
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let (mut position, mut kept) = (frames_offset(length) as usize, frames_offset(length));
        while let Some(frame) = bytes.get(position..).and_then(|rest| Frame::parse_journaled(rest).ok()) {
            position += aligned_length(frame.length());
            let is_frame = frame.sequence() > 0;
            let is_synced = is_frame && frame.sequence() <= loss.kept_sequence || position as u64 <= synced_position;
            if is_synced || is_followed {
                kept = position as u64;
            }
        }
        let end = position as u64;
        loss.unsynced_bytes += end - kept;
        tear(file, kept, end, random)?;
        mark_other_boot(file)?;
    }
    // The newest mark reaches the device only with the next sync; the one before covers less.
    if random.happens_per_100_000(30_000)
        && let Some(file) = files.last()
        && let [(_, newest), _] = slots(file, SYNCED_MARK_OFFSET)?[..]
    {
        file.write_all_at(&[0; 8], newest + 24)?;
    }
    Ok(loss)
}

fn tear(file: &File, kept: u64, end: u64, random: &mut Random) -> io::Result<()> {
    if kept >= end {
        return Ok(());
    }
    let zero = |from: u64, to: u64| file.write_all_at(&vec![0; (to - from) as usize], from);
    let any = kept + random.below(end - kept);
    match random.below(5) {
        0 => Ok(()),
        1 => zero(kept, end),
        // A prefix arrived, to the byte.
        2 => zero(any, end),
        // A hole: later sectors arrived before this one.
        3 => zero(any, (any / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES).min(end)),
        _ => flip(file, any, random),
    }
}

fn flip(file: &File, at: u64, random: &mut Random) -> io::Result<()> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    byte[0] ^= 1 << random.below(8);
    file.write_all_at(&byte, at)
}

/// The journal looks as if written before the last boot.
fn mark_other_boot(file: &File) -> io::Result<()> {
    let Some(([low, high, generation], position)) = slots(file, BOOT_MARK_OFFSET)?.first().copied() else {
        return Ok(());
    };
    let mut bytes = [0; SLOT_BYTES];
    for (at, value) in [low ^ 1, high, generation].into_iter().enumerate() {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    let check = check_word(&bytes[..24]);
    bytes[24..].copy_from_slice(&check.to_le_bytes());
    file.write_all_at(&bytes, position)
}

#[derive(Clone, Debug)]
pub(crate) struct JournalBit {
    path: PathBuf,
    position: u64,
    mask: u8,
}

/// Bit of a frame or record in the newest segment; `None` without one.
pub(crate) fn random_bit(journal: &Path, random: &mut Random) -> io::Result<Option<JournalBit>> {
    let Some(path) = segments(journal)?.into_iter().next_back() else { return Ok(None) };
    let bytes = std::fs::read(&path)?;
    let start = frames_offset(bytes.len() as u64) as usize;
    let (mut position, mut frames) = (start, Vec::new());
    while let Some(frame) = bytes.get(position..).and_then(|rest| Frame::parse_journaled(rest).ok()) {
        // Padding is never read, so it is left out.
        frames.push((position as u64, frame.length() as u64));
        position += aligned_length(frame.length());
    }
    if frames.is_empty() {
        return Ok(None);
    }
    let (begin, length) = random.pick(&frames);
    Ok(Some(JournalBit { path, position: begin + random.below(length), mask: 1 << random.below(8) }))
}

impl JournalBit {
    /// A second call restores the bit.
    pub(crate) fn flip(&self) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, self.position)?;
        byte[0] ^= self.mask;
        file.write_all_at(&byte, self.position)
    }
}
