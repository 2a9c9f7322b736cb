//! The stream is an order entry's memory: after a restart it reads there which of its orders arrived.

use super::messages::{Filled, Order};
use super::{Failure, STREAM_FILE};
use gapless::prelude::*;
use std::time::Instant;

/// A process with the same name replaces the previous one.
const TOKEN: u128 = 0x0065_6e74_7279 << 64;
const ORDER_INTERVAL: Duration = Duration::from_millis(20);
const LINE_INTERVAL: Duration = Duration::from_secs(1);

pub fn run(entry: u64, is_over: impl Fn() -> bool) -> Result<(), Failure> {
    let config = StreamConfig::load(STREAM_FILE)?;
    let mut node = StreamNode::new(config.link()?, config.node_options(Some(TOKEN | u128::from(entry))));
    let (mut sent, mut filled, mut wrong) = (0, 0, None);
    let (mut is_live, mut has_begun) = (false, false);
    let (mut order_due, mut line_due) = (Instant::now(), Instant::now());
    while !is_over() {
        if is_live && node.can_publish() && node.in_flight() == 0 && order_due.elapsed() >= ORDER_INTERVAL {
            if !has_begun {
                println!("trades from order {} on", sent + 1);
                has_begun = true;
            }
            order_due = Instant::now();
            node.publish_message(&Order { entry, number: sent + 1, quantity: sent % 100 + 1 })?;
        }
        let count = node.poll(256, |event| match event {
            NodeEvent::State(state) => is_live = state == NodeState::Live,
            NodeEvent::Message(message) => {
                let (last, of, number) = match (message.read::<Order>(), message.read::<Filled>()) {
                    (Ok(order), _) => (&mut sent, order.entry, order.number),
                    (_, Ok(order)) => (&mut filled, order.entry, order.number),
                    _ => return,
                };
                if of != entry {
                    return;
                }
                if number != *last + 1 {
                    wrong = Some(format!("order {number} follows {last}"));
                }
                *last = number;
            }
            _ => {}
        })?;
        if let Some(wrong) = wrong {
            return Err(wrong.into());
        }
        if count == 0 {
            node.wait(Duration::from_millis(5))?;
        }
        if line_due.elapsed() >= LINE_INTERVAL {
            line_due = Instant::now();
            println!("{sent} orders in the stream, {filled} filled");
        }
    }
    Ok(())
}
