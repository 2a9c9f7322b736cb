//! [`JournalRestore`]: starts a new incarnation from a copy that was restored on purpose: a client that knows later
//! frames finds another incarnation, not a journal that has forgotten something. After an interruption a restore
//! continues; until it is finished, the journal cannot be opened.

use gapless_agent::checked_file;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::boot::BootId;
use crate::descriptor::{BOOT_MARK_OFFSET, FixedHeader, HEADER_PAGE_LENGTH, HISTORY_NAME, SYNCED_MARK_OFFSET};
use crate::directory::{DirectoryLock, survey};
use crate::error::JournalError;
use crate::evaluation::evaluate;
use crate::history::{HistoryFile, JournalHistory};
use crate::mapping::FileMapping;
use crate::mark::MarkWriter;
use crate::options::{JournalEnvironment, RecoveryCheck};
use crate::own_file::open_to_write;
use crate::reader::JournalReader;
use crate::recovery::draw_incarnation;

#[derive(Debug)]
pub struct JournalRestore {
    reader: JournalReader,
    environment: JournalEnvironment,
    last_sequence: u64,
    end: u64,
    before: u64,
    after: u64,
    file: Option<HistoryFile>,
    _lock: DirectoryLock,
}

impl JournalRestore {
    /// Changes nothing. The segments must be intact and come from one history.
    ///
    /// # Errors
    /// The journal is in use, missing or damaged. A history file that names other segments is accepted.
    pub fn begin(directory: &Path) -> Result<Self, JournalError> {
        // A copy may be of any moment, so its journaled marks are useless.
        let environment = JournalEnvironment { boot_id: None, ..JournalEnvironment::default() };
        if !directory.is_dir() {
            return Err(JournalError::NoJournal { directory: directory.to_owned() });
        }
        let lock = DirectoryLock::take(directory)?;
        let file = match HistoryFile::open(directory) {
            Err(JournalError::HistoryDamaged { .. }) => None,
            opened => opened?,
        };
        let interrupted = file.as_ref().map(HistoryFile::history).filter(|history| history.replaced != 0);
        let mut found = survey(directory, None);
        if let Err(JournalError::ForeignHistory { .. }) = found {
            // The history file or the segments were restored without the other; the segments count.
            let (path, foreign) = (directory.join(HISTORY_NAME), directory.join(format!("{HISTORY_NAME}.foreign")));
            checked_file::rename(&path, &foreign).map_err(|error| JournalError::io("rename", &path, error))?;
            found = survey(directory, None);
        }
        let survey = found?;
        if survey.segments.is_empty() {
            return Err(JournalError::NoJournal { directory: directory.to_owned() });
        }
        let evaluation = evaluate(&survey, &environment, RecoveryCheck::All)?;
        let newest = evaluation.kept.last().expect("an evaluation keeps at least one segment");
        let (last_sequence, end) = (newest.last_sequence, newest.position as u64);
        let reader = JournalReader::of(directory, &environment, &survey);
        let (before, after) = match interrupted {
            Some(history) => (history.replaced, history.incarnation),
            None => (reader.incarnation(), draw_incarnation(directory)?),
        };
        Ok(Self { reader, environment, last_sequence, end, before, after, file, _lock: lock })
    }

    #[must_use]
    pub fn reader(&self) -> &JournalReader {
        &self.reader
    }

    /// The last frame stays.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Returns (old, new).
    #[must_use]
    pub fn incarnations(&self) -> (u64, u64) {
        (self.before, self.after)
    }

    /// Writes the new incarnation to the segments, marked as written on another boot and synced: every frame was read,
    /// and is on the device afterwards. The journal cannot be opened until [`JournalRestore::finish`].
    ///
    /// # Errors
    /// A file cannot be written; begin the restore again.
    pub fn apply(&mut self) -> Result<(), JournalError> {
        let (directory, segments) = (self.reader.directory(), self.reader.segments());
        let (oldest, newest) = (&segments[0], &segments[segments.len() - 1]);
        let history = JournalHistory {
            stream_id: self.reader.stream_id(),
            incarnation: self.after,
            replaced: self.before,
            first_sequence: oldest.first_sequence,
            newest_sequence: newest.first_sequence,
        };
        match &mut self.file {
            Some(file) => file.set(history, &self.environment)?,
            None => self.file = Some(HistoryFile::create(directory, history)?),
        }
        for found in segments {
            let header = FixedHeader { incarnation: self.after, ..found.header };
            let file = open_to_write(&found.path)?;
            let written = (|| {
                let page = FileMapping::read_write(&file, HEADER_PAGE_LENGTH)?;
                let (words, (low, high)) = (page.mark(BOOT_MARK_OFFSET), BootId::to_words(None));
                MarkWriter::continue_from(words).write(words, low, high);
                file.write_all_at(&header.to_bytes(), 0)?;
                file.sync_data()
            })();
            written.map_err(|error| JournalError::io("write", &found.path, error))?;
        }
        let file = open_to_write(&newest.path)?;
        let vouched = (|| {
            let page = FileMapping::read_write(&file, HEADER_PAGE_LENGTH)?;
            let words = page.mark(SYNCED_MARK_OFFSET);
            MarkWriter::continue_from(words).write(words, self.last_sequence, self.end);
            file.sync_data()
        })();
        vouched.map_err(|error| JournalError::io("write", &newest.path, error))
    }

    /// The journal may be opened again.
    ///
    /// # Errors
    /// The history file cannot be written.
    ///
    /// # Panics
    /// [`JournalRestore::apply`] was not called.
    pub fn finish(mut self) -> Result<(), JournalError> {
        let file = self.file.as_mut().expect("the segments have the new incarnation");
        let history = file.history();
        assert_eq!(history.incarnation, self.after, "the segments have the new incarnation");
        file.set(JournalHistory { replaced: 0, ..history }, &self.environment)
    }
}
