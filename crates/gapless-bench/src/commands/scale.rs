//! Many aggregates: a stream is filled and its process killed; another one starts on it and reports time, memory, and
//! the cost of commands for aggregates that were idle for long.

use crate::commands::arguments::CommandsPlan;
use crate::commands::{NAME, rows, table};
use gapless_load::commands::case::{BusCase, BusDrive, BusTier};
use gapless_load::commands::scale::bus_process::{BusAssignment, BusRequest, RateReport, StartReport};
use gapless_measure::Result;
use gapless_measure::child_process::{Child, ChildRole};
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::reporting::{BenchRun, of_config, put};
use gapless_measure::{CpuPerMessage, LatencyNs, Row};
use std::path::Path;
use std::time::{Duration, Instant};

/// Percent of commands that are for any aggregate; the others are for few.
const SPREAD_PERCENT: [u64; 3] = [0, 1, 10];
const CREATIONS: u64 = 1_000_000;
/// Commands, each for an aggregate of its own.
const LONE: u64 = 2_000;
const AGGREGATES_MAX: usize = 10_000;
const QUICK_PART: u64 = 100;

pub(crate) fn steps(_: &CommandsPlan) -> usize {
    4 + SPREAD_PERCENT.len()
}

pub(crate) fn measure(plan: &CommandsPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let directory = OwnDirectory::create(&plan.directory, &format!(".gapless-commands-{}", std::process::id()))?;
    let assignment = BusAssignment {
        directory: directory.path().join("stream"),
        events_each: plan.scale_events / plan.scale_aggregates,
        aggregates: plan.scale_aggregates,
        aggregates_max: AGGREGATES_MAX,
        hot: plan.scale_hot.min(plan.scale_aggregates),
        in_flight: plan.in_flight,
        time: (plan.warm_up, plan.time),
    };
    let part = plan.extent.pick(QUICK_PART, 1, 1);
    let mut scale = ScaleMeasurement { plan, rows: Vec::new() };
    let measured = scale.run(run, &assignment, part);
    run.report.rows.extend(scale.rows);
    measured
}

struct ScaleMeasurement<'a> {
    plan: &'a CommandsPlan,
    rows: Vec<Row>,
}

impl ScaleMeasurement<'_> {
    fn run(&mut self, run: &mut BenchRun<'_>, assignment: &BusAssignment, part: u64) -> Result<()> {
        let events = assignment.events_each * assignment.aggregates;
        run.next(&format!("{events} events over {} aggregates", assignment.aggregates))?;
        let (mut bus, _) = start(assignment, BusRequest::Begin, run)?;
        let filled: RateReport = bus.ask(&BusRequest::Fill)?;
        self.add_rate("commands until the stream is full", &filled);
        self.show(run);
        bus.kill();
        drop(bus);
        run.next("restart")?;
        let (mut bus, since) = start(assignment, BusRequest::GoOn, run)?;
        let started: StartReport = bus.receive()?;
        self.add_restart(&started, since.elapsed(), &assignment.directory, events);
        self.show(run);
        run.next("commands of which each has an aggregate of its own")?;
        let (latency, rate): (Option<LatencyNs>, RateReport) = bus.ask(&BusRequest::Lone(LONE / part))?;
        let mut row = self.row("one after the other, each for any aggregate", &rate);
        (row.latency_ns, row.throughput_per_s) = (latency, None);
        self.rows.push(row);
        self.show(run);
        for percent in SPREAD_PERCENT {
            run.next(&format!("{percent} % of the commands for any aggregate"))?;
            let rate = bus.ask(&BusRequest::Spread(percent))?;
            self.add_rate(&format!("{percent} % for any aggregate"), &rate);
            self.show(run);
        }
        run.next("creations")?;
        let rate = bus.ask(&BusRequest::Create(CREATIONS / part))?;
        self.add_rate("creations beside all others", &rate);
        self.show(run);
        bus.send(&BusRequest::Stop)?;
        bus.finish().map(drop)
    }

    fn show(&self, run: &BenchRun<'_>) {
        if let Some(row) = self.rows.last() {
            run.line(&table::line(of_config(row, "what"), row));
        }
    }

    fn add_rate(&mut self, what: &str, rate: &RateReport) {
        let row = self.row(what, rate);
        self.rows.push(row);
    }

    fn row(&self, what: &str, rate: &RateReport) -> Row {
        let counted = rate.counted.max(1) as f64;
        let cpu = CpuPerMessage {
            driver: rate.driver_cpu_ns as f64 / counted,
            service: rate.process_cpu_ns.saturating_sub(rate.driver_cpu_ns) as f64 / counted,
        };
        let mut row = Row {
            throughput_per_s: Some((counted * 1e9 / rate.elapsed_ns.max(1) as f64).round()),
            sent: Some(rate.counted),
            elapsed_ns: Some(rate.elapsed_ns),
            cpu_ns_per_message: Some(cpu),
            peak_memory_bytes: rate.peak_memory_bytes,
            verified: Some(rate.wrong == 0),
            notes: rate.first_wrong.clone().into_iter().collect(),
            ..self.bare_row(what)
        };
        put(&mut row, "wrong", rate.wrong);
        row
    }

    fn bare_row(&self, what: &str) -> Row {
        let plan = self.plan;
        let case =
            BusCase { tier: BusTier::Journal, aggregates: plan.scale_aggregates, ..BusCase::base(BusDrive::Pipelined) };
        let mut config = rows::config(&case, "scale", plan.in_flight);
        config.count = Some(plan.scale_events);
        config.extra.insert("what".to_owned(), what.into());
        config.extra.insert("aggregates_max".to_owned(), AGGREGATES_MAX.into());
        config.extra.insert("hot_aggregates".to_owned(), plan.scale_hot.into());
        Row { config, ..Row::default() }
    }

    /// `elapsed`: from the start of the process to its first answer, which says that the last event is there.
    fn add_restart(&mut self, started: &StartReport, elapsed: Duration, stream: &Path, events: u64) {
        let mut row = Row {
            elapsed_ns: Some(elapsed.as_nanos() as u64),
            peak_memory_bytes: started.peak_memory_bytes,
            verified: Some(started.is_last_event_there),
            ..self.bare_row(RESTART)
        };
        put(&mut row, "stream_bytes", bytes_below(stream));
        put(&mut row, "index_bytes_per_event", bytes_below(&stream.join("index")) as f64 / events.max(1) as f64);
        if let Some(bytes) = started.anonymous_memory_bytes {
            put(&mut row, "anonymous_memory_bytes", bytes);
            put(&mut row, "memory_bytes_per_aggregate", bytes / self.plan.scale_aggregates.max(1));
        }
        self.rows.push(row);
    }
}

pub(crate) const RESTART: &str = "restart behind kill -9, to the first answer";

fn start<'a>(assignment: &BusAssignment, first: BusRequest, run: &BenchRun<'a>) -> Result<(Child<'a>, Instant)> {
    let since = Instant::now();
    let mut bus = Child::start(NAME, "the bus", (ChildRole::CommandsBus, assignment), run.interrupted)?;
    bus.send(&first)?;
    Ok((bus, since))
}

fn bytes_below(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(of).sum()
}
