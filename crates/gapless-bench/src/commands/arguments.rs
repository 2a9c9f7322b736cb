//! The options of `gapless bench commands`.

use crate::commands::axon_case::{AxonBus, AxonCase};
use crate::commands::ladder;
use clap::{Args, ValueEnum};
use gapless_agent::OptimizeFor;
use gapless_load::commands::bus_under_test::BusPlace;
use gapless_load::commands::case::{BusCase, BusDrive, BusTier, Identifiers};
use gapless_measure::reporting::OutputArguments;
use gapless_measure::{BenchError, Result, RunExtent};
use std::path::PathBuf;
use std::time::Duration;

const TURNS: usize = 1;
const TURNS_FULL: usize = 5;
const SECONDS: f64 = 0.5;
const SECONDS_FULL: f64 = 2.0;
/// Bytes of segments for each second of a row: twice the need of four million commands.
const SEGMENT_BYTES_PER_S: f64 = 3.0 * (1_u64 << 30) as f64;
pub(crate) const SEGMENT_BYTES_MIN: u64 = 64 << 20;
pub(crate) const SEGMENT_BYTES_MAX: u64 = 4 << 30;
const SEGMENT_BYTES_QUICK: u64 = 16 << 20;
const IN_FLIGHT: usize = 4096;
const AGGREGATES: u64 = 10_000;
/// Events, aggregates, and aggregates that get most commands.
const SCALE: (u64, u64, u64) = (2_000_000, 200_000, 5_000);
const SCALE_FULL: (u64, u64, u64) = (50_000_000, 5_000_000, 5_000);
const SCALE_QUICK: (u64, u64, u64) = (20_000, 2_000, 50);
const REPLAYED_EVENTS: u64 = 4_000_000;
const REPLAYED_EVENTS_FULL: u64 = 10_000_000;
const SECONDS_QUICK: f64 = 0.05;
const REPLAYED_EVENTS_QUICK: u64 = 20_000;
const AGGREGATES_QUICK: u64 = 100;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommandsPart {
    /// The published ladder: the simple bus and the disruptor, by identifiers; ours and Axon's next to each published figure
    Ladder,
    /// Commands a second: aggregates, tiers, encodings, identifiers, sizes
    Throughput,
    /// Axon Framework 4 by turns with them, where Java and Maven are found
    Axon,
    /// Latency of commands, 10,000 a second
    Latency,
    /// Events a second of a fold of the whole stream
    Replay,
    /// Many aggregates, on a stream whose process was killed
    Scale,
}

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct CommandsArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Measure only these parts [default: all but axon, with --full all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    pub only: Vec<CommandsPart>,

    /// Run in full: five turns of two seconds, 50 million events over 5 million aggregates; about 25 minutes
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Buses of the ladder's and Axon's rows [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "BUSES")]
    pub buses: Vec<AxonBus>,

    /// Identifiers in the rows of ladder, throughput and Axon [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "IDENTIFIERS")]
    pub identifiers: Vec<Identifiers>,

    /// Drives of the throughput's rows [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DRIVES")]
    pub drives: Vec<BusDrive>,

    /// Tiers of the throughput's rows [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TIERS")]
    pub tiers: Vec<BusTier>,

    /// Turns over all rows; the median turn is shown [default: 1, with --full 5]
    #[arg(long, value_name = "TURNS", value_parser = clap::value_parser!(u16).range(1..=99))]
    pub turns: Option<u16>,

    /// Seconds of a row in each turn, plus a quarter of warm-up [default: 0.5, with --full 2]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub seconds: Option<f64>,

    /// Maximum number of unanswered commands [default: 4096]
    #[arg(long, value_name = "COMMANDS", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub in_flight: Option<u32>,

    /// Aggregates of the rows with more than one [default: 10,000]
    #[arg(long, value_name = "AGGREGATES", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    pub aggregates: Option<u64>,

    /// Events to replay [default: 4,000,000, with --full 10,000,000]
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub replayed_events: Option<u64>,

    /// Events of the row with very many aggregates [default: 2,000,000, with --full 50,000,000]
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(2..=10_000_000_000))]
    pub scale_events: Option<u64>,

    /// Aggregates of that row, at most as many as events [default: a tenth of them]
    #[arg(long, value_name = "AGGREGATES", value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    pub scale_aggregates: Option<u64>,

    /// Directory of the journals, whose other files stay [default: the current directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandsPlan {
    pub(crate) parts: Vec<CommandsPart>,
    pub(crate) cases: Vec<BusCase>,
    pub(crate) axon_cases: Vec<AxonCase>,
    pub(crate) turns: usize,
    /// Duration of a row in each turn, and its warm-up.
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) in_flight: usize,
    pub(crate) aggregates: u64,
    pub(crate) replayed_events: u64,
    pub(crate) scale_events: u64,
    pub(crate) scale_aggregates: u64,
    pub(crate) scale_hot: u64,
    pub(crate) directory: PathBuf,
    pub(crate) extent: RunExtent,
}

