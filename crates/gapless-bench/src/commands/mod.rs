//! `gapless bench commands`: the command bus, with the canonical rows next to it.
//!
//! | module | what lives there |
//! |---|---|
//! | `table` | text and picture |
//! | `targets` | what the figures are to reach, and whether they do |
//! | `scale` | many aggregates, on a stream whose process was killed |
//! | `latency` | latency of commands at a rate, next to the canonical row |
//! | `ladder` | the published ladder: rows of ours and of Axon's next to each published figure |
//! | `throughput` | commands a second, next to encoding and appending alone and the canonical row |
//! | `quorum` | commands on a cluster of two members |
//! | `replay` | events a second of a fold of the whole stream |
//! | `axon` | Axon Framework 4 next to this |
//! | `axon_case` | parameters of Axon's rows |
//! | `arguments` | the options of `gapless bench commands` |
//! | `rows` | from figures to a row of the report |

mod arguments;
mod axon;
mod axon_case;
mod ladder;
mod latency;
mod quorum;
mod replay;
mod rows;
mod scale;
mod table;
mod targets;
mod throughput;

pub use arguments::CommandsArguments;
pub(crate) use axon::{Axon, BUILDS as AXON_BUILDS, find_programs as axon_programs};

use crate::canonical;
use crate::options::{CanonicalArguments, RunMode, RunTier, ServiceKind};
use arguments::{CommandsPart, CommandsPlan};
use axon_case::{AxonBus, AxonCase, AxonSetup};
use gapless_load::commands::case::{BusCase, BusDrive, Identifiers};
use gapless_load::commands::{NAME, check_interrupted, failed};
use gapless_measure::reporting::{BenchRun, ReportLayout};
use gapless_measure::{Result, Row};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Copy)]
enum CanonicalRow {
    Throughput,
    Latency,
    /// State replication at tier `quorum`: two members on this machine.
    Replicated,
}

impl CanonicalRow {
    fn arguments(self) -> CanonicalArguments {
        let (mode, tier) = match self {
            Self::Throughput => (RunMode::Throughput, RunTier::Journal),
            Self::Latency => (RunMode::Latency, RunTier::Journal),
            Self::Replicated => (RunMode::Throughput, RunTier::Quorum),
        };
        let is_replicated = tier == RunTier::Quorum;
        CanonicalArguments {
            mode: Some(mode),
            tier: Some(tier),
            program: is_replicated.then_some(ServiceKind::Sr),
            enable_clustering: is_replicated,
            ..CanonicalArguments::default()
        }
    }
}

type MeasureCanonical<'a> = dyn Fn(CanonicalRow, Option<u64>, &Path) -> Result<Row> + 'a;

/// Measures; returns the text to print.
///
/// # Errors
/// Options that make no sense, a bus that does not start, a report or a picture that cannot be written.
pub fn run(arguments: &CommandsArguments, interrupted: &Arc<AtomicBool>) -> Result<String> {
    let plan = arguments.plan()?;
    let shown = ReportLayout {
        benchmark: NAME,
        steps: steps(&plan),
        notes: table::notes(&plan),
        text: table::text,
        draw: table::draw,
    };
    let canonical = |row: CanonicalRow, count: Option<u64>, parent: &Path| {
        canonical::one_row(&row.arguments(), count, parent, interrupted)
    };
    Ok(BenchRun::of(shown, &arguments.output, interrupted, |run| measure(&plan, &canonical, run))?.1)
}

/// Pipelined and direct drive in memory, with one aggregate and with many.
pub(crate) fn in_memory(arguments: &CommandsArguments, run: &mut BenchRun<'_>) -> Result<()> {
    let mut plan = CommandsArguments { only: vec![CommandsPart::Throughput], ..arguments.clone() }.plan()?;
    let bases = [BusDrive::Pipelined, BusDrive::Direct].map(BusCase::base);
    plan.cases.retain(|case| bases.contains(&BusCase { aggregates: 1, ..*case }));
    throughput::measure(&plan, &|_, _, _| Err(failed("no canonical row stands beside these")), run)
}

/// Axon's disruptor with one aggregate and our load.
pub(crate) fn one_of_axon(axon: &Axon, arguments: &CommandsArguments, interrupted: &AtomicBool) -> Result<Row> {
    let case = AxonCase::of_one(AxonBus::Disruptor, Identifiers::Position, AxonSetup::Ours);
    axon.measure(&case, &arguments.plan()?, interrupted)
}

fn steps(plan: &CommandsPlan) -> usize {
    let of = |part: CommandsPart| match part {
        CommandsPart::Latency => latency::steps(plan),
        CommandsPart::Replay => replay::steps(plan),
        CommandsPart::Scale => scale::steps(plan),
        CommandsPart::Ladder | CommandsPart::Throughput | CommandsPart::Axon => 0,
    };
    throughput::steps(plan) + plan.parts.iter().map(|part| of(*part)).sum::<usize>()
}

fn measure(plan: &CommandsPlan, canonical: &MeasureCanonical<'_>, run: &mut BenchRun<'_>) -> Result<()> {
    let measured = measure_parts(plan, canonical, run);
    targets::note(&mut run.report);
    ladder::note(&mut run.report);
    measured
}

fn measure_parts(plan: &CommandsPlan, canonical: &MeasureCanonical<'_>, run: &mut BenchRun<'_>) -> Result<()> {
    let is_of_rates =
        |part: &CommandsPart| matches!(part, CommandsPart::Ladder | CommandsPart::Throughput | CommandsPart::Axon);
    if plan.parts.iter().any(is_of_rates) {
        throughput::measure(plan, canonical, run)?;
    }
    for part in &plan.parts {
        match part {
            CommandsPart::Ladder | CommandsPart::Throughput | CommandsPart::Axon => Ok(()),
            CommandsPart::Latency => latency::measure(plan, canonical, run),
            CommandsPart::Replay => replay::measure(plan, run),
            CommandsPart::Scale => scale::measure(plan, run),
        }?;
    }
    Ok(())
}
