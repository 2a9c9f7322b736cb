//! [`read_counters`] and [`read_calls`]: what the copies of a domain count, and the processes that call, read from their files
//! without their help; and the files' names and end.
//!
//! Each copy of a route has a file in the domain's directory, and each process one for each route that it calls, locked while its process
//! lives. It goes with the copy or the caller; those of the dead are not shown, and removed by the next process that opens the domain.

use crate::error::RpcError;
use crate::remote::table::CallStatistics;
use crate::route_counters::{Side, route_of};
use crate::served::counters::CopyStatistics;
use gapless_agent::CountersReader;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
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
    /// What it counts.
    pub statistics: CallStatistics,
}

/// A name that no file has, for counters of that side.
pub(super) fn new_path(directory: &Path, side: Side) -> PathBuf {
    let prefix = PREFIXES[usize::from(side == Side::Caller)];
    directory.join(format!("{prefix}{:032x}{ENDING}", gapless_transport::token::random_token()))
}

/// What the living copies in a domain's directory count, by route and process. Files of other users are left out.
///
/// # Errors
/// A directory that cannot be listed.
pub fn read_counters(directory: &Path) -> Result<Vec<CopyReading>, RpcError> {
    let copy = |(route, process_id, counters): Found| {
        let statistics = CopyStatistics::of(&counters);
        CopyReading { route, process_id, statistics }
    };
    Ok(read(directory, Side::Copy)?.into_iter().map(copy).collect())
}

/// What the living processes that use a domain's directory count of their calls, by route and process. Files of other users are left
/// out.
///
/// # Errors
/// A directory that cannot be listed.
pub fn read_calls(directory: &Path) -> Result<Vec<CallReading>, RpcError> {
    let mut together: Vec<Found> = Vec::new();
    for (route, process_id, counters) in read(directory, Side::Caller)? {
        // A process has a file for each pair of types that it calls a route with.
        match together.last_mut().filter(|last| (&last.0, last.1) == (&route, process_id)) {
            Some(last) => last.2.extend(counters),
            None => together.push((route, process_id, counters)),
        }
    }
    let calls = |(route, process_id, counters): Found| {
        let statistics = CallStatistics::of(&counters);
        CallReading { route, process_id, statistics }
    };
    Ok(together.into_iter().map(calls).collect())
}

/// A route, a process and what that counts.
type Found = (String, u32, Vec<(String, u64)>);

/// The counters of one side, by route and process.
fn read(directory: &Path, side: Side) -> Result<Vec<Found>, RpcError> {
    let mut found = Vec::new();
    for path in files(directory)?.into_iter().filter(|path| path.to_string_lossy().ends_with(ENDING)) {
        // Whatever cannot be read has gone meanwhile, or is nobody's counters.
        let Some(false) = is_unlocked(&path) else { continue };
        let Ok(reader) = CountersReader::open(&path) else { continue };
        let Ok(counters) = reader.read() else { continue };
        if let Some(route) = route_of(side, &counters) {
            found.push((route, reader.owner_pid(), counters));
        }
    }
    found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    Ok(found)
}

/// Removes the files of the dead.
pub(super) fn sweep(directory: &Path) -> Result<(), RpcError> {
    for path in files(directory)? {
        let Some(file) = open(&path) else { continue };
        let is_draft = !path.to_string_lossy().ends_with(ENDING);
        let is_old = file.metadata().and_then(|metadata| metadata.modified());
        let is_old = is_old.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= DRAFT_AGE));
        // Its owner locks a draft a moment after it has made it, and would find it locked.
        let may_look = is_old || !is_draft;
        if may_look && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // A name is never used again, so nobody else's is removed.
            let _ = std::fs::remove_file(&path);
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

fn open(path: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    File::options().read(true).custom_flags(flags.bits() as i32).open(path).ok()
}

/// Whether the process of a file is dead; `None` if the file has gone.
fn is_unlocked(path: &Path) -> Option<bool> {
    let file = open(path)?;
    // Shared: several may look at one time, and none takes another for the owner.
    let is_unlocked = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    (file.metadata().ok()?.nlink() > 0).then_some(is_unlocked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::counters::CopyCounters;
    use std::sync::atomic::{AtomicBool, Ordering};

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
            let made: Vec<_> = (0..500)
                .map(|_| {
                    CopyCounters::create(
                        "route",
                        Some(
                            &directory
                                .path()
                                .join(format!("route-{:x}.counters", gapless_transport::token::random_token())),
                        ),
                    )
                })
                .collect();
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(made.iter().filter_map(|made| made.as_ref().err()).map(ToString::to_string).next(), None);
            assert_eq!(read_counters(directory.path()).unwrap().len(), 500);
        });
    }
}
