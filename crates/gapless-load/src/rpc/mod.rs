//! Load of `gapless bench rpc …`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`faults`] | callers and serving processes of the benchmark that kills processes |
//! | [`payloads`] | calls by the size of the payload |
//! | [`scenarios`] | a process under load, and single calls next to it |
//! | [`server_process`] | the serving process |
//! | [`exchange`] | timed calls and streams; replies are checked outside the clock |
//! | [`increments`] | requests and expected replies |
//! | [`subject`] | the systems, and the connection of both ends of each |
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

pub const NAME: &str = "rpc";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

pub fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    reporting::check_interrupted(NAME, interrupted)
}
