//! [`read_domain`]: counters of a domain's instances and callers, read from their files. A file is locked while its
//! process lives, which writes it within a quarter of a second, unless idle. The next process that opens the domain
//! removes the files of dead ones.

use crate::caller::table::CallStatistics;
use crate::error::RpcError;
use crate::route_counters::{Side, process_name_of, route_of};
use crate::server::counters::InstanceStatistics;
use gapless_agent::folder::Folder;
use gapless_agent::{CountersReader, Error, checked_file, file_lock};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIXES: [&str; 2] = ["route-", "calls-"];
const ENDING: &str = ".counters";
/// Older files without their final name belong to a dead process.
const DRAFT_AGE: Duration = Duration::from_secs(60);

/// Counters of one instance of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceReading {
    pub route: String,
    pub process_id: u32,
    /// Name that the process gave itself, not verified.
    pub process_name: Option<String>,
    pub statistics: InstanceStatistics,
}

/// Counters of one process's calls of a route to other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReading {
    pub route: String,
    pub process_id: u32,
    /// Name that the process gave itself, not verified.
    pub process_name: Option<String>,
    pub statistics: CallStatistics,
}

/// A counter file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableCounters {
    pub path: PathBuf,
    /// Problem, without the path.
    pub reason: String,
}

impl std::fmt::Display for UnreadableCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Last, because the end of a line may be cut off.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "counters cannot be read: {} ({name})", self.reason)
    }
}

/// Counters of the living processes of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainReading {
    /// Instances, by route and process.
    pub instances: Vec<InstanceReading>,
    /// Callers, by route and process.
    pub calls: Vec<CallReading>,
    /// Files missing from the other lists.
    pub unreadable: Vec<UnreadableCounters>,
}

pub(super) fn new_path(directory: &Path, side: Side) -> PathBuf {
    directory.join(format!("{}{:032x}{ENDING}", prefix(side), gapless_transport::token::random_token()))
}

const fn prefix(side: Side) -> &'static str {
    match side {
        Side::Instance => PREFIXES[0],
        Side::Caller => PREFIXES[1],
    }
}

fn is_of(path: &Path, side: Side) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix(side)))
}

