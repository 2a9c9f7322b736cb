//! Readers of this journal for members that lag or fetch. Each keeps its place, so that the next piece costs no more
//! than its bytes. They read ahead, so all are dropped when this journal is cut and when another member leads.
//!
//! Retention may delete a reader's segment: the reader reads it to its end, and then reports that the next frame is not
//! held. No error of a reader ends this member: the journal's writer finds the journal's errors.

use crate::consensus::MemberId;
use gapless_journal::{JournalError, JournalReader, Replay};
use gapless_transport::warnings::Warnings;
use gapless_wire::aligned_length;
use std::path::PathBuf;

/// Idle time after which a reader is dropped with its mapped segment, ns.
const IDLE_NS_MAX: u64 = 2_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Until(u64),
    NotHeld,
    NotNow,
}

pub(super) struct JournalReaders {
    journal: PathBuf,
    warnings: Warnings,
    kept: Vec<CachedReader>,
}

struct CachedReader {
    member: MemberId,
    replay: Replay,
    used_ns: u64,
}

impl JournalReaders {
    pub fn new(journal: PathBuf) -> Self {
        Self { journal, warnings: Warnings::default(), kept: Vec::new() }
    }

    /// Appends padded frames from `first` up to `last`, until there are `bytes_max` bytes. Returns the last sequence;
    /// one before `first` if the journal ends there.
    pub fn read(
        &mut self,
        member: MemberId,
        (first, last): (u64, u64),
        bytes_max: usize,
        (frames, now_ns): (&mut Vec<u8>, u64),
    ) -> ReadOutcome {
        let (mut next, length_before) = (first, frames.len());
        let outcome = self.seek(member, first, now_ns).and_then(|replay| {
            replay.read_until(last);
            while next <= last && frames.len() < bytes_max {
                let Some(frame) = replay.next_frame()? else { break };
                let padding = aligned_length(frame.length()) - frame.length();
                frames.extend_from_slice(frame.bytes());
                frames.extend_from_slice(&[0; 8][..padding]);
                next += 1;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.forget(member);
            if !self.is_cut_off(&error, next) {
                self.warnings.warn(now_ns, || format!("frames for member {member} cannot be read now: {error}"));
                frames.truncate(length_before);
                return ReadOutcome::NotNow;
            }
            if next == first {
                return ReadOutcome::NotHeld;
            }
        }
        ReadOutcome::Until(next - 1)
    }

    /// Retention has deleted the frame, perhaps under a reader.
    #[cold]
    fn is_cut_off(&self, error: &JournalError, sequence: u64) -> bool {
        matches!(error, JournalError::NotHeld { .. })
            || JournalReader::open(&self.journal).is_ok_and(|reader| sequence < reader.first_sequence())
    }

    fn seek(&mut self, member: MemberId, first: u64, now_ns: u64) -> Result<&mut Replay, JournalError> {
        let at = self.kept.iter().position(|kept| kept.member == member);
        let at = match at {
            Some(at) if self.kept[at].replay.next_sequence() == first => at,
            other => {
                other.into_iter().for_each(|at| drop(self.kept.swap_remove(at)));
                let replay = JournalReader::open(&self.journal).and_then(|reader| reader.replay(first))?;
                self.kept.push(CachedReader { member, replay, used_ns: now_ns });
                self.kept.len() - 1
            }
        };
        self.kept[at].used_ns = now_ns;
        Ok(&mut self.kept[at].replay)
    }

    /// The member is gone, or has caught up.
    pub fn forget(&mut self, member: MemberId) {
        self.kept.retain(|kept| kept.member != member);
    }

    /// Frames read ahead may not be in the journal any more.
    pub fn forget_all(&mut self) {
        self.kept.clear();
    }

    /// Drops idle readers.
    pub fn forget_idle(&mut self, now_ns: u64) {
        if !self.kept.is_empty() {
            self.kept.retain(|kept| now_ns.saturating_sub(kept.used_ns) < IDLE_NS_MAX);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use gapless_journal::{Journal, JournalOptions};
    use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH};
    use std::os::unix::fs::FileExt;

    const SEGMENT_LENGTH: u64 = 64 << 10;

    fn frame(term: u64, sequence: u64) -> Vec<u8> {
        let length = 92 + 8 * term as usize;
        let mut bytes = vec![0; aligned_length(HEADER_LENGTH + length)];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..length].fill(sequence as u8);
        let header = FrameHeader { sequence, term, timestamp_ns: sequence, ..FrameHeader::default() };
        writer.finish(&header, length);
        bytes
    }

    fn append(journal: &mut Journal, term: u64, last: u64) {
        for sequence in journal.last_sequence() + 1..=last {
            journal.append(&frame(term, sequence), sequence, sequence).unwrap();
            if sequence.is_multiple_of(25) {
                journal.append_record(&[7; 40]).unwrap();
            }
            if journal.segments_begun() > 1 && sequence.is_multiple_of(50) {
                journal.append_checkpoint(&[8; 40]).unwrap();
            }
        }
        journal.commit().unwrap();
    }

    fn options(directory: &std::path::Path) -> JournalOptions {
        let segment_length_bytes = SEGMENT_LENGTH;
        JournalOptions { segment_length_bytes, frame_length_max: 1_376, ..JournalOptions::new(directory, 5) }
    }

    fn journal(directory: &std::path::Path) -> Journal {
        Journal::open(options(directory)).unwrap().0
    }

    fn member(number: u64) -> MemberId {
        MemberId::new(number).unwrap()
    }

    fn read(readers: &mut JournalReaders, number: u64, range: (u64, u64), bytes_max: usize) -> (ReadOutcome, Vec<u64>) {
        let (mut bytes, mut terms, mut start) = (Vec::new(), Vec::new(), 0);
        let found = readers.read(member(number), range, bytes_max, (&mut bytes, 0));
        while start < bytes.len() {
            let frame = Frame::parse(&bytes[start..]).unwrap();
            frame.verify().unwrap();
            assert_eq!(frame.sequence(), range.0 + terms.len() as u64);
            terms.push(frame.term());
            start += aligned_length(frame.length());
        }
        (found, terms)
    }

    #[test]
    fn each_member_has_its_own_reader() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = journal(directory.path());
        append(&mut journal, 1, 1_000);
        let mut readers = JournalReaders::new(directory.path().to_owned());
        let mut next = [1, 500];
        while next[0] <= 1_000 {
            for number in [0, 1] {
                let (found, terms) = read(&mut readers, number as u64 + 1, (next[number], 1_100), 3_000);
                let ReadOutcome::Until(until) = found else { panic!("{found:?}") };
                assert_eq!(until, next[number] + terms.len() as u64 - 1);
                next[number] = until + 1;
            }
            assert_eq!(readers.kept.len(), 2);
        }
        assert_eq!(next, [1_001, 1_001]);
        append(&mut journal, 1, 1_010);
        assert_eq!(read(&mut readers, 1, (1_001, 1_005), usize::MAX), (ReadOutcome::Until(1_005), vec![1; 5]));
        assert_eq!(read(&mut readers, 1, (400, 401), usize::MAX), (ReadOutcome::Until(401), vec![1; 2]));
        readers.forget_idle(IDLE_NS_MAX - 1);
        assert_eq!(readers.kept.len(), 2);
        readers.forget_idle(IDLE_NS_MAX);
        assert!(readers.kept.is_empty());
    }

    #[test]
    fn unreadable_frames_are_read_later() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = journal(directory.path());
        append(&mut journal, 1, 100);
        let segment = directory.path().join(format!("{:020}.segment", 1));
        let bytes = std::fs::read(&segment).unwrap();
        let at = bytes.windows(100).position(|window| window == [50; 100]).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
        let mut readers = JournalReaders::new(directory.path().to_owned());
        file.write_all_at(&[0], at as u64).unwrap();
        for range in [(50, 60), (1, 100)] {
            assert_eq!(read(&mut readers, 1, range, usize::MAX), (ReadOutcome::NotNow, Vec::new()));
        }
        assert_eq!(read(&mut readers, 1, (1, 49), usize::MAX).0, ReadOutcome::Until(49));
        file.write_all_at(&[50], at as u64).unwrap();
        assert_eq!(read(&mut readers, 1, (50, 100), usize::MAX).0, ReadOutcome::Until(100));
        // A process without a free descriptor cannot open the journal, which still holds its frames.
        readers.forget_all();
        let elsewhere = directory.path().with_extension("moved");
        std::fs::rename(directory.path(), &elsewhere).unwrap();
        assert_eq!(read(&mut readers, 1, (1, 100), usize::MAX).0, ReadOutcome::NotNow);
        std::fs::rename(&elsewhere, directory.path()).unwrap();
        assert_eq!(read(&mut readers, 1, (1, 100), usize::MAX).0, ReadOutcome::Until(100));
    }

