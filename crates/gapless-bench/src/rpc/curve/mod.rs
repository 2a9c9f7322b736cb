//! `gapless bench rpc curve`: a call increments each byte of its payload; calls a second, latency and CPU time of every
//! process, against the size; and one-way messages, as their receiver counts them.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options |
//! | `earlier` | the results of an earlier run next to these |
//! | `plot` | the two pictures |
//! | `table` | text of the report |
//! | `rows` | the rows of the report, and the keys that tell them apart |
//!
//! Every server is a process, and serves only while it is measured.

mod arguments;
mod earlier;
mod plot;
mod rows;
mod table;

pub use arguments::CurveArguments;

use super::rpc_under_test::{RpcUnderTest, has_two_cores};
use crate::Result;
use crate::floor::{FloorKind, FloorPlan, HEADER_BYTES};
use arguments::CurvePlan;
use gapless_load::rpc::subject::{RpcSystem, SystemBroker, WaitMode};
use gapless_measure::reporting::{BenchRun, ReportLayout, word};
use gapless_measure::table::in_words;
use gapless_measure::turns;
use gapless_measure::{FloorRow, Report, Row};
use rows::CallShape;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const IN_FLIGHT: usize = 64;
/// Calls in flight for each lone call: they take about as long.
const CALLS_PER_SAMPLE: u64 = 10;
/// Sockets hold a small part of them.
const MESSAGES_PER_SAMPLE: u64 = 20;
const CONNECTED_BYTES: usize = 256;

/// Measures; returns the text to print.
///
/// # Errors
/// A system that does not come up, a process that ends too early, an earlier run that cannot be read, a report or a
/// picture that cannot be written.
pub fn run(arguments: &CurveArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = arguments.plan()?;
    let earlier = arguments.compare.as_deref().map(earlier::read).transpose()?;
    let shown = ReportLayout {
        benchmark: "rpc curve",
        steps: steps(&plan),
        notes: notes(&plan),
        text: table::text,
        draw: plot::write,
    };
    let measure = |run: &mut BenchRun<'_>| {
        let measured = measure(&plan, run);
        if let Some(earlier) = &earlier {
            earlier::compare(&mut run.report, earlier);
        }
        measured
    };
    Ok(BenchRun::of(shown, &arguments.output, interrupted, measure)?.1)
}

pub(crate) fn points(arguments: &CurveArguments, run: &mut BenchRun<'_>) -> Result<()> {
    measure(&CurvePlan { connected: Vec::new(), ..arguments.plan()? }, run)
}

fn steps(plan: &CurvePlan) -> usize {
    let ways = |system: &RpcSystem| if *system == RpcSystem::Rabbitmq { 2 } else { 1 };
    let stands = plan.systems.iter().map(ways).sum::<usize>() * plan.waiting.len();
    plan.systems.len() + (plan.sizes.len() + plan.connected.len()) * stands * plan.turns as usize
}

