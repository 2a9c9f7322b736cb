//! Requests of an entry node, derived from seed and node alone, so that a run can be repeated.

use super::messages::{ENTRIES, Order, Request, RequestId, Side};

const PRICE_CENTS_MIDDLE: i64 = 10_000;

pub struct Orders {
    entry: u64,
    random: u64,
    number: u64,
    fair_price: i64,
}

impl Orders {
    pub const fn new(seed: u64, entry: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entry.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Self { entry, random, number: 0, fair_price: PRICE_CENTS_MIDDLE }
    }

    /// One in four is a cancel. One in fifty of these is of a foreign order, and one in fifty orders has no quantity:
    /// the matching service must refuse them.
    pub fn next_request(&mut self) -> Request {
        self.number += 1;
        let id = RequestId { entry: self.entry, number: self.number };
        if self.number > 1 && self.below(4) == 0 {
            let entry = if self.below(50) == 0 { self.entry % ENTRIES + 1 } else { self.entry };
            let number = self.number - 1 - self.below(50.min(self.number - 1));
            return Request::Cancel { id, order: RequestId { entry, number } };
        }
        self.fair_price += (PRICE_CENTS_MIDDLE - self.fair_price) / 64 + self.below(11) as i64 - 5;
        let side = if self.below(2) == 0 { Side::Buy } else { Side::Sell };
        // A quarter crosses the spread to match resting orders.
        let away = self.below(20) as i64 - 5;
        let price = if side == Side::Buy { self.fair_price - away } else { self.fair_price + away };
        Request::Order(Order { id, side, price, quantity: self.below(50) as u32 })
    }

    fn below(&mut self, bound: u64) -> u64 {
        // Constants of Knuth's MMIX.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }
}
