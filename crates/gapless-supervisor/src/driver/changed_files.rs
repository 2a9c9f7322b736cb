//! [`ChangedFiles`]: polls files for replacement; waits until they are completely written.

use crate::config::SupervisorConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const POLL_INTERVAL_NS: u64 = 1_000_000_000;
const SETTLING_INTERVAL_NS: u64 = 200_000_000;
const SETTLED_AFTER_NS: u64 = 1_000_000_000;

/// Version of a file: changes when it is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileVersion {
    /// Version at `path`, following symbolic links.
    pub fn of(path: &Path) -> Option<Self> {
        let file = std::fs::metadata(path).ok()?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified_s: file.mtime(),
            modified_ns: file.mtime_nsec(),
        })
    }
}

#[derive(Debug, Default)]
pub struct ChangedFiles {
    file: Option<WatchedFile>,
    programs: ProcessFiles,
    inputs: ProcessFiles,
    /// Next poll, monotonic, ns.
    pub next_ns: u64,
}

/// Versions of programs and inputs that reloading processes were started with, by process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartedVersions {
    programs: BTreeMap<String, FileVersion>,
    inputs: BTreeMap<String, FileVersion>,
}

/// A complete new version of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum FileChange {
    File,
    Program(String),
    Input(String),
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    acted: Option<FileVersion>,
    /// Deviating version at the last poll, and the time it was first seen, ns.
    other: Option<(Option<FileVersion>, u64)>,
}

impl WatchedFile {
    const fn new(path: PathBuf, acted: Option<FileVersion>) -> Self {
        Self { path, acted, other: None }
    }

    fn poll(&mut self, now_ns: u64, found: Option<FileVersion>, is_written: impl FnOnce(&Path) -> bool) -> bool {
        if found == self.acted {
            self.other = None;
            return false;
        }
        match self.other {
            Some((other, since_ns)) if other == found => {
                if now_ns.saturating_sub(since_ns) < SETTLED_AFTER_NS || is_written(&self.path) {
                    return false;
                }
                (self.acted, self.other) = (found, None);
                true
            }
            _ => {
                self.other = Some((found, now_ns));
                false
            }
        }
    }
}

#[derive(Debug, Default)]
struct ProcessFiles(BTreeMap<String, WatchedFile>);

impl ProcessFiles {
    fn follow<'a>(
        &mut self,
        files: impl Iterator<Item = (&'a String, &'a PathBuf)>,
        known: &BTreeMap<String, FileVersion>,
    ) {
        let mut before = std::mem::take(&mut self.0);
        for (name, path) in files {
            let kept = before.remove(name).filter(|watched| watched.path == *path);
            let watched = kept.unwrap_or_else(|| {
                let acted = known.get(name).copied().or_else(|| FileVersion::of(path));
                WatchedFile::new(path.clone(), acted)
            });
            self.0.insert(name.clone(), watched);
        }
    }

    fn known(&self) -> BTreeMap<String, FileVersion> {
        self.0.iter().filter_map(|(name, watched)| Some((name.clone(), watched.acted?))).collect()
    }

    fn poll(&mut self, mut poll: impl FnMut(&mut WatchedFile) -> bool) -> Vec<String> {
        let changed = self.0.iter_mut().filter_map(|(name, watched)| {
            let is_other = poll(watched) && watched.acted.is_some();
            is_other.then(|| name.clone())
        });
        changed.collect()
    }
}

impl ChangedFiles {
    /// Sets the polled files: the configuration file as read, and programs and inputs of processes that reload on a
    /// change; `known` has the versions they were started with.
    pub fn follow(
        &mut self,
        file: Option<(&Path, Option<FileVersion>)>,
        config: &SupervisorConfig,
        known: &StartedVersions,
    ) {
        self.file = file.map(|(path, read)| WatchedFile::new(path.to_owned(), read));
        let programs = config.processes.iter().filter(|process| process.reload.on_program);
        self.programs.follow(programs.map(|process| (&process.name, &process.program)), &known.programs);
        let inputs = config.processes.iter().filter(|process| process.reload.on_input);
        self.inputs.follow(inputs.filter_map(|process| Some((&process.name, process.input.as_ref()?))), &known.inputs);
        self.next_ns = 0;
    }

    /// Makes the next poll report the configuration file again, after a transient failure to apply it.
    pub fn poll_again(&mut self, path: &Path) {
        self.file.iter_mut().filter(|watched| watched.path == path).for_each(|watched| watched.acted = None);
    }

    /// Versions of programs and inputs, for the next supervisor.
    pub fn known(&self) -> StartedVersions {
        StartedVersions { programs: self.programs.known(), inputs: self.inputs.known() }
    }

