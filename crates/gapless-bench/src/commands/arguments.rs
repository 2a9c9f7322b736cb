//! The options of `gapless bench commands`.

use clap::{Args, ValueEnum};
use gapless_load::commands::case::{Case, Drive, Tier};
use gapless_measure::reporting::OutputArguments;
use gapless_measure::{BenchError, Result};
use std::path::PathBuf;
use std::time::Duration;

const TURNS: usize = 5;
const SECONDS: f64 = 2.0;
/// Commands in flight.
const IN_FLIGHT: usize = 4096;
/// Aggregates where there are many.
const AGGREGATES: u64 = 10_000;
/// Events, aggregates, and those for which most commands are, where there are very many.
const SCALE: (u64, u64, u64) = (50_000_000, 5_000_000, 5_000);
const SCALE_QUICK: (u64, u64, u64) = (20_000, 2_000, 50);
const REPLAYED_EVENTS: u64 = 10_000_000;
/// Seconds of a turn, and events, of a quick run.
const SECONDS_QUICK: f64 = 0.05;
const REPLAYED_EVENTS_QUICK: u64 = 20_000;
const AGGREGATES_QUICK: u64 = 100;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Commands a second: aggregates, tiers, encodings, identifiers, sizes
    Throughput,
    /// Axon Framework 4 by turns with them, where Java and Maven are found
    Axon,
    /// How long a command takes, 10,000 a second
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

    /// Measure only these parts [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    pub only: Vec<Part>,

    /// Of the throughput's rows only those of these drives [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DRIVES")]
    pub drives: Vec<Drive>,

    /// Of the throughput's rows only those of these tiers [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TIERS")]
    pub tiers: Vec<Tier>,

    /// Turns over all rows; the one in the middle stands for all [default: 5]
    #[arg(long, value_name = "TURNS", value_parser = clap::value_parser!(u16).range(1..=99))]
    pub turns: Option<u16>,

    /// Seconds of a row in each turn, a quarter more warms up [default: 2]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub seconds: Option<f64>,

    /// Commands that are sent and not yet answered, at most [default: 4096]
    #[arg(long, value_name = "COMMANDS", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub in_flight: Option<u32>,

    /// Aggregates of the rows that have more than one [default: 10,000]
    #[arg(long, value_name = "AGGREGATES", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    pub aggregates: Option<u64>,

    /// Events that are replayed [default: 10,000,000]
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub replayed_events: Option<u64>,

    /// Events of the row with very many aggregates [default: 50,000,000]
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(2..=10_000_000_000))]
    pub scale_events: Option<u64>,

    /// Aggregates of that row, at most as many as events [default: 5,000,000]
    #[arg(long, value_name = "AGGREGATES", value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    pub scale_aggregates: Option<u64>,

    /// Where journals are written; what is there stays [default: the current directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
}

/// Plan of the measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) parts: Vec<Part>,
    /// The rows of the throughput.
    pub(crate) cases: Vec<Case>,
    pub(crate) turns: usize,
    /// Of a row in each turn, and what warms up before it.
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) in_flight: usize,
    pub(crate) aggregates: u64,
    pub(crate) replayed_events: u64,
    pub(crate) scale_events: u64,
    pub(crate) scale_aggregates: u64,
    /// Aggregates for which most commands are.
    pub(crate) scale_hot: u64,
    pub(crate) directory: PathBuf,
    /// Little of everything.
    pub(crate) is_quick: bool,
}

