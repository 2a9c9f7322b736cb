//! Canonical rows on one node, and on a primary with its backup: event sourcing, SBE.

use super::Overview;
use super::arguments::OverviewPart;
use super::line::{OverviewLine, ShownFigure};
use crate::Result;
use crate::canonical::{floor_of, one_row};
use crate::options::{CanonicalArguments, RunMode, ServiceKind};
use gapless_measure::reporting::check_interrupted;
use std::path::Path;

const PUBLISHED: &str = "rumi/latency/direct/default/p50";

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let (at_a_rate, as_fast) =
        ((RunMode::Latency, ShownFigure::Median), (RunMode::Throughput, ShownFigure::Throughput));
    for is_clustered in [false, true] {
        for (mode, figure) in [at_a_rate, as_fast] {
            one(overview, is_clustered, mode, figure)?;
        }
    }
    Ok(())
}

fn one(overview: &mut Overview<'_>, is_clustered: bool, mode: RunMode, figure: ShownFigure) -> Result<()> {
    let place = if is_clustered { "primary and backup" } else { "one node" };
    // Published: clustered latencies, and no throughput of direct access.
    let is_published = is_clustered && mode == RunMode::Latency;
    let (pace, count) = match mode {
        RunMode::Latency => ("10,000/s, p50", overview.plan.latency_messages),
        RunMode::Throughput => ("as fast as possible", overview.plan.throughput_messages),
    };
    let what = format!("command and reply, {place}, {pace}");
    overview.next(&what)?;
    let arguments = CanonicalArguments {
        mode: Some(mode),
        program: Some(ServiceKind::Es),
        enable_clustering: is_clustered,
        ..CanonicalArguments::default()
    };
    let row = one_row(&arguments, Some(count), Path::new("."), overview.interrupted)?;
    check_interrupted(super::NAME, overview.interrupted)?;
    // Replication gathers messages, and its floor would send one with each system call.
    let is_gathered = is_clustered && mode == RunMode::Throughput;
    let floor = (!is_gathered).then(|| floor_of(&row)).and_then(|(kind, bytes)| overview.floor(kind, bytes));
    let answers = is_published.then(|| PUBLISHED.to_owned());
    overview.add(OverviewLine { part: OverviewPart::Service, what, figure, floor, answers }, row);
    Ok(())
}