    #[test]
    fn rewritten_frames_are_read_fresh() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = journal(directory.path());
        append(&mut journal, 1, 100);
        let mut readers = JournalReaders::new(directory.path().to_owned());
        assert_eq!(read(&mut readers, 1, (1, 30), usize::MAX).0, ReadOutcome::Until(30));
        journal.truncate_after(10).unwrap();
        readers.forget_all();
        append(&mut journal, 2, 80);
        assert_eq!(read(&mut readers, 1, (31, 200), usize::MAX), (ReadOutcome::Until(80), vec![2; 50]));
    }

    #[test]
    fn deleted_segment_is_read_out() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        options.retention.bytes_max = Some(SEGMENT_LENGTH);
        let mut journal = Journal::open(options).unwrap().0;
        append(&mut journal, 1, 20);
        let mut readers = JournalReaders::new(directory.path().to_owned());
        assert_eq!(read(&mut readers, 1, (1, 10), usize::MAX).0, ReadOutcome::Until(10));
        append(&mut journal, 1, 2_000);
        journal.set_released(2_000);
        journal.set_snapshot_sequence(2_000);
        while journal.preparer().run_once().unwrap() {}
        let first = journal.first_sequence();
        assert!(first > 500, "the journal begins at {first}");
        let (found, terms) = read(&mut readers, 1, (11, 2_000), usize::MAX);
        assert_eq!(found, ReadOutcome::Until(10 + terms.len() as u64));
        let next = 11 + terms.len() as u64;
        assert!(terms.len() > 100 && next < first, "{} frames of its segment", terms.len());
        assert_eq!(read(&mut readers, 1, (next, 2_000), usize::MAX), (ReadOutcome::NotHeld, Vec::new()));
        let held = 2_000 - first + 1;
        assert_eq!(read(&mut readers, 1, (first, 2_000), usize::MAX).1.len() as u64, held);
    }
}
