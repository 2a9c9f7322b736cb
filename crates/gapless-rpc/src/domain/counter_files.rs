//! [`read_domain`]: what the copies of a domain count, and the processes that call, read from their files without their help; and the
//! files' names and end.
//!
//! Each copy of a route has a file in the domain's directory, and each process one for each route that it calls, locked while its process
//! lives and written by its I/O thread after a quarter of a second at the latest, where it is not idle. It goes with the copy or the
//! caller; those of the dead are not shown, and removed by the next process that opens the domain.

use crate::error::RpcError;
use crate::remote::table::CallStatistics;
use crate::route_counters::{Side, process_name_of, route_of};
use crate::served::counters::CopyStatistics;
use gapless_agent::folder::Folder;
use gapless_agent::{CountersReader, Error, checked_file, file_lock};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of copies, and of processes that call.
const PREFIXES: [&str; 2] = ["route-", "calls-"];
const ENDING: &str = ".counters";
/// A file that is not at its place yet is that of a dead process when it is so old.
const DRAFT_AGE: Duration = Duration::from_secs(60);

/// What one copy of a route counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReading {
    /// The route.
    pub route: String,
    /// The copy's process.
    pub process_id: u32,
    /// The name that the process has given itself; nobody has checked it.
    pub process_name: Option<String>,
    /// What it counts.
    pub statistics: CopyStatistics,
}

/// What one process counts of its calls of a route to other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReading {
    /// The route.
    pub route: String,
    /// The process that calls.
    pub process_id: u32,
    /// The name that it has given itself; nobody has checked it.
    pub process_name: Option<String>,
    /// What it counts.
    pub statistics: CallStatistics,
}

/// Counters that should be there and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableCounters {
    /// Their file.
    pub path: PathBuf,
    /// What is wrong with it, in words that do not name it.
    pub reason: String,
}

impl std::fmt::Display for UnreadableCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The end of a line may be cut off.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "counters cannot be read: {} ({name})", self.reason)
    }
}

/// The counts of the living processes of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainReading {
    /// Of copies, by route and process.
    pub copies: Vec<CopyReading>,
    /// Of processes that call, by route and process.
    pub calls: Vec<CallReading>,
    /// What is missing above.
    pub unreadable: Vec<UnreadableCounters>,
}

/// A name that no file has, for counters of that side.
pub(super) fn new_path(directory: &Path, side: Side) -> PathBuf {
    directory.join(format!("{}{:032x}{ENDING}", prefix(side), gapless_transport::token::random_token()))
}

const fn prefix(side: Side) -> &'static str {
    match side {
        Side::Copy => PREFIXES[0],
        Side::Caller => PREFIXES[1],
    }
}

fn is_of(path: &Path, side: Side) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix(side)))
}

