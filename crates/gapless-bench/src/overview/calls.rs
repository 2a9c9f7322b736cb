//! Measures calls between two processes one at a time for some payload sizes, and one-way messages.

use super::Overview;
use super::arguments::OverviewPart;
use super::line::{OverviewLine, ShownFigure};
use crate::rpc::curve::{self, CurveArguments};
use crate::{BenchError, Result};
use gapless_load::rpc::subject::{RpcSystem, WaitMode};
use gapless_measure::floor::FloorKind;
use gapless_measure::reporting::{config_number, of_config};
use gapless_measure::{FloorRow, Report, Row};

/// Bytes, and the published figure of each.
pub(super) const SIZES: [(u64, Option<&str>); 4] = [
    (1, Some("endurox/call/1")),
    (256, None),
    (1024, Some("endurox/call/1024/1x1")),
    (4096, Some("endurox/call/4096")),
];
const ONE_WAY: [(u64, Option<&str>); 2] = [(256, None), (1024, Some("endurox/send"))];
const SPINNING: u64 = 256;

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let is_quick = overview.plan.is_quick;
    for (bytes, published) in SIZES.into_iter().filter(|(_, published)| published.is_some() || !is_quick) {
        let report = points(overview, RpcSystem::Gapless, WaitMode::Blocking, &[bytes])?;
        call(overview, &report, bytes, FloorKind::FutexRoundTrip, published)?;
        if let Some((_, published)) = ONE_WAY.iter().find(|(size, _)| *size == bytes) {
            let row = one_way_row(&report).ok_or_else(|| no_row("one way", bytes))?;
            let what = format!("one way, {bytes} B");
            let floor = floor_of(&report, FloorKind::ShmStream);
            let answers = published.map(str::to_owned);
            let line =
                OverviewLine { part: OverviewPart::Calls, what, figure: ShownFigure::Throughput, floor, answers };
            overview.add(line, row.clone());
        }
    }
    let report = points(overview, RpcSystem::Gapless, WaitMode::Spinning, &[SPINNING])?;
    call(overview, &report, SPINNING, FloorKind::ShmPingPong, None)
}

fn no_row(what: &str, bytes: u64) -> BenchError {
    BenchError::measurement(super::NAME, format!("no row of {what}, {bytes} B"))
}

/// Starts the system once.
pub(super) fn points(
    overview: &mut Overview<'_>,
    system: RpcSystem,
    waiting: WaitMode,
    sizes: &[u64],
) -> Result<Report> {
    let mut arguments = CurveArguments {
        sizes: sizes.to_vec(),
        samples: Some(overview.plan.calls),
        systems: vec![system],
        waiting: vec![waiting],
        ..CurveArguments::default()
    };
    arguments.output.quick = overview.plan.is_quick;
    let mut run = overview.part("rpc curve");
    curve::points(&arguments, &mut run)?;
    Ok(overview.finish_part(run))
}

fn call(
    overview: &mut Overview<'_>,
    report: &Report,
    bytes: u64,
    floor: FloorKind,
    published: Option<&'static str>,
) -> Result<()> {
    let row = call_row(report).ok_or_else(|| no_row("a call", bytes))?;
    let spins = if of_config(row, "waiting") == "spinning" { ", both ends spin" } else { "" };
    let what = format!("call, {bytes} B there and back{spins}");
    let answers = published.map(str::to_owned);
    let floor = floor_of(report, floor);
    overview.add(
        OverviewLine { part: OverviewPart::Calls, what, figure: ShownFigure::Throughput, floor, answers },
        row.clone(),
    );
    Ok(())
}

fn floor_of(report: &Report, kind: FloorKind) -> Option<FloorRow> {
    report.floor.iter().find(|row| row.name == kind.name()).cloned()
}

fn call_row(report: &Report) -> Option<&Row> {
    report.rows.iter().find(|row| config_number(row, "in_flight") == Some(1))
}

fn one_way_row(report: &Report) -> Option<&Row> {
    report.rows.iter().find(|row| row.config.mode.as_deref() == Some("one_way"))
}
