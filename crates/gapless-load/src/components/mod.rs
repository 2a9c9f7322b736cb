//! Load of `gapless bench time|serialization|log|link|messaging|persistence|storage`.
//!
//! | module | measures |
//! |---|---|
//! | [`clocks`] | the clocks that agents read |
//! | [`serialization`] | writing and reading a Car in each of its four forms |
//! | [`log`] | ring and window between two processes with a core each |
//! | [`link`] | messages between two members of a cluster, each a process |
//! | [`messaging`] | from a client to a node at tier `memory` and back |
//! | [`typed_commands`] | commands of the Car at the highest rate, typed and as objects |
//! | [`shared_clients`] | commands and queries by the polled client and by the client that tasks share |
//! | [`persistence`] | appending to a journal, and replaying it |
//! | [`storage`] | objects of a store |
//! | [`peer`] | the process at the other end |

pub mod clocks;
pub mod link;
pub mod log;
pub mod messaging;
pub mod peer;
pub mod persistence;
pub mod serialization;
pub mod shared_clients;
pub mod storage;
pub mod typed_commands;

use crate::BenchError;
use gapless_measure::{Row, RowConfig};

pub fn named(name: &str, payload_bytes: u64, count: u64) -> Row {
    let config = RowConfig {
        name: Some(name.to_owned()),
        payload_bytes: Some(payload_bytes),
        count: Some(count),
        ..RowConfig::default()
    };
    Row { config, ..Row::default() }
}

pub fn failed(name: &'static str, reason: impl ToString) -> BenchError {
    BenchError::measurement(name, reason)
}
