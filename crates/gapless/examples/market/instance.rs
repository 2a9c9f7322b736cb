//! An instance of the matching service as a process. All instances publish under one name, so that their common output
//! is in the stream once.

use crate::Failure;
use crate::fingerprint::Fingerprint;
use crate::lifeline::Lifeline;
use crate::matching::Market;
use crate::{report, stream_file};
use gapless::prelude::*;
use std::path::Path;
use std::time::Instant;

const TOKEN: u128 = 0x6d61_726b_6574;
const LINE_INTERVAL: Duration = Duration::from_secs(1);

type MarketInstance = StreamService<Market, AnyLink>;

pub fn run(place: &Path, number: u64, lifeline: &Lifeline) -> Result<(), Failure> {
    let mut options = StreamServiceOptions::new(TOKEN);
    options.directory = Some(place.join(format!("matching-{number}")));
    options.snapshot_interval_frames = Some(10_000);
    let mut instance = StreamService::new(Market::default(), stream_file::load(place)?.link()?, options)?;
    match instance.snapshot_sequence() {
        0 => println!("from the stream's beginning"),
        sequence => println!("from its snapshot at sequence {sequence}"),
    }
    let mut line_due = Instant::now();
    while !(instance.service().is_closed() && instance.node().in_flight() == 0) {
        if lifeline.is_cut() {
            return Ok(());
        }
        if instance.poll(256)? == 0 {
            instance.wait(Duration::from_millis(5))?;
        }
        if line_due.elapsed() >= LINE_INTERVAL {
            line_due = Instant::now();
            println!("{}", line(&instance));
        }
    }
    println!("{}", line(&instance));
    tell(&instance);
    Ok(instance.stop()?)
}

fn line(instance: &MarketInstance) -> String {
    let Market { book, requests, trades, .. } = instance.service();
    let (sequence, fingerprint) = (instance.last_sequence(), book.fingerprint());
    format!(
        "at {sequence:>8}  requests {requests:>8}  trades {trades:>8}  resting {:>6}  book {fingerprint:016x}",
        book.len()
    )
}

fn tell(instance: &MarketInstance) {
    let market = instance.service();
    let mut state = Vec::new();
    market.snapshot(&mut state);
    let mut whole = Fingerprint::default();
    state.iter().for_each(|byte| whole.add((*byte).into()));
    let mut facts = vec![
        ("requests", market.requests.into()),
        ("trades", market.trades.into()),
        ("resting", market.book.quantity().into()),
        ("book", market.book.fingerprint().into()),
        ("state", whole.value().into()),
        ("refused", instance.dead_letter_count().into()),
    ];
    for (at, position) in market.positions.iter().enumerate() {
        let (shares, cash) = [("shares_1", "cash_1"), ("shares_2", "cash_2"), ("shares_3", "cash_3")][at];
        facts.extend([(shares, position.shares.into()), (cash, position.cash.into())]);
    }
    report::say("result", &facts);
}
