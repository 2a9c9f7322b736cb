//! An instance of the matching service. All instances publish under one name, so that their common output is in the
//! stream once, whichever of them lives.

use super::messages::{FILLED, Numbers, ORDER};
use super::{Failure, STREAM_FILE};
use gapless::prelude::*;
use std::collections::BTreeMap;
use std::time::Instant;

const TOKEN: u128 = 0x6d61_7463_6869_6e67;
const LINE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Matching {
    orders: BTreeMap<u64, u64>,
    quantity: u64,
}

impl Service for Matching {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ORDER.schema, |matching, payload, context| {
            let order = Numbers::from_bytes(payload).ok_or("three numbers are expected")?;
            let last = matching.orders.entry(order.entry).or_default();
            if order.order != *last + 1 {
                return Err(format!("order {} of entry {} follows {last}", order.order, order.entry).into());
            }
            *last += 1;
            matching.quantity += order.quantity;
            let filled = Numbers { quantity: matching.quantity, ..order }.to_bytes();
            context.publish_bytes(FILLED.schema, FILLED.encoding, filled.len(), |buffer| {
                buffer[..filled.len()].copy_from_slice(&filled);
                Ok::<_, std::convert::Infallible>(filled.len())
            })
        });
        handlers.on_bytes(FILLED.schema, |_, _, _| Ok(()));
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.quantity.to_le_bytes());
        for (entry, order) in &self.orders {
            state.extend_from_slice(&entry.to_le_bytes());
            state.extend_from_slice(&order.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (numbers, []) = state.as_chunks::<8>() else { return Err("whole numbers are expected".to_owned()) };
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        self.quantity = numbers.next().ok_or("a quantity is expected")?;
        while let (Some(entry), Some(order)) = (numbers.next(), numbers.next()) {
            self.orders.insert(entry, order);
        }
        Ok(())
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
