//! [`Idle`] is pure; the thread runner carries out its [`IdleAction`]. Phases are measured in time, because the length
//! of a turn depends on the number of agents.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Behaviour of a thread without work; times are ns since its last work. As text: `spin`, `spin-yield:10us`,
/// `spin-yield-park:10us,590us,100ms`, `back-off:10us,100us,10us,1ms`; the numbers may be omitted for the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleStrategy {
    /// The lowest latency, one core at 100 %.
    Spin,
    /// Spins, then yields between polls; still 100 % without other threads.
    SpinYield { spin_ns: u64 },
    /// Spins, then yields, then parks until it is woken.
    SpinYieldPark {
        spin_ns: u64,
        /// Duration of yielding. Spinning and yielding should be longer than the usual gap between two messages, so
        /// that only real idleness costs a wake-up.
        yield_ns: u64,
        /// Longest park, which bounds the effect of a peer that dies without waking us; not a polling interval, because
        /// wake-ups end a park.
        park_ns_max: u64,
    },
    /// Spins, then yields, then sleeps for doubling times. Senders never make a system call, at the cost of up to
    /// `sleep_ns_max` of latency.
    BackOff { spin_ns: u64, yield_ns: u64, sleep_ns_min: u64, sleep_ns_max: u64 },
}

impl IdleStrategy {
    pub const SPIN_YIELD: Self = Self::SpinYield { spin_ns: 10_000 };
    /// [`IdleStrategy::SpinYieldPark`] with its defaults. At 2,000 messages a second or more the thread never parks; an
    /// idle one costs 10 polls a second. It yields soon: an unused yield costs less than a microsecond, while with
    /// several processes on the same cores each spin would be a time slice of milliseconds taken from the thread that
    /// the spinner waits for.
    pub const SPIN_YIELD_PARK: Self =
        Self::SpinYieldPark { spin_ns: 10_000, yield_ns: 590_000, park_ns_max: 100_000_000 };
    /// For a thread that shares its core: spinning would steal time from the thread it waits for.
    pub const SHARED_CORE: Self = Self::SpinYieldPark { spin_ns: 5_000, yield_ns: 50_000, park_ns_max: 100_000_000 };
    pub const BACK_OFF: Self =
        Self::BackOff { spin_ns: 10_000, yield_ns: 100_000, sleep_ns_min: 10_000, sleep_ns_max: 1_000_000 };

    /// Whether senders must wake a thread with this strategy.
    #[must_use]
    pub const fn parks(&self) -> bool {
        matches!(self, Self::SpinYieldPark { .. })
    }
}

impl Default for IdleStrategy {
    fn default() -> Self {
        Self::SPIN_YIELD_PARK
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAction {
    Poll,
    Spin,
    Yield,
    Park { ns_max: u64 },
    Sleep { ns: u64 },
}

/// State of one idling thread.
///
/// ```
/// use gapless_agent::{Idle, IdleAction, IdleStrategy};
/// let mut idle = Idle::new(IdleStrategy::SpinYieldPark { spin_ns: 100, yield_ns: 50, park_ns_max: 1_000 });
/// assert_eq!(idle.step(0, 1), IdleAction::Poll);
/// assert_eq!(idle.step(10, 0), IdleAction::Spin);
/// assert_eq!(idle.step(120, 0), IdleAction::Yield);
/// assert_eq!(idle.step(170, 0), IdleAction::Park { ns_max: 1_000 });
/// assert_eq!(idle.step(200, 1), IdleAction::Poll);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    strategy: IdleStrategy,
    since_ns: Option<u64>,
    sleep_ns: u64,
}

impl Idle {
    #[must_use]
    pub const fn new(strategy: IdleStrategy) -> Self {
        Self { strategy, since_ns: None, sleep_ns: 0 }
    }

