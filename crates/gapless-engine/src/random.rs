//! Random numbers for handlers, derived from the message's position in the stream: the same at every handling, and none
//! is stored.
//!
//! The algorithm is fixed forever, because newer programs replay old journals: Philox4x64-10 (J. K. Salmon, M. A.
//! Moraes, R. O. Dror, D. E. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3. SC 2011), key (sequence, sequenced time
//! in ns). Draw *n* of a message is word *n* mod 4 of the block with the counter (*n* / 4, 0, 0, 0). The incarnation is
//! no part of the key: a restored directory has a new one, handles the old frames again, and must draw the same
//! numbers.

const MULTIPLIERS: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
const KEY_STEPS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];
const ROUNDS: usize = 10;

const fn philox(counter: [u64; 4], key: [u64; 2]) -> [u64; 4] {
    let ([mut c0, mut c1, mut c2, mut c3], [mut k0, mut k1]) = (counter, key);
    let mut round = 0;
    while round < ROUNDS {
        let first = MULTIPLIERS[0] as u128 * c0 as u128;
        let second = MULTIPLIERS[1] as u128 * c2 as u128;
        (c0, c1, c2, c3) =
            ((second >> 64) as u64 ^ c1 ^ k0, second as u64, (first >> 64) as u64 ^ c3 ^ k1, first as u64);
        (k0, k1) = (k0.wrapping_add(KEY_STEPS[0]), k1.wrapping_add(KEY_STEPS[1]));
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// Returns draw `drawn`, from 0, of the message at `sequence`: uniform over all 2⁶⁴ numbers.
#[must_use]
pub const fn number(sequence: u64, time_ns: u64, drawn: u64) -> u64 {
    philox([drawn / 4, 0, 0, 0], [sequence, time_ns])[(drawn % 4) as usize]
}

/// Maps a uniform number below `limit`: probabilities differ by at most 2⁻⁶⁴.
///
/// # Panics
/// If `limit` is 0.
#[must_use]
pub const fn below(number: u64, limit: u64) -> u64 {
    assert!(limit > 0, "no number is below 0");
    ((number as u128 * limit as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Random123, the authors' implementation (`tests/kat_vectors`).
    #[test]
    fn philox_matches_known_answers() {
        let known = [
            (
                ([0; 4], [0; 2]),
                [0x1655_4d9e_ca36_314c, 0xdb20_fe9d_672d_0fdc, 0xd7e7_72ce_e186_176b, 0x7e68_b68a_ec7b_a23b],
            ),
            (
                ([u64::MAX; 4], [u64::MAX; 2]),
                [0x87b0_92c3_013f_e90b, 0x438c_3c67_be8d_0224, 0x9cc7_d7c6_9cd7_77b6, 0xa09c_aebf_594f_0ba0],
            ),
            (
                (
                    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89],
                    [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c],
                ),
                [0xa528_f454_03e6_1d95, 0x38c7_2dbd_566e_9788, 0xa5a1_610e_72fd_18b5, 0x57bd_43b5_e52b_7fe6],
            ),
        ];
        for ((counter, key), block) in known {
            assert_eq!(philox(counter, key), block, "{counter:x?} under {key:x?}");
        }
    }

    #[test]
    fn draws_come_from_philox_blocks() {
        for drawn in 0..9 {
            let block = philox([drawn / 4, 0, 0, 0], [7, 1_000]);
            assert_eq!(number(7, 1_000, drawn), block[(drawn % 4) as usize]);
        }
        assert_ne!(number(7, 1_000, 0), number(8, 1_000, 0));
        assert_ne!(number(7, 1_000, 0), number(7, 1_001, 0));
        assert_eq!(number(0, 0, 3), 0x7e68_b68a_ec7b_a23b);
    }

    #[test]
    fn below_covers_the_whole_range() {
        assert_eq!([0, u64::MAX / 2, u64::MAX].map(|number| below(number, 6)), [0, 2, 5]);
        assert_eq!(below(u64::MAX, 1), 0);
        assert_eq!(below(u64::MAX, u64::MAX), u64::MAX - 1);
    }
}
