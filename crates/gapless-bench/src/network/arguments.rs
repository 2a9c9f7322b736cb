//! The options of `gapless bench network`.

use clap::Args;
use gapless_measure::Result;
use gapless_measure::published::mercury::{PAYLOADS, PublishedPayload};
use gapless_measure::reporting::OutputArguments;

/// The sizes of the picture, bytes: 1 KiB to 1 MiB.
const CURVE: std::ops::RangeInclusive<u32> = 10..=20;
/// Bytes of the requests of a cycle, about.
const CYCLE_BYTES: u64 = 30_000_000;
const CYCLE_BYTES_QUICK: u64 = 2_000_000;
/// Calls of a cycle at most.
const CALLS_MAX: u64 = 10_000;
const CALLS_MAX_QUICK: u64 = 1_000;
/// Calls of a cycle at least.
const CALLS_MIN: u64 = 50;
/// Calls one at a time.
const LONE_CALLS: u64 = 2_000;
const LONE_CALLS_QUICK: u64 = 200;

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct NetworkArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Calls in each cycle, of every size [default: as many as 30 MB hold, 50 to 10000]
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub calls: Option<u64>,

    /// Brokers that run already, as host:port,host:port [default: one is started]
    #[arg(long, value_name = "ADDRESSES")]
    pub brokers: Option<String>,
}

/// Plan of the measurement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) calls: Option<u64>,
    pub(super) cycle_bytes: u64,
    pub(super) calls_max: u64,
    /// Cycles in all, and those that warm up.
    pub(super) cycles: (usize, usize),
    /// The same for the sizes of the picture.
    pub(super) curve_cycles: (usize, usize),
    /// Published sizes.
    pub(super) sizes: Vec<PublishedPayload>,
    /// Sizes of the picture, bytes.
    pub(super) curve: Vec<usize>,
    pub(super) lone_calls: u64,
    pub(super) brokers: Option<String>,
}

impl NetworkArguments {
    /// Makes the plan of the measurement.
    ///
    /// # Errors
    /// A place for the picture that is no file.
    pub(super) fn plan(&self) -> Result<Plan> {
        self.output.check()?;
        let quick = self.output.quick;
        Ok(Plan {
            calls: self.calls,
            cycle_bytes: if quick { CYCLE_BYTES_QUICK } else { CYCLE_BYTES },
            calls_max: if quick { CALLS_MAX_QUICK } else { CALLS_MAX },
            cycles: (10, 2),
            curve_cycles: (5, 1),
            sizes: PAYLOADS.to_vec(),
            curve: CURVE.step_by(if quick { 10 } else { 1 }).map(|exponent| 1 << exponent).collect(),
            lone_calls: if quick { LONE_CALLS_QUICK } else { LONE_CALLS },
            brokers: self.brokers.clone(),
        })
    }
}

impl Plan {
    /// Calls of a cycle.
    pub(super) fn calls(&self, size: usize) -> u64 {
        self.calls.unwrap_or_else(|| (self.cycle_bytes / size as u64).clamp(CALLS_MIN, self.calls_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_has_as_many_as_its_bytes_hold() {
        let plan = NetworkArguments::default().plan().unwrap();
        assert_eq!([72, 10_069, 500_071, 1 << 30].map(|size| plan.calls(size)), [10_000, 2_979, 59, 50]);
        assert_eq!((plan.cycles, plan.curve.len()), ((10, 2), 11));
        assert_eq!(NetworkArguments { calls: Some(7), ..NetworkArguments::default() }.plan().unwrap().calls(72), 7);
    }
}
