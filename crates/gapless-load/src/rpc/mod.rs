//! Load of `gapless bench rpc …`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`faults`] | callers and serving processes of the benchmark that kills |
//! | [`payloads`] | calls by the size of the payload |
//! | [`scenarios`] | a process under load, and a lone call beside it |
//! | [`server_process`] | the process that serves |
//! | [`exchange`] | calls and streams, timed; replies are checked outside the clock |
//! | [`increments`] | what is sent, and what must come back |
//! | [`subject`] | the systems, and how both ends of each are connected |
//! | [`gapless_caller`] | the calling end of Gapless |

pub mod exchange;
pub mod faults;
pub mod gapless_caller;
pub mod increments;
pub mod payloads;
pub mod scenarios;
pub mod server_process;
pub mod subject;

use crate::{BenchError, Result};
use gapless_measure::reporting;
use std::sync::atomic::AtomicBool;

/// Name of the benchmark in errors.
pub const NAME: &str = "rpc";

/// An error of a system or of the measurement.
pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

/// An error if the benchmark was interrupted.
///
/// # Errors
/// It was.
pub fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    reporting::check_interrupted(NAME, interrupted)
}
