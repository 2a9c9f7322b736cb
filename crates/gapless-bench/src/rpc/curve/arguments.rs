//! The options of `gapless bench rpc curve`.

use crate::Result;
use clap::{Args, ValueEnum as _};
use gapless_load::rpc::subject::{RpcSystem, WaitMode};
use gapless_measure::RunExtent;
use gapless_measure::reporting::OutputArguments;
use std::path::PathBuf;
use std::time::Duration;

const SAMPLES: u64 = 1_000;
const SAMPLES_QUICK: u64 = 200;
/// Bytes; the only ones with `--quick`.
pub(super) const SIZES_SHOWN: [usize; 5] = [1, 64, 256, 1024, 4096];
const CONNECTED: [usize; 2] = [16, 256];
/// Bytes: step of the curve, of the full one, and its end.
const STEP: usize = 256;
const STEP_FULL: usize = 32;
const SIZE_LAST: usize = 4096;

/// Options of the benchmark.
#[derive(Debug, Clone, Args)]
pub struct CurveArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Results of an earlier run, shown next to these
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,

    /// Payloads in bytes [default: 1, 64, then 256 to 4096 in steps of 256; with --full from 32 in steps of 32]
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub sizes: Vec<u64>,

    /// Measure all 129 published sizes; takes a quarter of an hour
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Timed calls of each size [default: 1000]
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    pub samples: Option<u64>,

    /// Number of turns over all rows; the median turn is shown
    #[arg(long, value_name = "TURNS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub turns: u32,

    /// Systems to measure [default: all]
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub systems: Vec<RpcSystem>,

    /// Way of waiting [default: all]
    #[arg(long, value_name = "WAY,...", value_delimiter = ',')]
    pub waiting: Vec<WaitMode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CurvePlan {
    /// Ascending, bytes.
    pub(super) sizes: Vec<usize>,
    pub(super) samples: u64,
    pub(super) turns: u32,
    pub(super) systems: Vec<RpcSystem>,
    pub(super) waiting: Vec<WaitMode>,
    /// Connected callers of which one calls.
    pub(super) connected: Vec<usize>,
    pub(super) floor_time: Duration,
}

impl CurveArguments {
    pub(super) fn plan(&self) -> Result<CurvePlan> {
        self.output.check()?;
        let extent = RunExtent::of(self.output.quick, self.full);
        let mut sizes: Vec<usize> = self.sizes.iter().map(|&size| size as usize).collect();
        if sizes.is_empty() {
            let in_steps_of = |step| (step..=SIZE_LAST).step_by(step);
            sizes = match extent {
                RunExtent::Quick => SIZES_SHOWN.into(),
                RunExtent::Usual => [1, 64].into_iter().chain(in_steps_of(STEP)).collect(),
                RunExtent::Full => std::iter::once(1).chain(in_steps_of(STEP_FULL)).collect(),
            };
        }
        sizes.sort_unstable();
        sizes.dedup();
        Ok(CurvePlan {
            sizes,
            samples: self.samples.unwrap_or(extent.pick(SAMPLES_QUICK, SAMPLES, SAMPLES)),
            turns: self.turns,
            systems: chosen(&self.systems, RpcSystem::value_variants()),
            waiting: chosen(&self.waiting, WaitMode::value_variants()),
            connected: CONNECTED.into(),
            floor_time: Duration::from_millis(extent.pick(30, 100, 100)),
        })
    }
}

impl Default for CurveArguments {
    fn default() -> Self {
        Self {
            output: OutputArguments::default(),
            compare: None,
            sizes: Vec::new(),
            full: false,
            samples: None,
            turns: 1,
            systems: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

fn chosen<T: Copy + PartialEq>(named: &[T], all: &[T]) -> Vec<T> {
    all.iter().copied().filter(|each| named.is_empty() || named.contains(each)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_options_have_effects() {
        let full = CurveArguments { full: true, ..CurveArguments::default() }.plan().unwrap();
        assert_eq!((full.sizes.len(), full.sizes[0], full.sizes[1], full.sizes[128]), (129, 1, 32, 4096));
        let plan = CurveArguments::default().plan().unwrap();
        assert_eq!((plan.sizes.len(), &plan.sizes[..4], plan.sizes[17]), (18, &[1, 64, 256, 512][..], 4096));
        assert!([2560].iter().chain(&SIZES_SHOWN).all(|size| plan.sizes.contains(size)));
        assert_eq!((plan.samples, plan.systems.len(), plan.waiting.len()), (SAMPLES, 3, 2));
        let output = OutputArguments { quick: true, ..OutputArguments::default() };
        let quick = CurveArguments { output: output.clone(), ..CurveArguments::default() }.plan().unwrap();
        assert_eq!((quick.sizes, quick.samples), (SIZES_SHOWN.to_vec(), SAMPLES_QUICK));
        let arguments = CurveArguments {
            output,
            sizes: vec![64, 1, 64],
            samples: Some(7),
            systems: vec![RpcSystem::Nats],
            waiting: vec![WaitMode::Spinning, WaitMode::Blocking],
            ..CurveArguments::default()
        };
        let plan = arguments.plan().unwrap();
        assert_eq!((plan.sizes, plan.samples, plan.systems), (vec![1, 64], 7, vec![RpcSystem::Nats]));
        assert_eq!(plan.waiting, [WaitMode::Blocking, WaitMode::Spinning], "in the order of the table");
        let output = OutputArguments { plot: Some("..".into()), ..OutputArguments::default() };
        let error = CurveArguments { output, ..CurveArguments::default() }.plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--plot"));
    }
}
