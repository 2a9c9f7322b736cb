//! FNV-1a: fingerprints that are the same on every machine, against accidents and not against attacks.

pub const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

pub fn extend(fingerprint: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(fingerprint, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// 128 bits, never 0.
pub fn wide(bytes: &[u8]) -> u128 {
    let offset = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b_u128;
    bytes.iter().fold(offset, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(prime)).max(1)
}
