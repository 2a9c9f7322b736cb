//! Moves the beginning of a log to `NAME.log.1`. With `FALLOC_FL_COLLAPSE_RANGE` (ext4, xfs) the copied part is cut
//! away in one step, at a block boundary, and no line is lost. Others (tmpfs, btrfs) copy and truncate: lines appended
//! in the microseconds between are lost, and so is output much faster than the copy. A supervisor killed before the cut
//! leaves lines in both files, never in none.

use super::positions::{LOGS_KEPT_MAX, LockedLog, LogFiles, kept, with_suffix};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const PIECE_BYTES: usize = 256 << 10;

/// False if nothing was done. Keeps `kept_max` rotated files of up to `bytes_max` each, or twice that after a
/// truncation.
///
/// # Errors
/// I/O errors; a full disk only if no rotated file is left to remove. The log is unchanged then.
pub(super) fn rotate(log: &Path, bytes_max: u64, kept_max: u32) -> io::Result<bool> {
    let Some(log) = &LogFiles::of(log)? else { return Ok(false) };
    let mut has_rotated = false;
    loop {
        let Some(file) = log.open(OFlags::RDWR)? else { return Ok(has_rotated) };
        let length = file.metadata()?.len();
        if length < bytes_max {
            return Ok(has_rotated);
        }
        let block = file.metadata()?.blksize().max(1);
        let whole = |bytes: u64| bytes - bytes % block;
        let most = bytes_max * (u64::from(kept_max) + 1);
        let surplus = if length > most { whole(length - most) } else { 0 };
        // The system does not collapse a whole file: at least one byte stays.
        let cut = if surplus > 0 { surplus } else { whole(bytes_max.min(length - 1)) };
        let can_cut = cut > 0 && can_cut(log, block)?;
        match (can_cut, kept_max) {
            (true, _) if surplus > 0 || kept_max == 0 => cut_beginning(log, cut, || remove_from(log, 1))?,
            (true, _) => keep(log, &file, (0, cut), kept_max, |log| cut_beginning(log, cut, || shift(log, kept_max)))?,
            (false, 0) => empty(log, |_| remove_from(log, 1))?,
            (false, _) => {
                // Of a much longer log only the end is kept, and no rotated files, which would not be contiguous.
                let from = if length > 2 * bytes_max { length - bytes_max } else { 0 };
                let most = from + 2 * bytes_max - length;
                keep(log, &file, (from, length), kept_max, |log| {
                    empty(log, |file| {
                        append(file, log, (length, most))?;
                        if from > 0 {
                            remove_from(log, 1)?;
                        }
                        shift(log, kept_max)
                    })
                })?;
            }
        }
        has_rotated = true;
    }
}

fn can_cut(log: &LogFiles, block: u64) -> io::Result<bool> {
    let name = with_suffix(&log.name, "cut");
    let probe = log.folder.create_file(&name, Mode::RUSR | Mode::WUSR);
    let can = probe.and_then(|probe| {
        probe.set_len(2 * block)?;
        match fallocate(&probe, FallocateFlags::COLLAPSE_RANGE, 0, block) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    });
    let _absent = log.folder.remove(&name);
    can
}

/// A full disk removes rotated files, oldest first.
fn keep(
    log: &LogFiles,
    file: &File,
    (from, to): (u64, u64),
    kept_max: u32,
    finish: impl FnOnce(&LogFiles) -> io::Result<()>,
) -> io::Result<()> {
    let new = with_suffix(&log.name, "1.new");
    while let Err(error) = copy(file, log, from, to) {
        let _absent = log.folder.remove(&new);
        let oldest = (1..=kept_max).rev().map(|number| kept(&log.name, number)).find(|name| log.folder.has(name));
        match oldest.filter(|_| is_full(&error)) {
            Some(oldest) => drop(log.folder.remove(oldest)?),
            None => return Err(error),
        }
    }
    let finished = finish(log);
    if finished.is_err() {
        let _absent = log.folder.remove(&new);
    }
    finished
}

fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
}

/// An outdated position only repeats lines; failing would keep the log from ever shrinking.
fn unless_full(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if is_full(&error) { Ok(()) } else { Err(error) })
}

fn copy(file: &File, log: &LogFiles, from: u64, to: u64) -> io::Result<()> {
    let mode = Mode::from_raw_mode(file.metadata()?.mode() & 0o777);
    let target = log.folder.create_file(with_suffix(&log.name, "1.new"), mode)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = from;
    while at < to {
        let most = piece.len().min((to - at) as usize);
        let count = file.read_at(&mut piece[..most], at)?;
        if count == 0 {
            break;
        }
        target.write_all_at(&piece[..count], at - from)?;
        at += count as u64;
    }
    Ok(())
}

/// Under the exclusive lock, so that readers see all changes or none.
fn cut_beginning(log: &LogFiles, cut: u64, prepare: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let Some(locked) = LockedLog::exclusive(log)? else { return Ok(()) };
    prepare()?;
    let begin = log.begin();
    // Before the cut: a crash in between repeats lines instead of skipping them.
    unless_full(log.write_begin(begin + cut))?;
    fallocate(&locked.file, FallocateFlags::COLLAPSE_RANGE, 0, cut).map_err(|errno| {
        let _ = log.write_begin(begin);
        errno.into()
    })
}

fn empty(log: &LogFiles, prepare: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let Some(locked) = LockedLog::exclusive(log)? else { return Ok(()) };
    prepare(&locked.file)?;
    unless_full(log.write_begin(log.begin() + locked.length()?))?;
    locked.file.set_len(0)
}

/// Endless output cannot delay it.
fn append(file: &File, log: &LogFiles, (mut at, most): (u64, u64)) -> io::Result<()> {
    let target = log.folder.open_file(with_suffix(&log.name, "1.new"), OFlags::WRONLY | OFlags::APPEND)?;
    let mut target = target.ok_or(io::ErrorKind::NotFound)?;
    let end = at + most;
    let mut piece = vec![0; PIECE_BYTES];
    while at < end {
        let most = piece.len().min((end - at) as usize);
        let count = file.read_at(&mut piece[..most], at)?;
        if count == 0 {
            break;
        }
        io::Write::write_all(&mut target, &piece[..count])?;
        at += count as u64;
    }
    Ok(())
}

fn shift(log: &LogFiles, kept_max: u32) -> io::Result<()> {
    remove_from(log, kept_max)?;
    for number in (1..kept_max).rev() {
        log.folder.rename(kept(&log.name, number), kept(&log.name, number + 1))?;
    }
    log.folder.rename(with_suffix(&log.name, "1.new"), kept(&log.name, 1)).map(drop)
}

