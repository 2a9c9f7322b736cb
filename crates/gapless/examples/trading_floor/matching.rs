//! An instance of the matching service. All instances publish under one name, so that their common output is in the
//! stream once, whichever of them lives.

use super::messages::{Filled, Order};
use super::{Failure, STREAM_FILE};
use gapless::prelude::*;
use gapless::state::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

const TOKEN: u128 = 0x6d61_7463_6869_6e67;
const LINE_INTERVAL: Duration = Duration::from_secs(5);

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
}

pub fn run(number: u64, is_over: impl Fn() -> bool) -> Result<(), Failure> {
    let mut options = StreamServiceOptions::new(TOKEN);
    options.directory = Some(format!("matching-{number}").into());
    options.snapshot_interval_frames = Some(10_000);
    let mut copy = StreamService::new(Matching::default(), StreamConfig::load(STREAM_FILE)?.link()?, options)?;
    println!("matches from sequence {} on", copy.snapshot_sequence());
    let mut line_due = Instant::now();
    while !is_over() {
        if copy.poll(256)? == 0 {
            copy.wait(Duration::from_millis(5))?;
        }
        if line_due.elapsed() >= LINE_INTERVAL {
            line_due = Instant::now();
            let Matching { orders, quantity } = copy.service();
            println!(
                "{} orders, quantity {quantity}, at sequence {}",
                orders.values().sum::<u64>(),
                copy.last_sequence()
            );
        }
    }
    Ok(copy.stop()?)
}
