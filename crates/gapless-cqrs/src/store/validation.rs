//! Valid files follow each other without a gap from the first frame of the stream, and name the time of their last
//! frame as the stream has it.

use super::run::{IndexRun, RunExtent, extent_of_name};
use crate::events::{EventReader, ReadError};
use gapless_agent::fault::mutant;
use gapless_agent::shortage::errno_of;
use gapless_client::ClientError;
use gapless_journal::JournalError;
use gapless_log::StreamIdentity;
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct RunScan {
    /// In the order of the stream.
    pub runs: Vec<IndexRun>,
    /// Other files; no reason for those that were merged into another or never finished.
    pub others: Vec<(PathBuf, Option<String>)>,
}

/// No fault of a file, so none is removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    Stream(#[from] ReadError),
}

/// `identity` is the stream's, if known; the stream begins at `first_held`. Moves `reader`.
pub(super) fn scan(
    directory: &Path,
    identity: Option<StreamIdentity>,
    first_held: u64,
    reader: &mut EventReader,
) -> Result<RunScan, ScanError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        match name.to_str().and_then(extent_of_name) {
            Some(extent) => named.push((extent, entry.path())),
            // Left unfinished by a crash.
            None if entry.path().extension().is_some_and(|extension| extension == "new") => {
                others.push((entry.path(), None));
            }
            None => {}
        }
    }
    // The longest first: it was merged from the others.
    named.sort_unstable_by_key(|((first, last), _)| (*first, u64::MAX - last));
    let mut runs: Vec<IndexRun> = Vec::new();
    for ((first, last), path) in named {
        let next = runs.last().map(|run| run.extent.last_sequence + 1);
        let reason = match next {
            // Files of deleted events are ignored.
            _ if last < first_held => None,
            Some(next) if last < next => None,
            Some(next) if first != next => Some(format!("what is before it is missing, from {next} on")),
            None if first > first_held => Some(format!("what is before it is missing, from {first_held} on")),
            _ => match IndexRun::open(&path, identity)? {
                Ok(run) if (run.extent.first_sequence, run.extent.last_sequence) != (first, last) => {
                    Some("its name is another's".to_owned())
                }
                Ok(run) => match is_of_history(&run, reader)? {
                    true => {
                        runs.push(run);
                        continue;
                    }
                    false => Some("the stream has another history".to_owned()),
                },
                Err(error) => Some(error.reason),
            },
        };
        others.push((path, reason));
    }
    Ok(RunScan { runs, others })
}

/// Whether the stream has the last frame of a run. Also true if that frame is in a missing archive.
fn is_of_history(run: &IndexRun, reader: &mut EventReader) -> Result<bool, ReadError> {
    let RunExtent { last_sequence, last_time_ns, .. } = run.extent;
    if mutant("believe_stale_index") {
        return Ok(true);
    }
    match reader.time_of(last_sequence) {
        Ok(time_ns) => Ok(time_ns == Some(last_time_ns)),
        Err(ReadError::Stream(ClientError::Journal(JournalError::ArchiveUnusable { .. }))) => Ok(true),
        // An error of the system says nothing about the stream.
        Err(error) if errno_of(&error).is_some() => Err(error),
        Err(_) => Ok(false),
    }
}
