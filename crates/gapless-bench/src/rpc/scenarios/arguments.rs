//! The options of `gapless bench rpc scenarios`.

use clap::Args;
use gapless_measure::reporting::OutputArguments;
use gapless_measure::{BenchError, Result};
use std::path::PathBuf;
use std::time::Duration;

const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(2);
const TURN_QUICK: Duration = Duration::from_millis(100);
const PROBES: u64 = 10_000;
const PROBES_QUICK: u64 = 200;

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct ScenariosArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Calls of the probe in each of its rows [default: 10000]
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub probes: Option<u64>,

    /// Directory of the overflow [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScenariosPlan {
    pub(super) turns: usize,
    pub(super) turn: Duration,
    pub(super) probes: u64,
    pub(super) directory: PathBuf,
    pub(super) floor_time: Duration,
}

impl ScenariosArguments {
    pub(super) fn plan(&self) -> Result<ScenariosPlan> {
        self.output.check()?;
        let quick = self.output.quick;
        if let Some(path) = self.directory.as_ref().filter(|path| !path.is_dir()) {
            return Err(BenchError::Option(format!("--directory: {} is no directory", path.display())));
        }
        Ok(ScenariosPlan {
            turns: TURNS,
            turn: if quick { TURN_QUICK } else { TURN },
            probes: self.probes.unwrap_or(if quick { PROBES_QUICK } else { PROBES }),
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            floor_time: Duration::from_millis(if quick { 50 } else { 450 }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_effect() {
        let plan = ScenariosArguments::default().plan().unwrap();
        assert_eq!((plan.turns, plan.turn, plan.probes, plan.directory), (5, TURN, PROBES, std::env::temp_dir()));
        let output = OutputArguments { quick: true, ..Default::default() };
        let arguments = ScenariosArguments { output, directory: Some("/".into()), probes: None };
        let quick = arguments.plan().unwrap();
        assert_eq!((quick.turn, quick.probes, quick.directory), (TURN_QUICK, PROBES_QUICK, "/".into()));
        assert_eq!(ScenariosArguments { probes: Some(70), ..arguments }.plan().unwrap().probes, 70);
        let output = OutputArguments { plot: Some("..".into()), ..Default::default() };
        let error = ScenariosArguments { output, ..Default::default() }.plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--plot"));
        let nowhere = ScenariosArguments { directory: Some("/missing/x".into()), ..Default::default() };
        let error = nowhere.plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("/missing/x"));
    }
}
