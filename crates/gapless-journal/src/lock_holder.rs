//! The holder of a journal's lock, found out without taking part: for programs that look at a directory from outside.

use crate::descriptor::LOCK_NAME;
use crate::disk::open_regular;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The holder of a journal's lock, as it wrote itself there; `None` if nobody holds it.
pub fn lock_holder(journal: &Path) -> std::io::Result<Option<String>> {
    let path = journal.join(LOCK_NAME);
    let mut file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(std::io::Error::new(error.kind(), format!("opening {}: {error}", path.display()))),
    };
    if !is_locked(&file)? {
        return Ok(None);
    }
    let mut text = Vec::new();
    // A limit, because anybody may have written the file.
    (&mut file).take(256).read_to_end(&mut text)?;
    let text: String = String::from_utf8_lossy(&text).trim().chars().filter(|c| !c.is_control()).collect();
    Ok(Some(if text.is_empty() { "a process that did not leave its name".to_owned() } else { text }))
}

/// Asks the kernel's list of locks, which disturbs nobody; only where it does not name the file, tries
/// the lock, and lets it go at once.
fn is_locked(file: &File) -> std::io::Result<bool> {
    let inode = file.metadata()?.ino().to_string();
    let is_listed = std::fs::read_to_string("/proc/locks").is_ok_and(|list| {
        list.lines().any(|line| {
            line.contains("FLOCK") && line.split_whitespace().any(|word| word.rsplit(':').next() == Some(&*inode))
        })
    });
    if is_listed {
        return Ok(true);
    }
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
