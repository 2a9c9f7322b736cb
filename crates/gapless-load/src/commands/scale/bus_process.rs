//! The process of the bus: fills a stream, or resumes one after its process was killed.

use super::spread::{CommandSpread, call_each};
use crate::commands::NAME;
use crate::commands::bus_under_test::BusUnderTest;
use crate::commands::load::LoadResult;
use crate::commands::messages::{CommandForm, Counter, SbeForm};
use gapless_cqrs::{Aggregate as _, CommandBus};
use gapless_measure::LatencyNs;
use gapless_measure::Result;
use gapless_measure::child_process::{OrphanPolicy, Parent};
use gapless_measure::resources::memory;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BusAssignment {
    pub directory: PathBuf,
    pub events_each: u64,
    pub aggregates: u64,
    pub aggregates_max: usize,
    pub hot: u64,
    pub in_flight: usize,
    pub time: (Duration, Duration),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum BusRequest {
    /// Start with an empty directory.
    Begin,
    /// Start with the existing stream, and answer [`StartReport`].
    GoOn,
    /// Create all aggregates and fill the stream. Answer: [`RateReport`].
    Fill,
    /// Send single commands, each for a random aggregate. Answer: latencies and [`RateReport`].
    Lone(u64),
    /// Send commands, this percentage for random aggregates. Answer: [`RateReport`].
    Spread(u64),
    /// Create new aggregates. Answer: [`RateReport`].
    Create(u64),
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartReport {
    pub is_last_event_there: bool,
    pub peak_memory_bytes: Option<u64>,
    pub anonymous_memory_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RateReport {
    pub counted: u64,
    pub elapsed_ns: u64,
    pub driver_cpu_ns: u64,
    pub process_cpu_ns: u64,
    pub peak_memory_bytes: Option<u64>,
    pub wrong: u64,
    pub first_wrong: Option<String>,
}

impl From<LoadResult> for RateReport {
    fn from(loaded: LoadResult) -> Self {
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

type F = SbeForm;

pub fn main(assignment: &str) -> Result<()> {
    let assignment: BusAssignment = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
    let first: BusRequest = parent.receive()?.ok_or_else(|| parent.ended_error())?;
    let stand = BusUnderTest::in_directory::<F>(&assignment.directory, assignment.aggregates_max)?;
    let bus = stand.bus(assignment.in_flight)?;
    let BusAssignment { events_each, aggregates, hot, in_flight, time, .. } = assignment;
    let had = if matches!(first, BusRequest::GoOn) { events_each } else { 0 };
    let mut spread = CommandSpread::new(had, aggregates, hot, in_flight, time);
    if had > 0 {
        parent.send(&started(&mut spread, &bus))?;
    }
    while let Some(order) = parent.receive()? {
        match order {
            BusRequest::Fill => parent.send(&RateReport::from(spread.fill::<F>(&bus, events_each)?))?,
            BusRequest::Lone(count) => {
                let (latency, loaded): (Option<LatencyNs>, LoadResult) = call_each::<F>(&bus, &mut spread, count)?;
                parent.send(&(latency, RateReport::from(loaded)))?;
            }
            BusRequest::Spread(percent) => {
                parent.send(&RateReport::from(spread.run::<F>(&bus, percent)?))?;
            }
            BusRequest::Create(count) => parent.send(&RateReport::from(spread.create::<F>(&bus, count)?))?,
            BusRequest::Begin | BusRequest::GoOn | BusRequest::Stop => break,
        }
    }
    drop(bus);
    stand.stop()
}

/// Querying the last command's aggregate adds one event to it.
fn started(spread: &mut CommandSpread, bus: &CommandBus) -> StartReport {
    let (aggregate, version) = spread.last();
    let nothing = F::command(0, "");
    let outcome = bus.call(Counter::<F>::command(&aggregate, &nothing).expecting_version(version - 1));
    let memory = memory();
    StartReport {
        is_last_event_there: outcome.is_ok_and(|accepted| accepted.version == version),
        peak_memory_bytes: memory.map(|memory| memory.peak_bytes),
        anonymous_memory_bytes: memory.map(|memory| memory.anonymous_bytes),
    }
}
