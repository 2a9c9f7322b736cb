//! `gapless bench rpc payloads`: calls a second by the size of what travels. One way a payload goes and a boolean comes back,
//! two ways the payload comes back; in one process, where values move, and between two, where they are copied.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options |
//! | `table` | text and picture |

mod arguments;
mod table;

pub use arguments::PayloadsArguments;

use crate::rpc::NAME;
use arguments::PayloadsPlan;
use gapless_load::rpc::payloads::cycles::{self, CycleTotals};
use gapless_load::rpc::payloads::served::{self, WORKERS};
use gapless_measure::Result;
use gapless_measure::child_process::{Child, ChildRole};
use gapless_measure::floor::{FloorKind, FloorPlan};
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::published::mercury::{PAYLOADS, PublishedPayload};
use gapless_measure::reporting::{BenchRun, ReportLayout, keys, put, put_rates};
use gapless_measure::{CpuPerMessage, FloorRow, Row, RowConfig};
use gapless_rpc::domain::ServeReach;
use gapless_rpc::{Domain, Reach};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Target between processes, two ways, longest published payload: bytes of both directions by those of copying alone.
const SHARE_OF_COPYING: f64 = 0.5;

/// Measures; returns the text to print.
///
/// # Errors
/// A process that ends too early, a call that fails, a report or a picture that cannot be written.
pub fn run(arguments: &PayloadsArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = arguments.plan()?;
    let steps = (plan.sizes.len() + plan.curve.len()) * 4;
    let shown = ReportLayout {
        benchmark: "rpc payloads",
        steps,
        notes: table::notes(&plan),
        text: table::text,
        draw: table::draw,
    };
    Ok(BenchRun::of(shown, &arguments.output, interrupted, |run| measure(&plan, run))?.1)
}

/// The longest published payloads: one way and two ways, in one process and between two.
pub(crate) fn longest(arguments: &PayloadsArguments, run: &mut BenchRun<'_>) -> Result<()> {
    let sizes = PAYLOADS[PAYLOADS.len() - 1..].to_vec();
    measure(&PayloadsPlan { sizes, curve: Vec::new(), ..arguments.plan()? }, run)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallerPlace {
    OneProcess,
    TwoProcesses,
}

struct PlacedCallers<'a> {
    ends: CallerPlace,
    callers: cycles::CycleCallers,
    server: Option<Child<'a>>,
}

fn measure(plan: &PayloadsPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let here = Domain::in_process("payloads");
    let _routes = served::serve(&here, ServeReach::ThisProcess)?;
    let name = format!("gapless-bench-payloads-{}", std::process::id());
    let directory = OwnDirectory::create(&std::env::temp_dir(), &name)?;
    // A domain makes its directory itself, for its user alone.
    let path = directory.path().join("domain");
    let mut server = Child::start(NAME, "the server", (ChildRole::RpcPayloads, &path), run.interrupted)?;
    server.receive::<u64>()?;
    let machine = served::open(&path)?;
    let mut places = [
        PlacedCallers::new(&here, CallerPlace::OneProcess, None)?,
        PlacedCallers::new(&machine, CallerPlace::TwoProcesses, Some(server))?,
    ];
    for published in &plan.sizes {
        for callers in &mut places {
            callers.one_size(plan, run, (published.one_way, published.two_way), Some(published))?;
        }
    }
    for &size in &plan.curve {
        for callers in &mut places {
            callers.one_size(plan, run, (size, size), None)?;
        }
    }
    Ok(())
}

impl<'a> PlacedCallers<'a> {
    fn new(domain: &Domain, ends: CallerPlace, server: Option<Child<'a>>) -> Result<Self> {
        let reach = if ends == CallerPlace::OneProcess { Reach::ThisProcess } else { Reach::OtherProcesses };
        Ok(Self { ends, callers: cycles::CycleCallers::new(domain, reach)?, server })
    }

