//! [`CommandHost`]: a command bus and its stream, on one node.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`CommandHost`] and its options |
//! | `transactions` | the writer as the sequencer's thread calls it |

mod transactions;

use crate::bus::{BusOptions, CommandBus};
use crate::error::ModelError;
use crate::events::EventReader;
use crate::identifiers::{IdentifierLimits, Identifiers};
use crate::identity::Position;
use crate::model::CommandModel;
use crate::released::{Handover, Released};
use crate::writer::Writer;
use gapless_client::ClientError;
use gapless_client::client::ClientOptions;
use gapless_engine::transaction_service::{ReleasedTransaction, ReleasedTransactions, WriterParts};
use gapless_engine::{EngineError, ServiceHost, ServiceHostOptions};
use gapless_stream::transactions::Transactions;
use std::sync::Arc;
use transactions::BusTransactions;

/// How a command bus is set up, beside its stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandHostOptions {
    /// How long the identifiers of commands are remembered.
    pub identifiers: IdentifierLimits,
}

/// Why a command bus does not start, or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The model is none.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The stream does not start, or has stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A handle cannot be made.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A command bus and its stream, on one node.
pub struct CommandHost {
    service: ServiceHost,
}

impl CommandHost {
    /// Recovers what `stream.directory` holds, and starts: when this returns, commands can be sent.
    ///
    /// # Errors
    /// A model that is none, options that make no sense, a directory in use, damage, no threads or memory.
    pub fn start(
        model: CommandModel,
        options: CommandHostOptions,
        stream: ServiceHostOptions,
    ) -> Result<Self, HostError> {
        let (released, make_writer) = parts(model, options)?;
        Ok(Self { service: ServiceHost::start_transactions(released, make_writer, stream)? })
    }

    /// A handle of the bus.
    ///
    /// # Errors
    /// No memory or descriptors for it.
    pub fn bus(&self, options: &BusOptions) -> Result<CommandBus, HostError> {
        let client = self.service.connect(ClientOptions::default())?;
        Ok(CommandBus::over(client, options)?)
    }

    /// A reader of the events, from a position on.
    #[must_use]
    pub fn events(&self, from: Position) -> EventReader {
        EventReader::over(self.service.reader(from.sequence), from)
    }

    /// The stream below it.
    #[must_use]
    pub const fn service(&self) -> &ServiceHost {
        &self.service
    }

    /// Stops cleanly: what was taken is finished. Returns the last sequence.
    ///
    /// # Errors
    /// The error that made it stop by itself, before or now.
    pub fn stop(self) -> Result<u64, HostError> {
        Ok(self.service.stop()?)
    }
}

/// What is made of released transactions, and of what the writer is made.
pub(crate) fn parts(
    model: CommandModel,
    options: CommandHostOptions,
) -> Result<(impl ReleasedTransactions, impl FnOnce(WriterParts) -> Box<dyn Transactions> + Send), ModelError> {
    let model = model.finish()?;
    let handover = Arc::new(Handover::default());
    let released = ReleasedSide(Released::new(options.identifiers, Arc::clone(&handover)));
    let make_writer = move |parts: WriterParts| {
        let identifiers = Identifiers::new(options.identifiers);
        let writer = Writer::new(model, identifiers);
        Box::new(BusTransactions::new(writer, handover, parts)) as Box<dyn Transactions>
    };
    Ok((released, make_writer))
}

/// What is released, as the engine calls it.
struct ReleasedSide(Released);

impl ReleasedTransactions for ReleasedSide {
    #[inline]
    fn apply(&mut self, transaction: &ReleasedTransaction<'_>) -> Result<(), String> {
        let ReleasedTransaction { sequence, timestamp_ns, reply, changes, .. } = *transaction;
        self.0.apply(sequence, timestamp_ns, reply.unwrap_or_default(), changes)
    }

    #[inline]
    fn between_batches(&mut self, last_sequence: u64) {
        self.0.between_batches(last_sequence);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.0.snapshot(state);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0.restore(state)
    }
}
