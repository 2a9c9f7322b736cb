//! Load of `gapless bench failover`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`load`] | the clients |
//! | [`member`] | a member of the cluster, in a process of its own |
//! | [`ledger`] | the service, which remembers every command |

pub mod ledger;
pub mod load;
pub mod member;

use crate::BenchError;

pub const NAME: &str = "failover";

pub fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}
