//! `Random`: dice from one seed.

/// SplitMix64; not for secrets. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Separate dice for one part of a run, so that draws for one do not change the others'.
    #[must_use]
    pub fn of(seed: u64, thing: &[u64]) -> Self {
        let mut random = Self(seed);
        for number in thing {
            random = Self(random.number() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        Self(random.number())
    }

    pub const fn number(&mut self) -> u64 {
        gapless_wire::split_mix::next(&mut self.0)
    }

    /// Returns a number from 0 to `limit` − 1; 0 for a limit of 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(limit)) >> 64) as u64
    }

    /// True in `of_100` percent of draws; 100 and more always.
    pub fn percent(&mut self, of_100: u64) -> bool {
        self.happens_per_100_000(of_100.saturating_mul(1_000))
    }

    /// True in `of_100_000` of 100,000 draws.
    pub fn happens_per_100_000(&mut self, of_100_000: u64) -> bool {
        self.below(100_000) < of_100_000
    }

    /// Returns a random element.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        assert!(!list.is_empty(), "nothing to pick from");
        list[self.below(list.len() as u64) as usize]
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}
