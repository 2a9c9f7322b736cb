//! Errors of a program are found when serving begins rather than at the first request.

use crate::commands::UsageError;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::ffi::OsStr;
use std::path::Path;

pub(super) fn check(program: &OsStr) -> Result<(), UsageError> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return reason_against(path).map_or(Ok(()), |reason| Err(UsageError(format!("{}: {reason}", path.display()))));
    }
    if program.is_empty() {
        return Err(UsageError("the program's name is empty".to_owned()));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut reason = None;
    for folder in std::env::split_paths(&folders) {
        let file = folder.join(program);
        match reason_against(&file) {
            None => return Ok(()),
            Some(found) if file.is_file() => reason = Some(format!("{}: {found}", file.display())),
            Some(_) => {}
        }
    }
    let not_here = if path.is_file() { format!("; the one here is ./{}", path.display()) } else { String::new() };
    let none = || format!("{}: no such program in the directories of PATH{not_here}", path.display());
    Err(UsageError(reason.unwrap_or_else(none)))
}

fn reason_against(file: &Path) -> Option<String> {
    match file.metadata() {
        Err(error) => Some(error.to_string()),
        Ok(metadata) if !metadata.is_file() => Some("it is no file, so it cannot be executed".to_owned()),
        Ok(_) => {
            let may = accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS);
            may.err().map(|error| format!("it cannot be executed: {error}; chmod +x may be missing"))
        }
    }
}
