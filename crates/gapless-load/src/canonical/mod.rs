//! Load of `gapless bench canonical`.

pub mod car;
pub mod driver;
pub mod form;
pub mod processor;
pub mod state_processor;

use crate::BenchError;

pub const NAME: &str = "canonical";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}
