//! `StoredIndex`: read-only access to the files of an index, while another process builds it or none does.

use super::key::IndexKey;
use super::run::IndexRun;
use super::validation::{self, ScanError};
use crate::error::IndexFileError;
use crate::events::EventReader;
use crate::identity::Position;
use std::io;
use std::path::{Path, PathBuf};

/// Files may be merged and removed meanwhile.
const SCANS_MAX: usize = 10;

pub(crate) struct StoredIndex {
    runs: Vec<IndexRun>,
    /// Invalid files, with reasons.
    pub unusable: Vec<(PathBuf, String)>,
}

impl StoredIndex {
    /// Opens the index in `directory`, if any; moves `reader`.
    ///
    /// # Errors
    /// A directory, a file or the stream cannot be read.
    pub fn open(directory: &Path, reader: &mut EventReader) -> Result<Self, ScanError> {
        let mut scans = 1;
        loop {
            let first_held = reader.first_held()?;
            let found = match validation::scan(directory, None, first_held, reader) {
                Err(ScanError::System(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { runs: Vec::new(), unusable: Vec::new() });
                }
                found => found?,
            };
            let unusable: Vec<_> =
                found.others.into_iter().filter_map(|(path, reason)| Some((path, reason?))).collect();
            // A missing file was merged meanwhile.
            if scans == SCANS_MAX || unusable.iter().all(|(path, _)| path.exists()) {
                return Ok(Self { runs: found.runs, unusable });
            }
            scans += 1;
        }
    }

    /// Last indexed sequence; 0 for none.
    pub fn last_sequence(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.extent.last_sequence)
    }

    /// Like [`EventIndex::find`](super::EventIndex::find).
    ///
    /// # Errors
    /// A damaged or unreadable file.
    pub fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, IndexFileError> {
        let mut found = Vec::new();
        for run in &self.runs {
            run.find(key, from, limit - found.len(), &mut found)?;
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// Drops a damaged file and all later ones, which the next host rebuilds.
    pub fn check(&mut self) {
        let damage = |run: &IndexRun| {
            let (mut entries, mut positions) = (run.entries(), Vec::new());
            loop {
                match entries.next(&mut positions) {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(error.reason),
                }
            }
        };
        let damaged = self.runs.iter().enumerate().find_map(|(at, run)| Some((at, damage(run)?)));
        if let Some((at, reason)) = damaged {
            let mut others = self.runs.drain(at..);
            let first = others.next().map(|run| (run.path.clone(), reason));
            let later =
                others.map(|run| (run.path.clone(), damage(&run).unwrap_or("what is before it is damaged".to_owned())));
            self.unusable.extend(first.into_iter().chain(later));
        }
    }

    /// Files, their positions, their bytes.
    pub fn size(&self) -> (usize, u64, u64) {
        let bytes = self.runs.iter().map(|run| run.path.metadata().map_or(0, |metadata| metadata.len())).sum();
        (self.runs.len(), self.runs.iter().map(|run| run.postings).sum(), bytes)
    }
}