impl CommandsPlan {
    /// Quick runs have short segments.
    pub(crate) fn place(&self, optimize_for: OptimizeFor, segment_bytes: u64) -> BusPlace<'_> {
        let segment_bytes = self.extent.pick(SEGMENT_BYTES_QUICK, segment_bytes, segment_bytes);
        BusPlace { parent: &self.directory, optimize_for, segment_bytes }
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        let bytes = (self.warm_up + self.time).as_secs_f64() * SEGMENT_BYTES_PER_S;
        (bytes as u64).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)
    }
}

impl CommandsArguments {
    pub(crate) fn plan(&self) -> Result<CommandsPlan> {
        self.output.check()?;
        let extent = RunExtent::of(self.output.quick, self.full);
        let seconds = self.seconds.unwrap_or(extent.pick(SECONDS_QUICK, SECONDS, SECONDS_FULL));
        if !(0.01..=600.0).contains(&seconds) {
            return Err(BenchError::Option(format!("--seconds {seconds}: 0.01 to 600 are possible")));
        }
        let directory = self.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        if !directory.is_dir() {
            return Err(BenchError::Option(format!("--directory {}: there is no such directory", directory.display())));
        }
        let scale = extent.pick(SCALE_QUICK, SCALE, SCALE_FULL);
        let scale_events = self.scale_events.unwrap_or(scale.0);
        let scale_aggregates = self.scale_aggregates.unwrap_or_else(|| scale.1.min((scale_events / 10).max(2)));
        if scale_aggregates > scale_events {
            return Err(BenchError::Option(format!(
                "--scale-aggregates {scale_aggregates}: each has an event, and --scale-events are {scale_events}"
            )));
        }
        let mut parts = self.only.clone();
        if parts.is_empty() {
            parts = CommandsPart::value_variants().to_vec();
            // The ladder has Axon's rows of one aggregate; the others take too long for a run that is not full.
            parts.retain(|part| extent == RunExtent::Full || *part != CommandsPart::Axon);
        }
        parts.dedup();
        let aggregates = self.aggregates.unwrap_or(extent.pick(AGGREGATES_QUICK, AGGREGATES, AGGREGATES));
        if !self.buses.is_empty() && !parts.iter().any(|part| matches!(part, CommandsPart::Ladder | CommandsPart::Axon))
        {
            return Err(BenchError::Option(
                "--buses: they are those of the ladder and of Axon, and --only has neither".to_owned(),
            ));
        }
        let (cases, axon_cases) = self.cases(&parts, aggregates)?;
        let replayed_events = extent.pick(REPLAYED_EVENTS_QUICK, REPLAYED_EVENTS, REPLAYED_EVENTS_FULL);
        Ok(CommandsPlan {
            parts,
            cases,
            axon_cases,
            turns: self.turns.map_or(extent.pick(TURNS, TURNS, TURNS_FULL), usize::from),
            time: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(seconds / 4.0),
            in_flight: self.in_flight.map_or(IN_FLIGHT, |commands| commands as usize),
            aggregates,
            replayed_events: self.replayed_events.unwrap_or(replayed_events),
            scale_events,
            scale_aggregates,
            scale_hot: scale.2.min(scale_aggregates),
            directory,
            extent,
        })
    }

