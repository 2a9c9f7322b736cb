//! [`BareWriter`]: the writer by itself, without a stream: for whoever feeds it hostile bytes.

use crate::error::ModelError;
use crate::identifiers::{IdentifierLimits, Identifiers};
use crate::model::CommandModel;
use crate::writer::{Cache, DecisionModels, Ran, Stamp, Writer};

/// See the head of the file.
pub struct BareWriter {
    writer: Writer,
    sequence: u64,
}

/// What has become of a command, without a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare<'a> {
    /// The bytes of its answer, and those of its events.
    Answered(&'a [u8], &'a [u8]),
    /// Why it has failed.
    Failed(&'a str),
    /// Its aggregate is to be made anew, which nobody does here.
    Later,
}

impl BareWriter {
    /// Of that model.
    ///
    /// # Errors
    /// It is none.
    pub fn new(model: CommandModel) -> Result<Self, ModelError> {
        let identifiers = Identifiers::new(IdentifierLimits::default());
        let (cache, decision_models) = (Cache::new(None, 0), DecisionModels::new(None, 0));
        Ok(Self { writer: Writer::new(model.finish()?, identifiers, cache, decision_models), sequence: 0 })
    }

    /// Decides on a command, whatever its bytes are. Its events have at most `length_max` bytes, with its answer.
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
