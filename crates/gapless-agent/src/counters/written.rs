//! The file is not mapped: truncating, removing or replacing it does not harm the counting process.

use super::file::{FilePresence, OwnedFile};
use super::{CounterRegion, descriptor};
use crate::error::Error;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct WrittenFile {
    region: Arc<CounterRegion>,
    capacity: usize,
    state: Mutex<WriteState>,
}

#[derive(Debug)]
struct WriteState {
    file: Option<OwnedFile>,
    values: Vec<u64>,
    is_in_doubt: bool,
}

impl WrittenFile {
    pub(super) fn create(region: Arc<CounterRegion>, capacity: usize, path: &Path) -> Result<Self, Error> {
        let values = region.values(capacity, region.used());
        let file = Some(OwnedFile::create(path, &image(&region, capacity, &values))?);
        let state = Mutex::new(WriteState { file, values, is_in_doubt: false });
        Ok(Self { region, capacity, state })
    }

    /// Writes changed values, and restores a truncated or removed file. Without a change it does not look at the file.
    /// Returns whether there was a change.
    pub(super) fn write(&self) -> Result<bool, Error> {
        let mut state = self.lock();
        let WriteState { file: Some(file), values: before, is_in_doubt } = &mut *state else { return Ok(false) };
        let values = self.region.values(self.capacity, self.region.used());
        let Some(changed) = changed(before, &values) else { return Ok(false) };
        let has_new = values.len() > before.len();
        before.clone_from(&values);
        // If it fails, the next change writes everything.
        let is_whole = std::mem::replace(is_in_doubt, true) || has_new;
        let length = descriptor::file_length(self.capacity) as u64;
        match file.presence()? {
            FilePresence::Present { length: found } if found == length && !is_whole => {
                let bytes: Vec<u8> = values[changed.clone()].iter().flat_map(|value| record(*value)).collect();
                file.write_at(&bytes, descriptor::value_offset(self.capacity, changed.start))?;
            }
            FilePresence::Present { .. } => {
                file.write_at(&image(&self.region, self.capacity, &values), 0)?;
                file.set_length(length)?;
            }
            FilePresence::Missing => {
                *file = OwnedFile::create(file.path(), &image(&self.region, self.capacity, &values))?
            }
        }
        *is_in_doubt = false;
        Ok(true)
    }

    pub(super) fn end(&self) {
        // A missing file would be created only to be removed.
        let is_there =
            self.lock().file.as_ref().is_some_and(|file| matches!(file.presence(), Ok(FilePresence::Present { .. })));
        if is_there && let Err(error) = self.write() {
            tracing::debug!(%error, "the last counters are not written");
        }
        self.lock().file = None;
    }

    fn lock(&self) -> MutexGuard<'_, WriteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changed(before: &[u64], now: &[u64]) -> Option<Range<usize>> {
    let is_new = |index: &usize| before.get(*index) != Some(&now[*index]);
    let first = (0..now.len()).find(is_new)?;
    let last = (first..now.len()).rfind(is_new)?;
    Some(first..last + 1)
}

fn record(value: u64) -> [u8; descriptor::RECORD_LENGTH] {
    let mut record = [0; descriptor::RECORD_LENGTH];
    record[..8].copy_from_slice(&value.to_le_bytes());
    record
}

fn image(region: &CounterRegion, capacity: usize, values: &[u64]) -> Vec<u8> {
    let mut bytes = descriptor::blank(capacity);
    let used = (values.len() as u32).to_le_bytes();
    bytes[descriptor::USED_OFFSET..descriptor::USED_OFFSET + used.len()].copy_from_slice(&used);
    for offset in (descriptor::label_offset(0)..descriptor::label_offset(values.len())).step_by(4) {
        // Relaxed: a counted label does not change; the count was read with Acquire.
        let word = region.u32_at(offset).load(Ordering::Relaxed);
        bytes[offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
    }
    for (index, value) in values.iter().enumerate() {
        let offset = descriptor::value_offset(capacity, index);
        bytes[offset..offset + descriptor::RECORD_LENGTH].copy_from_slice(&record(*value));
    }
    bytes
}
