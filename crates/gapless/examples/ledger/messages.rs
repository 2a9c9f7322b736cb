//! Messages between the program and the ledger. An import is known by the name of its file.

use crate::transfer::{Reason, Transfer};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};

/// An invalid line is sent, too: its refusal is as durable as a booking.
#[derive(Serialize, Deserialize, Message)]
#[message(refusal = NotTaken)]
pub struct Take {
    pub file: String,
    pub line: u64,
    pub checksum: u32,
    pub content: Result<Transfer, Reason>,
}

#[derive(Debug, Serialize, Deserialize, Message, thiserror::Error)]
pub enum NotTaken {
    #[error("line {due} was due, not line {line}")]
    OutOfOrder { due: u64, line: u64 },
    #[error("{0} lines of this file were refused; is it the right one?")]
    TooManyBadLines(u64),
}

/// Asks for the ledger's state and for the import of a file.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = Status)]
pub struct StatusOf(pub String);

/// Amounts are in hundredths.
#[derive(Serialize, Deserialize, Message)]
pub struct Status {
    pub import: Import,
    pub accounts: u64,
    pub deposited: u128,
    pub balances: u128,
    /// Equal for equal bookings, regardless of their history.
    pub checksum: u32,
}

#[derive(Clone, Serialize, Deserialize, Message)]
pub struct Import {
    /// Last line taken.
    pub line: u64,
    /// Checksum of the file up to that line.
    pub checksum: u32,
    /// Refused lines, in order.
    pub refusals: Vec<(u64, Reason)>,
}

impl Default for Import {
    fn default() -> Self {
        // Line 1 is the header.
        Self { line: 1, checksum: 0, refusals: Vec::new() }
    }
}
