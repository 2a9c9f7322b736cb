//! Load of `gapless bench canonical`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`driver`] | the load, and the check of every reply |
//! | [`form`] | a form of the message, selected at run time |
//! | [`state_processor`] | the service by state replication |
//! | [`processor`] | the service |
//! | [`car`] | the message in its four forms |

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
