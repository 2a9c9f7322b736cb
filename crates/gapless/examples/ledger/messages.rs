//! Messages between the program and the ledger. An *import* is the import of one file; its number is the fingerprint of
//! the file's name.

use crate::reason::Reason;
use crate::transfer::Transfer;
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Limit of refusals in one answer.
pub const REFUSALS_PER_PAGE: usize = 4096;

/// An invalid line is sent, too: its refusal is as durable as a booking.
#[derive(Serialize, Deserialize, Message)]
#[message(refusal = NotTaken)]
pub struct Take {
    pub import: u128,
    pub line: u64,
    pub fingerprint: u64,
    pub content: Result<Transfer, Reason>,
}

#[derive(Debug, Serialize, Deserialize, Message)]
pub enum NotTaken {
    OutOfOrder { due: u64, line: u64 },
    TooManyBadLines(u64),
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfOrder { due, line } => write!(f, "line {due} was due, not line {line}"),
            Self::TooManyBadLines(count) => write!(f, "{count} lines of this file were refused; is it the right one?"),
        }
    }
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Progress)]
pub struct ProgressOf {
    pub import: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Progress {
    /// Last line taken; 1, the header, before any.
    pub line: u64,
    pub fingerprint: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Refusals)]
pub struct RefusalsFrom {
    pub import: u128,
    pub index: u64,
}

/// At most [`REFUSALS_PER_PAGE`] lines with their reasons.
#[derive(Serialize, Deserialize, Message)]
pub struct Refusals(pub Vec<(u64, Reason)>);

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Totals)]
pub struct TotalsOf {
    pub import: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Totals {
    pub accepted: u64,
    pub refused: u64,
    pub accounts: u64,
    pub deposited: u128,
    pub balances: u128,
    pub fingerprint: u64,
}