    /// Polls, if it is time.
    pub fn poll(&mut self, now_ns: u64) -> Vec<FileChange> {
        if now_ns < self.next_ns {
            return Vec::new();
        }
        let mut poll =
            |watched: &mut WatchedFile| watched.poll(now_ns, FileVersion::of(&watched.path), is_open_for_writing);
        let mut changed = Vec::new();
        if self.file.as_mut().is_some_and(&mut poll) {
            changed.push(FileChange::File);
        }
        changed.extend(self.programs.poll(&mut poll).into_iter().map(FileChange::Program));
        changed.extend(self.inputs.poll(&mut poll).into_iter().map(FileChange::Input));
        let all = self.file.iter().chain(self.programs.0.values()).chain(self.inputs.0.values());
        self.next_ns = now_ns
            + if all.into_iter().any(|watched| watched.other.is_some()) {
                SETTLING_INTERVAL_NS
            } else {
                POLL_INTERVAL_NS
            };
        changed
    }
}

/// Scans all of `/proc`.
fn is_open_for_writing(path: &Path) -> bool {
    let Ok(wanted) = std::fs::metadata(path) else { return false };
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).any(|process| {
        std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten().any(|descriptor| {
            // Names first: `stat` on other files could block on an unresponsive disk.
            let is_it = std::fs::read_link(descriptor.path()).is_ok_and(|target| target == real)
                && std::fs::metadata(descriptor.path())
                    .is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()));
            is_it && {
                let text = std::fs::read_to_string(process.path().join("fdinfo").join(descriptor.file_name()));
                text.is_ok_and(|text| may_write(&text))
            }
        })
    })
}

/// The last two bits of the octal flags in `fdinfo`.
fn may_write(text: &str) -> bool {
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::until;
    use std::fs::File;

    const fn file(length: u64) -> Option<FileVersion> {
        Some(FileVersion { device: 1, inode: 2, length, modified_s: 3, modified_ns: 4 })
    }

    #[test]
    fn complete_file_is_seen_once() {
        let mut watched = WatchedFile::new("/program".into(), file(10));
        let second = 1_000_000_000;
        let mut poll = |at, found| watched.poll(at, found, |_| false);
        assert!(!poll(0, file(10)), "unchanged");
        assert!(!poll(second, file(1)));
        assert!(!poll(2 * second - 1, file(1)));
        assert!(!poll(2 * second, file(2)));
        assert!(!poll(3 * second - 1, file(2)));
        assert!(poll(3 * second, file(2)));
        assert!(!poll(9 * second, file(2)), "once");
        assert!(!poll(10 * second, file(3)));
        assert!(!poll(10 * second + 1, file(2)), "old version again");
        assert!(!poll(12 * second, file(2)));
    }

    #[test]
    fn rejected_file_is_seen_again() {
        let path = Path::new("/file");
        let mut files = ChangedFiles { file: Some(WatchedFile::new(path.into(), file(10))), ..ChangedFiles::default() };
        let second = 1_000_000_000;
        let poll = |files: &mut ChangedFiles, at| files.file.as_mut().unwrap().poll(at, file(2), |_| false);
        assert!(!poll(&mut files, 0) && poll(&mut files, second) && !poll(&mut files, 5 * second));
        files.poll_again(Path::new("/other"));
        assert!(!poll(&mut files, 6 * second) && !poll(&mut files, 8 * second));
        files.poll_again(path);
        assert!(!poll(&mut files, 9 * second) && poll(&mut files, 10 * second) && !poll(&mut files, 12 * second));
    }

    #[test]
    fn file_with_writer_is_incomplete() {
        let mut watched = WatchedFile::new("/program".into(), file(10));
        assert!(!watched.poll(0, file(1), |_| true));
        assert!(!watched.poll(u64::MAX / 2, file(1), |_| true));
        assert!(watched.poll(u64::MAX / 2 + 1, file(1), |_| false));
        assert!(!watched.poll(u64::MAX / 2 + 2, None, |_| false));
    }

    #[test]
    fn readers_are_not_writers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        std::fs::write(&path, "x").unwrap();
        let _reader = File::open(&path).unwrap();
        // A child forked by another test holds the descriptor until it calls exec.
        let has_no_writer = || until("no writer is left", || !is_open_for_writing(&path));
        has_no_writer();
        let writer = File::options().append(true).open(&path).unwrap();
        assert!(is_open_for_writing(&path) && is_open_for_writing(&link));
        drop(writer);
        has_no_writer();
        assert!(!is_open_for_writing(&folder.path().join("nothing")));
    }
}
