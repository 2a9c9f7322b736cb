//! Deterministic; not for secrets.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        gapless_wire::split_mix::next(&mut self.0)
    }

    /// Draws one number, even at 0 and 1, so that changing one rate does not change the other faults.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        // 53 bits are a fraction that an f64 holds exactly.
        let fraction = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        fraction < probability
    }

    /// Inclusive; the bias is below one in 2^64 / range.
    pub(super) fn between(&mut self, lowest: u64, highest: u64) -> u64 {
        let range = u128::from(highest - lowest) + 1;
        lowest + ((u128::from(self.next()) * range) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_match_published_generator() {
        // Reference implementation with seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn between_stays_in_range() {
        let mut random = Random::new(3);
        let mut seen = [false; 4];
        for _ in 0..200 {
            seen[random.between(5, 8) as usize - 5] = true;
        }
        assert_eq!(seen, [true; 4]);
        assert_eq!(random.between(9, 9), 9);
        random.between(0, u64::MAX);
    }
}