    fn cases(&self, parts: &[CommandsPart], aggregates: u64) -> Result<(Vec<BusCase>, Vec<AxonCase>)> {
        let has_bus = |bus| self.buses.is_empty() || self.buses.contains(&bus);
        let has_identifiers = |identifiers| self.identifiers.is_empty() || self.identifiers.contains(&identifiers);
        let (mut cases, mut axon_cases) = (Vec::new(), Vec::new());
        if parts.contains(&CommandsPart::Ladder) {
            (cases, axon_cases) = ladder::cases(|bus, identifiers| has_bus(bus) && has_identifiers(identifiers));
            // Each of Axon's rows takes six seconds; rows that are asked for are all measured.
            if !self.full && self.buses.is_empty() && self.identifiers.is_empty() {
                axon_cases.retain(ladder::is_in_short_run);
            }
        }
        if parts.contains(&CommandsPart::Throughput) {
            let is_chosen = |case: &BusCase| {
                (self.drives.is_empty() || self.drives.contains(&case.drive))
                    && (self.tiers.is_empty() || self.tiers.contains(&case.tier))
                    && has_identifiers(case.identifiers)
            };
            let chosen: Vec<BusCase> = BusCase::all(aggregates).into_iter().filter(is_chosen).collect();
            if chosen.is_empty() {
                return Err(BenchError::Option(
                    "--drives, --tiers, --identifiers: no row has all of these; a member of a cluster has handles alone, and identifiers of \
                     the caller are measured in memory"
                        .to_owned(),
                ));
            }
            add(&mut cases, chosen);
        }
        if parts.contains(&CommandsPart::Axon) {
            let is_chosen = |case: &AxonCase| has_bus(case.bus) && has_identifiers(case.identifiers);
            add(&mut axon_cases, AxonCase::all(aggregates).into_iter().filter(is_chosen).collect());
        }
        Ok((cases, axon_cases))
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_effect() {
        let plan = CommandsArguments::default().plan().unwrap();
        assert_eq!((plan.turns, plan.in_flight, plan.aggregates), (TURNS, IN_FLIGHT, AGGREGATES));
        assert!(plan.parts.len() == 5 && !plan.parts.contains(&CommandsPart::Axon));
        assert_eq!((plan.time, plan.warm_up), (Duration::from_millis(500), Duration::from_millis(125)));
        assert_eq!((plan.scale_events, plan.scale_aggregates), (SCALE.0, SCALE.1));
        let full = CommandsArguments { full: true, ..CommandsArguments::default() }.plan().unwrap();
        assert_eq!(full.parts, CommandsPart::value_variants());
        assert_eq!((full.turns, full.time, full.extent), (TURNS_FULL, Duration::from_secs(2), RunExtent::Full));
        assert_eq!((full.scale_events, full.scale_aggregates), (SCALE_FULL.0, SCALE_FULL.1));
        let arguments = CommandsArguments {
            only: vec![CommandsPart::Replay],
            turns: Some(3),
            seconds: Some(0.5),
            in_flight: Some(7),
            aggregates: Some(9),
            replayed_events: Some(11),
            scale_events: Some(300),
            ..CommandsArguments::default()
        };
        let plan = arguments.plan().unwrap();
        assert_eq!((plan.parts, plan.turns, plan.in_flight), (vec![CommandsPart::Replay], 3, 7));
        assert_eq!((plan.aggregates, plan.replayed_events, plan.time), (9, 11, Duration::from_millis(500)));
        assert_eq!((plan.scale_events, plan.scale_aggregates, plan.scale_hot), (300, 30, 30));
        let only = vec![CommandsPart::Throughput];
        let chosen = |drives, tiers| {
            CommandsArguments { only: only.clone(), drives, tiers, ..CommandsArguments::default() }.plan()
        };
        let plan = chosen(vec![BusDrive::Direct], vec![BusTier::Sync, BusTier::Quorum]).unwrap();
        assert!(
            plan.cases.len() == 2
                && plan.cases.iter().all(|case| (case.drive, case.tier) == (BusDrive::Direct, BusTier::Sync))
        );
        assert!(chosen(vec![BusDrive::Direct], vec![BusTier::Quorum]).unwrap_err().is_about_options());
        let quick = OutputArguments { quick: true, ..OutputArguments::default() };
        let plan = CommandsArguments { output: quick, ..CommandsArguments::default() }.plan().unwrap();
        assert!(plan.extent == RunExtent::Quick && plan.turns == 1 && plan.replayed_events == REPLAYED_EVENTS_QUICK);
    }

    #[test]
    fn journal_is_as_long_as_its_row() {
        let of = |seconds| CommandsArguments { seconds: Some(seconds), ..CommandsArguments::default() }.plan().unwrap();
        let bytes = |seconds| of(seconds).segment_bytes();
        assert_eq!((bytes(0.01), bytes(60.0)), (SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX));
        assert!(bytes(0.5) < 2 << 30 && bytes(0.5) > bytes(0.25));
        assert_eq!(of(0.5).place(OptimizeFor::Latency, 7).segment_bytes, 7);
    }

    #[test]
    fn buses_and_identifiers_choose_rows() {
        let of = |only: &[CommandsPart], buses: &[AxonBus], identifiers: &[Identifiers]| {
            let (only, buses, identifiers) = (only.to_vec(), buses.to_vec(), identifiers.to_vec());
            CommandsArguments { only, buses, identifiers, ..CommandsArguments::default() }.plan()
        };
        let rows = |plan: CommandsPlan| (plan.cases.len(), plan.axon_cases.len());
        assert_eq!(rows(of(&[CommandsPart::Ladder], &[], &[]).unwrap()), (6, 7));
        let full = CommandsArguments { full: true, only: vec![CommandsPart::Ladder], ..CommandsArguments::default() };
        assert_eq!(rows(full.plan().unwrap()), (6, 12));
        let of_both = [AxonBus::Simple, AxonBus::Disruptor];
        assert_eq!(rows(of(&[CommandsPart::Ladder], &of_both, &[]).unwrap()), (6, 12), "asked for");
        assert_eq!(rows(of(&[CommandsPart::Ladder], &[AxonBus::Simple], &[]).unwrap()), (3, 6));
        let plan = of(&[CommandsPart::Ladder], &[AxonBus::Simple], &[Identifiers::Random]).unwrap();
        assert!(plan.cases[0].is_one_by_one && plan.cases[0].identifiers == Identifiers::Random);
        assert_eq!(rows(plan), (1, 2));
        let plan = of(&[CommandsPart::Throughput], &[], &[Identifiers::TimeOrdered]).unwrap();
        assert!(plan.cases.len() == 2 && plan.cases.iter().all(|case| case.identifiers == Identifiers::TimeOrdered));
        assert_eq!(rows(of(&[CommandsPart::Axon], &[AxonBus::Disruptor], &[Identifiers::Random]).unwrap()), (0, 3));
        let (all, ladder) = (
            of(&[CommandsPart::Throughput], &[], &[]).unwrap(),
            of(&[CommandsPart::Throughput, CommandsPart::Ladder], &[], &[]),
        );
        assert_eq!(ladder.unwrap().cases.len(), all.cases.len() + 3);
        let error = of(&[CommandsPart::Replay], &[AxonBus::Simple], &[]).unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--buses"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for seconds in [0.0, -1.0, f64::NAN, 601.0] {
            let arguments = CommandsArguments { seconds: Some(seconds), ..CommandsArguments::default() };
            let error = arguments.plan().unwrap_err();
            assert!(error.is_about_options() && error.to_string().contains("--seconds"), "{error}");
        }
        let few =
            CommandsArguments { scale_events: Some(5), scale_aggregates: Some(6), ..CommandsArguments::default() };
        assert!(few.plan().unwrap_err().to_string().contains("--scale-aggregates"));
        let nowhere = CommandsArguments { directory: Some("/nowhere/at/all".into()), ..CommandsArguments::default() };
        let error = nowhere.plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--directory"), "{error}");
    }
}
