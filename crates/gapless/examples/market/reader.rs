use crate::Failure;
use crate::depth::Depth;
use crate::lifeline::Lifeline;
use crate::messages::{Closed, Said, money};
use crate::{report, stream_file};
use gapless::prelude::*;
use std::path::Path;
use std::time::Instant;

const LINE_INTERVAL: Duration = Duration::from_millis(500);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);

pub fn run(place: &Path, lifeline: &Lifeline) -> Result<(), Failure> {
    let config = stream_file::load(place)?;
    let mut node = StreamNode::new(config.link()?, config.reading_options());
    let mut depth = Depth::default();
    let mut closed: Option<Closed> = None;
    let (mut line_due, mut progress_due) = (Instant::now(), Instant::now());
    while closed.is_none() && !lifeline.is_cut() {
        let count = node.poll(256, |event| {
            let NodeEvent::Message(message) = event else { return };
            match message.read() {
                Ok(Said::Closed(all)) => depth.contradictions += u64::from(closed.replace(all).is_some()),
                Ok(said) => depth.take(&said),
                // A request.
                Err(_) => {}
            }
        })?;
        if count == 0 {
            node.wait(Duration::from_millis(5))?;
        }
        if progress_due.elapsed() >= PROGRESS_INTERVAL {
            progress_due = Instant::now();
            report::say("progress", &[("outcomes", depth.outcomes.into())]);
        }
        if line_due.elapsed() >= LINE_INTERVAL {
            line_due = Instant::now();
            println!("{}", line(&depth));
        }
    }
    let Some(closed) = closed else { return Ok(()) };
    println!("{}", line(&depth));
    let facts = [
        ("outcomes", depth.outcomes),
        ("contradictions", depth.contradictions),
        ("trades", depth.trades),
        ("traded", depth.traded_quantity),
        ("resting", depth.quantity()),
        ("book", depth.fingerprint()),
        ("closed_requests", closed.requests),
        ("closed_trades", closed.trades),
        ("closed_resting", closed.resting_quantity),
        ("closed_book", closed.book_fingerprint),
    ];
    report::say("result", &facts.map(|(name, number)| (name, number.into())));
    Ok(())
}

fn line(depth: &Depth) -> String {
    let level = |level: Option<(i64, u64)>| match level {
        Some((price, quantity)) => format!("{:>7} x {quantity:<5}", money(price)),
        None => format!("{:>7}   {:<5}", "none", ""),
    };
    let [bid, ask] = depth.best().map(level);
    let last =
        depth.last.map_or_else(|| "none".to_owned(), |(price, quantity)| format!("{} x {quantity}", money(price)));
    format!("bid {bid}  ask {ask}  last {last:<13}  trades {:>8}", depth.trades)
}