/// Reads the counts of the living processes that use a domain's directory. They are up to a quarter of a second old, or older while a
/// process is stopped or the machine is overloaded. Files of other users are left out.
///
/// # Errors
/// A directory that cannot be listed.
pub fn read_domain(directory: &Path) -> Result<DomainReading, RpcError> {
    let (mut copies, mut calls, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(directory)?.into_iter().filter(|path| path.to_string_lossy().ends_with(ENDING)) {
        let side = if is_of(&path, Side::Copy) { Side::Copy } else { Side::Caller };
        let found = if side == Side::Copy { &mut copies } else { &mut calls };
        match read(&path, side) {
            Ok(counters) => found.extend(counters),
            Err(reason) => unreadable.push(UnreadableCounters { path, reason }),
        }
    }
    let sort = |found: &mut Vec<Found>| found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    sort(&mut copies);
    sort(&mut calls);
    unreadable.sort_by(|a, b| a.path.cmp(&b.path));
    let copy = |(route, process_id, counters): Found| {
        let (process_name, statistics) = (process_name_of(&counters), CopyStatistics::of(&counters));
        CopyReading { route, process_id, process_name, statistics }
    };
    let call = |(route, process_id, counters): Found| {
        let (process_name, statistics) = (process_name_of(&counters), CallStatistics::of(&counters));
        CallReading { route, process_id, process_name, statistics }
    };
    let copies = copies.into_iter().map(copy).collect();
    let calls = together(calls).into_iter().map(call).collect();
    Ok(DomainReading { copies, calls, unreadable })
}

/// A route, a process and what that counts.
type Found = (String, u32, Vec<(String, u64)>);

/// A process has a file for each pair of types that it calls a route with.
fn together(calls: Vec<Found>) -> Vec<Found> {
    let mut together: Vec<Found> = Vec::new();
    for (route, process_id, counters) in calls {
        match together.last_mut().filter(|last| (&last.0, last.1) == (&route, process_id)) {
            Some(last) => last.2.extend(counters),
            None => together.push((route, process_id, counters)),
        }
    }
    together
}

/// What a living process has counted; none if it is dead, the file gone meanwhile, or nobody's or another user's.
///
/// # Errors
/// Why it cannot be read.
fn read(path: &Path, side: Side) -> Result<Option<Found>, String> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.uid() != geteuid().as_raw() => return Ok(None),
        // No copy has made it, dead or alive: it may stand in the place of what a living one has made.
        Ok(there) if !there.is_file() => return Err("what is there is not a file".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(_) | Err(_) => {}
    }
    let is_unlocked = match is_unlocked(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        looked => looked.map_err(|error| format!("cannot open it: {error}"))?,
    };
    if is_unlocked {
        return Ok(None);
    }
    let read = CountersReader::open(path).and_then(|reader| Ok((reader.owner_pid(), reader.read()?)));
    match read {
        Ok((process_id, counters)) => match route_of(side, &counters) {
            Some(route) => Ok(Some((route, process_id, counters))),
            None => Err("damaged: it names no route".to_owned()),
        },
        // It may have gone with its copy meanwhile.
        Err(_) if !path.exists() => Ok(None),
        Err(Error::CountersDamaged { position, expected, found, .. }) => {
            Err(format!("damaged at byte {position}: expected {expected}, found {found}"))
        }
        Err(Error::CountersIo { action, source, .. }) => Err(format!("cannot {action}: {source}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Removes the files of the dead.
pub(super) fn sweep(directory: &Path) -> Result<(), RpcError> {
    let files = files(directory)?;
    let failed = RpcError::system(format!("opening the domain {}", directory.display()));
    let folder = Folder::open(directory).map_err(failed)?;
    for path in files {
        let Ok(Some(file)) = folder.open_file(path.file_name().unwrap_or_default(), OFlags::RDONLY) else { continue };
        let is_draft = !path.to_string_lossy().ends_with(ENDING);
        let Ok(metadata) = file.metadata() else { continue };
        let is_old = metadata.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= DRAFT_AGE));
        // Its owner locks a draft a moment after it has made it, and would find it locked.
        let may_look = is_old || !is_draft;
        if may_look && file_lock::try_lock(&file).is_ok_and(|is_taken| is_taken) {
            // A name is never used again, so nobody else's is removed.
            let _ = path.file_name().map(|name| folder.remove(name));
        }
    }
    Ok(())
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, RpcError> {
    let failed = || RpcError::system(format!("listing the domain {}", directory.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && name.contains(ENDING) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Whether the process of a file is dead.
///
/// # Errors
/// A file that has gone, or cannot be opened.
fn is_unlocked(path: &Path) -> io::Result<bool> {
    let file = checked_file::open(path)?;
    let is_unlocked = !file_lock::is_locked(&file)?;
    if file.metadata()?.nlink() == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(is_unlocked) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route_counters::Shown;
    use crate::served::counters::CopyCounters;
    use gapless_agent::CountersWriter;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn counters(directory: &Path, route: &str) -> (CopyCounters, PathBuf) {
        let shown = Shown {
            writer: CountersWriter::new(|| {}),
            path: Some(new_path(directory, Side::Copy)),
            ..Shown::nowhere()
        };
        (CopyCounters::create(route, &shown).unwrap(), shown.path.unwrap())
    }

    type Damage = (fn(&Path), &'static str);

    fn file(path: &Path) -> File {
        File::options().write(true).open(path).unwrap()
    }

    #[test]
    fn whoever_removes_the_files_of_the_dead_hinders_nobody_who_makes_one() {
        let directory = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    sweep(directory.path()).unwrap();
                }
            });
            let made: Vec<_> =
                (0..gapless_testkit::random::rounds(500, 100)).map(|_| counters(directory.path(), "route")).collect();
            is_over.store(true, Ordering::SeqCst);
            let seen = read_domain(directory.path()).unwrap();
            assert_eq!((seen.copies.len(), seen.unreadable), (made.len(), Vec::new()));
        });
    }

    #[test]
    fn whatever_a_process_calls_itself_it_counts() {
        let directory = tempfile::tempdir().unwrap();
        for (name, expected) in [("fraud.1", "fraud.1"), ("", ""), ("a\nb\0", "ab"), (&"é".repeat(64), &"é".repeat(56))]
        {
            let (path, process_name) = (Some(new_path(directory.path(), Side::Copy)), name.into());
            let shown = Shown { path, process_name, writer: CountersWriter::new(|| {}) };
            let _counters = CopyCounters::create("route", &shown).unwrap();
            let seen = read_domain(directory.path()).unwrap();
            assert_eq!((seen.copies.len(), seen.copies[0].process_name.as_deref()), (1, Some(expected)), "{name:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_and_is_named_with_its_reason() {
        let directory = tempfile::tempdir().unwrap();
        let read = || read_domain(directory.path()).unwrap();
        let _whole = counters(directory.path(), "whole");
        let damage: [Damage; 6] = [
            (|path| file(path).set_len(0).unwrap(), "found 0 bytes"),
            (|path| file(path).set_len(5_000).unwrap(), "found 5000 bytes"),
            (|path| std::fs::write(path, vec![0xff; 70_000]).unwrap(), "magic"),
            // In the place of `route:`.
            (|path| file(path).write_all_at(b"other:", 132).unwrap(), "names no route"),
            (|path| std::fs::remove_file(path).and_then(|()| std::fs::create_dir(path)).unwrap(), "not a file"),
            (
                |path| {
                    std::fs::remove_file(path).unwrap();
                    mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
                },
                "not a file",
            ),
        ];
        for (number, (damage, expected)) in damage.into_iter().enumerate() {
            let (counters, path) = counters(directory.path(), "damaged");
            assert_eq!((read().copies.len(), read().unreadable.len()), (2, number.saturating_sub(4)));
            damage(&path);
            let seen = read();
            assert_eq!(seen.copies.len(), 1, "{expected}: {seen:?}");
            let named = seen.unreadable.iter().find(|unreadable| unreadable.path == path).unwrap();
            let (said, name) = (named.to_string(), path.file_name().unwrap().to_str().unwrap());
            assert!(said.contains(expected) && said.contains(name), "{said}");
            drop(counters);
        }
        // What nobody has locked is nobody's, or that of one that is dead.
        std::fs::write(new_path(directory.path(), Side::Caller), "nothing").unwrap();
        assert_eq!(read().unreadable.len(), 2, "what is no file stays");
    }
}
