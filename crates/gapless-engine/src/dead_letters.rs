//! Dead letters: a log of commands that no handler took, one JSON object per line in `dead-letters.jsonl`. The command
//! itself is in the journal.

mod unwritten_lines;

use crate::EngineError;
use gapless_agent::checked_file;
use gapless_wire::control::RefusalCode;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

pub const FILE_NAME: &str = "dead-letters.jsonl";

/// Writes each letter once, even when a restart applies its command again.
pub struct DeadLetters {
    file: Option<(PathBuf, File)>,
    last_sequence: u64,
    count: u64,
    torn: bool,
    unwritten: unwritten_lines::UnwrittenLines,
}

impl DeadLetters {
    /// Creates a log that only counts, for a service without a directory.
    #[must_use]
    pub fn counting() -> Self {
        Self { file: None, last_sequence: 0, count: 0, torn: false, unwritten: Default::default() }
    }

    /// Opens the log in `directory`. Lines for frames after `last_journaled`, the journal's end, belong to frames lost
    /// in a crash.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(directory: &Path, last_journaled: u64) -> Result<Self, EngineError> {
        let path = directory.join(FILE_NAME);
        let action = || format!("opening {}", path.display());
        let file = open_to_append(&path).map_err(EngineError::system(action()))?;
        let (mut last_sequence, mut torn) = (0, false);
        let mut lines = BufReader::new(&file);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(EngineError::system(action()))? > 0 {
            // A line cut short by a crash does not count; its command is recorded again.
            torn = line.last() != Some(&b'\n');
            let sequence = if torn { None } else { sequence_of(&line).filter(|sequence| *sequence <= last_journaled) };
            last_sequence = sequence.unwrap_or(0).max(last_sequence);
            line.clear();
        }
        Ok(Self { file: Some((path, file)), last_sequence, count: 0, torn, unwritten: Default::default() })
    }

    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Writes `letter`, unless the log has it already; keeps it for later if the disk is full.
    pub fn record(&mut self, letter: &DeadLetter) {
        let DeadLetter { sequence, session, session_seq, schema, reason, .. } = letter;
        if *sequence <= self.last_sequence {
            return;
        }
        self.last_sequence = *sequence;
        self.count += 1;
        tracing::warn!(sequence, session, session_seq, reason, "dead letter");
        if self.file.is_none() {
            return;
        }
        let (schema_id, template_id) = (schema >> 16, schema & 0xffff);
        let mut line = format!(
            "{{\"sequence\":{sequence},\"session\":{session},\"session_seq\":{session_seq},\"schema_id\":{schema_id},\
             \"template_id\":{template_id},\"reason\":\""
        );
        push_escaped(&mut line, reason);
        line.push_str("\"}\n");
        self.unwritten.push(line);
        self.write_unwritten();
    }

    #[inline]
    pub fn write_unwritten(&mut self) {
        if !self.unwritten.is_empty()
            && let Some((path, file)) = &mut self.file
        {
            self.unwritten.write(path, file, &mut self.torn);
        }
    }
}

impl Drop for DeadLetters {
    fn drop(&mut self) {
        self.unwritten.make_due();
        self.write_unwritten();
        let lost = self.unwritten.count();
        if lost > 0 {
            tracing::error!(lost, "dead letters are not recorded; the journal has their commands");
        }
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    gapless_journal::own_file(path)?;
    let file = checked_file::open_or_create(path, 0o600)?;
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

fn sequence_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"sequence\":")?;
    let digits = rest.split(|byte| *byte == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn push_escaped(line: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            control if u32::from(control) < 0x20 => line.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => line.push(other),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub sequence: u64,
    pub session: u64,
    pub session_seq: u64,
    /// Schema id << 16 | template id.
    pub schema: u32,
    pub code: RefusalCode,
    pub reason: String,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    const OTHER: u32 = 12_345;

    fn letter(sequence: u64) -> DeadLetter {
        let (code, reason) = (RefusalCode::Unhandled, "unknown".to_owned());
        DeadLetter { sequence, session: 1, session_seq: 1, schema: 1, code, reason }
    }

    #[test]
    fn restart_appends_to_the_log() {
        let directory = tempfile::tempdir().unwrap();
        for sequence in [1, 2] {
            DeadLetters::open(directory.path(), 9).unwrap().record(&letter(sequence));
        }
        let text = std::fs::read_to_string(directory.path().join(FILE_NAME)).unwrap();
        let sequences = text.lines().map(|line| sequence_of(line.as_bytes()).unwrap()).collect::<Vec<_>>();
        assert_eq!(sequences, [1, 2]);
    }

    #[test]
    fn symlink_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        symlink(&victim, directory.path().join(FILE_NAME)).unwrap();
        let refused = DeadLetters::open(directory.path(), 9).err().unwrap().to_string();
        assert!(refused.contains("it is a link") && !victim.exists(), "{refused}");
    }

    #[test]
    fn directory_owner_owns_the_log() {
        let directory = tempfile::tempdir().unwrap();
        if chown(directory.path(), Some(OTHER), Some(OTHER)).is_err() {
            return println!("SKIPPED: only root can give files away");
        }
        DeadLetters::open(directory.path(), 9).unwrap();
        assert_eq!(directory.path().join(FILE_NAME).metadata().unwrap().uid(), OTHER);
    }
}
