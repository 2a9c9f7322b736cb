//! Finds the directories to show.

use super::source::is_of_a_node;
use crate::commands::domain::{domain_of_environment, exit_error, missing_domain, path_of, place_of};
use crate::commands::domain_directory::{foreign_owner, has_domain_files};
use gapless_client::stream_layout::StreamLayout;
use gapless_rpc::Domain;
use gapless_rpc::domain::{DomainLocation, DomainReading, read_domain};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Each is read by its own thread.
const DIRECTORIES_MAX: usize = 64;

/// A given directory itself if it has a service, a stream, a member or routes, running or not; else the subdirectories
/// that have one.
///
/// # Errors
/// A path that is not a directory, or has none; more than [`DIRECTORIES_MAX`].
pub(super) fn of(given: &[PathBuf], domains: &[String]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found: Vec<PathBuf> = Vec::new();
    let named = if given.is_empty() && domains.is_empty() { domain_of_environment()? } else { None };
    for place in domains.iter().map(|name| place_of(name)).chain(named) {
        let path = path_of(place.clone())?;
        if !path.is_dir() {
            let name = match &place {
                DomainLocation::Named(name) => Some(name.as_str()),
                DomainLocation::Path(_) => None,
            };
            return Err(missing_domain(name, &path));
        }
        found.push(path);
    }
    let here = [PathBuf::from(".")];
    for path in if given.is_empty() && found.is_empty() { &here } else { given } {
        if !path.is_dir() {
            let reason = if path.exists() { "is no directory" } else { "there is no such directory" };
            let as_domain = path.to_str().filter(|name| Domain::directory_of(name).is_ok_and(|path| path.is_dir()));
            let tip = as_domain.map(|name| format!(", or a domain by its name: --domain {name}")).unwrap_or_default();
            return Err(format!(
                "{}: {reason}; the directory of a service, a stream, a member or a domain is expected{tip}",
                path.display()
            )
            .into());
        }
        let meant = if is_of_a_process(path) { Ok(vec![path.clone()]) } else { directories_in(path) };
        let is_nothing = meant.as_ref().map_or(true, Vec::is_empty);
        // Another user's directory would seem to be missing.
        let user = path.metadata().ok().as_ref().and_then(foreign_owner);
        if let Some(user) = user.filter(|_| is_nothing && (meant.is_err() || has_domain_files(path))) {
            return Err(exit_error(format!("{}: {user}", path.display())));
        }
        let meant = meant?;
        if meant.is_empty() {
            return Err(format!(
                "{}: no service, stream or member was ever there, and no route is served or called; a domain is looked at by --domain NAME",
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
        || read_domain(directory).is_ok_and(|reading| reading != DomainReading::default())
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
