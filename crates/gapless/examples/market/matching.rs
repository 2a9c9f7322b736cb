//! The matching service: a fold of the stream, so that its instances agree without communication.

use super::book::{Book, Fill};
use super::fingerprint::Fingerprint;
use super::messages::{
    Accepted, AskStanding, CancelOrder, Cancelled, Closed, Finished, NewOrder, Reason, Said, Side, Standing, Trade,
    entry_of,
};
use super::options::ENTRIES;
use gapless::prelude::*;
use gapless::state::State;
use serde::{Deserialize, Serialize};

/// Hundredths.
const PRICE_TOO_MUCH: i64 = 1_000_001;
const QUANTITY_TOO_MUCH: u32 = 10_001;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Position {
    /// Negative if more was sold.
    pub shares: i64,
    /// Hundredths; negative if more was spent.
    pub cash: i64,
}

impl Position {
    pub fn book(&mut self, side: Side, price: i64, quantity: u32) {
        let (shares, cash) = (i64::from(quantity), price * i64::from(quantity));
        if side == Side::Buy {
            self.shares += shares;
            self.cash -= cash;
        } else {
            self.shares -= shares;
            self.cash += cash;
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Market {
    pub book: Book,
    pub positions: [Position; ENTRIES as usize],
    pub requests: u64,
    /// Also the number of the last trade.
    pub trades: u64,
    /// One bit for each entry node.
    pub finished: u64,
}

impl Market {
    pub const fn is_closed(&self) -> bool {
        self.finished == (1 << ENTRIES) - 1
    }

    fn refusal(&self, order: &NewOrder) -> Option<Reason> {
        match order {
            _ if self.is_closed() => Some(Reason::Closed),
            NewOrder { quantity: 0 | QUANTITY_TOO_MUCH.., .. } => Some(Reason::Quantity),
            NewOrder { price: ..=0 | PRICE_TOO_MUCH.., .. } => Some(Reason::Price),
            _ => None,
        }
    }

    fn trade(&mut self, trade: &Trade) {
        for (order, side) in [(trade.buy_order, Side::Buy), (trade.sell_order, Side::Sell)] {
            self.positions[entry_of(order) as usize - 1].book(side, trade.price, trade.quantity);
        }
    }
}

#[gapless::service]
impl Market {
    #[event]
    fn order(&mut self, order: NewOrder, context: &mut Context<'_>) {
        if !is_of_entry(order.request) {
            return;
        }
        self.requests += 1;
        let reason = self.refusal(&order);
        let NewOrder { request, price, quantity, side } = order;
        if let Some(reason) = reason {
            return context.publish(&Said::Rejected { request, reason });
        }
        context.publish(&Said::Accepted(Accepted { order: request, price, quantity, side }));
        let mut fills = Vec::new();
        self.book.take(request, side, price, quantity, |fill| fills.push(fill));
        for fill in fills {
            self.trades += 1;
            let (buy_order, sell_order) = match side {
                Side::Buy => (request, fill.resting),
                Side::Sell => (fill.resting, request),
            };
            let Fill { price, quantity, .. } = fill;
            let trade = Trade { trade: self.trades, price, buy_order, sell_order, quantity };
            self.trade(&trade);
            context.publish(&Said::Trade(trade));
        }
    }

    #[event]
    fn cancel(&mut self, CancelOrder { request, order }: CancelOrder, context: &mut Context<'_>) {
        if !is_of_entry(request) {
            return;
        }
        self.requests += 1;
        let outcome = if entry_of(request) == entry_of(order) {
            self.book.cancel(order).ok_or(Reason::NotResting)
        } else {
            Err(Reason::NotYours)
        };
        context.publish(&match outcome {
            Ok(quantity) => Said::Cancelled(Cancelled { request, order, quantity }),
            Err(reason) => Said::Rejected { request, reason },
        });
    }

    #[event]
    fn finish(&mut self, Finished { last_request }: Finished, context: &mut Context<'_>) {
        if !is_of_entry(last_request) || self.is_closed() {
            return;
        }
        self.finished |= 1 << (entry_of(last_request) - 1);
        if self.is_closed() {
            context.publish(&Said::Closed(Closed {
                requests: self.requests,
                trades: self.trades,
                resting_quantity: self.book.quantity(),
                book_fingerprint: self.book.fingerprint(),
            }));
        }
    }

    #[query]
    fn standing(&self, _: AskStanding) -> Standing {
        let (mut bytes, mut state) = (Vec::new(), Fingerprint::default());
        self.snapshot(&mut bytes);
        bytes.into_iter().for_each(|byte| state.add(byte.into()));
        Standing {
            is_closed: self.is_closed(),
            requests: self.requests,
            trades: self.trades,
            orders: self.book.len() as u64,
            resting: self.book.quantity(),
            book: self.book.fingerprint(),
            state: state.value(),
            positions: self.positions.iter().map(|position| (position.shares, position.cash)).collect(),
        }
    }
}

fn is_of_entry(request: u64) -> bool {
    (1..=ENTRIES).contains(&entry_of(request))
}
