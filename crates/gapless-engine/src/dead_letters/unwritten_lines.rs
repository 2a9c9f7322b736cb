//! `UnwrittenLines`: lines of the dead-letter log that a full disk has not taken yet.

use gapless_agent::monotonic::monotonic_ns;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;

const BYTES_MAX: usize = 1 << 20;
const RETRY_NS: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct UnwrittenLines {
    lines: VecDeque<String>,
    bytes: usize,
    left_out: u64,
    /// Time of the next attempt; 0 if the last one succeeded.
    retry_at_ns: u64,
}

impl UnwrittenLines {
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

    pub fn count(&self) -> u64 {
        self.lines.len() as u64 + self.left_out
    }

    pub fn make_due(&mut self) {
        self.retry_at_ns = self.retry_at_ns.min(1);
    }

    #[cold]
    pub fn write(&mut self, path: &Path, file: &mut File, torn: &mut bool) {
        let now_ns = monotonic_ns();
        if now_ns < self.retry_at_ns {
            return;
        }
        while let Some(line) = self.lines.front() {
            // Ends the torn line, which then does not parse as a dead letter.
            let ended = if *torn { file.write_all(b"\n") } else { Ok(()) };
            *torn |= ended.is_ok();
            if let Err(error) = ended.and_then(|()| file.write_all(line.as_bytes())) {
                // No command is lost: the client has the refusal and the journal the command. A full disk stops the
                // service at its journal.
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
    use gapless_wire::control::RefusalCode;
    use std::fs::OpenOptions;

    fn letter(sequence: u64) -> DeadLetter {
        DeadLetter {
            sequence,
            session: 1,
            session_seq: sequence,
            schema: 1 << 16 | 2,
            code: RefusalCode::Unhandled,
            reason: "no \"room\"".to_owned(),
        }
    }

    fn recorded(directory: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(directory.join(FILE_NAME)).unwrap();
        text.lines().filter_map(|line| sequence_of(line.as_bytes())).collect()
    }

    #[test]
    fn full_disk_delays_letters() {
        let directory = tempfile::tempdir().unwrap();
        let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
        letters.record(&letter(1));
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut letters.file.as_mut().unwrap().1, full);
        (2..=4).for_each(|sequence| letters.record(&letter(sequence)));
        letters.record(&letter(3));
        letters.file.as_mut().unwrap().1 = file;
        letters.unwritten.retry_at_ns = u64::MAX;
        letters.write_unwritten();
        assert_eq!((recorded(directory.path()), letters.count()), (vec![1], 4), "the next attempt is due in a second");
        letters.unwritten.make_due();
        letters.write_unwritten();
        assert_eq!(recorded(directory.path()), [1, 2, 3, 4]);
        assert_eq!((letters.unwritten.bytes, letters.unwritten.retry_at_ns, letters.torn), (0, 0, false));
        letters.record(&letter(5));
        assert_eq!(recorded(directory.path()), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn late_letters_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut letters.file.as_mut().unwrap().1, full);
        (1..=20_000).for_each(|sequence| letters.record(&letter(sequence)));
        assert!(letters.unwritten.bytes <= BYTES_MAX && letters.unwritten.left_out > 0);
        let kept = letters.unwritten.lines.len() as u64;
        assert_eq!(kept + letters.unwritten.left_out, 20_000);
        letters.file.as_mut().unwrap().1 = file;
        drop(letters);
        assert_eq!(recorded(directory.path()), (1..=kept).collect::<Vec<_>>());
        let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
        letters.record(&letter(kept + 1));
        assert_eq!(letters.count(), 1);
    }
}
