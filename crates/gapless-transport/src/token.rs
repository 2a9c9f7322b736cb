//! [`random_token`].

/// A token for a new session: random, so that nobody else has it.
///
/// # Panics
/// If the operating system has no random numbers.
#[must_use]
pub fn random_token() -> u128 {
    let mut bytes = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    assert_eq!(filled, Ok(bytes.len()), "the operating system has random numbers");
    u128::from_le_bytes(bytes).max(1)
}
