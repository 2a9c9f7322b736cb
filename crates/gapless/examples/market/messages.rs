#![allow(dead_code, reason = "tests use a part of it")]

use gapless::prelude::*;
use gapless::state::State;
use serde::{Deserialize, Serialize};

/// Bits of a request below the number of its entry node.
const NUMBER_BITS: u32 = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub enum Side {
    Buy,
    Sell,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct NewOrder {
    pub request: u64,
    /// Hundredths.
    pub price: i64,
    pub quantity: u32,
    pub side: Side,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct CancelOrder {
    pub request: u64,
    pub order: u64,
}

/// The last message of an entry node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Finished {
    pub last_request: u64,
}

/// Outcome of a request, or what follows from it: the messages of the matching service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum Said {
    Accepted(Accepted),
    Rejected { request: u64, reason: Reason },
    Cancelled(Cancelled),
    Trade(Trade),
    Closed(Closed),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Accepted {
    pub order: u64,
    pub price: i64,
    pub quantity: u32,
    pub side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub enum Reason {
    Closed,
    Quantity,
    Price,
    NotYours,
    NotResting,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Cancelled {
    pub request: u64,
    pub order: u64,
    /// That was left.
    pub quantity: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Trade {
    /// From 1, without gaps.
    pub trade: u64,
    pub price: i64,
    pub buy_order: u64,
    pub sell_order: u64,
    pub quantity: u32,
}

/// All entry nodes have finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Closed {
    pub requests: u64,
    pub trades: u64,
    pub resting_quantity: u64,
    pub book_fingerprint: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Standing)]
pub struct AskStanding;

/// State of an instance.
#[derive(Serialize, Deserialize, Message)]
pub struct Standing {
    pub is_closed: bool,
    pub requests: u64,
    pub trades: u64,
    /// Resting orders, and their quantity.
    pub orders: u64,
    pub resting: u64,
    /// Fingerprints.
    pub book: u64,
    pub state: u64,
    /// Shares and cash of each entry node.
    pub positions: Vec<(i64, i64)>,
}

pub const fn request(entry: u64, number: u64) -> u64 {
    entry << NUMBER_BITS | number
}

pub const fn entry_of(request: u64) -> u64 {
    request >> NUMBER_BITS
}

/// Number within its entry node, from 1.
pub const fn number_of(request: u64) -> u64 {
    request & ((1 << NUMBER_BITS) - 1)
}

pub fn money(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100)
}
