//! [`StoredIndex`]: the files of an index, read beside the process that makes it or where none does. Nothing is written or removed.

use super::believing::{self, LookError};
use super::key::IndexKey;
use super::run::Run;
use crate::error::IndexFileError;
use crate::events::EventReader;
use crate::identity::Position;
use std::io;
use std::path::{Path, PathBuf};

/// A look is repeated so often while files are merged and removed meanwhile.
const LOOKS_MAX: usize = 10;

/// See the head of the file.
pub(crate) struct StoredIndex {
    runs: Vec<Run>,
    /// Files that are not believed, and why.
    pub unusable: Vec<(PathBuf, String)>,
}

impl StoredIndex {
    /// Opens what there is in `directory`; nothing if there is no such directory. `reader` reads the stream, and is elsewhere afterwards.
    ///
    /// # Errors
    /// A directory, a file or a stream that cannot be read.
    pub fn open(directory: &Path, reader: &mut EventReader) -> Result<Self, LookError> {
        let mut looks = 1;
        loop {
            let first_held = reader.first_held()?;
            let found = match believing::look(directory, None, first_held, reader) {
                Err(LookError::System(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { runs: Vec::new(), unusable: Vec::new() });
                }
                found => found?,
            };
            let unusable: Vec<_> =
                found.others.into_iter().filter_map(|(path, reason)| Some((path, reason?))).collect();
            // What is gone by now was merged.
            if looks == LOOKS_MAX || unusable.iter().all(|(path, _)| path.exists()) {
                return Ok(Self { runs: found.runs, unusable });
            }
            looks += 1;
        }
    }

    /// Everything from the first frame of the stream up to here is in it; 0 of an empty one.
    pub fn last_sequence(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.extent.last_sequence)
    }

    /// As [`Index::find`](super::Index::find).
    ///
    /// # Errors
    /// A file that cannot be read or is damaged.
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

    /// Reads all of it. A file that is damaged is none of it any more, nor is what is behind it: the next host makes it anew, from there on.
    pub fn check(&mut self) {
        let damage = |run: &Run| {
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
            let behind =
                others.map(|run| (run.path.clone(), damage(&run).unwrap_or("what is before it is damaged".to_owned())));
            self.unusable.extend(first.into_iter().chain(behind));
        }
    }

    /// How many files there are, how many positions are in them, and how many bytes they take.
    pub fn size(&self) -> (usize, u64, u64) {
        let bytes = self.runs.iter().map(|run| run.path.metadata().map_or(0, |metadata| metadata.len())).sum();
        (self.runs.len(), self.runs.iter().map(|run| run.postings).sum(), bytes)
    }
}
