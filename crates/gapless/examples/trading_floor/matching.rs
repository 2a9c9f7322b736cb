//! An instance of the matching service. All instances publish under one name, so that their common output is in the
//! stream once, whichever of them lives.

use super::messages::{AskTotals, Filled, Order, Totals};
use super::{Failure, STREAM_FILE};
use gapless::prelude::*;
use gapless::state::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

const TOKEN: u128 = 0x6d61_7463_6869_6e67;
const LINE_INTERVAL: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Default, Serialize, Deserialize, State)]
struct Matching {
    /// Number of the last order of each entry.
    orders: BTreeMap<u64, u64>,
    quantity: u64,
}

#[gapless::service]
impl Matching {
    #[event]
    fn order(&mut self, Order { entry, number, quantity }: Order, context: &mut Context<'_>) {
        let last = self.orders.entry(entry).or_default();
        assert_eq!(number, *last + 1, "entry {entry} has left out an order");
        *last = number;
        self.quantity += quantity;
        context.publish(&Filled { entry, number, quantity: self.quantity });
    }

    #[query]
    fn totals(&self, _: AskTotals) -> Totals {
        Totals { orders: self.orders.values().sum(), quantity: self.quantity }
    }
}

pub fn run(number: u64, is_over: impl Fn() -> bool) -> Result<(), Failure> {
    let host = Host::on_stream(STREAM_FILE).token(TOKEN).directory(format!("matching-{number}")).snapshot_every(10_000);
    let host = host.service(Matching::default()).start()?;
    println!("matches from sequence {} on", host.status().recovered.snapshot_sequence);
    let mut line_due = Instant::now();
    while !is_over() {
        if line_due.elapsed() >= LINE_INTERVAL {
            line_due = Instant::now();
            let Totals { orders, quantity } = host.query(&AskTotals)?;
            println!("{orders} orders, quantity {quantity}, at sequence {}", host.status().handled);
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    host.stop()?;
    Ok(())
}
