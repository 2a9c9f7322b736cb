//! `gapless bench rpc scenarios`: one process under load: parallel calls, more than memory takes, callbacks; and what a
//! lone call of another route notices of it.

mod arguments;
mod table;

pub use arguments::ScenariosArguments;

use crate::rpc::check_interrupted;
use arguments::ScenariosPlan;
use gapless_load::rpc::scenarios::load::{LoadKind, LoadShape, LoadTotals, ScenarioLoad};
use gapless_load::rpc::scenarios::probe;
use gapless_measure::Result;
use gapless_measure::affinity::pair_of_cores;
use gapless_measure::floor::FloorKind;
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::published::mercury::{FIFTY_TO_FIFTY_PER_S, ONE_TO_FIFTY_PER_S, OVERLOADED_PER_S, PROBE_NS};
use gapless_measure::reporting::{BenchRun, ReportLayout, compare, keys, measure_floors, put, put_rates};
use gapless_measure::resources::process_cpu_ns;
use gapless_measure::statistics::median;
use gapless_measure::{CpuPerMessage, Report, Row, RowConfig};
use gapless_rpc::Domain;
use gapless_rpc::overflow::ElasticQueueOptions;
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PAYLOAD_BYTES: u64 = 72;
/// Memory tier of the overloaded route: queued requests, and further bytes before they go to disk.
const OVERLOADED_QUEUE: usize = 256;
const OVERLOADED_MEMORY_BYTES: usize = 64 << 10;
/// Least share of the overloaded route's requests that must pass the disk.
const SPILLED_SHARE_MIN: f64 = 0.5;

struct LoadScenario {
    name: &'static str,
    shape: LoadShape,
    published_per_s: Option<u64>,
    target_per_s: Option<f64>,
}

const fn scenario(
    name: &'static str,
    (kind, callers, in_flight, workers): (LoadKind, usize, usize, usize),
    (published_per_s, target_per_s): (Option<u64>, Option<f64>),
) -> LoadScenario {
    let shape = LoadShape { kind, callers, in_flight, workers, queue_max: None };
    LoadScenario { name, shape, published_per_s, target_per_s }
}

const OVERLOADED: &str = "overloaded 100→50";

const SCENARIOS: [LoadScenario; 7] = [
    scenario("parallel 1→50", (LoadKind::Tasks, 1, 64, 50), (Some(ONE_TO_FIFTY_PER_S), Some(1e6))),
    scenario("parallel 50→50", (LoadKind::Tasks, 50, 1, 50), (Some(FIFTY_TO_FIFTY_PER_S), Some(1e6))),
    scenario("one by one 1→50", (LoadKind::Tasks, 1, 1, 50), (Some(ONE_TO_FIFTY_PER_S), None)),
    scenario("parallel 1→50", (LoadKind::Threads, 1, 64, 50), (Some(ONE_TO_FIFTY_PER_S), None)),
    scenario("parallel 50→50", (LoadKind::Threads, 50, 1, 50), (Some(FIFTY_TO_FIFTY_PER_S), None)),
    scenario(OVERLOADED, (LoadKind::Tasks, 100, 100, 50), (Some(OVERLOADED_PER_S), Some(3e5))),
    scenario("2,000 callbacks in flight", (LoadKind::Callbacks, 1, 2_000, 50), (None, None)),
];

const FLOOD: LoadShape = SCENARIOS[1].shape;

/// Measures; returns the text to print.
///
/// # Errors
/// A call of the probe that fails, a directory without room for the overflow, a report or a picture that cannot be written.
pub fn run(arguments: &ScenariosArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = arguments.plan()?;
    let shown = ReportLayout {
        benchmark: "rpc scenarios",
        steps: SCENARIOS.len() + 6 * plan.turns,
        notes: table::notes(&plan),
        text: table::text,
        draw: table::draw,
    };
    Ok(BenchRun::of(shown, &arguments.output, interrupted, |run| measure(&plan, run))?.1)
}

