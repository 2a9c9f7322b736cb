//! The matching service: a fold of the stream, so that its instances agree without communication.

use super::book::{Book, Resting};
use super::messages::{
    Accepted, CancelOrder, Cancelled, Closed, Finished, NewOrder, Reason, Rejected, Side, Trade, entry_of,
};
use super::options::ENTRIES;
use gapless::prelude::*;

/// Hundredths.
pub const PRICE_MAX: i64 = 1_000_000;
pub const QUANTITY_MAX: u32 = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Market {
    pub book: Book,
    pub positions: [Position; ENTRIES as usize],
    pub requests: u64,
    /// Also the number of the last trade.
    pub trades: u64,
    /// One bit for each entry node.
    pub finished: u64,
}

struct Outcomes<'a, 'b> {
    context: &'a mut Context<'b>,
    failed: Result<(), Reject>,
}

impl Outcomes<'_, '_> {
    fn say<M: Encode>(&mut self, message: &M) {
        if self.failed.is_ok() {
            self.failed = self.context.publish_object(message);
        }
    }
}

impl Market {
    pub const fn is_closed(&self) -> bool {
        self.finished == (1 << ENTRIES) - 1
    }

    fn order(&mut self, order: &NewOrder, said: &mut Outcomes<'_, '_>) {
        self.requests += 1;
        let reason = if self.is_closed() {
            Some(Reason::Closed)
        } else if !(1..=QUANTITY_MAX).contains(&order.quantity) {
            Some(Reason::Quantity)
        } else if !(1..=PRICE_MAX).contains(&order.price) {
            Some(Reason::Price)
        } else {
            None
        };
        let NewOrder { request, price, quantity, side } = *order;
        if let Some(reason) = reason {
            return said.say(&Sbe(Rejected { request, reason }));
        }
        said.say(&Sbe(Accepted { order: request, price, quantity, side }));
        let Self { book, positions, trades, .. } = self;
        book.take(request, side, price, quantity, |fill| {
            *trades += 1;
            let (buy_order, sell_order) =
                if side == Side::Buy { (request, fill.resting) } else { (fill.resting, request) };
            for (order, side) in [(buy_order, Side::Buy), (sell_order, Side::Sell)] {
                if let Some(position) = (entry_of(order) as usize).checked_sub(1).and_then(|at| positions.get_mut(at)) {
                    position.book(side, fill.price, fill.quantity);
                }
            }
            let (trade, price, quantity) = (*trades, fill.price, fill.quantity);
            said.say(&Sbe(Trade { trade, price, buy_order, sell_order, quantity }));
        });
    }

    fn cancel(&mut self, cancel: &CancelOrder, said: &mut Outcomes<'_, '_>) {
        self.requests += 1;
        let CancelOrder { request, order } = *cancel;
        if entry_of(request) != entry_of(order) {
            return said.say(&Sbe(Rejected { request, reason: Reason::NotYours }));
        }
        match self.book.cancel(order) {
            Some(quantity) => said.say(&Sbe(Cancelled { request, order, quantity })),
            None => said.say(&Sbe(Rejected { request, reason: Reason::NotResting })),
        }
    }

    fn finish(&mut self, entry: u64, said: &mut Outcomes<'_, '_>) {
        if self.is_closed() {
            return;
        }
        self.finished |= 1 << (entry - 1);
        if self.is_closed() {
            said.say(&Sbe(Closed {
                requests: self.requests,
                trades: self.trades,
                resting_quantity: self.book.quantity(),
                book_fingerprint: self.book.fingerprint(),
            }));
        }
    }
}

fn check(request: u64) -> Result<(), Reject> {
    if (1..=ENTRIES).contains(&entry_of(request)) {
        return Ok(());
    }
    Err(Reject::from(format!("request {request:#x} is from no entry node")))
}

impl Service for Market {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on::<Sbe<NewOrder>>(|market, order, context| {
            check(order.request)?;
            let mut said = Outcomes { context, failed: Ok(()) };
            market.order(&order, &mut said);
            said.failed
        });
        handlers.on::<Sbe<CancelOrder>>(|market, cancel, context| {
            check(cancel.request)?;
            let mut said = Outcomes { context, failed: Ok(()) };
            market.cancel(&cancel, &mut said);
            said.failed
        });
        handlers.on::<Sbe<Finished>>(|market, finished, context| {
            check(finished.last_request)?;
            let mut said = Outcomes { context, failed: Ok(()) };
            market.finish(entry_of(finished.last_request), &mut said);
            said.failed
        });
    }

    /// Numbers of 64 bits: requests, trades, finished nodes; shares and cash of each entry node; side, price, id and
    /// quantity of each order.
    fn snapshot(&self, state: &mut Vec<u8>) {
        let mut write =
            |numbers: &[u64]| numbers.iter().for_each(|number| state.extend_from_slice(&number.to_le_bytes()));
        write(&[self.requests, self.trades, self.finished]);
        for position in self.positions {
            write(&[position.shares as u64, position.cash as u64]);
        }
        for (side, price, resting) in self.book.orders() {
            write(&[side.raw().into(), price as u64, resting.order, resting.quantity.into()]);
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (numbers, rest) = state.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(format!("{} bytes are no whole number of numbers", state.len()));
        }
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut next = || numbers.next().ok_or("the snapshot is too short");
        *self = Self { requests: next()?, trades: next()?, finished: next()?, ..Self::default() };
        for position in &mut self.positions {
            *position = Position { shares: next()? as i64, cash: next()? as i64 };
        }
        while let Ok(side) = next() {
            let side = Side::from_raw(u8::try_from(side).map_err(|_| "a side is a letter")?);
            let price = next()? as i64;
            let (order, quantity) = (next()?, u32::try_from(next()?).map_err(|_| "a quantity is too large")?);
            self.book.put_back(side, price, Resting { order, quantity });
        }
        Ok(())
    }
}
