//! `gapless bench rpc …`: calls, beside those of other systems.
//!
//! | module | what lives there |
//! |---|---|
//! | [`curve`] | calls a second and their cost against the size of the payload |
//! | [`faults`] | what callers notice of processes that are killed, beside a broker that is |
//! | [`payloads`] | calls a second by the size of what travels |
//! | [`scenarios`] | a process under load, and a lone call beside it |
//! | `stand` | the processes of one system under test: its broker, its server, callers that only are connected |
//! | `server_process` | the process that serves |
//! | `exchange` | calls and streams, timed; replies are checked outside the clock |
//! | `increments` | what is sent, and what must come back |
//! | `subject` | the systems, and how both ends of each are connected |
//! | `gapless_caller` | the calling end of Gapless |

pub mod curve;
mod exchange;
pub mod faults;
mod gapless_caller;
mod increments;
pub mod payloads;
pub mod scenarios;
pub(crate) mod server_process;
mod stand;
mod subject;

use crate::{BenchError, Result};
use gapless_measure::reporting;
use std::sync::atomic::AtomicBool;

/// The benchmark's name in errors.
const NAME: &str = "rpc";

/// An error of a system or of the measurement.
fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

/// An error if the benchmark was interrupted.
fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    reporting::check_interrupted(NAME, interrupted)
}
