//! Load of `gapless bench sequencer`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`process`] | the processes of the benchmark |
//! | [`journal`] | the contents of the journal |
//! | [`payload`] | the contents of the messages, and accounting for them |
//! | [`protocol`] | messages of the processes to each other |

pub mod journal;
pub mod payload;
pub mod process;
pub mod protocol;

use crate::BenchError;

/// Name of the benchmark.
pub const NAME: &str = "sequencer";

/// An error of this benchmark.
pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}
