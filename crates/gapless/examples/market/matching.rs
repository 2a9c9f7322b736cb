//! The matching service: a fold of the stream, so that its instances agree without communication.

use super::book::{Book, fingerprint};
use super::messages::{AskStanding, ENTRIES, Order, Outcome, Position, Report, Request, Side, Standing};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const PRICE_CENTS_MAX: i64 = 1_000_000;
const QUANTITY_MAX: u32 = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Market {
    pub book: Book,
    /// By entry node.
    pub positions: BTreeMap<u64, Position>,
    pub requests: u64,
    /// Also the number of the last trade.
    pub trades: u64,
    /// Number of entry nodes that have finished.
    pub finished: u64,
}

impl Market {
    const fn is_closed(&self) -> bool {
        self.finished == ENTRIES
    }

    fn order(&mut self, order: Order, context: &mut Context<'_>) {
        let is_valid = (1..=PRICE_CENTS_MAX).contains(&order.price) && (1..=QUANTITY_MAX).contains(&order.quantity);
        let outcome = if is_valid { Outcome::Accepted } else { Outcome::Rejected };
        context.publish(&Report::Outcome(order.id, outcome));
        if is_valid {
            for resting in self.book.take(self.requests, order) {
                context.publish(&self.trade(&order, &resting));
            }
        }
    }

    fn trade(&mut self, order: &Order, resting: &Order) -> Report {
        self.trades += 1;
        let Order { price, quantity, .. } = *resting;
        let (bought, sold) = if order.side == Side::Buy { (order.id, resting.id) } else { (resting.id, order.id) };
        self.positions.entry(bought.entry).or_default().buy(quantity.into(), price);
        self.positions.entry(sold.entry).or_default().buy(-i64::from(quantity), price);
        Report::Trade { number: self.trades, price, quantity, buy_order: bought, sell_order: sold }
    }
}

#[gapless::service]
impl Market {
    #[event]
    fn request(&mut self, request: Request, context: &mut Context<'_>) {
        self.requests += u64::from(!matches!(request, Request::Finish(_)));
        match request {
            Request::Order(order) => self.order(order, context),
            Request::Cancel { id, order } => {
                let cancelled = if id.entry == order.entry { self.book.cancel(order) } else { None };
                let outcome = cancelled.map_or(Outcome::Rejected, Outcome::Cancelled);
                context.publish(&Report::Outcome(id, outcome));
            }
            Request::Finish(entry) => {
                self.finished += 1;
                // Also without a trade.
                self.positions.entry(entry).or_default();
                if self.is_closed() {
                    context.publish(&Report::Close);
                }
            }
        }
    }

    #[query]
    fn standing(&self, _: AskStanding) -> Standing {
        Standing {
            is_closed: self.is_closed(),
            trades: self.trades,
            positions: self.positions.clone(),
            book_fingerprint: fingerprint(&self.book),
            fingerprint: fingerprint(self),
        }
    }
}
