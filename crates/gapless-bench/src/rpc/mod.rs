//! `gapless bench rpc …`: calls, beside those of other systems.
//!
//! | module | what lives there |
//! |---|---|
//! | [`curve`] | calls a second and their cost against the size of the payload |
//! | `stand` | the processes of one system under test: its broker, its server, callers that only are connected |
//! | `server_process` | the process that serves |
//! | `exchange` | calls and streams, timed; replies are checked outside the clock |
//! | `increments` | what is sent, and what must come back |
//! | `subject` | the systems, and how both ends of each are connected |
//! | `gapless_caller` | the calling end of Gapless |

pub mod curve;
mod exchange;
mod gapless_caller;
mod increments;
pub(crate) mod server_process;
mod stand;
mod subject;

pub use gapless_bench_calls::{faults, payloads, scenarios};

use crate::{BenchError, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// The benchmark's name in errors.
const NAME: &str = "rpc";

/// An error of a system or of the measurement.
fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

/// An error if the benchmark was interrupted.
fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    // Relaxed: the flag guards no data (pairs with the store of the signal handler).
    if interrupted.load(Ordering::Relaxed) { Err(failed("interrupted")) } else { Ok(()) }
}
