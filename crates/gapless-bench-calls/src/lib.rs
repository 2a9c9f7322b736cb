//! Benchmarks of calls, and of the supervisor of processes that are called. What they measure with is in `gapless-measure`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`faults`] | `gapless bench rpc faults`: what callers notice of processes that are killed, beside a broker that is |
//! | [`payloads`] | `gapless bench rpc payloads`: calls a second by the size of what travels |
//! | [`scenarios`] | `gapless bench rpc scenarios`: a process under load, and a lone call beside it |
//! | [`supervisor`] | `gapless bench supervisor`: what a supervisor costs, and how fast it is |

#![forbid(unsafe_code)]

pub mod faults;
pub mod payloads;
pub mod scenarios;
pub mod supervisor;

use gapless_measure::{BenchError, Result, reporting};
use std::sync::atomic::AtomicBool;

/// The benchmarks' name in errors.
const NAME: &str = "rpc";

/// An error of the measurement.
fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

/// An error if the benchmark was interrupted.
fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    reporting::check_interrupted(NAME, interrupted)
}
