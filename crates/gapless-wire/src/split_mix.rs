//! SplitMix64, by Guy Steele, Doug Lea and Christine Flood ("Fast splittable pseudorandom number generators", OOPSLA 2014),
//! with the constants of Sebastiano Vigna's `splitmix64.c` (public domain). Equal seeds, equal numbers; not for secrets.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Any state is a seed.
#[must_use]
pub const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    finish(*state)
}

/// The output function alone: a permutation in which every bit of the input changes about half of the output's.
#[must_use]
pub const fn finish(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_published_numbers() {
        // Output of `splitmix64.c` for this seed.
        let mut state = 1_234_567;
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| next(&mut state)), expected);
    }
}
