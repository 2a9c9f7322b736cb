//! Load of `gapless bench commands`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`scale`] | the process of many aggregates |
//! | [`latency`] | commands at a rate |
//! | [`quorum`] | commands on a cluster of two members |
//! | [`replay`] | a fold of the whole stream |
//! | [`bare`] | the floor: encoding and appending alone |
//! | [`load`] | commands that are sent, awaited and checked |
//! | [`bus_under_test`] | the bus of one row |
//! | [`messages`] | the aggregate, its command and its event, in two encodings |
//! | [`case`] | parameters of a row |

pub mod bare;
pub mod bus_under_test;
pub mod case;
pub mod latency;
pub mod load;
pub mod messages;
pub mod quorum;
pub mod replay;
pub mod scale;

use gapless_measure::{BenchError, Result, reporting};
use std::sync::atomic::AtomicBool;

pub const NAME: &str = "commands";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

pub fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    reporting::check_interrupted(NAME, interrupted)
}
