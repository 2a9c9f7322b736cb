//! `LogFollower`: reads a log from a position, across rotations.

use super::positions::{LOGS_KEPT_MAX, LockedLog, LogFiles, kept};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads a log from a position, across rotations.
#[derive(Clone, Debug)]
pub struct LogFollower {
    log: PathBuf,
    at: u64,
}

/// Result of one read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPiece {
    /// Content; empty at the end of the log.
    pub bytes: Vec<u8>,
    /// Bytes before `bytes` that are gone.
    pub skipped: u64,
}

impl LogFollower {
    #[must_use]
    pub fn at(log: &Path, position: u64) -> Self {
        Self { log: log.to_owned(), at: position }
    }

    /// Begins this many bytes before the end, or at the oldest rotated byte.
    #[must_use]
    pub fn before_end(log: &Path, bytes: u64) -> Self {
        let Ok(Some(files)) = LogFiles::of(log) else { return Self::at(log, 0) };
        let (begin, end) = ends(&files);
        let kept = parts(&files).fold(0_u64, |kept, (_, length)| kept.saturating_add(length));
        Self::at(log, end.saturating_sub(bytes).max(begin.saturating_sub(kept)))
    }

    /// Position of the end of a log; 0 if it does not exist.
    #[must_use]
    pub fn end_of(log: &Path) -> u64 {
        LogFiles::of(log).ok().flatten().map_or(0, |files| ends(&files).1)
    }

    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    pub const fn seek(&mut self, position: u64) {
        self.at = position;
    }

    /// Next piece, at most `bytes_max` bytes. Waits up to 2 s for a rotation.
    pub fn read(&mut self, bytes_max: usize) -> io::Result<LogPiece> {
        self.read_locked(bytes_max, LockedLog::shared)
    }

    /// Like [`LogFollower::read`], but waits 100 ms at most; the piece is empty if the log is still locked.
    pub fn read_now(&mut self, bytes_max: usize) -> io::Result<LogPiece> {
        self.read_locked(bytes_max, LockedLog::shared_now)
    }

    fn read_locked(
        &mut self,
        bytes_max: usize,
        lock: impl FnOnce(&LogFiles) -> io::Result<Option<LockedLog>>,
    ) -> io::Result<LogPiece> {
        let Some(files) = LogFiles::of(&self.log)? else { return Ok(LogPiece::default()) };
        let Some(locked) = lock(&files)? else { return Ok(LogPiece::default()) };
        let mut all = LogPiece::default();
        while all.bytes.len() < bytes_max {
            let piece = self.of_one_file(&files, &locked, bytes_max - all.bytes.len())?;
            if piece.bytes.is_empty() && piece.skipped == 0 {
                break;
            }
            all.skipped = all.skipped.saturating_add(piece.skipped);
            all.bytes.extend(piece.bytes);
        }
        Ok(all)
    }

    fn of_one_file(&mut self, files: &LogFiles, locked: &LockedLog, bytes_max: usize) -> io::Result<LogPiece> {
        let (begin, length) = (files.begin(), locked.length()?);
        if self.at > begin + length {
            self.at = begin;
        }
        if self.at >= begin {
            return self.piece(&locked.file, begin, begin + length, bytes_max, 0);
        }
        let mut end = begin;
        let mut oldest = None;
        for (file, length) in parts(files) {
            let start = end.saturating_sub(length);
            if self.at >= start {
                return self.piece(&file, start, end, bytes_max, 0);
            }
            oldest = Some((file, start, end));
            end = start;
        }
        let skipped = end - self.at;
        self.at = end;
        match oldest {
            Some((file, start, end)) => self.piece(&file, start, end, bytes_max, skipped),
            None => self.piece(&locked.file, begin, begin + length, bytes_max, skipped),
        }
    }

    fn piece(&mut self, file: &File, start: u64, end: u64, bytes_max: usize, skipped: u64) -> io::Result<LogPiece> {
        let mut bytes = vec![0; (end - self.at).min(bytes_max as u64) as usize];
        let count = file.read_at(&mut bytes, self.at - start)?;
        bytes.truncate(count);
        self.at += count as u64;
        Ok(LogPiece { bytes, skipped })
    }
}

fn ends(log: &LogFiles) -> (u64, u64) {
    let Ok(Some(locked)) = LockedLog::shared_briefly(log) else { return (0, 0) };
    let begin = log.begin();
    (begin, begin + locked.length().unwrap_or(0))
}

