#![allow(clippy::unwrap_used, reason = "a test says where it failed")]
#![allow(dead_code, reason = "the example's modules are whole, and a part of them is looked at")]

#[path = "../../examples/market/book.rs"]
mod book;
#[path = "../../examples/market/depth.rs"]
mod depth;
#[path = "../../examples/market/fingerprint.rs"]
mod fingerprint;
#[path = "../../examples/market/matching.rs"]
mod matching;
#[path = "../../examples/market/messages.rs"]
mod messages;
#[path = "../../examples/market/options.rs"]
mod options;
#[path = "../../examples/market/orders.rs"]
mod orders;
#[path = "../../examples/market/report.rs"]
mod report;

use book::{Book, Fill, Resting};
use depth::Depth;
use gapless::prelude::Service;
use matching::{Market, Position};
use messages::{Accepted, Cancelled, Said, Side, Trade, request};
use orders::{Orders, Request};
use report::{Facts, Results};

type Failure = Box<dyn std::error::Error>;

fn take(book: &mut Book, order: u64, side: Side, price: i64, quantity: u32) -> Vec<(u64, i64, u32)> {
    let mut fills = Vec::new();
    book.take(order, side, price, quantity, |Fill { resting, price, quantity }| fills.push((resting, price, quantity)));
    fills
}

#[test]
fn best_price_then_first_come() {
    let mut book = Book::default();
    for (order, price) in [(1, 102), (2, 101), (3, 101), (4, 103)] {
        assert_eq!(take(&mut book, order, Side::Sell, price, 10), []);
    }
    assert_eq!(take(&mut book, 5, Side::Buy, 100, 10), [], "no sell order is that low");
    assert_eq!(take(&mut book, 6, Side::Buy, 102, 25), [(2, 101, 10), (3, 101, 10), (1, 102, 5)]);
    assert_eq!(take(&mut book, 7, Side::Buy, 102, 8), [(1, 102, 5)], "what is left of it keeps its place");
    assert_eq!(take(&mut book, 8, Side::Sell, 100, 9), [(7, 102, 3), (5, 100, 6)], "sellers get the best, too");
    let left: Vec<_> =
        book.orders().map(|(side, price, resting)| (side, price, resting.order, resting.quantity)).collect();
    assert_eq!(left, [(Side::Buy, 100, 5, 4), (Side::Sell, 103, 4, 10)]);
    assert_eq!((book.cancel(5), book.cancel(5), book.cancel(1)), (Some(4), None, None));
    assert_eq!((book.len(), book.quantity()), (1, 10));
}

#[test]
fn reader_builds_the_same_book() {
    let (mut book, mut depth, mut trades, mut cancels) = (Book::default(), Depth::default(), 0, 0);
    let mut entries: Vec<_> = (1..=3).map(|entry| Orders::new(11, entry)).collect();
    for number in 0..30_000 {
        match entries[number % 3].next().unwrap() {
            Request::Order(order) if order.quantity > 0 && order.price > 0 => {
                let (name, side, price, quantity) = (order.request, order.side, order.price, order.quantity);
                depth.take(&Said::Accepted(Accepted { order: name, price, quantity, side }));
                for (resting, price, quantity) in take(&mut book, name, side, price, quantity) {
                    trades += 1;
                    let (buy_order, sell_order) = if side == Side::Buy { (name, resting) } else { (resting, name) };
                    depth.take(&Said::Trade(Trade { trade: trades, price, buy_order, sell_order, quantity }));
                }
            }
            Request::Order(_) => {}
            Request::Cancel(cancel) => {
                if let Some(quantity) = book.cancel(cancel.order) {
                    cancels += 1;
                    let (request, order) = (cancel.request, cancel.order);
                    depth.take(&Said::Cancelled(Cancelled { request, order, quantity }));
                }
            }
        }
        if number % 1_000 == 0 {
            assert_eq!((depth.fingerprint(), depth.quantity()), (book.fingerprint(), book.quantity()));
        }
    }
    assert_eq!((depth.fingerprint(), depth.contradictions), (book.fingerprint(), 0));
    assert!(trades > 5_000 && cancels > 1_000, "{trades} trades, {cancels} cancels");

    let again =
        Trade { trade: trades, price: 1, buy_order: request(1, 1), sell_order: request(9, 9), quantity: 1_000_000 };
    depth.take(&Said::Trade(again));
    assert_eq!(depth.contradictions, 3);
}

#[test]
fn market_equals_its_snapshot() {
    let mut market = Market { requests: 7, trades: 3, ..Market::default() };
    market.positions[1] = Position { shares: -5, cash: 12_345 };
    for (order, side, price) in [(1, Side::Buy, 99), (2, Side::Buy, 100), (3, Side::Buy, 100), (4, Side::Sell, 101)] {
        market.book.rest(side == Side::Buy, price, Resting { order, quantity: order as u32 });
    }
    let mut state = Vec::new();
    market.snapshot(&mut state);
    let mut again = Market::default();
    again.restore(&state).unwrap();
    assert_eq!(again, market);
    assert_eq!(again.book.fingerprint(), market.book.fingerprint());
    assert!(Market::default().restore(&state[..state.len() - 1]).is_err());
    assert!(Market::default().restore(&state[..state.len() - 8]).is_err());
}

fn facts(text: &str) -> Facts {
    Facts::hear(&format!("\u{2}result {text}")).unwrap().1
}

fn results() -> Results {
    let copy = "requests=4 trades=1 resting=3 book=9 state=8 refused=0 \
                shares_1=5 cash_1=-1000 shares_2=-5 cash_2=1000 shares_3=0 cash_3=0";
    let reader = "outcomes=4 contradictions=0 trades=1 traded=5 resting=3 book=9 closed_requests=4 closed_trades=1 \
                  closed_resting=3 closed_book=9";
    let entry = |requests: u8, accepted: u8, filled: u8, shares: i8, cash: i32| {
        format!(
            "requests={requests} outcome_once={requests} accepted={accepted} filled={filled} cancelled=0 \
             filled_too_much=0 shares={shares} cash={cash}"
        )
    };
    let entries = [entry(1, 8, 5, 5, -1000), entry(2, 5, 5, -5, 1000), entry(1, 0, 0, 0, 0)];
    let mut results = Results::default();
    for (number, entry) in (1..).zip(entries) {
        results.0.insert(format!("entry-{number}"), facts(&entry));
    }
    for name in ["matching-1", "matching-2"] {
        results.0.insert(name.to_owned(), facts(copy));
    }
    results.0.insert("reader".to_owned(), facts(reader));
    results
}

#[test]
fn contradictions_are_found() {
    assert!(results().are_complete());
    let wrong = |results: &Results| results.checks().iter().filter(|check| !check.is_right).count();
    assert_eq!(wrong(&results()), 0, "{:?}", results().checks());
    let names: Vec<String> = results().0.keys().cloned().collect();
    for name in names {
        let text = format!("{:?}", results().0[&name]);
        for fact in text.split('"').skip(1).step_by(2) {
            let mut changed = results();
            let number = changed.0[&name].get(fact).unwrap();
            changed.0.get_mut(&name).unwrap().set(fact, number + 1);
            assert!(wrong(&changed) > 0, "{fact} of {name} may be anything");
        }
        let mut missing = results();
        missing.0.remove(&name);
        assert!(wrong(&missing) > 0 && !missing.are_complete(), "{name} may be missing");
    }
}
