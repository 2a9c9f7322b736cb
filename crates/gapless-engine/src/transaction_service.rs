//! `TransactionService`: a service with its own writer, which turns commands into transactions on the sequencer's
//! thread; for a crate above this one. Released transactions are applied here, equally on every member.

use crate::erased_service::{ErasedService, TransactionPosition, unhandled};
use crate::handler_guard::HandlerRefusal;
use crate::outputs::ExecutionOutcome;
use crate::reject::Reject;
use crate::sessions::SessionTable;
use crate::timers::TimerTable;
use crate::transaction_layout::DecodedTransaction;
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

/// Consumer of released transactions, on every member. Gets refused commands too, without changes.
pub trait ReleasedTransactions: Send + 'static {
    /// Applies the next transaction.
    ///
    /// # Errors
    /// The bytes do not decode: the service stops.
    fn apply(&mut self, transaction: &ReleasedTransaction<'_>) -> Result<(), String>;

    /// Everything up to `_last_sequence` is applied. Called between two batches, even without new frames.
    fn between_batches(&mut self, _last_sequence: u64) {}

    /// Versions that it and the writer can act as.
    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    /// Later transactions come from a writer of this version; initially 1.
    fn become_version(&mut self, _version: u32) {}

    fn snapshot(&self, state: &mut Vec<u8>);

    /// Replaces the state by the one in these bytes.
    ///
    /// # Errors
    /// The bytes do not decode.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}

// Field order: no two words copied for each command are adjacent in both source and target. The compiler would copy
// them as one, and that load would wait until both stores have left the store buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ReleasedTransaction<'a> {
    pub sequence: u64,
    /// `None`: refused by the engine.
    pub reply: Option<&'a [u8]>,
    pub session: u64,
    /// Written by the writer, after the reply.
    pub changes: &'a [u8],
    /// Of the first frame, ns since the epoch.
    pub timestamp_ns: u64,
    pub session_seq: u64,
}

/// Creates a fold that applies a stream's transactions to `released`, without a writer; for debugging replays and
/// tests.
pub fn fold_of_transactions(released: impl ReleasedTransactions) -> Fold {
    Fold::applying_transactions(Box::new(TransactionService { released: Box::new(released), make_writer: None }))
}

pub struct WriterParts<'a> {
    pub waker: Waker,
    pub released_waker: Waker,
    window: Window,
    journal: Option<PathBuf>,
    pub counters: &'a Counters,
}

impl WriterParts<'_> {
    #[must_use]
    pub fn reader(&self, sequence: u64) -> ReplayMerge {
        ReplayMerge::new(self.window.clone(), self.journal.clone(), sequence)
    }

    #[must_use]
    pub const fn journal(&self) -> Option<&PathBuf> {
        self.journal.as_ref()
    }

    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }
}

type TransactionWriterFactory = Box<dyn FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send>;

pub(crate) struct TransactionService {
    released: Box<dyn ReleasedTransactions>,
    make_writer: Option<TransactionWriterFactory>,
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

    /// Creates the writer.
    ///
    /// # Errors
    /// The creation fails.
    ///
    /// # Panics
    /// The writer exists already.
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

    fn handle(&mut self, schema: u32, encoding: Encoding, _: &[u8], _: &mut Context<'_>) -> Result<(), HandlerRefusal> {
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

    fn apply(&mut self, applied: &TransactionPosition, read: &DecodedTransaction<'_>) -> Result<(), String> {
        let TransactionPosition {
            first_sequence: sequence,
            first_timestamp_ns: timestamp_ns,
            session,
            session_seq,
            ..
        } = *applied;
        let (reply, changes) = match read.outcome {
            ExecutionOutcome::Done => (Some(read.reply.as_ref().map_or(&[][..], |reply| reply.payload)), read.changes),
            ExecutionOutcome::Refused { .. } => (None, &[][..]),
        };
        self.released.apply(&ReleasedTransaction { sequence, timestamp_ns, session, session_seq, reply, changes })
    }

    fn between_batches(&mut self, last_sequence: u64, _: &TimerTable, _: &SessionTable) -> Result<(), EngineError> {
        self.released.between_batches(last_sequence);
        Ok(())
    }
}

#[inline]
pub fn write_done(out: &mut Vec<u8>, schema: u32, reply: &[u8], changes: &[u8]) {
    transaction_layout::write_done(out, schema, reply);
    out.extend_from_slice(changes);
}

/// `is_dead`: no decision of the application, so a dead letter.
#[cold]
pub fn write_refusal(out: &mut Vec<u8>, code: RefusalCode, text: &str, is_dead: bool) {
    transaction_layout::write_refusal(out, (code, 0), text, is_dead, 0);
}

/// `None`: refused.
///
/// # Errors
/// Defect of the bytes.
#[inline]
pub fn changes_of(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    match transaction_layout::read_plain_changes(bytes) {
        Some(changes) => Ok(Some(changes)),
        None => changes_of_any(bytes),
    }
}

#[cold]
fn changes_of_any(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    let mut outputs = crate::outputs::Outputs::default();
    let read = transaction_layout::read(bytes, &mut outputs)?;
    Ok(matches!(read.outcome, ExecutionOutcome::Done).then_some(read.changes))
}