/// Measures the loads of tasks that others have published, for another benchmark.
pub(crate) fn published_loads(
    arguments: &ScenariosArguments,
    (turns, turn): (usize, Duration),
    run: &mut BenchRun<'_>,
) -> Result<()> {
    let plan = ScenariosPlan { turns, turn, ..arguments.plan()? };
    measure_floors(&mut run.report, &plan.directory, vec![(FloorKind::ShmStream, PAYLOAD_BYTES)], plan.floor_time);
    // The published figure for one caller is calls one at a time.
    let is_published = |scenario: &&LoadScenario| {
        scenario.shape.kind == LoadKind::Tasks && ["one by one 1→50", "parallel 50→50"].contains(&scenario.name)
    };
    SCENARIOS.iter().filter(is_published).try_for_each(|scenario| one_load(&plan, run, scenario))
}

fn measure(plan: &ScenariosPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let items =
        vec![(FloorKind::ShmStream, PAYLOAD_BYTES), (FloorKind::FutexRoundTrip, 0), (FloorKind::SequentialWrite, 0)];
    measure_floors(&mut run.report, &plan.directory, items, plan.floor_time);
    SCENARIOS.iter().try_for_each(|scenario| one_load(plan, run, scenario))?;
    let (first, second) = pair_of_cores().unzip();
    let one_core = first.map(|cpu| vec![cpu]);
    let names = ["probe, a core to itself", "probe, flood on the other core", "bare wake-ups, flood on the other core"];
    probed(plan, run, second, one_core.as_deref(), names)?;
    let names = ["probe", "probe, flood on all cores", "bare wake-ups, flood on all cores"];
    probed(plan, run, None, None, names)?;
    targets_of_probes(&mut run.report);
    Ok(())
}

fn one_load(plan: &ScenariosPlan, run: &mut BenchRun<'_>, scenario: &LoadScenario) -> Result<()> {
    run.next(scenario.name)?;
    let row = under_load(plan, run, scenario)?;
    run.add(row, &table::LOADS);
    Ok(())
}

fn under_load(plan: &ScenariosPlan, run: &BenchRun<'_>, scenario: &LoadScenario) -> Result<Row> {
    let domain = Domain::in_process("scenarios");
    let mut shape = scenario.shape;
    let overflow = (scenario.name == OVERLOADED).then(|| {
        shape.queue_max = Some(OVERLOADED_QUEUE);
        let mut overflow = ElasticQueueOptions::new("scenarios", &plan.directory);
        overflow.memory_bytes_max = OVERLOADED_MEMORY_BYTES;
        overflow
    });
    let load = ScenarioLoad::begin(&domain, shape, None, overflow)?;
    let (cpu_before_ns, calls_before) = (process_cpu_ns(), load.calls());
    let rates = load.rates(plan.turns, plan.turn, &|| check_interrupted(run.interrupted))?;
    let (cpu_ns, calls) = (process_cpu_ns() - cpu_before_ns, load.calls() - calls_before);
    let ended = load.end();
    let mut row = row_of(scenario.name, shape, ended.calls);
    let rate = median(&rates);
    row.cpu_ns_per_message = Some(CpuPerMessage { driver: cpu_ns as f64 / calls.max(1) as f64, service: 0.0 });
    row.verified = Some(ended.wrong == 0 && ended.failed == 0);
    row.lost = Some(ended.failed);
    put_rates(&mut row, &rates);
    put(&mut row, "wrong", ended.wrong);
    if let Some(counters) = ended.overflow {
        let share = counters.spilled_records as f64 / ended.calls.max(1) as f64;
        put(&mut row, "spilled", counters.spilled_records);
        put(&mut row, "spilled_bytes", counters.spilled_bytes);
        put(&mut row, "spilled_share", (share * 1000.0).round() / 1000.0);
        if share < SPILLED_SHARE_MIN {
            row.notes.push(format!("only {:.0} % of the requests passed the disk", share * 100.0));
        }
    }
    if let Some(published) = scenario.published_per_s {
        put(&mut row, "published_per_s", published);
    }
    if let Some(target) = scenario.target_per_s {
        put(&mut row, "target_per_s", target);
        put(&mut row, "target_met", rate >= target);
    }
    compare(&mut row, &run.report, FloorKind::ShmStream, PAYLOAD_BYTES);
    Ok(row)
}

