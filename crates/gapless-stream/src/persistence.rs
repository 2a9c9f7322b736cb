//! [`Persistence`]: how the journal of a stream is kept, and opening it.

use crate::StreamError;
use crate::client::random_token;
use crate::tier::Tier;
use gapless_journal::{Environment, Flush, Journal, JournalOptions, JournalReader, RecoveryReport, Retention};
use gapless_log::StreamIdentity;
use std::path::Path;

/// How the journal of a stream is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Length of a segment in bytes, preallocated.
    pub segment_length_bytes: u64,
    /// Whether new segments are written full of zeros first.
    pub zero_initial: bool,
    /// Mapped or written; `None` chooses: mapped at tier `journal`, written at tier `sync`.
    pub flush: Option<Flush>,
    /// Length of the write buffer in bytes.
    pub write_buffer_bytes: usize,
    /// Whether every frame is put into the operating system's hands by itself, not batch by batch.
    pub flush_on_commit: bool,
    /// When old segments are deleted.
    pub retention: Retention,
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            segment_length_bytes: 256 << 20,
            zero_initial: false,
            flush: None,
            write_buffer_bytes: 8192,
            flush_on_commit: false,
            retention: Retention::default(),
        }
    }
}

/// A journal that was opened, and what was found there.
pub struct OpenedJournal {
    /// The journal.
    pub journal: Journal,
    /// What opening found and cut.
    pub report: RecoveryReport,
    /// Whose it is.
    pub identity: StreamIdentity,
}

impl Persistence {
    /// Opens the journal in `directory`, or makes it: for a stream at `tier` with frames of at most
    /// `frame_length_max` bytes. A new stream gets `new_identity`, or a random one.
    ///
    /// # Errors
    /// A directory in use, damage, no space.
    pub fn open(
        &self,
        directory: &Path,
        tier: Tier,
        frame_length_max: usize,
        first_sequence: u64,
        new_stream_id: Option<u128>,
    ) -> Result<OpenedJournal, StreamError> {
        let environment = Environment::default();
        self.open_in(environment, directory, tier, frame_length_max, first_sequence, new_stream_id)
    }

    /// As [`Persistence::open`], on another machine than this one: for simulations.
    ///
    /// # Errors
    /// As for [`Persistence::open`].
    pub fn open_in(
        &self,
        environment: Environment,
        directory: &Path,
        tier: Tier,
        frame_length_max: usize,
        first_sequence: u64,
        new_stream_id: Option<u128>,
    ) -> Result<OpenedJournal, StreamError> {
        std::fs::create_dir_all(directory)
            .map_err(|source| StreamError::System { action: format!("making {}", directory.display()), source })?;
        let stream_id = match JournalReader::open(directory) {
            Ok(reader) if reader.stream_id() != 0 => reader.stream_id(),
            // Whatever is wrong with it, opening it for writing says so.
            _ => new_stream_id.unwrap_or_else(random_token),
        };
        let mut options = JournalOptions::new(directory, stream_id);
        options.segment_length_bytes = self.segment_length_bytes;
        options.zero_initial = self.zero_initial;
        options.flush = self.flush.unwrap_or(if tier.is_synced() { Flush::Write } else { Flush::Mapped });
        options.write_buffer_bytes = self.write_buffer_bytes;
        options.flush_on_commit = self.flush_on_commit;
        options.retention = self.retention;
        options.frame_length_max = frame_length_max;
        options.first_sequence = first_sequence;
        options.environment = environment;
        if tier.is_synced() {
            options.populate_ahead_bytes = 0;
            options.marks = Flush::Write;
        }
        let (journal, report) = Journal::open(options)?;
        let identity = StreamIdentity { stream_id, incarnation: journal.incarnation() };
        Ok(OpenedJournal { journal, report, identity })
    }
}
