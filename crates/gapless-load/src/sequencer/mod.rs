//! Load of `gapless bench sequencer`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`process`] | the processes of the benchmark |
//! | [`journal`] | contents of the journal |
//! | [`payload`] | contents of the messages, and their account |
//! | [`protocol`] | messages between the processes |

pub mod journal;
pub mod payload;
pub mod process;
pub mod protocol;

use crate::BenchError;

pub const NAME: &str = "sequencer";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}
