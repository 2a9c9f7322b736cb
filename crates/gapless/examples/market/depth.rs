//! The book as an outsider rebuilds it from the messages in the stream, without knowledge of the matching.

use super::book::Book;
use super::messages::{Order, Outcome, Report, Request, RequestId};
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub struct Depth {
    /// Requests without outcome.
    open: HashMap<RequestId, Request>,
    /// Resting orders, each with the place of its request.
    resting: HashMap<RequestId, (u64, Order)>,
    pub outcomes: u64,
    pub trades: u64,
    /// Outcomes that are no answer to an open request, gaps in the numbers of trades, and more traded than rests.
    pub contradictions: u64,
}

impl Depth {
    pub fn request(&mut self, request: Request) {
        if let Request::Order(Order { id, .. }) | Request::Cancel { id, .. } = request {
            self.open.insert(id, request);
        }
    }

    pub fn report(&mut self, report: &Report) {
        match *report {
            Report::Outcome(id, outcome) => self.outcome(id, outcome),
            Report::Trade { number, quantity, buy_order, sell_order, .. } => {
                self.trades += 1;
                self.contradictions += u64::from(number != self.trades);
                self.reduce(buy_order, quantity);
                self.reduce(sell_order, quantity);
            }
            Report::Close => {}
        }
    }

    fn outcome(&mut self, id: RequestId, outcome: Outcome) {
        self.outcomes += 1;
        match (self.open.remove(&id), outcome) {
            (Some(Request::Order(order)), Outcome::Accepted) => _ = self.resting.insert(id, (self.outcomes, order)),
            (Some(Request::Cancel { order, .. }), Outcome::Cancelled(quantity)) => self.reduce(order, quantity),
            (Some(_), Outcome::Rejected) => {}
            _ => self.contradictions += 1,
        }
    }

    fn reduce(&mut self, id: RequestId, quantity: u32) {
        match self.resting.get_mut(&id) {
            Some((_, order)) if order.quantity > quantity => order.quantity -= quantity,
            Some((_, order)) if order.quantity == quantity => _ = self.resting.remove(&id),
            _ => self.contradictions += 1,
        }
    }

    pub fn book(&self) -> Book {
        let mut book = Book::default();
        self.resting.values().for_each(|(place, order)| book.rest(*place, *order));
        book
    }
}
