//! [`read_counters`]: what the copies of a domain count, read from their files without their help; and the files' names and end.
//!
//! Each copy of a route has a file in the domain's directory, locked while its process lives. It goes with the copy; those of the
//! dead are not shown, and removed by the next process that opens the domain.

use crate::error::RpcError;
use crate::served::counters::{CopyStatistics, route_of};
use gapless_agent::CountersReader;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "route-";
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

/// A name that no file has, for the counters of a copy.
pub(super) fn new_path(directory: &Path) -> PathBuf {
    directory.join(format!("{PREFIX}{:032x}{ENDING}", gapless_transport::token::random_token()))
}

/// What the living copies in a domain's directory count, by route and process. Files of other users are left out.
///
/// # Errors
/// A directory that cannot be listed.
pub fn read_counters(directory: &Path) -> Result<Vec<CopyReading>, RpcError> {
    let mut found = Vec::new();
    for path in files(directory)?.into_iter().filter(|path| path.to_string_lossy().ends_with(ENDING)) {
        // Whatever cannot be read has gone meanwhile, or is no copy's.
        let Some(false) = is_unlocked(&path) else { continue };
        let Ok(reader) = CountersReader::open(&path) else { continue };
        let Ok(counters) = reader.read() else { continue };
        if let Some(route) = route_of(&counters) {
            let statistics = CopyStatistics::of(&counters);
            found.push(CopyReading { route, process_id: reader.owner_pid(), statistics });
        }
    }
    found.sort_by(|a, b| (&a.route, a.process_id).cmp(&(&b.route, b.process_id)));
    Ok(found)
}

/// Removes the files of the dead.
pub(super) fn sweep(directory: &Path) -> Result<(), RpcError> {
    for path in files(directory)? {
        let Some(file) = open(&path) else { continue };
        let is_dead = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let is_draft = !path.to_string_lossy().ends_with(ENDING);
        // A draft is locked a moment after it was made.
        let is_old = file.metadata().and_then(|metadata| metadata.modified());
        let is_old = is_old.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= DRAFT_AGE));
        if is_dead && (is_old || !is_draft) {
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
        if name.starts_with(PREFIX) && name.contains(ENDING) {
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
