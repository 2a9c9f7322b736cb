//! Load of `gapless bench failover`.

pub mod ledger;
pub mod load;
pub mod member;

use crate::BenchError;

pub const NAME: &str = "failover";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}
