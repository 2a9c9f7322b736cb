//! The order book: best price first, then first come, first served. No I/O, no clock.

use super::fingerprint::Fingerprint;
use super::messages::Side;
use gapless::state::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Resting {
    pub order: u64,
    /// At least 1.
    pub quantity: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The match is at its price.
    pub resting: u64,
    /// Hundredths.
    pub price: i64,
    pub quantity: u32,
}

type Levels = BTreeMap<i64, VecDeque<Resting>>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Book {
    bids: Levels,
    asks: Levels,
    places: BTreeMap<u64, (bool, i64)>,
}

impl Book {
    pub fn take(&mut self, order: u64, side: Side, price: i64, quantity: u32, mut fill: impl FnMut(Fill)) {
        let is_buy = side == Side::Buy;
        let mut left = quantity;
        while left > 0 {
            let levels = if is_buy { &mut self.asks } else { &mut self.bids };
            let Some(mut level) = (if is_buy { levels.first_entry() } else { levels.last_entry() }) else { break };
            let best = *level.key();
            if (is_buy && best > price) || (!is_buy && best < price) {
                break;
            }
            let queue = level.get_mut();
            while let Some(first) = queue.front_mut().filter(|_| left > 0) {
                let met = left.min(first.quantity);
                fill(Fill { resting: first.order, price: best, quantity: met });
                left -= met;
                first.quantity -= met;
                if first.quantity == 0 {
                    self.places.remove(&first.order);
                    queue.pop_front();
                }
            }
            if queue.is_empty() {
                level.remove();
            }
        }
        if left > 0 {
            self.rest(is_buy, price, Resting { order, quantity: left });
        }
    }

    pub fn rest(&mut self, is_buy: bool, price: i64, resting: Resting) {
        let levels = if is_buy { &mut self.bids } else { &mut self.asks };
        levels.entry(price).or_default().push_back(resting);
        self.places.insert(resting.order, (is_buy, price));
    }

    /// Returns the remaining quantity; `None` if the order does not rest here.
    pub fn cancel(&mut self, order: u64) -> Option<u32> {
        let (is_buy, price) = self.places.remove(&order)?;
        let levels = if is_buy { &mut self.bids } else { &mut self.asks };
        let queue = levels.get_mut(&price)?;
        let position = queue.iter().position(|resting| resting.order == order)?;
        let resting = queue.remove(position)?;
        if queue.is_empty() {
            levels.remove(&price);
        }
        Some(resting.quantity)
    }

    /// All resting orders: the best bid first, then the best ask first, each price in the order of arrival.
    pub fn orders(&self) -> impl Iterator<Item = (Side, i64, Resting)> {
        let bids = self.bids.iter().rev().map(|level| (Side::Buy, level));
        let asks = self.asks.iter().map(|level| (Side::Sell, level));
        bids.chain(asks).flat_map(|(side, (price, queue))| queue.iter().map(move |resting| (side, *price, *resting)))
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn quantity(&self) -> u64 {
        self.orders().map(|(_, _, resting)| u64::from(resting.quantity)).sum()
    }

    /// Equal for equal books, regardless of their history.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(self.orders())
    }
}

pub fn fingerprint(orders: impl Iterator<Item = (Side, i64, Resting)>) -> u64 {
    let mut fingerprint = Fingerprint::default();
    for (side, price, resting) in orders {
        for number in [side as u64, price as u64, resting.order, resting.quantity.into()] {
            fingerprint.add(number);
        }
    }
    fingerprint.value()
}