    /// Action after a poll at `monotonic_ns` that did `work`. A park without work is followed by the next park instead
    /// of another spin: an idle thread stays cheap however often it is woken for nothing.
    #[inline]
    pub fn step(&mut self, monotonic_ns: u64, work: usize) -> IdleAction {
        if work > 0 {
            self.reset();
            return IdleAction::Poll;
        }
        if matches!(self.strategy, IdleStrategy::Spin) {
            return IdleAction::Spin;
        }
        self.step_without_work(monotonic_ns)
    }

    #[inline]
    pub fn reset(&mut self) {
        self.since_ns = None;
        self.sleep_ns = 0;
    }

    fn step_without_work(&mut self, monotonic_ns: u64) -> IdleAction {
        let idle_ns = monotonic_ns.saturating_sub(*self.since_ns.get_or_insert(monotonic_ns));
        let (spin_ns, yield_ns) = match self.strategy {
            IdleStrategy::Spin => (u64::MAX, 0),
            IdleStrategy::SpinYield { spin_ns } => (spin_ns, u64::MAX),
            IdleStrategy::SpinYieldPark { spin_ns, yield_ns, .. } | IdleStrategy::BackOff { spin_ns, yield_ns, .. } => {
                (spin_ns, yield_ns)
            }
        };
        if idle_ns < spin_ns {
            return IdleAction::Spin;
        }
        if idle_ns - spin_ns < yield_ns {
            return IdleAction::Yield;
        }
        match self.strategy {
            IdleStrategy::Spin | IdleStrategy::SpinYield { .. } => IdleAction::Yield,
            IdleStrategy::SpinYieldPark { park_ns_max, .. } => IdleAction::Park { ns_max: park_ns_max },
            IdleStrategy::BackOff { sleep_ns_min, sleep_ns_max, .. } => {
                self.sleep_ns = self.sleep_ns.saturating_mul(2).clamp(sleep_ns_min, sleep_ns_max.max(sleep_ns_min));
                IdleAction::Sleep { ns: self.sleep_ns }
            }
        }
    }
}

impl fmt::Display for IdleStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Spin => f.write_str("spin"),
            Self::SpinYield { spin_ns } => write!(f, "spin-yield:{}", DurationText(spin_ns)),
            Self::SpinYieldPark { spin_ns, yield_ns, park_ns_max } => {
                write!(
                    f,
                    "spin-yield-park:{},{},{}",
                    DurationText(spin_ns),
                    DurationText(yield_ns),
                    DurationText(park_ns_max)
                )
            }
            Self::BackOff { spin_ns, yield_ns, sleep_ns_min, sleep_ns_max } => write!(
                f,
                "back-off:{},{},{},{}",
                DurationText(spin_ns),
                DurationText(yield_ns),
                DurationText(sleep_ns_min),
                DurationText(sleep_ns_max)
            ),
        }
    }
}