fn remove_from(log: &LogFiles, number: u32) -> io::Result<()> {
    for number in number..=LOGS_KEPT_MAX {
        if !log.folder.remove(kept(&log.name, number))? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::LogFollower;
    use std::io::Write;

    fn log(folder: &Path) -> (std::path::PathBuf, File) {
        let path = folder.join("a.1.log");
        let file = File::options().append(true).create(true).open(&path).unwrap();
        (path, file)
    }

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    fn whole(path: &Path, kept_max: u32) -> String {
        let kept: String = (1..=kept_max).rev().map(|number| text(&kept(path, number))).collect();
        kept + &text(path)
    }

    fn on_both(test: impl Fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        test(folder.path());
        if let Some(disk) = gapless_testkit::folder::SmallDisk::new(1 << 10) {
            test(&disk.path);
        }
    }

    #[test]
    fn rotation_leaves_no_gap() {
        on_both(|folder| {
            let (path, mut file) = log(folder);
            let mut all = String::new();
            let mut follower = LogFollower::at(&path, 0);
            let mut followed = String::new();
            for number in 0..2000 {
                let line = format!("line {number} {}\n", "x".repeat(number % 50));
                file.write_all(line.as_bytes()).unwrap();
                all += &line;
                rotate(&path, 8192, 2).unwrap();
                assert!(std::fs::metadata(&path).unwrap().len() < 8192);
                if number % 37 == 0 {
                    let piece = follower.read(1 << 20).unwrap();
                    assert_eq!(piece.skipped, 0, "at line {number}");
                    followed += &String::from_utf8(piece.bytes).unwrap();
                }
            }
            followed += &String::from_utf8(follower.read(1 << 20).unwrap().bytes).unwrap();
            assert!(followed == all, "a follower misses nothing");
            let kept_text = whole(&path, 2);
            assert!(all.ends_with(&kept_text) && kept_text.len() > 8192, "{} bytes are kept", kept_text.len());
            assert!((1..=2).all(|number| std::fs::metadata(kept(&path, number)).unwrap().len() <= 2 * 8192));
            assert!(
                !kept(&path, 3).exists()
                    && !with_suffix(&path, "1.new").exists()
                    && !with_suffix(&path, "cut").exists()
            );
            assert_eq!(LogFiles::of(&path).unwrap().unwrap().begin() + text(&path).len() as u64, all.len() as u64);
        });
    }

    #[test]
    fn oversized_log_keeps_its_end() {
        on_both(|folder| {
            let (path, mut file) = log(folder);
            let all: String = (0..20_000).map(|number| format!("{number}\n")).collect();
            file.write_all(all.as_bytes()).unwrap();
            let mut follower = LogFollower::at(&path, 0);
            assert!(rotate(&path, 8192, 1).unwrap());
            assert!(!rotate(&path, 8192, 1).unwrap(), "nothing is left to do");
            let kept_text = whole(&path, 1);
            assert!(all.ends_with(&kept_text) && (8192..=2 * 8192).contains(&kept_text.len()), "{}", kept_text.len());
            let piece = follower.read(1 << 20).unwrap();
            assert_eq!(piece.skipped + kept_text.len() as u64, all.len() as u64);
            assert!(kept_text.starts_with(&String::from_utf8(piece.bytes).unwrap()));
        });
    }

    #[test]
    fn surplus_is_cut_away() {
        on_both(|folder| {
            let (path, mut file) = log(folder);
            std::fs::write(kept(&path, 1), "of a time in which one was kept").unwrap();
            file.write_all(&[b'x'; 10_000]).unwrap();
            file.write_all(b"\nlast\n").unwrap();
            let mut follower = LogFollower::at(&path, 9_999);
            rotate(&path, 8192, 0).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() < 8192);
            file.write_all(b"behind\n").unwrap();
            let bytes = follower.read(1 << 20).unwrap().bytes;
            assert!(bytes.ends_with(b"behind\n"), "{bytes:?}");
        });
    }

    #[test]
    fn full_disk_drops_the_oldest_lines() {
        let Some(disk) = gapless_testkit::folder::SmallDisk::new(120) else { return };
        let (path, mut file) = log(&disk.path);
        file.write_all(&[b'a'; 40_000]).unwrap();
        rotate(&path, 30_000, 2).unwrap();
        assert_eq!(std::fs::read(kept(&path, 1)).unwrap(), [b'a'; 40_000]);
        file.write_all(&[b'b'; 50_000]).unwrap();
        rotate(&path, 30_000, 2).unwrap();
        assert_eq!(std::fs::read(kept(&path, 1)).unwrap(), [b'b'; 50_000]);
        assert!(!kept(&path, 2).exists(), "the oldest file made room");
        while file.write_all(&[b'c'; 1000]).is_ok() {}
        std::fs::remove_file(kept(&path, 1)).unwrap();
        while file.write_all(&[b'c'; 1000]).is_ok() {}
        let before = std::fs::metadata(&path).unwrap().len();
        let error = rotate(&path, 30_000, 2).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), before, "nothing is lost");
    }
}
