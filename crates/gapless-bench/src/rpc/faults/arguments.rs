//! The options of `gapless bench rpc faults`.

use super::Until;
use super::killing::new_seed;
use clap::Args;
use gapless_measure::Result;
use gapless_measure::reporting::OutputArguments;
use std::time::Duration;

/// Kills of each row with copies, and of the broker, which takes seconds to start.
const KILLS: usize = 100;
const KILLS_QUICK: usize = 3;
/// As many as there are kinds.
const KILLS_QUICK_SUPERVISED: usize = 5;
const BROKER_KILLS: usize = 5;
const BROKER_KILLS_QUICK: usize = 1;

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct FaultsArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Kills of copies in each row; of the broker a twentieth, at least one [default: 100]
    #[arg(long, value_name = "KILLS", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub kills: Option<u64>,

    /// Under a supervisor, how long copies, it and its guardian are killed at random [default: 1]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=1440))]
    pub minutes: Option<u64>,

    /// Which copy dies and when, as in the run that printed this seed [default: another each time]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// Plan of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// Of copies in each row.
    pub(super) kills: usize,
    pub(super) broker_kills: usize,
    /// Of any process under a supervisor.
    pub(super) supervised: Until,
    pub(super) floor_time: Duration,
}

impl FaultsArguments {
    /// Makes the plan of the measurement.
    ///
    /// # Errors
    /// A place for the picture that is no file.
    pub(super) fn plan(&self) -> Result<Plan> {
        self.output.check()?;
        let quick = self.output.quick;
        let (kills, broker_kills) = match self.kills {
            Some(kills) => (kills as usize, (kills as usize / 20).max(1)),
            None if quick => (KILLS_QUICK, BROKER_KILLS_QUICK),
            None => (KILLS, BROKER_KILLS),
        };
        let supervised = match self.minutes {
            None if quick => Until::Kills(KILLS_QUICK_SUPERVISED),
            minutes => Until::Time(Duration::from_secs(60 * minutes.unwrap_or(1))),
        };
        let floor_time = Duration::from_millis(if quick { 50 } else { 450 });
        Ok(Plan { seed: self.seed.map_or_else(new_seed, Ok)?, kills, broker_kills, supervised, floor_time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_effect() {
        let plan = FaultsArguments::default().plan().unwrap();
        assert_eq!((plan.kills, plan.broker_kills), (KILLS, BROKER_KILLS));
        assert_ne!(plan.seed, FaultsArguments::default().plan().unwrap().seed, "another each time");
        assert_eq!(plan.supervised, Until::Time(Duration::from_secs(60)));
        let of = |output, kills| FaultsArguments { output, kills, minutes: None, seed: Some(7) };
        let quick = of(OutputArguments { quick: true, ..Default::default() }, None).plan().unwrap();
        assert_eq!((quick.seed, quick.kills, quick.broker_kills), (7, KILLS_QUICK, BROKER_KILLS_QUICK));
        assert_eq!(quick.supervised, Until::Kills(KILLS_QUICK_SUPERVISED));
        let long = FaultsArguments { minutes: Some(10), ..FaultsArguments::default() }.plan().unwrap();
        assert_eq!(long.supervised, Until::Time(Duration::from_secs(600)));
        let plan = of(OutputArguments::default(), Some(50)).plan().unwrap();
        assert_eq!((plan.kills, plan.broker_kills), (50, 2));
        let error = of(OutputArguments { plot: Some("..".into()), ..Default::default() }, None).plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--plot"));
    }
}
