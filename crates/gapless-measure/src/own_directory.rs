//! A directory that a benchmark makes for itself, and removes or leaves to the user.

use crate::{BenchError, Result};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Removed with this value, unless it is kept.
pub struct OwnDirectory {
    path: PathBuf,
    is_kept: bool,
    /// Lives as long as the process.
    _lock: File,
}

impl OwnDirectory {
    /// Removes what an earlier process has left there.
    ///
    /// # Errors
    /// Another process uses it; it cannot be made.
    pub fn create(parent: &Path, name: &str) -> Result<Self> {
        let path = parent.join(name);
        if let Ok(earlier) = open(&path) {
            let in_use = |errno: rustix::io::Errno| BenchError::io("clear, as another run uses it,", &path, errno);
            flock(&earlier, FlockOperation::NonBlockingLockExclusive).map_err(in_use)?;
        }
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(BenchError::io("remove", &path, source)),
            _ => {}
        }
        std::fs::create_dir(&path).map_err(|source| BenchError::io("create", &path, source))?;
        let failed = |source| BenchError::io("lock", &path, source);
        let lock = open(&path).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| failed(errno.into()))?;
        Ok(Self { path, is_kept: false, _lock: lock })
    }

    /// Removes directories that killed processes have left in `parent`: their names are one of `prefixes` and a process
    /// number. Those of live processes stay.
    pub fn remove_abandoned(parent: &Path, prefixes: &[&str]) {
        let Ok(entries) = std::fs::read_dir(parent) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(rest) =
                name.to_str().and_then(|name| prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)))
            else {
                continue;
            };
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let lives = number.is_empty() || Path::new("/proc").join(&number).exists();
            // The number may be of another container's process.
            let is_free = |lock| flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            if !lives && open(&entry.path()).is_ok_and(is_free) {
                // Left for the user to see.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// `parent` need not exist.
    pub fn create_with_parent(parent: &Path, name: &str) -> Result<Self> {
        std::fs::create_dir_all(parent).map_err(|source| BenchError::io("create", parent, source))?;
        Self::create(parent, name)
    }

    /// The next one of the same name begins empty.
    #[must_use]
    pub fn kept(mut self, is_kept: bool) -> Self {
        self.is_kept = is_kept;
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            // Left for the user to see; the figures are complete.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

static SKIPS_FILE_SYSTEM_SYNC: AtomicBool = AtomicBool::new(false);

/// Suits short runs, which show no figure: after a build, seconds of writing are pending.
pub fn skip_file_system_sync() {
    SKIPS_FILE_SYSTEM_SYNC.store(true, Ordering::Relaxed);
}

/// Waits until the file system has written earlier data, which would otherwise stall the next rows for a fifth of a
/// second.
pub fn sync_file_system(directory: &Path) -> Result<()> {
    if SKIPS_FILE_SYSTEM_SYNC.load(Ordering::Relaxed) {
        return Ok(());
    }
    let failed = |source| BenchError::io("write out the file system of", directory, source);
    let opened = std::fs::File::open(directory).map_err(failed)?;
    rustix::fs::syncfs(&opened).map_err(|errno| failed(errno.into()))
}

/// Follows no link and opens no pipe: others may write here.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    File::options().read(true).custom_flags(flags.bits() as i32).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_directory_is_locked_and_empty() {
        let parent = tempfile::tempdir().unwrap();
        let first = OwnDirectory::create(parent.path(), "kept").unwrap().kept(true);
        std::fs::write(first.path().join("file"), "of the first").unwrap();
        assert!(OwnDirectory::create(parent.path(), "kept").err().unwrap().to_string().contains("another run uses it"));
        drop(first);
        assert!(parent.path().join("kept/file").exists());
        let second = OwnDirectory::create(parent.path(), "kept").unwrap();
        assert_eq!(std::fs::read_dir(second.path()).unwrap().count(), 0);
        drop(second);
        assert!(!parent.path().join("kept").exists());
    }

    #[test]
    fn only_abandoned_directory_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| std::fs::create_dir(parent.path().join(name)).unwrap();
        make(".gapless-bench-4194999-0");
        make(".gapless-other-4194999");
        make(".gapless-bench-");
        let own = OwnDirectory::create(parent.path(), &format!(".gapless-bench-{}-0", std::process::id())).unwrap();
        let of_a_container = OwnDirectory::create(parent.path(), ".gapless-bench-4194998-0").unwrap();
        OwnDirectory::remove_abandoned(parent.path(), &[".gapless-bench-"]);
        let exists = |name: &str| parent.path().join(name).exists();
        assert!(!exists(".gapless-bench-4194999-0"));
        assert!(exists(".gapless-other-4194999") && exists(".gapless-bench-"));
        assert!(own.path().exists() && of_a_container.path().exists());
    }
}
