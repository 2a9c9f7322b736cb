//! What a route may be called.

use crate::error::RpcError;

/// Bytes of a route's name at most.
pub const ROUTE_NAME_LENGTH_MAX: usize = 128;

/// Checks a route's name: 1 to 128 letters, digits, `.`, `-`, `_` and `/`.
///
/// # Errors
/// [`RpcError::RouteName`].
pub fn check(name: &str) -> Result<(), RpcError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte);
    if (1..=ROUTE_NAME_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(RpcError::RouteName { name: name.chars().take(200).collect() })
}
