//! `TransactionService`: a service whose commands become transactions by a writer of its own, for a crate above this one. The writer decides
//! on the sequencer's thread before a command enters the stream; what the stream has released is applied here, on every member alike.

use crate::erased_service::{Applied, ErasedService, unhandled};
use crate::handler_guard::Refused;
use crate::outputs::Outcome;
use crate::reject::Reject;
use crate::sessions::SessionTable;
use crate::timers::TimerTable;
use crate::transaction_layout::Read;
use crate::{Context, EngineError, Fold, transaction_layout};
use gapless_agent::{Counters, Waker};
use gapless_client::replay_merge::ReplayMerge;
use gapless_log::Window;
use gapless_schema::Encoding;
use gapless_stream::transactions::Transactions;
use gapless_wire::control::RefusalCode;
use std::any::Any;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What is made of released transactions, on every member alike. Of commands that were refused, too: without changes.
pub trait ReleasedTransactions: Send + 'static {
    /// The next one.
    ///
    /// # Errors
    /// Bytes that are none: the service stops.
    fn apply(&mut self, transaction: &ReleasedTransaction<'_>) -> Result<(), String>;

    /// Everything up to `last_sequence` is applied. Called between two batches, also where nothing came.
    fn between_batches(&mut self, _last_sequence: u64) {}

    /// The versions that it and the writer can act as.
    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    /// What is applied from now on was written by a writer that acts as this version; 1 without this call.
    fn become_version(&mut self, _version: u32) {}

    /// Appends the state's bytes.
    fn snapshot(&self, state: &mut Vec<u8>);

    /// Puts the state of these bytes in the place of its own.
    ///
    /// # Errors
    /// Bytes that are none.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}

/// A transaction that was released.
// In this order no two words that are copied for each command lie beside each other in both places: a copy of both at once would wait
// until each has left the processor's store buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ReleasedTransaction<'a> {
    /// Of its first frame.
    pub sequence: u64,
    /// What its publisher is told; `None` of a refusal by the engine.
    pub reply: Option<&'a [u8]>,
    /// Whose command it was, and which.
    pub session: u64,
    /// What the writer has written behind it.
    pub changes: &'a [u8],
    /// Of its first frame, ns since the epoch.
    pub timestamp_ns: u64,
    /// The number of the command.
    pub session_seq: u64,
}

/// A fold that makes of a stream's transactions what `released` makes of them, for a look at a stream and for tests; it has no writer.
pub fn fold_of_transactions(released: impl ReleasedTransactions) -> Fold {
    Fold::applying_transactions(Box::new(TransactionService { released: Box::new(released), make_writer: None }))
}

/// What a writer is made of.
pub struct WriterParts<'a> {
    /// Wakes the thread of the writer.
    pub waker: Waker,
    /// Wakes the thread that applies what is released.
    pub released_waker: Waker,
    window: Window,
    journal: Option<PathBuf>,
    /// The stream's counters, for those of the writer.
    pub counters: &'a Counters,
}

impl WriterParts<'_> {
    /// A reader of what is released, from `sequence` on.
    #[must_use]
    pub fn reader(&self, sequence: u64) -> ReplayMerge {
        ReplayMerge::new(self.window.clone(), self.journal.clone(), sequence)
    }

    /// The directory of the stream's journal; `None` where it has none.
    #[must_use]
    pub const fn journal(&self) -> Option<&PathBuf> {
        self.journal.as_ref()
    }

    /// The stream's window: which frames are released.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }
}

type MakeWriter = Box<dyn FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send>;

/// See the head of the file.
pub(crate) struct TransactionService {
    released: Box<dyn ReleasedTransactions>,
    make_writer: Option<MakeWriter>,
}

impl TransactionService {
    pub fn new(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
    ) -> Self {
        Self { released: Box::new(released), make_writer: Some(Box::new(make_writer)) }
    }

    pub fn in_fold(fold: &mut Fold) -> Option<&mut Self> {
        let service: &mut dyn Any = &mut *fold.service;
        service.downcast_mut()
    }

    /// The writer.
    ///
    /// # Errors
    /// It cannot be made.
    ///
    /// # Panics
    /// If it was made before.
    pub fn writer(
        &mut self,
        (waker, released_waker): (Waker, Waker),
        window: Window,
        journal: Option<PathBuf>,
        counters: &Counters,
    ) -> Result<Box<dyn Transactions>, EngineError> {
        let make = self.make_writer.take().expect("a service has one writer");
        let made = make(WriterParts { waker, released_waker, window, journal, counters });
        made.map_err(EngineError::system("making the writer of transactions"))
    }
}

impl ErasedService for TransactionService {
    fn is_bus(&self) -> bool {
        true
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.released.versions()
    }

    fn become_version(&mut self, version: u32) {
        self.released.become_version(version);
    }

    fn takes(&self, _: u32, _: Encoding) -> bool {
        false
    }

    fn handle(&mut self, schema: u32, encoding: Encoding, _: &[u8], _: &mut Context<'_>) -> Result<(), Refused> {
        Err(unhandled(schema, encoding))
    }

    fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
        Err("its timers are transactions".into())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.released.snapshot(state);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.released.restore(state)
    }

    fn applies_transactions(&self) -> bool {
        true
    }

    fn apply(&mut self, applied: &Applied, read: &Read<'_>) -> Result<(), String> {
        let Applied { first_sequence: sequence, first_timestamp_ns: timestamp_ns, session, session_seq, .. } = *applied;
        let (reply, changes) = match read.outcome {
            Outcome::Done => (Some(read.reply.as_ref().map_or(&[][..], |reply| reply.payload)), read.changes),
            Outcome::Refused { .. } => (None, &[][..]),
        };
        self.released.apply(&ReleasedTransaction { sequence, timestamp_ns, session, session_seq, reply, changes })
    }

    fn between_batches(&mut self, last_sequence: u64, _: &TimerTable, _: &SessionTable) -> Result<(), EngineError> {
        self.released.between_batches(last_sequence);
        Ok(())
    }
}

/// Appends a transaction of a command that was done: its reply, and the changes that `changes` are.
#[inline]
pub fn write_done(out: &mut Vec<u8>, schema: u32, reply: &[u8], changes: &[u8]) {
    transaction_layout::write_done(out, schema, reply);
    out.extend_from_slice(changes);
}

/// Appends a transaction of a command that had no effect. What was no decision of the application is recorded as a dead letter.
#[cold]
pub fn write_refusal(out: &mut Vec<u8>, code: RefusalCode, text: &str, is_dead: bool) {
    transaction_layout::write_refusal(out, (code, 0), text, is_dead, 0);
}

/// The changes in the bytes of a transaction; `None` of a command that was refused.
///
/// # Errors
/// What is wrong with the bytes.
#[inline]
pub fn changes_of(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    match transaction_layout::read_plain_changes(bytes) {
        Some(changes) => Ok(Some(changes)),
        None => changes_of_any(bytes),
    }
}

/// As [`changes_of`], where there is more to be read.
#[cold]
fn changes_of_any(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    let mut outputs = crate::outputs::Outputs::default();
    let read = transaction_layout::read(bytes, &mut outputs)?;
    Ok(matches!(read.outcome, Outcome::Done).then_some(read.changes))
}