/// Probe without flood, with the flood on `flood_cpus`, and bare wake-ups with it, in alternating slices, because tails
/// are the machine's first.
fn probed(
    plan: &ScenariosPlan,
    run: &mut BenchRun<'_>,
    cpu: Option<usize>,
    flood_cpus: Option<&[usize]>,
    names: [&'static str; 3],
) -> Result<()> {
    let domain = Domain::in_process("scenarios");
    let mut histograms = [(); 3].map(|()| LatencyHistogram::new());
    let (mut wrong, mut floods) = ([0; 3], [(); 3].map(|()| LoadTotals::default()));
    for slice in 0..3 * plan.turns {
        let which = slice % 3;
        run.next(names[which])?;
        let load = (which != ALONE).then(|| ScenarioLoad::begin(&domain, FLOOD, flood_cpus, None)).transpose()?;
        let count = share(plan.probes, slice / 3, plan.turns);
        let probing = if which == BARE {
            probe::bare(count, cpu, run.interrupted)
        } else {
            probe::run(&domain, count, cpu, run.interrupted)
        };
        if let Some(ended) = load.map(ScenarioLoad::end) {
            floods[which].calls += ended.calls;
            floods[which].failed += ended.failed;
            wrong[which] += ended.wrong;
        }
        let (histogram, wrong_here) = probing?;
        histograms[which].merge(&histogram);
        wrong[which] += wrong_here;
    }
    let shape = LoadShape { kind: LoadKind::Threads, callers: 1, in_flight: 1, workers: 1, queue_max: None };
    for which in [ALONE, WITH_FLOOD, BARE] {
        let mut row = row_of(names[which], shape, histograms[which].count());
        row.config.rate_per_s = Some(probe::PER_S);
        row.latency_ns = histograms[which].latency_ns();
        row.verified = Some(wrong[which] == 0 && floods[which].failed == 0);
        put(&mut row, "wrong", wrong[which]);
        if which != ALONE {
            put(&mut row, "flood_calls", floods[which].calls);
        }
        compare(&mut row, &run.report, FloorKind::FutexRoundTrip, 0);
        run.add(row, &table::PROBES);
    }
    Ok(())
}

/// All parts together are the whole.
fn share(whole: u64, part: usize, parts: usize) -> u64 {
    let before = |part: usize| whole * part as u64 / parts as u64;
    before(part + 1) - before(part)
}

const ALONE: usize = 0;
const WITH_FLOOD: usize = 1;
const BARE: usize = 2;

/// Targets of the probe's tails: with the flood on one core relative to those without; on all cores as they are.
fn targets_of_probes(report: &mut Report) {
    let [.., alone, beside, beside_bare, _, saturated, saturated_bare] = &mut report.rows[..] else { return };
    let by = |row: &Row, other: &Row| {
        let (latency, of_other) = (row.latency_ns?, other.latency_ns?);
        Some((latency.p99 as f64 / of_other.p99.max(1) as f64 * 100.0).round() / 100.0)
    };
    if let Some(ratio) = by(beside, alone) {
        put(beside, "p99_by_that_without", ratio);
        put(beside, "target_met", ratio <= 2.0);
    }
    if let Some(latency) = saturated.latency_ns {
        put(saturated, "target_met", latency.p50 < 50_000 && latency.p99 < 5_000_000);
    }
    for (row, bare) in [(beside, &*beside_bare), (saturated, &*saturated_bare)] {
        put(row, "published_ns", PROBE_NS);
        if let Some(ratio) = by(row, bare) {
            put(row, "p99_by_bare", ratio);
        }
    }
}

fn row_of(name: &str, shape: LoadShape, calls: u64) -> Row {
    let are = match shape.kind {
        LoadKind::Tasks => "tasks",
        LoadKind::Threads => "threads",
        LoadKind::Callbacks => "callbacks, tasks",
    };
    let extra = json!({
        "callers": shape.callers, "in_flight": shape.callers * shape.in_flight, "workers": shape.workers, "are": are,
    });
    let config = RowConfig {
        name: Some(name.to_owned()),
        payload_bytes: Some(PAYLOAD_BYTES),
        count: Some(calls),
        extra: keys(extra),
        ..RowConfig::default()
    };
    Row { config, sent: Some(calls), ..Row::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_has_requested_slices() {
        for (whole, parts) in [(13, 5), (3, 5), (20_000, 5), (7, 1)] {
            assert_eq!((0..parts).map(|part| share(whole, part, parts)).sum::<u64>(), whole);
        }
    }
}
