#![allow(clippy::unwrap_used, reason = "a test says where it failed")]
#![allow(dead_code, reason = "the example reads its messages from a node")]

#[path = "../../examples/market/audit.rs"]
mod audit;
#[path = "../../examples/market/book.rs"]
mod book;
#[path = "../../examples/market/depth.rs"]
mod depth;
#[path = "../../examples/market/matching.rs"]
mod matching;
#[path = "../../examples/market/messages.rs"]
mod messages;
#[path = "../../examples/market/orders.rs"]
mod orders;

use audit::Audit;
use book::{Book, fingerprint};
use depth::Depth;
use gapless::prelude::Service;
use matching::Market;
use messages::{Account, Order, Outcome, Position, Report, Request, RequestId, Side, Standing};
use orders::Orders;

const fn id(number: u64) -> RequestId {
    RequestId { entry: 1, number }
}

const fn order(number: u64, side: Side, price: i64, quantity: u32) -> Order {
    Order { id: id(number), side, price, quantity }
}

fn take(book: &mut Book, order: Order) -> Vec<(u64, i64, u32)> {
    let fills = book.take(order.id.number, order);
    fills.into_iter().map(|fill| (fill.id.number, fill.price, fill.quantity)).collect()
}

#[test]
fn best_price_then_first_come() {
    let mut book = Book::default();
    for (number, price) in [(1, 102), (2, 101), (3, 101), (4, 103)] {
        assert_eq!(take(&mut book, order(number, Side::Sell, price, 10)), []);
    }
    assert_eq!(take(&mut book, order(5, Side::Buy, 100, 10)), [], "no sell order is that low");
    assert_eq!(take(&mut book, order(6, Side::Buy, 102, 25)), [(2, 101, 10), (3, 101, 10), (1, 102, 5)]);
    assert_eq!(take(&mut book, order(7, Side::Buy, 102, 8)), [(1, 102, 5)], "what is left of it keeps its place");
    assert_eq!(take(&mut book, order(8, Side::Sell, 100, 9)), [(7, 102, 3), (5, 100, 6)], "sellers get the best, too");
    let mut left = Book::default();
    left.rest(4, order(4, Side::Sell, 103, 10));
    left.rest(5, order(5, Side::Buy, 100, 4));
    assert_eq!(book, left);
    assert_eq!((book.cancel(id(5)), book.cancel(id(5)), book.cancel(id(1))), (Some(4), None, None));
    assert_eq!(book.cancel(id(4)), Some(10));
    assert_eq!(book, Book::default());
}

#[test]
fn reader_builds_the_same_book() {
    let (mut book, mut depth, mut trades, mut cancels) = (Book::default(), Depth::default(), 0, 0);
    let mut entries: Vec<_> = (1..=3).map(|entry| Orders::new(11, entry)).collect();
    for number in 1..=30_000 {
        let request = entries[number % 3].next_request();
        depth.request(request);
        match request {
            Request::Order(order) if order.quantity == 0 => depth.report(&Report::Outcome(order.id, Outcome::Rejected)),
            Request::Order(order) => {
                depth.report(&Report::Outcome(order.id, Outcome::Accepted));
                for Order { id, price, quantity, .. } in book.take(number as u64, order) {
                    trades += 1;
                    let (buy_order, sell_order) = if order.side == Side::Buy { (order.id, id) } else { (id, order.id) };
                    depth.report(&Report::Trade { number: trades, price, quantity, buy_order, sell_order });
                }
            }
            Request::Cancel { id, order } => {
                let cancelled = book.cancel(order);
                cancels += u64::from(cancelled.is_some());
                let outcome = cancelled.map_or(Outcome::Rejected, Outcome::Cancelled);
                depth.report(&Report::Outcome(id, outcome));
            }
            Request::Finish(_) => {}
        }
        if number % 1_000 == 0 {
            assert_eq!(depth.book(), book);
        }
    }
    assert_eq!((depth.outcomes, depth.contradictions), (30_000, 0));
    assert!(trades > 5_000 && cancels > 1_000, "{trades} trades, {cancels} cancels");

    depth.report(&Report::Outcome(id(1), Outcome::Accepted));
    assert_eq!(depth.contradictions, 1, "a second outcome");
    depth.report(&Report::Trade { number: trades, price: 1, quantity: 1_000_000, buy_order: id(1), sell_order: id(2) });
    assert_eq!(depth.contradictions, 4, "a number again, and two orders without that quantity");
}

