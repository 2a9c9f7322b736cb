//! Finds the holder of a journal's lock without taking it: for programs that inspect a directory from outside.

use crate::descriptor::LOCK_NAME;
use gapless_agent::{checked_file, file_lock};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns the holder, as described in the lock file; `None` if the lock is free.
pub fn lock_holder(journal: &Path) -> std::io::Result<Option<String>> {
    let path = journal.join(LOCK_NAME);
    let mut file = match checked_file::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(std::io::Error::new(error.kind(), format!("opening {}: {error}", path.display()))),
    };
    Ok(if file_lock::is_locked(&file)? { Some(holder_in(&mut file)) } else { None })
}

pub fn holder_in(file: &mut File) -> String {
    let mut text = Vec::new();
    // Limited, because any process may have written the file.
    let read = file.take(256).read_to_end(&mut text);
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let text: String = text.trim().chars().filter(|c| !c.is_control()).collect();
    if read.is_err() || text.is_empty() { "a process that did not leave its name".to_owned() } else { text }
}
