//! An instance of the matching service as a process. All instances publish under one name, so that their common output
//! is in the stream once.

use crate::Failure;
use crate::lifeline::Lifeline;
use crate::matching::Market;
use crate::messages::{AskStanding, Standing};
use crate::{report, stream_file};
use gapless::prelude::*;
use std::path::Path;
use std::time::Instant;

const TOKEN: u128 = 0x6d61_726b_6574;
const LINE_INTERVAL: Duration = Duration::from_secs(1);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

pub fn run(place: &Path, number: u64, lifeline: &Lifeline) -> Result<(), Failure> {
    let host = Host::on_stream(place.join(stream_file::NAME)).token(TOKEN).snapshot_every(10_000);
    let host = host.directory(place.join(format!("matching-{number}"))).service(Market::default()).start()?;
    match host.status().recovered.snapshot_sequence {
        0 => println!("from the stream's beginning"),
        sequence => println!("from its snapshot at sequence {sequence}"),
    }
    let mut line_due = Instant::now();
    let standing = loop {
        let standing = host.query(&AskStanding)?;
        if line_due.elapsed() >= LINE_INTERVAL || standing.is_closed {
            line_due = Instant::now();
            let Standing { requests, trades, orders, book, .. } = standing;
            let sequence = host.status().handled;
            println!(
                "at {sequence:>8}  requests {requests:>8}  trades {trades:>8}  resting {orders:>6}  book {book:016x}"
            );
        }
        if lifeline.is_cut() {
            return Ok(());
        }
        if standing.is_closed {
            break standing;
        }
        std::thread::sleep(LOOK_INTERVAL);
    };
    host.stop()?;
    let Standing { requests, trades, resting, book, state, .. } = standing;
    let mut facts = vec![("requests", requests.into()), ("trades", trades.into()), ("resting", resting.into())];
    facts.extend([("book", book.into()), ("state", state.into()), ("refused", host.status().dead_letters.into())]);
    for (at, (shares, cash)) in standing.positions.into_iter().enumerate() {
        let names = [("shares_1", "cash_1"), ("shares_2", "cash_2"), ("shares_3", "cash_3")][at];
        facts.extend([(names.0, shares.into()), (names.1, cash.into())]);
    }
    report::say("result", &facts);
    Ok(())
}
