//! `BareWriter`: the writer alone, without a stream, for the fuzz targets.

use crate::error::ModelError;
use crate::identifiers::{IdentifierLimits, Identifiers};
use crate::model::CommandModel;
use crate::writer::{AggregateCache, CommandStamp, CommandWriter, DecisionModels, RunResult};

/// Runs commands on a writer without a stream, for fuzz targets.
pub struct BareWriter {
    writer: CommandWriter,
    sequence: u64,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareResult<'a> {
    Answered(&'a [u8], &'a [u8]),
    Failed(&'a str),
    /// The aggregate would have to be loaded, which is impossible here.
    Later,
}

impl BareWriter {
    /// A writer of that model.
    ///
    /// # Errors
    /// The model is invalid.
    pub fn new(model: CommandModel) -> Result<Self, ModelError> {
        let identifiers = Identifiers::new(IdentifierLimits::default());
        let (cache, decision_models) = (AggregateCache::new(None, 0), DecisionModels::new(None, 0));
        Ok(Self { writer: CommandWriter::new(model.finish()?, identifiers, cache, decision_models), sequence: 0 })
    }

    /// Runs a command of any bytes; answer and events have at most `length_max`.
    pub fn decide(&mut self, bytes: &[u8], length_max: usize) -> BareResult<'_> {
        self.sequence += 1;
        let sequence = self.sequence;
        let ran = self.writer.run(
            &CommandStamp { sequence, time_ns: sequence, session: 1, number: sequence },
            bytes,
            length_max,
        );
        match ran {
            RunResult::Answered => BareResult::Answered(self.writer.answer(), self.writer.changes()),
            RunResult::Failed(_) => BareResult::Failed(self.writer.text()),
            RunResult::Later => BareResult::Later,
        }
    }
}
