//! `random_token`.

/// A random token for a new session.
///
/// # Panics
/// If the operating system has no random numbers.
#[must_use]
pub fn random_token() -> u128 {
    let mut bytes = [0u8; 16];
    gapless_agent::random::fill(&mut bytes).expect("the operating system has random numbers");
    u128::from_le_bytes(bytes).max(1)
}