fn parts(log: &LogFiles) -> impl Iterator<Item = (File, u64)> {
    let part = |number| {
        let file = log.folder.open_file(kept(&log.name, number), OFlags::RDONLY).ok()??;
        let length = file.metadata().ok()?.len();
        Some((file, length))
    };
    (1..=LOGS_KEPT_MAX).map_while(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn follower_survives_log_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut follower = LogFollower::at(&path, 0);
        assert_eq!(follower.read(100).unwrap(), LogPiece::default(), "there is no log yet");
        std::fs::write(kept(&path, 2), "0123").unwrap();
        std::fs::write(kept(&path, 1), "456").unwrap();
        std::fs::write(&path, "789").unwrap();
        LogFiles::of(&path).unwrap().unwrap().write_begin(17).unwrap();
        let piece = |bytes: &str, skipped| LogPiece { bytes: bytes.as_bytes().to_vec(), skipped };
        let mut pieces = [0; 5].map(|_| follower.read(3).unwrap()).into_iter();
        for expected in [piece("012", 10), piece("345", 0), piece("678", 0), piece("9", 0), piece("", 0)] {
            assert_eq!(pieces.next().unwrap(), expected);
        }
        assert_eq!((follower.position(), LogFollower::end_of(&path)), (20, 20));
        let mut last = LogFollower::before_end(&path, 5);
        assert_eq!(last.read(9).unwrap(), piece("56789", 0));
        assert_eq!(LogFollower::before_end(&path, 1000).position(), 10, "the oldest rotated byte");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"ab").unwrap();
        assert_eq!(follower.read(9).unwrap(), piece("ab", 0));
    }

    #[test]
    fn locked_log_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "line").unwrap();
        let files = LogFiles::of(&path).unwrap().unwrap();
        let locked = LockedLog::exclusive(&files).unwrap().unwrap();
        let mut follower = LogFollower::at(&path, 0);
        assert_eq!(follower.read_now(9).unwrap(), LogPiece::default(), "a rotation may be half done");
        std::thread::scope(|scope| {
            let read = scope.spawn(|| follower.read(9).unwrap());
            // Longer than the short wait.
            std::thread::sleep(std::time::Duration::from_millis(150));
            drop(locked);
            assert_eq!(read.join().unwrap().bytes, b"line");
        });
    }

    #[test]
    fn excess_files_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "end").unwrap();
        for number in 1..=LOGS_KEPT_MAX + 1 {
            std::fs::write(kept(&path, number), "x").unwrap();
        }
        LogFiles::of(&path).unwrap().unwrap().write_begin(1_000).unwrap();
        let oldest = 1_000 - u64::from(LOGS_KEPT_MAX);
        assert_eq!(LogFollower::before_end(&path, 10_000).position(), oldest);
        let piece = LogFollower::at(&path, 0).read(1).unwrap();
        assert_eq!(piece, LogPiece { bytes: b"x".to_vec(), skipped: oldest });
    }

    #[test]
    fn impossible_positions_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "end").unwrap();
        for begin in [u64::MAX, 1 << 63] {
            LogFiles::of(&path).unwrap().unwrap().write_begin(begin).unwrap();
            assert_eq!(LogFollower::end_of(&path), 3, "{begin}");
            for position in [0, 2, u64::MAX] {
                let piece = LogFollower::at(&path, position).read(9).unwrap();
                assert!(piece.skipped == 0 && b"end".ends_with(&piece.bytes), "{begin} {position}: {piece:?}");
            }
        }
        let Some(disk) = gapless_testkit::folder::SmallDisk::new(64) else { return };
        let path = disk.path.join("log");
        for file in [path.clone(), kept(&path, 1), kept(&path, 2), kept(&path, 3)] {
            File::create(file).unwrap().set_len(i64::MAX as u64 - 4095).unwrap();
        }
        LogFiles::of(&path).unwrap().unwrap().write_begin(i64::MAX as u64).unwrap();
        assert!(LogFollower::end_of(&path) > i64::MAX as u64);
        assert_eq!(LogFollower::before_end(&path, u64::MAX).position(), 0);
        assert_eq!(LogFollower::at(&path, 0).read(3).unwrap(), LogPiece { bytes: vec![0; 3], skipped: 0 });
    }
}
