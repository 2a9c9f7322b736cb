//! Load of `gapless bench sequencer`.

pub mod journal;
pub mod payload;
pub mod process;
pub mod protocol;

use crate::BenchError;

pub const NAME: &str = "sequencer";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}