    fn one_size(
        &mut self,
        plan: &PayloadsPlan,
        run: &mut BenchRun<'_>,
        (one_way, two_way): (usize, usize),
        published: Option<&PublishedPayload>,
    ) -> Result<()> {
        for (way, size) in [one_way, two_way].into_iter().enumerate() {
            run.next(&format!("{size} B, {}", self.ends.words()))?;
            let floor = if self.ends == CallerPlace::TwoProcesses { copying(run, plan, size) } else { None };
            let server_before_ns = self.server_cpu_ns()?;
            let counts = (plan.calls, plan.cycles);
            let cycles = if way == 0 {
                self.callers.one_way(size, counts, run.interrupted)?
            } else {
                self.callers.two_way(size, counts, run.interrupted)?
            };
            let server_ns = self.server_cpu_ns()?.zip(server_before_ns).map(|(now, before)| now - before);
            let made = plan.calls * plan.cycles.0 as u64;
            let mut row = self.row(size, way + 1, &cycles, server_ns.map(|ns| ns as f64 / made as f64));
            if let Some(floor) = floor.and_then(|floor| floor.bytes_per_s) {
                let share = row.extra["bytes_per_s"].as_f64().unwrap_or(0.0) / floor;
                row.floor_ratio = Some((100.0 / share).round() / 100.0);
                row.floor_name = Some(FloorKind::MemcpyCold.name().to_owned());
                if published.is_some() && size == PAYLOADS[PAYLOADS.len() - 1].two_way {
                    put(&mut row, "target_floor_ratio_max", 1.0 / SHARE_OF_COPYING);
                    put(&mut row, "target_met", share >= SHARE_OF_COPYING);
                }
            }
            if let Some(published) = published {
                let (through, (least, greatest)) = match self.ends {
                    CallerPlace::OneProcess => ("memory", published.memory[way]),
                    CallerPlace::TwoProcesses => ("kafka", published.kafka[way]),
                };
                put(&mut row, "published", json!({ "through": through, "min_per_s": least, "max_per_s": greatest }));
            }
            run.add(row, &table::COLUMNS);
        }
        Ok(())
    }

    fn server_cpu_ns(&mut self) -> Result<Option<u64>> {
        self.server.as_mut().map(|server| server.ask(&true)).transpose()
    }

    fn row(&self, size: usize, ways: usize, cycles: &CycleTotals, server_ns: Option<f64>) -> Row {
        let extra =
            json!({ "ends": self.ends.words(), "ways": ways, "workers": WORKERS, "cycles": cycles.rates.len() });
        let config = RowConfig {
            mode: Some(if ways == 1 { "one_way" } else { "two_way" }.to_owned()),
            payload_bytes: Some(size as u64),
            count: Some(cycles.calls),
            extra: keys(extra),
            ..RowConfig::default()
        };
        let client_ns = cycles.cpu_ns as f64 / cycles.calls.max(1) as f64;
        let mut row = Row {
            config,
            sent: Some(cycles.calls),
            elapsed_ns: Some(cycles.elapsed.as_nanos() as u64),
            cpu_ns_per_message: Some(CpuPerMessage { driver: client_ns, service: server_ns.unwrap_or(0.0) }),
            verified: Some(cycles.wrong == 0),
            lost: Some(0),
            ..Row::default()
        };
        put_rates(&mut row, &cycles.rates);
        put(&mut row, "bytes_per_s", (cycles.rate() * (size * ways) as f64).round());
        put(&mut row, "wrong", cycles.wrong);
        row
    }
}

impl CallerPlace {
    fn words(self) -> &'static str {
        match self {
            Self::OneProcess => "one process",
            Self::TwoProcesses => "two processes",
        }
    }
}

/// Added to the report unless one of about the same size is there.
fn copying(run: &mut BenchRun<'_>, plan: &PayloadsPlan, size: usize) -> Option<FloorRow> {
    let is_same = |row: &&FloorRow| row.payload_bytes.abs_diff(size as u64) < 8;
    if let Some(row) = run.report.floor.iter().find(is_same) {
        return Some(row.clone());
    }
    let items = vec![(FloorKind::MemcpyCold, size as u64)];
    let measured = FloorPlan { time_limit: plan.floor_time, ..FloorPlan::new(Path::new("."), items) }.measure();
    run.report.notes.extend(measured.skipped);
    run.report.floor.extend(measured.rows.iter().cloned());
    measured.rows.into_iter().next()
}
