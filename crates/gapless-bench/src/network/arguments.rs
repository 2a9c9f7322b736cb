//! The options of `gapless bench network`.

use clap::{Args, ValueEnum};
use gapless_measure::Result;
use gapless_measure::published::mercury::{PAYLOADS, PublishedPayload};
use gapless_measure::reporting::OutputArguments;

/// Exponents: 1 KiB to 1 MiB.
const CURVE: std::ops::RangeInclusive<u32> = 10..=20;
const CYCLE_BYTES: u64 = 30_000_000;
const CYCLE_BYTES_QUICK: u64 = 2_000_000;
const CALLS_MAX: u64 = 10_000;
const CALLS_MAX_QUICK: u64 = 1_000;
const CALLS_MIN: u64 = 50;
const LONE_CALLS: u64 = 2_000;
const LONE_CALLS_QUICK: u64 = 200;
/// Java compiles hot code only while it runs.
const JAVA_WARM_UP: u64 = 40_000;

/// System whose calls are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetworkSystem {
    /// This program: two domains with a bridge each
    Gapless,
    /// Two plain Java clients, which call as `ReplyingKafkaTemplate` does
    Java,
}

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct NetworkArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Calls of every size in each cycle [default: 30 MB of calls, 50 to 10000]
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub calls: Option<u64>,

    /// Running brokers, as host:port,host:port; the run removes its topics at the end [default: start one]
    #[arg(long, value_name = "ADDRESSES")]
    pub brokers: Option<String>,

    /// Systems to measure [default: all]
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub systems: Vec<NetworkSystem>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct NetworkPlan {
    pub(super) calls: Option<u64>,
    pub(super) cycle_bytes: u64,
    pub(super) calls_max: u64,
    pub(super) cycles: (usize, usize),
    pub(super) curve_cycles: (usize, usize),
    pub(super) java_cycles: (usize, usize),
    pub(super) java_warm_up: u64,
    pub(super) sizes: Vec<PublishedPayload>,
    pub(super) curve: Vec<usize>,
    /// 0 for none.
    pub(super) lone_calls: u64,
    pub(super) brokers: Option<String>,
    pub(super) systems: Vec<NetworkSystem>,
}

impl NetworkArguments {
    pub(super) fn plan(&self) -> Result<NetworkPlan> {
        self.output.check()?;
        let quick = self.output.quick;
        let is_chosen = |system: &&NetworkSystem| self.systems.is_empty() || self.systems.contains(system);
        Ok(NetworkPlan {
            calls: self.calls,
            cycle_bytes: if quick { CYCLE_BYTES_QUICK } else { CYCLE_BYTES },
            calls_max: if quick { CALLS_MAX_QUICK } else { CALLS_MAX },
            cycles: (10, 2),
            curve_cycles: (4, 1),
            java_cycles: (5, 1),
            java_warm_up: if quick { CALLS_MAX_QUICK } else { JAVA_WARM_UP },
            sizes: PAYLOADS.to_vec(),
            curve: CURVE.step_by(if quick { 10 } else { 1 }).map(|exponent| 1 << exponent).collect(),
            lone_calls: if quick { LONE_CALLS_QUICK } else { LONE_CALLS },
            brokers: self.brokers.clone(),
            systems: NetworkSystem::value_variants().iter().filter(is_chosen).copied().collect(),
        })
    }

    pub(super) fn least_plan(&self) -> Result<NetworkPlan> {
        let plan = self.plan()?;
        let sizes = PAYLOADS[..1].to_vec();
        let systems = vec![NetworkSystem::Gapless];
        Ok(NetworkPlan { cycles: (5, 1), sizes, curve: Vec::new(), lone_calls: 0, systems, ..plan })
    }
}

impl NetworkPlan {
    pub(super) fn calls(&self, size: usize) -> u64 {
        self.calls.unwrap_or_else(|| (self.cycle_bytes / size as u64).clamp(CALLS_MIN, self.calls_max))
    }

    pub(super) fn has(&self, system: NetworkSystem) -> bool {
        self.systems.contains(&system)
    }

    pub(super) fn each_size(&self) -> Vec<([usize; 2], Option<PublishedPayload>)> {
        let published = self.sizes.iter().map(|size| ([size.one_way, size.two_way], Some(*size)));
        let curve = self.curve.iter().filter(|_| self.has(NetworkSystem::Gapless)).map(|size| ([*size; 2], None));
        published.chain(curve).collect()
    }

    pub(super) fn steps(&self) -> usize {
        1 + self.systems.len() + usize::from(self.lone_calls > 0) + 2 * self.each_size().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_length_follows_payload_size() {
        let plan = NetworkArguments::default().plan().unwrap();
        assert_eq!([72, 10_069, 500_071, 1 << 30].map(|size| plan.calls(size)), [10_000, 2_979, 59, 50]);
        assert_eq!((plan.cycles, plan.curve.len()), ((10, 2), 11));
        assert_eq!(NetworkArguments { calls: Some(7), ..NetworkArguments::default() }.plan().unwrap().calls(72), 7);
    }

    #[test]
    fn java_alone_has_the_published_sizes() {
        let of =
            |systems: &[NetworkSystem]| NetworkArguments { systems: systems.to_vec(), ..NetworkArguments::default() };
        let java = of(&[NetworkSystem::Java]).plan().unwrap();
        assert!(java.has(NetworkSystem::Java) && !java.has(NetworkSystem::Gapless));
        assert!(java.each_size().iter().all(|(_, published)| published.is_some()));
        let both = of(&[]).plan().unwrap();
        assert_eq!((both.each_size().len(), both.steps()), (15, 34));
        let least = of(&[]).least_plan().unwrap();
        assert_eq!((least.steps(), least.each_size().len(), least.systems), (4, 1, vec![NetworkSystem::Gapless]));
    }
}
