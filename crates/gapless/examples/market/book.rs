//! The order book: the best price first, and at one price whoever came first. No I/O, no clock.

use super::fingerprint::Fingerprint;
use super::messages::Side;
use std::collections::{BTreeMap, VecDeque};

/// An order that waits in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Its name.
    pub order: u64,
    /// What is left of it, at least 1.
    pub quantity: u32,
}

/// A meeting of an order that comes with one that rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The one that rested, at whose price they meet.
    pub resting: u64,
    /// Its price, hundredths.
    pub price: i64,
    /// How much of both.
    pub quantity: u32,
}

/// The orders of one side at each price, in the order of their coming.
type Levels = BTreeMap<i64, VecDeque<Resting>>;

/// What waits to be bought and sold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    bids: Levels,
    asks: Levels,
    /// Where each order is.
    places: BTreeMap<u64, (bool, i64)>,
}

impl Book {
    /// Takes an order: tells each fill in its order, and keeps what is left.
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

    fn rest(&mut self, is_buy: bool, price: i64, resting: Resting) {
        let levels = if is_buy { &mut self.bids } else { &mut self.asks };
        levels.entry(price).or_default().push_back(resting);
        self.places.insert(resting.order, (is_buy, price));
    }

    /// Takes an order out; how much was left of it, `None` if it does not rest here.
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

    /// Everything that rests: the best bid first, then the best ask first, each price in the order of coming.
    pub fn orders(&self) -> impl Iterator<Item = (Side, i64, Resting)> {
        let bids = self.bids.iter().rev().map(|level| (Side::Buy, level));
        let asks = self.asks.iter().map(|level| (Side::Sell, level));
        bids.chain(asks).flat_map(|(side, (price, queue))| queue.iter().map(move |resting| (side, *price, *resting)))
    }

    /// Puts back what [`Book::orders`] gave away, in that order.
    pub fn put_back(&mut self, side: Side, price: i64, resting: Resting) {
        self.rest(side == Side::Buy, price, resting);
    }

    /// How many orders rest.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The quantity that rests, of both sides.
    pub fn quantity(&self) -> u64 {
        self.orders().map(|(_, _, resting)| u64::from(resting.quantity)).sum()
    }

    /// Equal for equal books, also for one that was made in another way.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(self.orders())
    }
}

/// The fingerprint of orders as [`Book::orders`] gives them.
pub fn fingerprint(orders: impl Iterator<Item = (Side, i64, Resting)>) -> u64 {
    let mut fingerprint = Fingerprint::default();
    for (side, price, resting) in orders {
        for number in [u64::from(side.raw()), price as u64, resting.order, resting.quantity.into()] {
            fingerprint.add(number);
        }
    }
    fingerprint.value()
}