impl CommandsArguments {
    /// Makes the plan of the measurement.
    ///
    /// # Errors
    /// A time out of its range, a directory that is none, a place for the picture that is no file, a build without pictures.
    pub(crate) fn plan(&self) -> Result<Plan> {
        self.output.check()?;
        let is_quick = self.output.quick;
        let seconds = self.seconds.unwrap_or(if is_quick { SECONDS_QUICK } else { SECONDS });
        if !(0.01..=600.0).contains(&seconds) {
            return Err(BenchError::Option(format!("--seconds {seconds}: 0.01 to 600 are possible")));
        }
        let directory = self.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        if !directory.is_dir() {
            return Err(BenchError::Option(format!("--directory {}: there is no such directory", directory.display())));
        }
        let scale = if is_quick { SCALE_QUICK } else { SCALE };
        let scale_events = self.scale_events.unwrap_or(scale.0);
        // Fewer events than usual are of fewer aggregates.
        let scale_aggregates = self.scale_aggregates.unwrap_or_else(|| scale.1.min((scale_events / 10).max(2)));
        if scale_aggregates > scale_events {
            return Err(BenchError::Option(format!(
                "--scale-aggregates {scale_aggregates}: each has an event, and --scale-events are {scale_events}"
            )));
        }
        let mut parts = self.only.clone();
        if parts.is_empty() {
            parts = Part::value_variants().to_vec();
        }
        parts.dedup();
        let aggregates = self.aggregates.unwrap_or(if is_quick { AGGREGATES_QUICK } else { AGGREGATES });
        let cases = self.cases(aggregates);
        if cases.is_empty() {
            return Err(BenchError::Option(
                "--drives direct --tiers quorum: a member of a cluster has handles alone".to_owned(),
            ));
        }
        Ok(Plan {
            parts,
            cases,
            turns: self.turns.map_or(if is_quick { 1 } else { TURNS }, usize::from),
            time: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(seconds / 4.0),
            in_flight: self.in_flight.map_or(IN_FLIGHT, |commands| commands as usize),
            aggregates,
            replayed_events: self.replayed_events.unwrap_or(if is_quick {
                REPLAYED_EVENTS_QUICK
            } else {
                REPLAYED_EVENTS
            }),
            scale_events,
            scale_aggregates,
            scale_hot: scale.2.min(scale_aggregates),
            directory,
            is_quick,
        })
    }

    fn cases(&self, aggregates: u64) -> Vec<Case> {
        let is_chosen = |case: &Case| {
            (self.drives.is_empty() || self.drives.contains(&case.drive))
                && (self.tiers.is_empty() || self.tiers.contains(&case.tier))
        };
        Case::all(aggregates).into_iter().filter(is_chosen).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_effect() {
        let plan = CommandsArguments::default().plan().unwrap();
        assert_eq!((plan.turns, plan.in_flight, plan.aggregates), (TURNS, IN_FLIGHT, AGGREGATES));
        assert_eq!(plan.parts, Part::value_variants());
        assert_eq!((plan.time, plan.warm_up), (Duration::from_secs(2), Duration::from_millis(500)));
        let arguments = CommandsArguments {
            only: vec![Part::Replay],
            turns: Some(3),
            seconds: Some(0.5),
            in_flight: Some(7),
            aggregates: Some(9),
            replayed_events: Some(11),
            scale_events: Some(300),
            ..CommandsArguments::default()
        };
        let plan = arguments.plan().unwrap();
        assert_eq!((plan.parts, plan.turns, plan.in_flight), (vec![Part::Replay], 3, 7));
        assert_eq!((plan.aggregates, plan.replayed_events, plan.time), (9, 11, Duration::from_millis(500)));
        assert_eq!((plan.scale_events, plan.scale_aggregates, plan.scale_hot), (300, 30, 30));
        let chosen = |drives, tiers| CommandsArguments { drives, tiers, ..CommandsArguments::default() }.plan();
        let plan = chosen(vec![Drive::Direct], vec![Tier::Sync, Tier::Quorum]).unwrap();
        assert!(
            plan.cases.len() == 2
                && plan.cases.iter().all(|case| (case.drive, case.tier) == (Drive::Direct, Tier::Sync))
        );
        assert!(chosen(vec![Drive::Direct], vec![Tier::Quorum]).unwrap_err().is_about_options());
        let quick = OutputArguments { quick: true, ..OutputArguments::default() };
        let plan = CommandsArguments { output: quick, ..CommandsArguments::default() }.plan().unwrap();
        assert!(plan.is_quick && plan.turns == 1 && plan.replayed_events == REPLAYED_EVENTS_QUICK);
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
