//! [`BareWriter`]: the writer alone, without a stream, for the fuzz targets.

use crate::error::ModelError;
use crate::identifiers::{IdentifierLimits, Identifiers};
use crate::model::CommandModel;
use crate::writer::{Cache, DecisionModels, Ran, Stamp, Writer};

/// Runs commands on a writer without a stream.
pub struct BareWriter {
    writer: Writer,
    sequence: u64,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare<'a> {
    /// Encoded answer and events.
    Answered(&'a [u8], &'a [u8]),
    /// Reason of a failure.
    Failed(&'a str),
    /// The aggregate would have to be loaded, which cannot be done here.
    Later,
}

impl BareWriter {
    /// A writer of that model.
    ///
    /// # Errors
    /// The model is invalid.
    pub fn new(model: CommandModel) -> Result<Self, ModelError> {
        let identifiers = Identifiers::new(IdentifierLimits::default());
        let (cache, decision_models) = (Cache::new(None, 0), DecisionModels::new(None, 0));
        Ok(Self { writer: Writer::new(model.finish()?, identifiers, cache, decision_models), sequence: 0 })
    }

    /// Runs a command given as any bytes. Answer and events have at most `length_max` bytes together.
    pub fn decide(&mut self, bytes: &[u8], length_max: usize) -> Bare<'_> {
        self.sequence += 1;
        let sequence = self.sequence;
        let ran =
            self.writer.run(&Stamp { sequence, time_ns: sequence, session: 1, number: sequence }, bytes, length_max);
        match ran {
            Ran::Answered => Bare::Answered(self.writer.answer(), self.writer.changes()),
            Ran::Failed(_) => Bare::Failed(self.writer.text()),
            Ran::Later => Bare::Later,
        }
    }
}
