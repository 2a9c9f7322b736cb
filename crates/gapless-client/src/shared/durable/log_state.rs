//! [`LogState`]: the file of kept commands, and what its records add up to.

use super::command::KeptCommand;
use super::record::{self, HEADER_LENGTH, Record, UNNUMBERED};
use crate::CommandNumber;
use crate::polled::SavedSession;
use crate::shared::WAITING_BYTES_MAX;
use crate::shared::call_state::Ending;
use gapless_agent::folder::Folder;
use gapless_journal::durable_file::FileReplacement;
use rustix::fs::OFlags;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log is rewritten when it is longer than this, and [`REWRITE_FACTOR`] times the records that it needs.
const REWRITE_BYTES_MIN: u64 = 4 << 20;
const REWRITE_FACTOR: u64 = 4;
/// Session of a number whose session was lost, in a rewritten log. No session has it.
const LOST_SESSION: u64 = 0;

pub(super) struct LogState {
    folder: Folder,
    name: OsString,
    file: File,
    /// End of the last record.
    end: u64,
    /// Bytes of the records that a rewritten log would have.
    needed: u64,
    pub rewrite_above: u64,
    /// An incomplete record could not be removed: nothing may follow it.
    failed: Option<String>,
    pub session: Option<SavedSession>,
    pub kept: BTreeMap<u64, KeptEntry>,
    pub next_id: u64,
    /// The highest number of the session.
    last_number: u64,
    /// Commands whose outcomes the disk has refused.
    pub unwritten: Vec<u64>,
    /// A command was settled since the session was recorded.
    pub has_settled: bool,
}

pub(super) struct KeptEntry {
    pub command: Arc<KeptCommand>,
    pub number: Option<CommandNumber>,
    /// The number belongs to the last session.
    pub is_of_session: bool,
    /// Bytes of its records.
    needed: u64,
}

impl LogState {
    /// # Errors
    /// The reason, for an error of the file at `path`.
    pub fn open(folder: Folder, path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| error.to_string();
        let name = path.file_name().expect("it has a name").to_owned();
        let mut bytes = Vec::new();
        let file = match folder.open_file(&name, OFlags::RDWR).map_err(failed)? {
            Some(mut file) => file.read_to_end(&mut bytes).map(|_| file).map_err(failed)?,
            None => {
                bytes.extend_from_slice(&record::header());
                replace(path, &bytes).map_err(failed)?
            }
        };
        let mut state = Self {
            folder,
            name,
            file,
            end: HEADER_LENGTH as u64,
            needed: HEADER_LENGTH as u64,
            rewrite_above: REWRITE_BYTES_MIN,
            failed: None,
            session: None,
            kept: BTreeMap::new(),
            next_id: 1,
            last_number: 0,
            unwritten: Vec::new(),
            has_settled: false,
        };
        state.read(&bytes, path)?;
        Ok(state)
    }

    fn read(&mut self, bytes: &[u8], path: &Path) -> Result<(), String> {
        record::check_header(bytes).map_err(|reason| format!("at byte 0: {reason}"))?;
        while self.end < bytes.len() as u64 {
            let rest = &bytes[self.end as usize..];
            let damaged = |reason| format!("at byte {}: {reason}", self.end);
            let Some((record, length)) = Record::first_of(rest).map_err(damaged)? else {
                // No one was told of a record that its process has not written to the end.
                let (at, length) = (self.end, rest.len());
                tracing::warn!("{}: {length} bytes of an incomplete record at byte {at} are removed", path.display());
                return self.file.set_len(self.end).map_err(|error| error.to_string());
            };
            self.apply(&record, length as u64).map_err(|reason| format!("at byte {}: {reason}", self.end))?;
            self.end += length as u64;
        }
        Ok(())
    }

    pub fn command(&self, id: u64) -> Option<Arc<KeptCommand>> {
        self.kept.get(&id).map(|kept| Arc::clone(&kept.command))
    }

    /// Whether one more command may be kept. A longer one than all may be is kept alone.
    pub fn has_room(&self, length: usize, count_max: usize) -> bool {
        let count = self.kept.len();
        count < count_max && (count == 0 || self.needed + length as u64 <= WAITING_BYTES_MAX as u64)
    }

