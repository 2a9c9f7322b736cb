//! Messages of the stream: requests of the entry nodes, reports of the matching service, and at the end the figures that
//! must add up.

use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const ENTRIES: u64 = 3;
pub const INSTANCES: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, State)]
pub struct RequestId {
    pub entry: u64,
    /// From 1, without gaps.
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub enum Side {
    Buy,
    Sell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Order {
    pub id: RequestId,
    pub side: Side,
    /// Cents.
    pub price: i64,
    pub quantity: u32,
}

/// Message of an entry node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub enum Request {
    Order(Order),
    Cancel {
        id: RequestId,
        order: RequestId,
    },
    /// All requests of this entry node have their outcomes.
    Finish(u64),
}

/// Message of the matching service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub enum Report {
    Outcome(RequestId, Outcome),
    Trade {
        /// From 1, without gaps.
        number: u64,
        price: i64,
        quantity: u32,
        buy_order: RequestId,
        sell_order: RequestId,
    },
    /// All entry nodes have finished.
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub enum Outcome {
    Accepted,
    Rejected,
    /// With the remaining quantity of the order.
    Cancelled(u32),
}

/// Shares and money of an entry node; negative if it has sold or spent more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Position {
    pub shares: i64,
    pub cents: i64,
}

impl Position {
    /// Sells if `shares` is negative.
    pub fn buy(&mut self, shares: i64, price: i64) {
        self.shares += shares;
        self.cents -= shares * price;
    }
}

/// Last message of an entry node: its own figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Account {
    pub entry: u64,
    pub requests: u64,
    pub outcomes: u64,
    pub position: Position,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Standing)]
pub struct AskStanding;

/// State of an instance, and its message after the close.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Standing {
    pub is_closed: bool,
    pub trades: u64,
    /// By entry node.
    pub positions: BTreeMap<u64, Position>,
    pub book_fingerprint: u64,
    /// Of the whole state.
    pub fingerprint: u64,
}
