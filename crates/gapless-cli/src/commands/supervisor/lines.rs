//! `LogLines`: the present and future lines of a log.

use gapless_supervisor::logs::LogFollower;
use std::path::Path;

/// Limits a read, the search for the last lines, and the length of a line.
const PIECE_BYTES: usize = 1 << 20;

pub(crate) struct LogLines {
    follower: LogFollower,
    begun: Vec<u8>,
    /// The first read may begin in the middle of a line.
    is_first: bool,
}

pub(crate) struct NewLines {
    pub(crate) lines: Vec<String>,
    pub(crate) skipped: u64,
    pub(crate) has_more: bool,
}

impl LogLines {
    /// Starts at most one read before the end.
    pub(crate) fn of(log: &Path) -> Self {
        let follower = LogFollower::before_end(log, PIECE_BYTES as u64);
        let is_first = follower.position() > 0;
        Self { follower, begun: Vec::new(), is_first }
    }

    pub(crate) fn more(&mut self) -> NewLines {
        let piece = self.follower.read(PIECE_BYTES).unwrap_or_default();
        if piece.skipped > 0 {
            self.begun.clear();
        }
        let has_more = piece.bytes.len() >= PIECE_BYTES;
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend(piece.bytes);
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let whole = if whole == 0 && bytes.len() >= PIECE_BYTES { bytes.len() } else { whole };
        self.begun = bytes.split_off(whole);
        let is_cut = self.is_first && whole > 0;
        self.is_first &= whole == 0;
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().skip(usize::from(is_cut)).map(str::to_owned).collect();
        NewLines { lines, skipped: piece.skipped, has_more }
    }

    pub(crate) fn rest(self) -> Option<String> {
        let is_one = !self.begun.is_empty() && !self.is_first;
        is_one.then(|| String::from_utf8_lossy(&self.begun).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn whole_lines_then_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        let mut lines = LogLines::of(&path);
        assert_eq!(lines.more().lines, ["one", "two"]);
        assert!(lines.more().lines.is_empty());
        let mut log = std::fs::File::options().append(true).open(&path).unwrap();
        log.write_all(b"ee\nfour").unwrap();
        assert_eq!(lines.more().lines, ["three"]);
        assert_eq!(lines.rest().as_deref(), Some("four"));
        log.write_all(&vec![b'x'; 2 * PIECE_BYTES]).unwrap();
        log.write_all(b"\nlast\n").unwrap();
        let mut lines = LogLines::of(&path);
        let mut all = Vec::new();
        loop {
            let new_lines = lines.more();
            all.extend(new_lines.lines);
            if !new_lines.has_more {
                break;
            }
        }
        assert_eq!(all, ["last"], "the beginning of the line before is not there");
    }
}