    /// Writes a record after the outcomes that were refused, or nothing.
    ///
    /// # Errors
    /// The reason.
    pub fn append(&mut self, record: &Record<'_>) -> Result<(), String> {
        if let Some(reason) = &self.failed {
            return Err(reason.clone());
        }
        let mut bytes = Vec::new();
        let unwritten = std::mem::take(&mut self.unwritten);
        let earlier: Vec<_> = unwritten.iter().filter_map(|id| Some((*id, self.command(*id)?.ending()?))).collect();
        let is_other = |id: u64| !matches!(record, Record::Settled { id: written, .. } if *written == id);
        let earlier = earlier.iter().filter(|(id, _)| is_other(*id));
        let records = earlier.map(|(id, ending)| Record::Settled { id: *id, ending: Cow::Borrowed(ending) });
        let records: Vec<_> = records.map(|record| (record.append_to(&mut bytes), record)).collect();
        let length = record.append_to(&mut bytes);
        if let Err(error) = self.write(&bytes) {
            self.unwritten = unwritten;
            return Err(error);
        }
        let written = records.iter().map(|(length, record)| (*length, record)).chain([(length, record)]);
        for (length, record) in written {
            self.apply(record, length).expect("only fitting records are written");
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Err(error) = self.file.write_all_at(bytes, self.end) else {
            self.end += bytes.len() as u64;
            return Ok(());
        };
        let reason = format!("cannot write at byte {}: {error}", self.end);
        if let Err(error) = self.file.set_len(self.end) {
            let reason = format!("{reason}; nor can an incomplete record be removed: {error}");
            tracing::error!("{}: {reason}", self.name.display());
            self.failed = Some(reason);
        }
        Err(reason)
    }

    /// Adds a record of `length` bytes that is in the file.
    ///
    /// # Errors
    /// It does not fit those before.
    fn apply(&mut self, record: &Record<'_>, length: u64) -> Result<(), String> {
        match *record {
            Record::Session(session) => {
                match self.session.replace(session) {
                    None => self.needed += length,
                    Some(before) if before.token == session.token => {}
                    Some(_) => self.lose_session(),
                }
                Ok(())
            }
            Record::Kept { id, message, payload } => {
                if id < self.next_id {
                    return Err(format!("command {id} is kept after command {}", self.next_id - 1));
                }
                let command = Arc::new(KeptCommand::new(id, message, payload.to_vec()));
                self.kept.insert(id, KeptEntry { command, number: None, is_of_session: false, needed: length });
                self.next_id = id + 1;
                self.needed += length;
                Ok(())
            }
            Record::Numbered { id, number } => self.apply_number(id, number, length),
            Record::Settled { id, ref ending } => {
                let kept = self.kept.get_mut(&id).ok_or_else(|| not_kept(id))?;
                kept.command.settle(Ending::clone(ending));
                (kept.needed, self.needed) = (kept.needed + length, self.needed + length);
                Ok(())
            }
            Record::Forgotten { id } => {
                let kept = self.kept.remove(&id).ok_or_else(|| not_kept(id))?;
                self.needed -= kept.needed;
                Ok(())
            }
        }
    }

    fn apply_number(&mut self, id: u64, number: CommandNumber, length: u64) -> Result<(), String> {
        let kept = self.kept.get_mut(&id).ok_or_else(|| not_kept(id))?;
        if self.session.is_none() {
            return Err(format!("command {id} has a number without a session"));
        }
        if kept.number.is_none() {
            (kept.needed, self.needed) = (kept.needed + length, self.needed + length);
        }
        (kept.number, kept.is_of_session) = ((number != UNNUMBERED).then_some(number), true);
        if number.session == LOST_SESSION {
            kept.is_of_session = false;
            return Ok(());
        }
        // Numbers rise with the commands that are sent. So an earlier command of this number, or of a higher one, was
        // not sent.
        if number.session_seq <= self.last_number {
            let unsettled = self.kept.iter_mut().filter(|(_, kept)| kept.is_of_session && !kept.command.is_settled());
            for (_, other) in unsettled.filter(|(other, _)| **other != id) {
                other
                    .number
                    .take_if(|taken| taken.session == number.session && taken.session_seq >= number.session_seq);
            }
        }
        self.last_number = number.session_seq;
        Ok(())
    }

    fn lose_session(&mut self) {
        self.last_number = 0;
        self.kept.values_mut().for_each(|kept| kept.is_of_session = false);
    }

    /// Replaces a log that is mostly about forgotten commands.
    pub fn rewrite_if_due(&mut self, path: &Path) {
        if self.end > self.rewrite_above && self.end > self.needed * REWRITE_FACTOR && self.failed.is_none() {
            self.rewrite(path);
        }
    }

    fn rewrite(&mut self, path: &Path) {
        let bytes = self.needed_records();
        match replace(path, &bytes) {
            Ok(file) => {
                (self.file, self.end, self.rewrite_above) = (file, bytes.len() as u64, REWRITE_BYTES_MIN);
                self.unwritten.clear();
            }
            Err(error) => {
                tracing::warn!("{} cannot be rewritten shorter: {error}", path.display());
                self.rewrite_above = self.end * 2;
                if !self.folder.holds(&self.name, &self.file).unwrap_or(false) {
                    self.failed = Some(format!("it was rewritten, and cannot be synced: {error}"));
                }
            }
        }
    }

    fn needed_records(&self) -> Vec<u8> {
        let mut bytes = record::header().to_vec();
        if let Some(session) = self.session {
            Record::Session(session).append_to(&mut bytes);
        }
        let mut numbers = Vec::new();
        for (id, kept) in &self.kept {
            let (id, KeptCommand { message, payload, .. }) = (*id, &*kept.command);
            Record::Kept { id, message: *message, payload }.append_to(&mut bytes);
            if let Some(ending) = kept.command.ending() {
                Record::Settled { id, ending: Cow::Borrowed(&ending) }.append_to(&mut bytes);
            } else if let Some(number) = kept.number {
                let session = if kept.is_of_session { number.session } else { LOST_SESSION };
                numbers.push((CommandNumber { session, ..number }, id));
            }
        }
        // They rise, as in the order of sending.
        numbers.sort_unstable();
        for (number, id) in numbers {
            Record::Numbered { id, number }.append_to(&mut bytes);
        }
        bytes
    }
}

fn not_kept(id: u64) -> String {
    format!("a record is about command {id}, which is not kept")
}

/// Replaces the file, or makes it, atomically.
fn replace(path: &Path, content: &[u8]) -> io::Result<File> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let mut replacement = FileReplacement::begin(path, PathBuf::from(temporary), 0o600)?;
    replacement.write_all(content)?;
    replacement.sync()?;
    replacement.put_in_place()
}
