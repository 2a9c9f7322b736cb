//! The process of the bus: fills a stream, or resumes one after its process was killed.

use super::spread::{Spread, call_each};
use crate::commands::NAME;
use crate::commands::load::Loaded;
use crate::commands::messages::{Counter, Form, OfSbe};
use crate::commands::stand::Stand;
use gapless_cqrs::{Aggregate as _, CommandBus};
use gapless_measure::LatencyNs;
use gapless_measure::Result;
use gapless_measure::child_process::{Parent, WhenGone};
use gapless_measure::resources::memory;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    pub directory: PathBuf,
    /// Events of each aggregate once the stream is full.
    pub events_each: u64,
    pub aggregates: u64,
    pub aggregates_max: usize,
    /// Number of aggregates that get most commands.
    pub hot: u64,
    pub in_flight: usize,
    /// Duration of the warm-up and of the counted part.
    pub time: (Duration, Duration),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Start with an empty directory.
    Begin,
    /// Start with the existing stream, and answer [`Started`].
    GoOn,
    /// Create all aggregates and send commands until the stream is full. Answer: [`Rate`].
    Fill,
    /// Send that many commands one by one, each for a random aggregate. Answer: latencies and [`Rate`].
    Lone(u64),
    /// Send commands, that many percent of them for random aggregates. Answer: [`Rate`].
    Spread(u64),
    /// Create that many new aggregates. Answer: [`Rate`].
    Create(u64),
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    pub is_last_event_there: bool,
    pub peak_memory_bytes: Option<u64>,
    pub anonymous_memory_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rate {
    pub counted: u64,
    pub elapsed_ns: u64,
    pub driver_cpu_ns: u64,
    pub process_cpu_ns: u64,
    pub peak_memory_bytes: Option<u64>,
    pub wrong: u64,
    pub first_wrong: Option<String>,
}

impl From<Loaded> for Rate {
    fn from(loaded: Loaded) -> Self {
        Self {
            counted: loaded.counted,
            elapsed_ns: loaded.elapsed.as_nanos() as u64,
            driver_cpu_ns: loaded.driver_cpu_ns,
            process_cpu_ns: loaded.process_cpu_ns,
            peak_memory_bytes: memory().map(|memory| memory.peak_bytes),
            wrong: loaded.wrong,
            first_wrong: loaded.first_wrong,
        }
    }
}

type F = OfSbe;

/// Runs the process.
///
/// # Errors
/// A malformed assignment; a bus that does not start or stop; a benchmark that is gone.
pub fn main(assignment: &str) -> Result<()> {
    let assignment: Assignment = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, WhenGone::Exit)?;
    let first: Order = parent.receive()?.ok_or_else(|| parent.gone())?;
    let stand = Stand::in_directory::<F>(&assignment.directory, assignment.aggregates_max)?;
    let bus = stand.bus(assignment.in_flight)?;
    let Assignment { events_each, aggregates, hot, in_flight, time, .. } = assignment;
    let had = if matches!(first, Order::GoOn) { events_each } else { 0 };
    let mut spread = Spread::new(had, aggregates, hot, in_flight, time);
    if had > 0 {
        parent.send(&started(&mut spread, &bus))?;
    }
    while let Some(order) = parent.receive()? {
        match order {
            Order::Fill => parent.send(&Rate::from(spread.fill::<F>(&bus, events_each)?))?,
            Order::Lone(count) => {
                let (latency, loaded): (Option<LatencyNs>, Loaded) = call_each::<F>(&bus, &mut spread, count)?;
                parent.send(&(latency, Rate::from(loaded)))?;
            }
            Order::Spread(percent) => {
                parent.send(&Rate::from(spread.run::<F>(&bus, percent)?))?;
            }
            Order::Create(count) => parent.send(&Rate::from(spread.create::<F>(&bus, count)?))?,
            Order::Begin | Order::GoOn | Order::Stop => break,
        }
    }
    drop(bus);
    stand.stop()
}

/// Queries the aggregate of the last command, which gives it one more event.
fn started(spread: &mut Spread, bus: &CommandBus) -> Started {
    let (aggregate, version) = spread.last();
    let nothing = F::command(0, "");
    let outcome = bus.call(Counter::<F>::command(&aggregate, &nothing).expecting_version(version - 1));
    let memory = memory();
    Started {
        is_last_event_there: outcome.is_ok_and(|accepted| accepted.version == version),
        peak_memory_bytes: memory.map(|memory| memory.peak_bytes),
        anonymous_memory_bytes: memory.map(|memory| memory.anonymous_bytes),
    }
}
