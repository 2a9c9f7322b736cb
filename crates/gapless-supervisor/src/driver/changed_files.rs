//! [`ChangedFiles`]: polls the configuration file, programs and inputs for replacement. A file that is still being
//! written is waited for.

use crate::config::SupervisorConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const LOOK_INTERVAL_NS: u64 = 1_000_000_000;
/// Poll interval while a change is settling, ns.
const SOON_NS: u64 = 200_000_000;
/// Age of an unchanged file without a known writer at which it counts as complete, ns.
const SETTLED_AFTER_NS: u64 = 1_000_000_000;

/// Version of a file: changes when it is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    length: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileIdentity {
    /// Follows symbolic links.
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
    file: Option<Looked>,
    programs: OfProcesses,
    inputs: OfProcesses,
    /// Next poll, monotonic, ns.
    pub next_ns: u64,
}

/// Versions of programs and inputs that reloading processes were started with, by process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartedWith {
    programs: BTreeMap<String, FileIdentity>,
    inputs: BTreeMap<String, FileIdentity>,
}

/// A complete new version of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Changed {
    File,
    Program(String),
    Input(String),
}

#[derive(Debug)]
struct Looked {
    path: PathBuf,
    /// Version that was acted upon.
    acted: Option<FileIdentity>,
    /// Deviating version at the last poll, and the time it was first seen, ns.
    other: Option<(Option<FileIdentity>, u64)>,
}

impl Looked {
    const fn new(path: PathBuf, acted: Option<FileIdentity>) -> Self {
        Self { path, acted, other: None }
    }

    /// Whether a complete new version is there; true once for each version.
    fn look(&mut self, now_ns: u64, found: Option<FileIdentity>, is_written: impl FnOnce(&Path) -> bool) -> bool {
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

/// One file for each process.
#[derive(Debug, Default)]
struct OfProcesses(BTreeMap<String, Looked>);

impl OfProcesses {
    /// Sets the polled files.
    fn follow<'a>(
        &mut self,
        files: impl Iterator<Item = (&'a String, &'a PathBuf)>,
        known: &BTreeMap<String, FileIdentity>,
    ) {
        let mut before = std::mem::take(&mut self.0);
        for (name, path) in files {
            let kept = before.remove(name).filter(|looked| looked.path == *path);
            let looked = kept.unwrap_or_else(|| {
                let acted = known.get(name).copied().or_else(|| FileIdentity::of(path));
                Looked::new(path.clone(), acted)
            });
            self.0.insert(name.clone(), looked);
        }
    }

    fn known(&self) -> BTreeMap<String, FileIdentity> {
        self.0.iter().filter_map(|(name, looked)| Some((name.clone(), looked.acted?))).collect()
    }

    /// Processes whose file was replaced.
    fn look(&mut self, mut look: impl FnMut(&mut Looked) -> bool) -> Vec<String> {
        let changed = self.0.iter_mut().filter_map(|(name, looked)| {
            // A missing file is waited for.
            let is_other = look(looked) && looked.acted.is_some();
            is_other.then(|| name.clone())
        });
        changed.collect()
    }
}

impl ChangedFiles {
    /// Sets the polled files: the configuration file with the version that was read, and the programs and inputs of
    /// processes that reload on a change. `known` has the versions that those were started with.
    pub fn follow(
        &mut self,
        file: Option<(&Path, Option<FileIdentity>)>,
        config: &SupervisorConfig,
        known: &StartedWith,
    ) {
        self.file = file.map(|(path, read)| Looked::new(path.to_owned(), read));
        let programs = config.processes.iter().filter(|process| process.reload.on_program);
        self.programs.follow(programs.map(|process| (&process.name, &process.program)), &known.programs);
        let inputs = config.processes.iter().filter(|process| process.reload.on_input);
        self.inputs.follow(inputs.filter_map(|process| Some((&process.name, process.input.as_ref()?))), &known.inputs);
        self.next_ns = 0;
    }