#[test]
fn market_equals_its_snapshot() {
    let mut market = Market { requests: 7, trades: 3, ..Market::default() };
    market.positions.insert(2, Position { shares: -5, cents: 12_345 });
    for (number, side, price) in [(1, Side::Buy, 99), (2, Side::Buy, 100), (3, Side::Buy, 100), (4, Side::Sell, 101)] {
        market.book.rest(number, order(number, side, price, number as u32));
    }
    let mut state = Vec::new();
    market.snapshot(&mut state);
    let mut again = Market::default();
    again.restore(&state).unwrap();
    assert_eq!(again, market);
    assert_eq!(fingerprint(&again), fingerprint(&market));
    assert_ne!(fingerprint(&again), fingerprint(&Market::default()));
    assert!(Market::default().restore(&state[..state.len() - 1]).is_err());
    assert!(Market::default().restore(&state[..state.len() - 8]).is_err());
}

/// Entry node 1 has bought 5 at 200 of entry node 2; the third has an order that rests.
fn audit() -> Audit {
    let position = |shares: i64| Position { shares, cents: -200 * shares };
    let positions = [(1, position(5)), (2, position(-5)), (3, position(0))];
    let account = |(entry, position)| Account { entry, requests: 1, outcomes: 1, position };
    let mut depth = Depth::default();
    for (entry, side, price) in [(1, Side::Buy, 200), (2, Side::Sell, 200), (3, Side::Buy, 100)] {
        let id = RequestId { entry, number: 1 };
        depth.request(Request::Order(Order { id, side, price, quantity: 5 }));
        depth.report(&Report::Outcome(id, Outcome::Accepted));
    }
    let [buy_order, sell_order] = [1, 2].map(|entry| RequestId { entry, number: 1 });
    depth.report(&Report::Trade { number: 1, price: 200, quantity: 5, buy_order, sell_order });
    let book_fingerprint = fingerprint(&depth.book());
    let standing =
        Standing { is_closed: true, trades: 1, positions: positions.into(), book_fingerprint, fingerprint: 8 };
    let accounts = positions.map(account).to_vec();
    Audit { depth, accounts, standings: vec![standing.clone(), standing], meanwhile: Some(1) }
}

fn wrong(audit: &Audit) -> Vec<String> {
    let mut wrong = Vec::new();
    audit.check_all(|what, _, is_right| wrong.extend((!is_right).then(|| what.to_owned())));
    wrong
}

#[test]
fn wrong_figures_are_found() {
    assert!(audit().is_complete());
    assert_eq!(wrong(&audit()), [""; 0]);
    let change_account: [fn(&mut Account); 5] = [
        |account| account.entry += 1,
        |account| account.requests += 1,
        |account| account.outcomes += 1,
        |account| account.position.shares += 1,
        |account| account.position.cents += 1,
    ];
    for (number, change) in change_account.iter().enumerate() {
        for entry in 0..3 {
            let mut changed = audit();
            change(&mut changed.accounts[entry]);
            assert!(!wrong(&changed).is_empty(), "figure {number} of account {entry} may be anything");
        }
    }
    let change_standing: [fn(&mut Standing); 4] = [
        |standing| standing.trades += 1,
        |standing| standing.positions.get_mut(&3).unwrap().shares += 1,
        |standing| standing.book_fingerprint += 1,
        |standing| standing.fingerprint += 1,
    ];
    for (number, change) in change_standing.iter().enumerate() {
        for instances in [0..1, 1..2, 0..2] {
            let mut changed = audit();
            let is_state_of_both = number == 3 && instances.len() == 2;
            changed.standings[instances].iter_mut().for_each(change);
            assert_eq!(wrong(&changed).is_empty(), is_state_of_both, "figure {number} of a standing may be anything");
        }
    }
    let change_rest: [fn(&mut Audit); 9] = [
        |audit| audit.depth.outcomes += 1,
        |audit| audit.depth.trades += 1,
        |audit| audit.depth.contradictions += 1,
        |audit| audit.depth.report(&Report::Outcome(id(1), Outcome::Rejected)),
        |audit| audit.meanwhile = Some(0),
        |audit| _ = audit.accounts.pop(),
        |audit| audit.standings.iter_mut().for_each(|standing| _ = standing.positions.pop_last()),
        |audit| audit.accounts.iter_mut().for_each(|account| account.position.buy(1, 200)),
        |audit| audit.accounts[0].position = audit.accounts[1].position,
    ];
    for (number, change) in change_rest.iter().enumerate() {
        let mut changed = audit();
        change(&mut changed);
        assert!(!wrong(&changed).is_empty(), "change {number} is not found");
    }
    let mut missing = audit();
    missing.standings.pop();
    assert!(!missing.is_complete());
}