impl FromStr for IdleStrategy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::Parse {
            what: "idle strategy",
            expected: "spin | spin-yield[:SPIN] | spin-yield-park[:SPIN,YIELD,PARK_MAX] | \
                       back-off[:SPIN,YIELD,SLEEP_MIN,SLEEP_MAX], times like 500us, PARK_MAX and SLEEP_MIN above 0, \
                       SLEEP_MIN not above SLEEP_MAX",
            found: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<IdleStrategy> {
    let (name, times) = match text.trim().split_once(':') {
        Some((name, times)) => (name, times.split(',').map(parse_duration).collect::<Option<Vec<u64>>>()?),
        None => (text.trim(), Vec::new()),
    };
    let strategy = match (name, times.as_slice()) {
        ("spin", []) => IdleStrategy::Spin,
        ("spin-yield", []) => IdleStrategy::SPIN_YIELD,
        ("spin-yield", &[spin_ns]) => IdleStrategy::SpinYield { spin_ns },
        ("spin-yield-park", []) => IdleStrategy::SPIN_YIELD_PARK,
        ("spin-yield-park", &[spin_ns, yield_ns, park_ns_max]) if park_ns_max > 0 => {
            IdleStrategy::SpinYieldPark { spin_ns, yield_ns, park_ns_max }
        }
        ("back-off", []) => IdleStrategy::BACK_OFF,
        ("back-off", &[spin_ns, yield_ns, sleep_ns_min, sleep_ns_max])
            if sleep_ns_min > 0 && sleep_ns_min <= sleep_ns_max =>
        {
            IdleStrategy::BackOff { spin_ns, yield_ns, sleep_ns_min, sleep_ns_max }
        }
        _ => return None,
    };
    Some(strategy)
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

fn parse_duration(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

struct DurationText(u64);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = UNITS.iter().rev().find(|(_, factor)| self.0.is_multiple_of(*factor)).unwrap_or(&UNITS[0]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_strategy() -> impl Strategy<Value = IdleStrategy> {
        prop_oneof![
            Just(IdleStrategy::Spin),
            any::<u64>().prop_map(|spin_ns| IdleStrategy::SpinYield { spin_ns }),
            (any::<u64>(), any::<u64>(), 1..=u64::MAX).prop_map(|(spin_ns, yield_ns, park_ns_max)| {
                IdleStrategy::SpinYieldPark { spin_ns, yield_ns, park_ns_max }
            }),
            (any::<u64>(), any::<u64>(), 1..=u64::MAX, any::<u64>()).prop_map(
                |(spin_ns, yield_ns, sleep_ns_min, more)| IdleStrategy::BackOff {
                    spin_ns,
                    yield_ns,
                    sleep_ns_min,
                    sleep_ns_max: sleep_ns_min.saturating_add(more),
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn strategy_round_trip(strategy in any_strategy()) {
            prop_assert_eq!(strategy.to_string().parse::<IdleStrategy>().unwrap(), strategy);
        }

        #[test]
        fn no_text_and_no_time_causes_a_panic(text in ".{0,40}", strategy in any_strategy(), times in proptest::collection::vec(any::<u64>(), 0..20)) {
            let _ = text.parse::<IdleStrategy>();
            let mut idle = Idle::new(strategy);
            for time in times {
                prop_assert_ne!(idle.step(time, 0), IdleAction::Poll);
            }
            prop_assert_eq!(idle.step(0, 1), IdleAction::Poll);
        }
    }

    #[test]
    fn invalid_strategy_text_is_refused() {
        for text in [
            "",
            "spin:1us",
            "park",
            "spin-yield-park:1us",
            "spin-yield-park:1us,1us,0ns",
            "back-off:1us,1us,2us,1us",
            "spin-yield:5",
            "spin-yield:99999999999999999999s",
            "spin-yield:-1us",
        ] {
            let error = text.parse::<IdleStrategy>().unwrap_err().to_string();
            assert!(error.contains("spin-yield-park[") && error.contains(&format!("{text:?}")), "{text}: {error}");
        }
        assert_eq!("spin-yield:2s".parse::<IdleStrategy>().unwrap().to_string(), "spin-yield:2s");
        assert_eq!(IdleStrategy::default().to_string(), "spin-yield-park:10us,590us,100ms");
    }

    #[test]
    fn back_off_doubles_and_resets() {
        let strategy = IdleStrategy::BackOff { spin_ns: 0, yield_ns: 0, sleep_ns_min: 10, sleep_ns_max: 35 };
        let mut idle = Idle::new(strategy);
        let sleeps: Vec<_> = (0..4).map(|time| idle.step(time, 0)).collect();
        assert_eq!(sleeps, [10, 20, 35, 35].map(|ns| IdleAction::Sleep { ns }));
        idle.step(5, 1);
        assert_eq!(idle.step(6, 0), IdleAction::Sleep { ns: 10 });
    }

    #[test]
    fn spurious_wake_up_parks_again() {
        let mut idle = Idle::new(IdleStrategy::default());
        assert_eq!(idle.step(0, 0), IdleAction::Spin);
        for time in [600_000, 600_001, 100_600_000] {
            assert_eq!(idle.step(time, 0), IdleAction::Park { ns_max: 100_000_000 });
        }
    }
}
