//! The book as rebuilt by an outsider from published messages, without knowledge of the matching.

use super::book::{Resting, fingerprint};
use super::messages::{Accepted, Cancelled, Said, Side, Trade, entry_of, number_of};
use super::options::ENTRIES;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, Debug)]
struct Order {
    side: Side,
    price: i64,
    quantity: u32,
    place: u64,
}

#[derive(Debug, Default)]
pub struct Depth {
    orders: HashMap<u64, Order>,
    levels: [BTreeMap<i64, u64>; 2],
    accepted: u64,
    met: [Vec<bool>; ENTRIES as usize],
    pub outcomes: u64,
    /// A second outcome, a trade of a missing order, a skipped number.
    pub contradictions: u64,
    pub trades: u64,
    pub traded_quantity: u64,
    pub last: Option<(i64, u32)>,
}

impl Depth {
    pub fn take(&mut self, said: &Said) {
        match said {
            Said::Accepted(accepted) => self.accept(accepted),
            Said::Rejected { request, .. } => self.outcome(*request),
            Said::Cancelled(cancelled) => self.cancel(cancelled),
            Said::Trade(trade) => self.trade(trade),
            Said::Closed(_) => {}
        }
    }

    fn outcome(&mut self, request: u64) {
        let entry = (entry_of(request) as usize).checked_sub(1).and_then(|at| self.met.get_mut(at));
        let (Some(met), Some(at)) = (entry, number_of(request).checked_sub(1)) else {
            self.contradictions += 1;
            return;
        };
        let at = at as usize;
        if met.len() <= at {
            met.resize(at + 1, false);
        }
        if std::mem::replace(&mut met[at], true) {
            self.contradictions += 1;
        } else {
            self.outcomes += 1;
        }
    }

    fn accept(&mut self, accepted: &Accepted) {
        self.outcome(accepted.order);
        self.accepted += 1;
        let Accepted { side, price, quantity, .. } = *accepted;
        let order = Order { side, price, quantity, place: self.accepted };
        *self.level(side).entry(price).or_default() += u64::from(quantity);
        self.contradictions += u64::from(self.orders.insert(accepted.order, order).is_some());
    }

    fn cancel(&mut self, cancelled: &Cancelled) {
        self.outcome(cancelled.request);
        let was_left = self.orders.get(&cancelled.order).map(|order| order.quantity);
        if was_left == Some(cancelled.quantity) {
            self.reduce(cancelled.order, cancelled.quantity);
        } else {
            self.contradictions += 1;
        }
    }

    fn trade(&mut self, trade: &Trade) {
        self.contradictions += u64::from(trade.trade != self.trades + 1);
        self.trades = trade.trade;
        self.traded_quantity += u64::from(trade.quantity);
        self.last = Some((trade.price, trade.quantity));
        self.reduce(trade.buy_order, trade.quantity);
        self.reduce(trade.sell_order, trade.quantity);
    }

    fn reduce(&mut self, name: u64, by: u32) {
        let Some(order) = self.orders.get_mut(&name).filter(|order| order.quantity >= by) else {
            self.contradictions += 1;
            return;
        };
        order.quantity -= by;
        let Order { side, price, quantity, .. } = *order;
        if quantity == 0 {
            self.orders.remove(&name);
        }
        let level = self.level(side);
        if let Some(left) = level.get_mut(&price) {
            *left -= u64::from(by);
            if *left == 0 {
                level.remove(&price);
            }
        }
    }

    fn level(&mut self, side: Side) -> &mut BTreeMap<i64, u64> {
        &mut self.levels[usize::from(side != Side::Buy)]
    }

    pub fn best(&self) -> [Option<(i64, u64)>; 2] {
        let copied = |(price, quantity): (&i64, &u64)| (*price, *quantity);
        [self.levels[0].last_key_value().map(copied), self.levels[1].first_key_value().map(copied)]
    }

    pub fn quantity(&self) -> u64 {
        self.levels.iter().flat_map(BTreeMap::values).sum()
    }

    pub fn fingerprint(&self) -> u64 {
        let mut orders: Vec<_> = self.orders.iter().collect();
        orders.sort_by_key(|(_, order)| {
            let is_ask = order.side != Side::Buy;
            (is_ask, if is_ask { order.price } else { -order.price }, order.place)
        });
        let resting = |(name, order): (&u64, &Order)| {
            (order.side, order.price, Resting { order: *name, quantity: order.quantity })
        };
        fingerprint(orders.into_iter().map(resting))
    }
}
