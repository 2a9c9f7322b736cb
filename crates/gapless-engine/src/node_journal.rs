//! A node's journal: opened by the node's options, prepared ahead by a thread, and synced below snapshots.

use crate::EngineError;
use crate::options::NodeOptions;
use crate::recovery::Layout;
use crate::snapshot_schedule::SnapshotJournal;
use gapless_agent::thread::spawn_helper;
use gapless_journal::{Flush, Journal, JournalOptions, JournalReader, Preparer, RecoveryReport, Syncer};
use gapless_log::StreamIdentity;
use gapless_stream::Tier;
use std::thread::JoinHandle;

/// A journal that was opened, and what was found there.
pub(crate) struct Opened {
    pub journal: Journal,
    pub report: RecoveryReport,
    pub identity: StreamIdentity,
}

/// Opens the journal that `layout` names, or makes it.
pub(crate) fn open_journal(layout: &Layout, options: &NodeOptions) -> Result<Opened, EngineError> {
    let directory = layout.journal();
    std::fs::create_dir_all(&directory).map_err(EngineError::system(format!("making {}", directory.display())))?;
    let stream_id = match JournalReader::open(&directory) {
        Ok(reader) if reader.stream_id() != 0 => reader.stream_id(),
        // Whatever is wrong with it, opening it for writing says so.
        _ => random_u128()?,
    };
    let persistence = &options.persistence;
    let mut journal = JournalOptions::new(&directory, stream_id);
    journal.segment_length_bytes = persistence.segment_length_bytes;
    journal.zero_initial = persistence.zero_initial;
    journal.flush = persistence.flush.unwrap_or(match options.tier {
        Tier::Sync => Flush::Write,
        _ => Flush::Mapped,
    });
    journal.write_buffer_bytes = persistence.write_buffer_bytes;
    journal.flush_on_commit = persistence.flush_on_commit;
    journal.retention = persistence.retention;
    journal.frame_length_max = options.frame_length_max;
    if options.tier == Tier::Sync {
        journal.populate_ahead_bytes = 0;
        journal.marks = Flush::Write;
    }
    let (journal, report) = Journal::open(journal)?;
    let identity = StreamIdentity { stream_id, incarnation: journal.incarnation() };
    Ok(Opened { journal, report, identity })
}

/// A number that nobody can guess, never 0.
pub(crate) fn random_u128() -> Result<u128, EngineError> {
    let mut bytes = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| EngineError::system("drawing a random number")(errno.into()))?;
    assert_eq!(filled, bytes.len(), "the kernel fills requests of up to 256 bytes whole");
    Ok(u128::from_le_bytes(bytes).max(1))
}

/// The journal as snapshots need it.
pub(crate) struct JournalBelow {
    syncer: Syncer,
    preparer: Preparer,
}

impl JournalBelow {
    /// Of `journal`, whose newest snapshot stands at `snapshot_sequence`, 0 without one.
    pub fn new(journal: &Journal, snapshot_sequence: u64) -> Self {
        if snapshot_sequence > 0 {
            journal.set_snapshot_sequence(snapshot_sequence);
        }
        Self { syncer: journal.syncer(), preparer: journal.preparer() }
    }
}

impl SnapshotJournal for JournalBelow {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync()?;
        Ok(())
    }

    fn covered(&mut self, sequence: u64) {
        self.preparer.set_snapshot_sequence(sequence);
    }
}

/// The thread that works ahead of the journal's writer; ended by being dropped.
pub(crate) struct PreparerThread {
    preparer: Preparer,
    thread: Option<JoinHandle<()>>,
}

impl PreparerThread {
    pub fn start(preparer: Preparer) -> Result<Self, EngineError> {
        let for_thread = preparer.clone();
        let run = move || {
            if let Err(error) = for_thread.run() {
                // The journal's writer finds the same fault where it matters, and stops the node.
                tracing::error!(%error, "the journal cannot be prepared ahead");
            }
        };
        let thread = spawn_helper("gapless-prepare", run)?;
        Ok(Self { preparer, thread: Some(thread) })
    }
}

impl Drop for PreparerThread {
    fn drop(&mut self) {
        self.preparer.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its message already; the writer prepares for itself.
            let _ = thread.join();
        }
    }
}
