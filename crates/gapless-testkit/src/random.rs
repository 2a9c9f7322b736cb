//! Random numbers from a seed that is printed and can be set with `GAPLESS_SEED`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

const SEED: &str = "GAPLESS_SEED";
const SEEDS: &str = "GAPLESS_SEEDS";

/// Asks, unless it is 0, for the full test instead of the one for every change.
const FULL: &str = "GAPLESS_FULL";

/// `full` if `GAPLESS_FULL` is set, else `fewer`.
#[must_use]
pub fn rounds(full: u64, fewer: u64) -> u64 {
    if is_full() { full } else { fewer }
}

#[must_use]
pub fn is_full() -> bool {
    std::env::var_os(FULL).is_some_and(|set| !set.is_empty() && set != "0")
}

/// SplitMix64, by Guy Steele, Doug Lea and Christine Flood ("Fast splittable pseudorandom number generators", OOPSLA
/// 2014); not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// `before` is 0 at the start.
#[must_use]
pub fn fnv_64(before: u64, bytes: &[u8]) -> u64 {
    let mix = |mixed: u64, byte: &u8| (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(before ^ 0xcbf2_9ce4_8422_2325, mix)
}

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Takes `GAPLESS_SEED`, or a random seed, and prints it.
    pub fn seeded() -> Self {
        Self(printed_seed())
    }

    /// Creates a generator for the test with this name, independent of all other tests.
    pub fn of(seed: u64, name: &str) -> Self {
        Self(fnv_64(0, name.as_bytes()) ^ seed)
    }

    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `limit` − 1; 0 for a limit of 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(limit)) >> 64) as u64
    }

    pub fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

pub fn seed() -> u64 {
    variable(SEED).unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

pub fn printed_seed() -> u64 {
    let seed = seed();
    println!("{SEED}={seed} repeats this run's choices");
    seed
}

/// `GAPLESS_SEED` alone, or from 1 as many as `GAPLESS_SEEDS` or `count` says.
pub fn seeds(count: u64) -> Range<u64> {
    chosen(variable(SEED), variable(SEEDS), count)
}

fn chosen(seed: Option<u64>, seeds: Option<u64>, count: u64) -> Range<u64> {
    let first = seed.unwrap_or(1);
    let count = if seed.is_some() { 1 } else { seeds.unwrap_or(count) };
    assert!(count > 0, "{SEEDS} is 0: nothing would be tried");
    let behind = first.checked_add(count);
    first..behind.unwrap_or_else(|| panic!("{SEED} and {SEEDS} are numbers below {}", u64::MAX))
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a decimal number below 2^64, not {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::{Random, chosen};

    #[test]
    fn matches_published_numbers() {
        // From the reference implementation.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.number(), 6_457_827_717_110_365_317);
        assert_eq!(random.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn seeds_are_one_or_many() {
        assert_eq!(chosen(None, None, 3), 1..4);
        assert_eq!(chosen(None, Some(5), 3), 1..6);
        assert_eq!(chosen(Some(7), Some(5), 3), 7..8);
        for (seed, seeds) in [(Some(u64::MAX), None), (None, Some(0)), (None, Some(u64::MAX))] {
            assert!(std::panic::catch_unwind(|| chosen(seed, seeds, 3)).is_err(), "{seed:?} {seeds:?}");
        }
    }
}
