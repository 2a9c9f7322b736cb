use crate::Failure;
use crate::lifeline::Lifeline;
use crate::matching::Position;
use crate::messages::{Finished, NewOrder, Said, Side, Trade, entry_of, money, number_of, request};
use crate::options::Options;
use crate::orders::{Orders, Request};
use crate::{report, stream_file};
use gapless::prelude::*;
use std::path::Path;
use std::time::Instant;

const WINDOW: u64 = 256;
const LINE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// 0 for a cancel, and after a refusal.
    quantity: u32,
    filled: u32,
    cancelled: u32,
    outcomes: u32,
    side: Option<Side>,
}

struct Accounts {
    entry: u64,
    /// Request 1 first.
    requests: Vec<Account>,
    answered: u64,
    position: Position,
    is_closed: bool,
}

impl Accounts {
    fn sent(&mut self, order: Option<&NewOrder>) {
        let quantity = order.map_or(0, |order| order.quantity);
        self.requests.push(Account { quantity, side: order.map(|order| order.side), ..Account::default() });
    }

    fn of(&mut self, request: u64) -> Option<&mut Account> {
        if entry_of(request) != self.entry {
            return None;
        }
        let at = usize::try_from(number_of(request).checked_sub(1)?).ok()?;
        self.requests.get_mut(at)
    }

    fn outcome(&mut self, request: u64) -> Option<&mut Account> {
        let account = self.of(request)?;
        account.outcomes += 1;
        let is_first = account.outcomes == 1;
        self.answered += u64::from(is_first);
        self.of(request)
    }

    fn hear(&mut self, said: &Said) {
        match said {
            Said::Accepted(accepted) => drop(self.outcome(accepted.order).is_some()),
            Said::Rejected { request, .. } => {
                if let Some(account) = self.outcome(*request) {
                    account.quantity = 0;
                }
            }
            Said::Cancelled(cancelled) => {
                self.outcome(cancelled.request);
                if let Some(account) = self.of(cancelled.order) {
                    account.cancelled += cancelled.quantity;
                }
            }
            Said::Trade(trade) => self.trade(trade),
            Said::Closed(_) => self.is_closed = true,
        }
    }

    fn trade(&mut self, trade: &Trade) {
        for (order, side) in [(trade.buy_order, Side::Buy), (trade.sell_order, Side::Sell)] {
            if let Some(account) = self.of(order).filter(|account| account.side == Some(side)) {
                account.filled += trade.quantity;
                self.position.book(side, trade.price, trade.quantity);
            }
        }
    }

    fn line(&self) -> String {
        let (sent, without) = (self.requests.len(), self.requests.len() as u64 - self.answered);
        let Position { shares, cash } = self.position;
        format!("sent {sent:>8}  without outcome {without:>3}  shares {shares:>7}  cash {:>14}", money(cash))
    }

    fn report(&self) {
        let sum = |of: fn(&Account) -> u64| -> i128 { self.requests.iter().map(of).sum::<u64>().into() };
        let is_too_much = |account: &Account| account.filled + account.cancelled > account.quantity;
        report::say(
            "result",
            &[
                ("requests", self.requests.len() as i128),
                ("outcome_once", sum(|account| u64::from(account.outcomes == 1))),
                ("accepted", sum(|account| account.quantity.into())),
                ("filled", sum(|account| account.filled.into())),
                ("cancelled", sum(|account| account.cancelled.into())),
                ("filled_too_much", self.requests.iter().filter(|account| is_too_much(account)).count() as i128),
                ("shares", self.position.shares.into()),
                ("cash", self.position.cash.into()),
            ],
        );
    }
}

struct Pace {
    begun: Instant,
    options: Options,
}

impl Pace {
    fn is_over(&self, sent: u64) -> bool {
        match self.options.seconds {
            Some(seconds) => self.begun.elapsed() >= Duration::from_secs(seconds),
            None => sent >= self.options.orders,
        }
    }

    fn is_due(&self, sent: u64) -> bool {
        let rate = self.options.orders_per_second;
        rate == 0 || self.begun.elapsed().as_secs_f64() * rate as f64 >= sent as f64
    }
}

pub fn run(options: &Options, place: &Path, entry: u64, lifeline: &Lifeline) -> Result<(), Failure> {
    let config = stream_file::load(place)?;
    let mut node = StreamNode::new(config.link()?, config.node_options(None));
    let mut orders = Orders::new(options.seed, entry);
    let mut accounts =
        Accounts { entry, requests: Vec::new(), answered: 0, position: Position::default(), is_closed: false };
    let is_begun = |node: &StreamNode<AnyLink>| node.can_publish() || lifeline.is_cut();
    node.poll_until(Duration::from_secs(60), "a session open", is_begun, |_| {})?;
    let pace = Pace { begun: Instant::now(), options: options.clone() };
    let mut line_due = pace.begun;
    let mut has_finished = false;
    while !accounts.is_closed && !lifeline.is_cut() {
        loop {
            let sent = accounts.requests.len() as u64;
            let is_room = node.can_publish() && sent - accounts.answered < WINDOW;
            if !is_room || pace.is_over(sent) || !pace.is_due(sent) {
                break;
            }
            match orders.next() {
                Some(Request::Order(order)) => {
                    accounts.sent(Some(&order));
                    node.publish_message(&order)?;
                }
                Some(Request::Cancel(cancel)) => {
                    accounts.sent(None);
                    node.publish_message(&cancel)?;
                }
                None => break,
            }
        }
        let requests = accounts.requests.len() as u64;
        if !has_finished && pace.is_over(requests) && accounts.answered == requests && node.can_publish() {
            node.publish_message(&Finished { last_request: request(entry, requests) })?;
            has_finished = true;
        }
        let count = node.poll(256, |event| {
            if let NodeEvent::Message(message) = event
                && let Ok(said) = message.read()
            {
                accounts.hear(&said);
            }
        })?;
        if count == 0 {
            node.wait(Duration::from_millis(1))?;
        }
        if line_due.elapsed() >= LINE_INTERVAL {
            line_due = Instant::now();
            println!("{}", accounts.line());
        }
    }
    if accounts.is_closed {
        println!("{}", accounts.line());
        accounts.report();
    }
    Ok(())
}
