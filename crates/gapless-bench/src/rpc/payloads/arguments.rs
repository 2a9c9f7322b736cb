//! The options of `gapless bench rpc payloads`.

use clap::Args;
use gapless_measure::Result;
use std::time::Duration;

use gapless_measure::published::mercury::{PAYLOADS, PublishedPayload};
use gapless_measure::reporting::OutputArguments;

/// Exponents: 1 KiB to 1 MiB.
const CURVE: std::ops::RangeInclusive<u32> = 10..=20;
const CALLS: u64 = 1_000;
const CALLS_QUICK: u64 = 64;

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct PayloadsArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Calls in each cycle [default: 1000]
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub calls: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PayloadsPlan {
    pub(super) calls: u64,
    pub(super) cycles: (usize, usize),
    pub(super) sizes: Vec<PublishedPayload>,
    pub(super) curve: Vec<usize>,
    pub(super) floor_time: Duration,
}

impl PayloadsArguments {
    pub(super) fn plan(&self) -> Result<PayloadsPlan> {
        self.output.check()?;
        let quick = self.output.quick;
        let curve = CURVE.step_by(if quick { 10 } else { 1 });
        Ok(PayloadsPlan {
            calls: self.calls.unwrap_or(if quick { CALLS_QUICK } else { CALLS }),
            cycles: (10, 2),
            sizes: PAYLOADS.to_vec(),
            curve: curve.map(|exponent| 1 << exponent).collect(),
            floor_time: Duration::from_millis(if quick { 50 } else { 300 }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_and_options_have_effects() {
        let of = |output| PayloadsArguments { output, calls: None };
        let plan = PayloadsArguments::default().plan().unwrap();
        assert_eq!((plan.calls, plan.cycles), (CALLS, (10, 2)));
        assert_eq!((plan.curve.len(), plan.curve[0], plan.curve[10]), (11, 1024, 1 << 20));
        let quick = of(OutputArguments { quick: true, ..OutputArguments::default() }).plan().unwrap();
        assert_eq!((quick.calls, quick.curve), (CALLS_QUICK, vec![1024, 1 << 20]));
        assert_eq!(PayloadsArguments { calls: Some(7), ..PayloadsArguments::default() }.plan().unwrap().calls, 7);
        let error = of(OutputArguments { plot: Some("..".into()), ..OutputArguments::default() }).plan().unwrap_err();
        assert!(error.is_about_options() && error.to_string().contains("--plot"));
    }
}
