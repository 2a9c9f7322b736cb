//! [`Persistence`]: how the journal of a stream is kept, and opening it ([`Opening`]).

use crate::StreamError;
use gapless_agent::private_folder;
use gapless_journal::{
    Environment, FilePoint, Flush, Journal, JournalError, JournalOptions, JournalReader, RecoveryCheck, RecoveryReport,
    Retention, Zeroing,
};
use gapless_log::StreamIdentity;
use gapless_transport::tier::Tier;
use gapless_transport::token::random_token;
use std::path::Path;

/// How the journal of a stream is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Length of a segment in bytes, preallocated.
    pub segment_length_bytes: u64,
    /// The same of a new journal's first segment, where it is less; each next one is twice as long as the one before it, up
    /// to `segment_length_bytes`.
    pub first_segment_length_bytes: u64,
    /// Which new segments are written full of zeros first, so that what they hold costs less to write.
    pub zeroing: Zeroing,
    /// Mapped or written; `None` chooses: mapped at tier `journal`, written at tier `sync`.
    pub flush: Option<Flush>,
    /// Length of the write buffer in bytes.
    pub write_buffer_bytes: usize,
    /// Whether every frame is put into the operating system's hands by itself, not batch by batch.
    pub flush_on_commit: bool,
    /// When old segments are deleted.
    pub retention: Retention,
    /// How much of the part that a state or a snapshot covers a start reads, too.
    pub check: RecoveryCheck,
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            segment_length_bytes: 256 << 20,
            first_segment_length_bytes: 32 << 20,
            zeroing: Zeroing::None,
            flush: None,
            write_buffer_bytes: 8192,
            flush_on_commit: false,
            retention: Retention::default(),
            check: RecoveryCheck::default(),
        }
    }
}

/// The purpose that a journal is opened for.
#[derive(Clone, Debug)]
pub struct Opening {
    /// How durable the stream is.
    pub tier: Tier,
    /// The longest frame of the stream in bytes.
    pub frame_length_max: usize,
    /// The sequence of the first frame, if the journal is new.
    pub first_sequence: u64,
    /// The stream's identifier, if the journal is new; `None` for a random one.
    pub new_stream_id: Option<u128>,
    /// The points that the files beside the journal record of it.
    pub points: Vec<FilePoint>,
    pub environment: Environment,
}

impl Opening {
    /// For a stream at `tier` with frames of at most `frame_length_max` bytes, on this machine, with nothing beside its
    /// journal; a new one is of a stream of its own, from sequence 1.
    #[must_use]
    pub fn new(tier: Tier, frame_length_max: usize) -> Self {
        let (points, environment) = (Vec::new(), Environment::default());
        Self { tier, frame_length_max, first_sequence: 1, new_stream_id: None, points, environment }
    }
}

/// A journal that was opened, and the findings.
pub struct OpenedJournal {
    pub journal: Journal,
    /// The findings and cuts of the opening.
    pub report: RecoveryReport,
    pub identity: StreamIdentity,
}

impl Persistence {
    /// Opens the journal in `directory`, or makes it.
    ///
    /// # Errors
    /// A directory in use, damage, no space, a journal that does not come from one history with the files beside it.
    pub fn open(&self, directory: &Path, opening: Opening) -> Result<OpenedJournal, StreamError> {
        let Opening { tier, frame_length_max, first_sequence, new_stream_id, points, environment } = opening;
        private_folder::create(directory)
            .map_err(|source| StreamError::System { action: format!("making {}", directory.display()), source })?;
        let stream_id = match JournalReader::open(directory) {
            Ok(reader) if reader.stream_id() != 0 => reader.stream_id(),
            Ok(_) | Err(JournalError::NoJournal { .. }) => new_stream_id.unwrap_or_else(random_token),
            Err(error) => return Err(error.into()),
        };
        let mut options = JournalOptions::new(directory, stream_id);
        options.segment_length_bytes = self.segment_length_bytes;
        options.first_segment_length_bytes = self.first_segment_length_bytes;
        options.zeroing = self.zeroing;
        options.flush = self.flush.unwrap_or(if tier.is_synced() { Flush::Write } else { Flush::Mapped });
        options.write_buffer_bytes = self.write_buffer_bytes;
        options.flush_on_commit = self.flush_on_commit;
        options.retention = self.retention;
        options.check = self.check;
        options.frame_length_max = frame_length_max;
        options.first_sequence = first_sequence;
        options.points = points;
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
