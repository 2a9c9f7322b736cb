//! Requests of an entry node, derived from seed and node alone, so that a run can be repeated.

use super::messages::{CancelOrder, NewOrder, Side, request};
use super::options::ENTRIES;

/// Hundredths.
const PRICE_MIDDLE: i64 = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// One in fifty must be refused.
    Order(NewOrder),
    Cancel(CancelOrder),
}

pub struct Orders {
    entry: u64,
    random: u64,
    number: u64,
    fair_price: i64,
}

impl Orders {
    pub const fn new(seed: u64, entry: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entry.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Self { entry, random, number: 0, fair_price: PRICE_MIDDLE }
    }

    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    fn cancel(&mut self, request: u64) -> Request {
        let entry = if self.below(50) == 0 { self.entry % ENTRIES + 1 } else { self.entry };
        let number = self.number - 1 - self.below(50.min(self.number - 1));
        Request::Cancel(CancelOrder { request, order: super::messages::request(entry, number) })
    }
}

impl Iterator for Orders {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.number += 1;
        let request = request(self.entry, self.number);
        if self.number > 1 && self.below(4) == 0 {
            return Some(self.cancel(request));
        }
        self.fair_price += (PRICE_MIDDLE - self.fair_price) / 64 + self.below(11) as i64 - 5;
        let side = if self.below(2) == 0 { Side::Buy } else { Side::Sell };
        // A quarter crosses the spread to match resting orders.
        let away = self.below(20) as i64 - 5;
        let price = if side == Side::Buy { self.fair_price - away } else { self.fair_price + away };
        let quantity = 1 + self.below(100) as u32;
        let (price, quantity) = match self.below(100) {
            0 => (0, quantity),
            1 => (price, 0),
            _ => (price, quantity),
        };
        Some(Request::Order(NewOrder { request, price, quantity, side }))
    }
}
