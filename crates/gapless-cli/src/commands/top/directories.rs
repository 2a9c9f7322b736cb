//! Finds the directories to look at.

use super::source::is_of_a_node;
use crate::commands::domain::{about_options, none};
use gapless_client::stream_layout::StreamLayout;
use gapless_rpc::Domain;
use gapless_rpc::domain::{read_calls, read_counters};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Directories at a time; each has a thread that looks at it.
const DIRECTORIES_MAX: usize = 64;

/// The directories that are meant: each itself if a service, a stream or a member runs or ran there, or copies serve or are called, else those in it where
/// one does, by their names.
///
/// # Errors
/// A directory that is none, or has none; more than [`DIRECTORIES_MAX`].
pub(super) fn of(given: &[PathBuf], domains: &[String]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for name in domains {
        let path = Domain::directory_of(name).map_err(about_options)?;
        if !path.is_dir() {
            return Err(none(Some(name), &path));
        }
        found.push(path);
    }
    let here = [PathBuf::from(".")];
    for path in if given.is_empty() && domains.is_empty() { &here } else { given } {
        if !path.is_dir() {
            let reason = if path.exists() { "is no directory" } else { "there is no such directory" };
            return Err(format!(
                "{}: {reason}; the directory of a service, a stream, a member or a domain is expected",
                path.display()
            )
            .into());
        }
        let meant = if is_of_a_process(path) { vec![path.clone()] } else { directories_in(path)? };
        if meant.is_empty() {
            return Err(format!(
                "{}: no service, stream or member was ever there, and no route is served or called",
                path.display()
            )
            .into());
        }
        for directory in meant {
            if !found.contains(&directory) {
                found.push(directory);
            }
        }
    }
    if found.len() > DIRECTORIES_MAX {
        return Err(format!("{} directories; at most {DIRECTORIES_MAX} can be looked at", found.len()).into());
    }
    Ok(found)
}

fn is_of_a_process(directory: &Path) -> bool {
    is_of_a_node(&StreamLayout::new(directory), directory)
        || read_counters(directory).is_ok_and(|copies| !copies.is_empty())
        || read_calls(directory).is_ok_and(|calls| !calls.is_empty())
}

fn directories_in(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && is_of_a_process(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
