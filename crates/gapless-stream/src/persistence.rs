//! `Persistence`: storage of a stream's journal, and opening it (`JournalParameters`).

use crate::StreamError;
use gapless_agent::private_folder;
use gapless_journal::{
    FilePoint, Flush, Journal, JournalEnvironment, JournalError, JournalOptions, JournalReader, RecoveryCheck,
    RecoveryReport, Retention, Zeroing,
};
use gapless_log::StreamIdentity;
use gapless_transport::tier::Tier;
use gapless_transport::token::random_token;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Length of a preallocated segment, bytes.
    pub segment_length_bytes: u64,
    /// A new journal's first segment, if shorter; each next one is twice as long, up to `segment_length_bytes`.
    pub first_segment_length_bytes: u64,
    /// Segments filled with zeros first: cheaper later writes.
    pub zeroing: Zeroing,
    /// `None`: mapped at tier `journal`, written at tier `sync`.
    pub flush: Option<Flush>,
    pub write_buffer_bytes: usize,
    /// Each frame goes to the operating system separately.
    pub flush_on_commit: bool,
    pub retention: Retention,
    /// Amount that a start verifies, of the part covered by a state or a snapshot.
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

#[derive(Clone, Debug)]
pub struct JournalParameters {
    pub tier: Tier,
    /// Longest frame, bytes.
    pub frame_length_max: usize,
    /// First sequence of a new journal.
    pub first_sequence: u64,
    /// Stream of a new journal; `None`: random.
    pub new_stream_id: Option<u128>,
    /// Positions recorded by files next to the journal.
    pub points: Vec<FilePoint>,
    pub environment: JournalEnvironment,
}

impl JournalParameters {
    /// Parameters without files next to the journal; a new one starts its own stream at sequence 1.
    #[must_use]
    pub fn new(tier: Tier, frame_length_max: usize) -> Self {
        let (points, environment) = (Vec::new(), JournalEnvironment::default());
        Self { tier, frame_length_max, first_sequence: 1, new_stream_id: None, points, environment }
    }
}

pub struct OpenedJournal {
    pub journal: Journal,
    pub report: RecoveryReport,
    pub identity: StreamIdentity,
}

impl Persistence {
    /// Opens or creates the journal in `directory`.
    ///
    /// # Errors
    /// A directory in use, damage, no space, or a history other than that of the files next to it.
    pub fn open(&self, directory: &Path, opening: JournalParameters) -> Result<OpenedJournal, StreamError> {
        let JournalParameters { tier, frame_length_max, first_sequence, new_stream_id, points, environment } = opening;
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
