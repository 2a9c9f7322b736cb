//! A service on one node, and on a primary with its backup: the canonical rows, event sourcing, SBE.

use super::Overview;
use super::arguments::Part;
use super::line::{Figure, Line};
use crate::Result;
use crate::canonical::{floor_of, one_row};
use crate::options::{CanonicalArguments, Mode, Program};
use gapless_measure::reporting::check_interrupted;
use std::path::Path;

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let (at_a_rate, as_fast) = ((Mode::Latency, Figure::Median), (Mode::Throughput, Figure::Throughput));
    for is_clustered in [false, true] {
        for (mode, figure) in [at_a_rate, as_fast] {
            one(overview, is_clustered, mode, figure)?;
        }
    }
    Ok(())
}

fn one(overview: &mut Overview<'_>, is_clustered: bool, mode: Mode, figure: Figure) -> Result<()> {
    let place = if is_clustered { "primary and backup" } else { "one node" };
    let (pace, count, answers) = match mode {
        Mode::Latency => ("10,000/s, p50", overview.plan.latency_messages, ("rumi/latency/direct/default/p50", "")),
        Mode::Throughput => {
            let answers = ("rumi/throughput/indirect/min/4.0", "indirect access");
            ("as fast as possible", overview.plan.throughput_messages, answers)
        }
    };
    let what = format!("command and reply, {place}, {pace}");
    overview.next(&what)?;
    let arguments = CanonicalArguments {
        mode: Some(mode),
        program: Some(Program::Es),
        enable_clustering: is_clustered,
        ..CanonicalArguments::default()
    };
    let row = one_row(&arguments, Some(count), Path::new("."), overview.interrupted)?;
    // One that was cut short is none.
    check_interrupted(super::NAME, overview.interrupted)?;
    let (kind, bytes) = floor_of(&row);
    let floor = overview.floor(kind, bytes);
    // What others have published is clustered.
    let answers = is_clustered.then(|| (answers.0.to_owned(), answers.1));
    overview.add(Line { part: Part::Service, what, figure, floor, answers }, row);
    Ok(())
}
