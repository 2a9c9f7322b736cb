//! [`LateLines`]: lines of the record of dead letters that a full disk has not taken yet.

use gapless_agent::monotonic::monotonic_ns;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Bytes of late lines at most.
const BYTES_MAX: usize = 1 << 20;
/// Between two attempts to write late lines, ns.
const RETRY_NS: u64 = 1_000_000_000;

/// See the head of the file.
#[derive(Default)]
pub(super) struct LateLines {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines for which there was no room here either.
    left_out: u64,
    /// When the next attempt is due; 0 before one has failed.
    retry_at_ns: u64,
}

impl LateLines {
    pub fn push(&mut self, line: String) {
        if self.bytes + line.len() > BYTES_MAX {
            self.left_out += 1;
        } else {
            self.bytes += line.len();
            self.lines.push_back(line);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number of letters that are not recorded.
    pub fn count(&self) -> u64 {
        self.lines.len() as u64 + self.left_out
    }

    /// The next attempt does not wait.
    pub fn hurry(&mut self) {
        self.retry_at_ns = self.retry_at_ns.min(1);
    }

    /// Writes all lines, if an attempt is due. `torn` is whether `file` ends in the middle of a line.
    #[cold]
    pub fn write(&mut self, path: &Path, file: &mut File, torn: &mut bool) {
        let now_ns = monotonic_ns();
        if now_ns < self.retry_at_ns {
            return;
        }
        while let Some(line) = self.lines.front() {
            // What is left of an attempt before is a line of its own, and no record.
            let ended = if *torn { file.write_all(b"\n") } else { Ok(()) };
            *torn |= ended.is_ok();
            if let Err(error) = ended.and_then(|()| file.write_all(line.as_bytes())) {
                // Late, not lost: the refusal and the journal have it, and a full disk stops the service at its journal.
                let (path, late) = (path.display(), self.lines.len());
                tracing::error!(%path, %error, late, "dead letters cannot be recorded now; it is tried again each second");
                self.retry_at_ns = now_ns + RETRY_NS;
                return;
            }
            *torn = false;
            self.bytes -= line.len();
            self.lines.pop_front();
        }
        if std::mem::take(&mut self.retry_at_ns) > 0 {
            let left_out = std::mem::take(&mut self.left_out);
            tracing::info!(path = %path.display(), left_out, "dead letters are recorded again");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::super::{DeadLetter, DeadLetters, FILE_NAME, sequence_of};
    use super::*;
    use std::fs::OpenOptions;

    fn letter(sequence: u64) -> DeadLetter {
        DeadLetter {
            sequence,
            session: 1,
            session_seq: sequence,
            schema: 1 << 16 | 2,
            reason: "no \"room\"".to_owned(),
        }
    }

    fn recorded(directory: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(directory.join(FILE_NAME)).unwrap();
        text.lines().filter_map(|line| sequence_of(line.as_bytes())).collect()
    }

    #[test]
    fn a_full_disk_delays_letters() {
        let directory = tempfile::tempdir().unwrap();
        let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
        letters.record(&letter(1));
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut letters.file.as_mut().unwrap().1, full);
        (2..=4).for_each(|sequence| letters.record(&letter(sequence)));
        letters.record(&letter(3));
        letters.file.as_mut().unwrap().1 = file;
        letters.late.retry_at_ns = u64::MAX;
        letters.write_late();
        assert_eq!((recorded(directory.path()), letters.count()), (vec![1], 4), "it is tried again in a second");
        letters.late.hurry();
        letters.write_late();
        assert_eq!(recorded(directory.path()), [1, 2, 3, 4]);
        assert_eq!((letters.late.bytes, letters.late.retry_at_ns, letters.torn), (0, 0, false));
        letters.record(&letter(5));
        assert_eq!(recorded(directory.path()), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn late_letters_have_a_bound_and_an_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut letters.file.as_mut().unwrap().1, full);
        (1..=20_000).for_each(|sequence| letters.record(&letter(sequence)));
        assert!(letters.late.bytes <= BYTES_MAX && letters.late.left_out > 0);
        let kept = letters.late.lines.len() as u64;
        assert_eq!(kept + letters.late.left_out, 20_000);
        letters.file.as_mut().unwrap().1 = file;
        // The end does not wait for the second.
        drop(letters);
        assert_eq!(recorded(directory.path()), (1..=kept).collect::<Vec<_>>());
        // A restart records the others, if it handles them again.
        let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
        letters.record(&letter(kept + 1));
        assert_eq!(letters.count(), 1);
    }
}
