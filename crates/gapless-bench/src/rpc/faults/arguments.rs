//! The options of `gapless bench rpc faults`.

use super::KillLimit;
use super::killing::new_seed;
use clap::Args;
use gapless_measure::reporting::OutputArguments;
use gapless_measure::{Result, RunExtent};
use std::time::Duration;

/// Kills of each row, and the limit of random kills under a supervisor.
const USUAL: (usize, KillLimit) = (50, KillLimit::Time(Duration::from_secs(30)));
const FULL: (usize, KillLimit) = (100, KillLimit::Time(Duration::from_secs(600)));
const QUICK: (usize, KillLimit) = (3, KillLimit::Kills(5));
/// A broker takes seconds to start: one kill for this many of the other rows.
const KILLS_PER_BROKER: usize = 20;

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct FaultsArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Kills of instances and servers in each row; of the broker a twentieth, at least one [default: 50; with --full 100]
    #[arg(long, value_name = "KILLS", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub kills: Option<u64>,

    /// Duration of random kills of instances, supervisor and guardian [default: half a minute; with --full 10]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=1440))]
    pub minutes: Option<u64>,

    /// Run as for the committed tables; takes a quarter of an hour
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Seed of the killed instances and their times, as printed by a run [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FaultsPlan {
    pub(super) seed: u64,
    pub(super) kills: usize,
    pub(super) broker_kills: usize,
    pub(super) supervised: KillLimit,
    pub(super) floor_time: Duration,
}

impl FaultsArguments {
    pub(super) fn plan(&self) -> Result<FaultsPlan> {
        self.output.check()?;
        let extent = RunExtent::of(self.output.quick, self.full);
        let (kills, supervised) = extent.pick(QUICK, USUAL, FULL);
        let kills = self.kills.map_or(kills, |kills| kills as usize);
        let broker_kills = (kills / KILLS_PER_BROKER).max(1);
        let supervised = self.minutes.map_or(supervised, |minutes| KillLimit::Time(Duration::from_secs(60 * minutes)));
        let floor_time = Duration::from_millis(extent.pick(50, 450, 450));
        Ok(FaultsPlan { seed: self.seed.map_or_else(new_seed, Ok)?, kills, broker_kills, supervised, floor_time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_effect() {
        let plan = FaultsArguments::default().plan().unwrap();
        assert_eq!((plan.kills, plan.broker_kills), (50, 2));
        assert_ne!(plan.seed, FaultsArguments::default().plan().unwrap().seed, "another each time");
        assert_eq!(plan.supervised, KillLimit::Time(Duration::from_secs(30)));
        let full = FaultsArguments { full: true, ..FaultsArguments::default() }.plan().unwrap();
        assert_eq!((full.kills, full.broker_kills, full.supervised), (100, 5, FULL.1));
        let of = |output, kills| FaultsArguments { output, kills, minutes: None, full: false, seed: Some(7) };
        let quick = of(OutputArguments { quick: true, ..Default::default() }, None).plan().unwrap();
        assert_eq!((quick.seed, quick.kills, quick.broker_kills, quick.supervised), (7, 3, 1, KillLimit::Kills(5)));
        let long = FaultsArguments { minutes: Some(10), ..FaultsArguments::default() }.plan().unwrap();
        assert_eq!(long.supervised, KillLimit::Time(Duration::from_secs(600)));
        let plan = of(OutputArguments::default(), Some(70)).plan().unwrap();
        assert_eq!((plan.kills, plan.broker_kills), (70, 3));
        let error = of(OutputArguments { plot: Some("..".into()), ..Default::default() }, None).plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--plot"));
    }
}