fn measure(plan: &CurvePlan, run: &mut BenchRun<'_>) -> Result<()> {
    let interrupted = run.interrupted;
    let mut brokers = Vec::new();
    for &system in &plan.systems {
        run.next(&format!("start {system:?}"))?;
        match SystemBroker::start(system, interrupted)? {
            Ok(broker) => brokers.push(broker),
            Err(reason) => run.add(rows::missing(system, &reason), &table::COLUMNS),
        }
    }
    let mut stands = Vec::new();
    for broker in &brokers {
        for endpoint in broker.endpoints() {
            for &waiting in &plan.waiting {
                stands.push(RpcUnderTest::start(endpoint.clone(), waiting, broker, interrupted)?);
            }
        }
    }
    let label =
        |stand: &RpcUnderTest<'_>, what: &str| format!("{what}, {}, {}", stand.endpoint.system(), word(stand.waiting));
    for &size in &plan.sizes {
        turns::measure(plan.turns as usize, run, |run, turn| {
            let floors = SizeFloors::measure(&mut run.report, plan, size);
            turn.floors.extend_from_slice(&floors.0);
            for stand in &mut stands {
                run.next(&label(stand, &format!("{size} B")))?;
                let rows = stand.serve(|stand| one_size(stand, plan, size, &floors))?;
                rows.iter().for_each(|row| run.line(&in_words(&table::COLUMNS, row)));
                turn.rows.extend(rows);
            }
            Ok(())
        })?;
    }
    for &connected in &plan.connected {
        turns::measure(plan.turns as usize, run, |run, turn| {
            for stand in &mut stands {
                run.next(&label(stand, &format!("{connected} callers")))?;
                let _idle = stand.hold_callers(connected - 1)?;
                let row = stand.serve(|stand| {
                    let (calls, cpu) = stand.calls(CONNECTED_BYTES, plan.samples, 1)?;
                    let figure = CallShape { size: CONNECTED_BYTES, in_flight: Some(1), connected };
                    Ok(figure.of_calls(stand, &calls, cpu))
                })?;
                run.line(&in_words(&table::COLUMNS, &row));
                turn.rows.push(row);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn one_size(stand: &mut RpcUnderTest<'_>, plan: &CurvePlan, size: usize, floors: &SizeFloors) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for in_flight in [1, IN_FLIGHT] {
        let count = if in_flight == 1 { plan.samples } else { plan.samples * CALLS_PER_SAMPLE };
        let (calls, cpu) = stand.calls(size, count, in_flight)?;
        let mut row = CallShape { size, in_flight: Some(in_flight), connected: 1 }.of_calls(stand, &calls, cpu);
        if in_flight == 1
            && let Some(floor) = floors.of_calls(stand.waiting)
        {
            row.compare_with(floor);
        }
        rows.push(row);
    }
    let one_way = stand.one_way(size, plan.samples * MESSAGES_PER_SAMPLE)?;
    let mut row = CallShape { size, in_flight: None, connected: 1 }.of_stream(stand, &one_way);
    if let Some(floor) = floors.of(FloorKind::ShmStream) {
        row.compare_with(floor);
    }
    rows.push(row);
    Ok(rows)
}

struct SizeFloors(Vec<FloorRow>);

impl SizeFloors {
    /// Unmeasured rows become notes of the report.
    fn measure(report: &mut Report, plan: &CurvePlan, size: usize) -> Self {
        let bytes = size as u64 + HEADER_BYTES;
        let mut items = vec![(FloorKind::ShmPingPong, bytes), (FloorKind::ShmStream, bytes)];
        if plan.waiting.contains(&WaitMode::Blocking) {
            items.push((FloorKind::FutexRoundTrip, 0));
        }
        let floors = FloorPlan { time_limit: plan.floor_time, ..FloorPlan::new(Path::new("."), items) };
        let measured = floors.measure();
        report.notes.extend(measured.skipped);
        Self(measured.rows)
    }

    fn of(&self, kind: FloorKind) -> Option<&FloorRow> {
        self.0.iter().find(|row| row.name == kind.name())
    }

    /// Two threads that spin, or two that wake each other.
    fn of_calls(&self, waiting: WaitMode) -> Option<&FloorRow> {
        self.of(match waiting {
            WaitMode::Spinning => FloorKind::ShmPingPong,
            WaitMode::Blocking => FloorKind::FutexRoundTrip,
        })
    }
}

fn notes(plan: &CurvePlan) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{} calls of each size one after the other, {} with {IN_FLIGHT} in flight, {} messages one way, each after a tenth \
             of it that warms up; requests are written before the clock runs, replies are checked after it has stopped",
            plan.samples,
            plan.samples * CALLS_PER_SAMPLE,
            plan.samples * MESSAGES_PER_SAMPLE
        ),
        "the original made 40,000 calls of a size, divided by the number of its step; here all sizes have equally many"
            .to_owned(),
        "gapless: default options, one worker; the request is copied into a vector of its own within the clock, as the \
         reply is; with many callers connected each has a domain of its own, all in one process. blocking looks some \
         200 times before it sleeps"
            .to_owned(),
        format!(
            "rabbitmq: a queue in memory, transient messages, direct reply-to; explicit: at most 256 without \
             acknowledgement, one for all that came together. nats: one inbox for all replies. All with TCP_NODELAY, \
             {IN_FLIGHT} calls in flight leave together where they can"
        ),
        "blocking: threads are not pinned, the floor is the futex round trip, which carries no payload; spinning: client \
         and server have a core each, their sockets are looked at and the CPU is given away again and again, the floor is \
         the shared memory ping-pong with 64 bytes more"
            .to_owned(),
        "one way: counted by the receiver, from the sending of the first message to the arrival of the last; what leaves is collected up to \
         32 KiB where there is a socket; the floor is the shared memory stream"
            .to_owned(),
    ];
    if plan.turns > 1 {
        notes.push(format!(
            "of {} turns each row is the one in the middle by its rate; its ratio to the floor is the one in the middle, too",
            plan.turns
        ));
    }
    if plan.waiting.contains(&WaitMode::Spinning) && !has_two_cores() {
        notes.push("spinning on one core: client and server take turns".to_owned());
    }
    notes
}

fn refused(text: impl Into<String>) -> crate::BenchError {
    crate::BenchError::Option(text.into())
}
