//! The order book: best price first, then first come, first served. No I/O, no clock.

use super::messages::{Order, RequestId, Side};
use gapless::prelude::*;
use gapless::state;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Price, that of a bid negated, and place in the order of arrival: the first is the first to trade.
type Priority = (i64, u64);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Book {
    bids: BTreeMap<Priority, Order>,
    asks: BTreeMap<Priority, Order>,
    priorities: BTreeMap<RequestId, (Side, Priority)>,
}

impl Book {
    /// Matches an order, whose remainder rests. Returns the part of each resting order that it trades with.
    pub fn take(&mut self, place: u64, mut order: Order) -> Vec<Order> {
        let mut fills = Vec::new();
        while order.quantity > 0
            && let Some(fill) = self.fill(&order)
        {
            order.quantity -= fill.quantity;
            fills.push(fill);
        }
        if order.quantity > 0 {
            self.rest(place, order);
        }
        fills
    }

    /// Takes from the first resting order what price and quantity of the other one allow.
    fn fill(&mut self, other: &Order) -> Option<Order> {
        let mut first = match other.side {
            Side::Buy => self.asks.first_entry().filter(|ask| ask.get().price <= other.price)?,
            Side::Sell => self.bids.first_entry().filter(|bid| bid.get().price >= other.price)?,
        };
        let resting = first.get_mut();
        let fill = Order { quantity: other.quantity.min(resting.quantity), ..*resting };
        resting.quantity -= fill.quantity;
        if resting.quantity == 0 {
            self.priorities.remove(&first.remove().id);
        }
        Some(fill)
    }

    pub fn rest(&mut self, place: u64, order: Order) {
        let priority = (if order.side == Side::Buy { -order.price } else { order.price }, place);
        self.side(order.side).insert(priority, order);
        self.priorities.insert(order.id, (order.side, priority));
    }

    /// Returns the remaining quantity; `None` if the order does not rest here.
    pub fn cancel(&mut self, order: RequestId) -> Option<u32> {
        let (side, priority) = self.priorities.remove(&order)?;
        Some(self.side(side).remove(&priority)?.quantity)
    }

    fn side(&mut self, side: Side) -> &mut BTreeMap<Priority, Order> {
        if side == Side::Buy { &mut self.bids } else { &mut self.asks }
    }
}

/// Hash of a state's snapshot, to compare states between processes of one program.
pub fn fingerprint(state: &impl State) -> u64 {
    let mut snapshot = Vec::new();
    state::write(state, &mut snapshot);
    BuildHasherDefault::<DefaultHasher>::new().hash_one(snapshot)
}