    /// Makes the next poll report the configuration file again, after it could not be applied for a transient reason.
    pub fn look_again(&mut self, path: &Path) {
        self.file.iter_mut().filter(|looked| looked.path == path).for_each(|looked| looked.acted = None);
    }

    /// Versions of programs and inputs, for the next supervisor.
    pub fn known(&self) -> StartedWith {
        StartedWith { programs: self.programs.known(), inputs: self.inputs.known() }
    }

    /// Polls, if it is time.
    pub fn look(&mut self, now_ns: u64) -> Vec<Changed> {
        if now_ns < self.next_ns {
            return Vec::new();
        }
        let mut look = |looked: &mut Looked| looked.look(now_ns, FileIdentity::of(&looked.path), is_open_for_writing);
        let mut changed = Vec::new();
        if self.file.as_mut().is_some_and(&mut look) {
            changed.push(Changed::File);
        }
        changed.extend(self.programs.look(&mut look).into_iter().map(Changed::Program));
        changed.extend(self.inputs.look(&mut look).into_iter().map(Changed::Input));
        let all = self.file.iter().chain(self.programs.0.values()).chain(self.inputs.0.values());
        self.next_ns =
            now_ns + if all.into_iter().any(|looked| looked.other.is_some()) { SOON_NS } else { LOOK_INTERVAL_NS };
        changed
    }
}

/// Whether a visible process has the file open for writing. Scans all of `/proc`.
fn is_open_for_writing(path: &Path) -> bool {
    let Ok(wanted) = std::fs::metadata(path) else { return false };
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).any(|process| {
        // Processes of other users, and dying ones, cannot be inspected.
        std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten().any(|descriptor| {
            // Names are compared first: `stat` on other files could block on an unresponsive disk.
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

/// Whether a descriptor is writable, from its `fdinfo`: the last two bits of the octal flags.
fn may_write(text: &str) -> bool {
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::until;
    use std::fs::File;

    const fn file(length: u64) -> Option<FileIdentity> {
        Some(FileIdentity { device: 1, inode: 2, length, modified_s: 3, modified_ns: 4 })
    }

    #[test]
    fn complete_file_is_seen_once() {
        let mut looked = Looked::new("/program".into(), file(10));
        let second = 1_000_000_000;
        let mut look = |at, found| looked.look(at, found, |_| false);
        assert!(!look(0, file(10)), "unchanged");
        // Written slowly.
        assert!(!look(second, file(1)));
        assert!(!look(2 * second - 1, file(1)));
        assert!(!look(2 * second, file(2)));
        assert!(!look(3 * second - 1, file(2)));
        assert!(look(3 * second, file(2)));
        assert!(!look(9 * second, file(2)), "once");
        assert!(!look(10 * second, file(3)));
        assert!(!look(10 * second + 1, file(2)), "old version again");
        assert!(!look(12 * second, file(2)));
    }

    #[test]
    fn rejected_file_is_seen_again() {
        let path = Path::new("/file");
        let mut files = ChangedFiles { file: Some(Looked::new(path.into(), file(10))), ..ChangedFiles::default() };
        let second = 1_000_000_000;
        let look = |files: &mut ChangedFiles, at| files.file.as_mut().unwrap().look(at, file(2), |_| false);
        assert!(!look(&mut files, 0) && look(&mut files, second) && !look(&mut files, 5 * second));
        files.look_again(Path::new("/other"));
        assert!(!look(&mut files, 6 * second) && !look(&mut files, 8 * second));
        files.look_again(path);
        assert!(!look(&mut files, 9 * second) && look(&mut files, 10 * second) && !look(&mut files, 12 * second));
    }

    #[test]
    fn file_with_writer_is_incomplete() {
        let mut looked = Looked::new("/program".into(), file(10));
        assert!(!looked.look(0, file(1), |_| true));
        assert!(!looked.look(u64::MAX / 2, file(1), |_| true));
        assert!(looked.look(u64::MAX / 2 + 1, file(1), |_| false));
        // A removed file reappears.
        assert!(!looked.look(u64::MAX / 2 + 2, None, |_| false));
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
