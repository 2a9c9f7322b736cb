use gapless::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Order {
    pub entry: u64,
    /// From 1, without gaps.
    pub number: u64,
    pub quantity: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Filled {
    pub entry: u64,
    pub number: u64,
    /// Of all orders so far.
    pub quantity: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Totals)]
pub struct AskTotals;

/// Of all entries.
#[derive(Serialize, Deserialize, Message)]
pub struct Totals {
    pub orders: u64,
    pub quantity: u64,
}