/// Reads the counters of the living processes in a domain's directory, up to a quarter of a second old, or older while
/// a process is stopped or the machine is overloaded. Files of other users are left out.
///
/// # Errors
/// The directory cannot be listed.
pub fn read_domain(directory: &Path) -> Result<DomainReading, RpcError> {
    let (mut instances, mut calls, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(directory)?.into_iter().filter(|path| path.to_string_lossy().ends_with(ENDING)) {
        let side = if is_of(&path, Side::Instance) { Side::Instance } else { Side::Caller };
        let found = if side == Side::Instance { &mut instances } else { &mut calls };
        match read(&path, side) {
            Ok(counters) => found.extend(counters),
            Err(reason) => unreadable.push(UnreadableCounters { path, reason }),
        }
    }
    let sort = |found: &mut Vec<ReadCounters>| found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    sort(&mut instances);
    sort(&mut calls);
    unreadable.sort_by(|a, b| a.path.cmp(&b.path));
    let instance = |(route, process_id, counters): ReadCounters| {
        let (process_name, statistics) = (process_name_of(&counters), InstanceStatistics::of(&counters));
        InstanceReading { route, process_id, process_name, statistics }
    };
    let call = |(route, process_id, counters): ReadCounters| {
        let (process_name, statistics) = (process_name_of(&counters), CallStatistics::of(&counters));
        CallReading { route, process_id, process_name, statistics }
    };
    let instances = instances.into_iter().map(instance).collect();
    let calls = together(calls).into_iter().map(call).collect();
    Ok(DomainReading { instances, calls, unreadable })
}

type ReadCounters = (String, u32, Vec<(String, u64)>);

/// A process that calls a route with several pairs of types has several files.
fn together(calls: Vec<ReadCounters>) -> Vec<ReadCounters> {
    let mut together: Vec<ReadCounters> = Vec::new();
    for (route, process_id, counters) in calls {
        match together.last_mut().filter(|last| (&last.0, last.1) == (&route, process_id)) {
            Some(last) => last.2.extend(counters),
            None => together.push((route, process_id, counters)),
        }
    }
    together
}

/// `None` if the process is dead or of another user, or the file has gone.
fn read(path: &Path, side: Side) -> Result<Option<ReadCounters>, String> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.uid() != geteuid().as_raw() => return Ok(None),
        // May have replaced the file of a living instance.
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
        // May have gone with its instance meanwhile.
        Err(_) if !path.exists() => Ok(None),
        Err(Error::CountersDamaged { position, expected, found, .. }) => {
            Err(format!("damaged at byte {position}: expected {expected}, found {found}"))
        }
        Err(Error::CountersIo { action, source, .. }) => Err(format!("cannot {action}: {source}")),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn sweep(directory: &Path) -> Result<(), RpcError> {
    let files = files(directory)?;
    let failed = RpcError::system(format!("opening the domain {}", directory.display()));
    let folder = Folder::open(directory).map_err(failed)?;
    for path in files {
        let Ok(Some(file)) = folder.open_file(path.file_name().unwrap_or_default(), OFlags::RDONLY) else { continue };
        let is_draft = !path.to_string_lossy().ends_with(ENDING);
        let Ok(metadata) = file.metadata() else { continue };
        let is_old = metadata.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= DRAFT_AGE));
        // The owner locks a draft right after creating it, and must not find it locked.
        let may_look = is_old || !is_draft;
        if may_look && file_lock::try_lock(&file).is_ok_and(|is_taken| is_taken) {
            // A name is never used again, so this cannot remove another file.
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

/// True if the process of a file is dead.
fn is_unlocked(path: &Path) -> io::Result<bool> {
    let file = checked_file::open(path)?;
    let is_unlocked = !file_lock::is_locked(&file)?;
    if file.metadata()?.nlink() == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(is_unlocked) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route_counters::CounterDestination;
    use crate::server::counters::InstanceCounters;
    use gapless_agent::CountersWriter;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn counters(directory: &Path, route: &str) -> (InstanceCounters, PathBuf) {
        let shown = CounterDestination {
            writer: CountersWriter::new(|| {}),
            path: Some(new_path(directory, Side::Instance)),
            ..CounterDestination::in_memory()
        };
        (InstanceCounters::create(route, &shown).unwrap(), shown.path.unwrap())
    }

    type Damage = (fn(&Path), &'static str);

    fn file(path: &Path) -> File {
        File::options().write(true).open(path).unwrap()
    }

    #[test]
    fn sweep_spares_new_files() {
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
            assert_eq!((seen.instances.len(), seen.unreadable), (made.len(), Vec::new()));
        });
    }

    #[test]
    fn any_process_name_has_a_label() {
        let directory = tempfile::tempdir().unwrap();
        for (name, expected) in [("fraud.1", "fraud.1"), ("", ""), ("a\nb\0", "ab"), (&"é".repeat(64), &"é".repeat(56))]
        {
            let (path, process_name) = (Some(new_path(directory.path(), Side::Instance)), name.into());
            let shown = CounterDestination { path, process_name, writer: CountersWriter::new(|| {}) };
            let _counters = InstanceCounters::create("route", &shown).unwrap();
            let seen = read_domain(directory.path()).unwrap();
            assert_eq!(
                (seen.instances.len(), seen.instances[0].process_name.as_deref()),
                (1, Some(expected)),
                "{name:?}"
            );
        }
    }

    #[test]
    fn unreadable_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let read = || read_domain(directory.path()).unwrap();
        let _whole = counters(directory.path(), "whole");
        let damage: [Damage; 6] = [
            (|path| file(path).set_len(0).unwrap(), "found 0 bytes"),
            (|path| file(path).set_len(5_000).unwrap(), "found 5000 bytes"),
            (|path| std::fs::write(path, vec![0xff; 70_000]).unwrap(), "magic"),
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
            assert_eq!((read().instances.len(), read().unreadable.len()), (2, number.saturating_sub(4)));
            damage(&path);
            let seen = read();
            assert_eq!(seen.instances.len(), 1, "{expected}: {seen:?}");
            let named = seen.unreadable.iter().find(|unreadable| unreadable.path == path).unwrap();
            let (said, name) = (named.to_string(), path.file_name().unwrap().to_str().unwrap());
            assert!(said.contains(expected) && said.contains(name), "{said}");
            drop(counters);
        }
        std::fs::write(new_path(directory.path(), Side::Caller), "nothing").unwrap();
        assert_eq!(read().unreadable.len(), 2, "a directory is still reported");
    }
}
