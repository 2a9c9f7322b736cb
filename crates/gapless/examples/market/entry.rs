//! An order-entry node: publishes requests, and keeps an account of its own of what comes back.

use crate::messages::{Account, Position, Report, Request};
use crate::orders::Orders;
use crate::{Failure, Lifeline, Options, say, stream};
use gapless::prelude::*;
use std::time::Instant;

const REQUESTS_OPEN_MAX: u64 = 256;

impl Account {
    fn take(&mut self, report: &Report) {
        match *report {
            Report::Outcome(request, _) => self.outcomes += u64::from(request.entry == self.entry),
            Report::Trade { price, quantity, buy_order, sell_order, .. } => {
                for (order, shares) in [(buy_order, i64::from(quantity)), (sell_order, -i64::from(quantity))] {
                    if order.entry == self.entry {
                        self.position.buy(shares, price);
                    }
                }
            }
            Report::Close => {}
        }
    }
}

pub fn run(options: &Options, name: &str, entry: u64, lifeline: &Lifeline) -> Result<(), Failure> {
    let config = StreamConfig::load(stream::FILE)?;
    let mut node = StreamNode::new(config.link()?, config.node_options(None));
    let (begun, rate) = (Instant::now(), options.orders_per_second);
    let is_due = |sent: u64| rate == 0 || begun.elapsed().as_secs_f64() * rate as f64 >= sent as f64;
    let mut orders = Orders::new(options.seed, entry);
    let mut account = Account { entry, requests: 0, outcomes: 0, position: Position::default() };
    let (mut has_finished, mut is_closed) = (false, false);
    while !is_closed && !lifeline.is_finished() {
        while account.requests < options.orders
            && account.requests < account.outcomes + REQUESTS_OPEN_MAX
            && is_due(account.requests)
            && node.can_publish()
        {
            node.publish_message(&orders.next_request())?;
            account.requests += 1;
        }
        if account.outcomes >= options.orders && !has_finished && node.can_publish() {
            node.publish_message(&Request::Finish(entry))?;
            has_finished = true;
        }
        let count = node.poll(256, |event| {
            if let NodeEvent::Message(message) = event
                && let Ok(report) = message.read()
            {
                account.take(&report);
                is_closed |= report == Report::Close;
            }
        })?;
        if count == 0 {
            node.wait(Duration::from_millis(1))?;
        }
    }
    if is_closed {
        let Position { shares, cents } = account.position;
        say(name, format!("{} requests, {shares} shares, {cents} cents", account.requests));
        node.publish_message(&account)?;
    }
    Ok(node.finish(stream::TIMEOUT, |_| {})?)
}
