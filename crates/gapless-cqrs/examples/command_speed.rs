//! Commands a second through the bus, of one aggregate or many, by either drive: for profiling.
//!
//! Arguments: aggregates, commands in a turn, `direct` or `pipelined`, and a directory for a journal; without one, or with `-`, the stream is in
//! memory. Then commands in flight at most, 2,048 without.
#![allow(clippy::unwrap_used, reason = "a panic is as good as an error here")]

use gapless_cqrs::{
    Aggregate, BusOptions, CommandHost, CommandHostOptions, CommandModel, Creation, Decision, DirectBus, Headers,
    Message,
};
use gapless_engine::ServiceHostOptions;
use serde::{Deserialize, Serialize};
use std::time::Instant;

#[derive(Serialize, Deserialize, Message)]
struct Add(u64);

#[derive(Serialize, Deserialize, Message)]
struct Added(u64);

#[derive(Clone)]
struct Counter(u64);

impl Aggregate for Counter {
    const NAME: &'static str = "counter";
    type Id = u64;
    type Command = Add;
    type Event = Added;
    type Refusal = ();

    fn new(_: &u64) -> Self {
        Self(0)
    }
    fn creation(_: &Add) -> Creation {
        Creation::CreatesIfMissing
    }
    fn decide(&self, command: Add, decision: &mut Decision<'_, Added>) -> Result<(), ()> {
        decision.emit(Added(command.0));
        Ok(())
    }
    fn apply(&mut self, event: &Added) {
        self.0 += event.0;
    }
}

/// Where the stream is.
fn stream() -> ServiceHostOptions {
    let directory = std::env::args().nth(4).filter(|directory| directory != "-");
    directory.map_or_else(ServiceHostOptions::in_memory, ServiceHostOptions::in_directory)
}

/// Commands in flight at most.
fn in_flight() -> usize {
    std::env::args().nth(5).map_or(2048, |text| text.parse().unwrap())
}

fn main() {
    let aggregates: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    if std::env::args().nth(3).is_some_and(|drive| drive == "direct") {
        return direct(aggregates, count);
    }
    let model = CommandModel::new().aggregate::<Counter>();
    let host = CommandHost::start(model, CommandHostOptions::default(), stream()).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    let headers = Headers::default().with("user", "profile");
    let in_flight = in_flight();
    for turn in 0..5 {
        let begun = Instant::now();
        let mut pending = std::collections::VecDeque::new();
        for number in 0..count {
            pending.push_back(bus.send(Counter::command(&(number % aggregates), &Add(1)).with(&headers)));
            if pending.len() >= in_flight {
                for _ in 0..in_flight.div_ceil(2) {
                    pending.pop_front().unwrap().wait().unwrap();
                }
            }
        }
        for pending in pending {
            pending.wait().unwrap();
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!("turn {turn}: {:.0} commands/s", count as f64 / seconds);
    }
    host.stop().unwrap();
}

/// The same by the direct drive.
fn direct(aggregates: u64, count: u64) {
    let model = CommandModel::new().aggregate::<Counter>();
    let mut bus = DirectBus::start(model, CommandHostOptions::default(), stream(), &BusOptions::default()).unwrap();
    let headers = Headers::default().with("user", "profile");
    let in_flight = in_flight();
    let mut pending = std::collections::VecDeque::new();
    for turn in 0..5 {
        let begun = Instant::now();
        for number in 0..count {
            pending.push_back(bus.send(Counter::command(&(number % aggregates), &Add(1)).with(&headers)));
            if pending.len() >= in_flight {
                pending.drain(..in_flight.div_ceil(2)).for_each(|ticket| _ = bus.wait(ticket).unwrap());
            }
        }
        pending.drain(..).for_each(|ticket| _ = bus.wait(ticket).unwrap());
        let seconds = begun.elapsed().as_secs_f64();
        println!("turn {turn}: {:.0} commands/s", count as f64 / seconds);
    }
    bus.stop().unwrap();
}
