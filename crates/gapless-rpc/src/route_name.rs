//! What a route may be called, and which names are kept for notices.

use crate::error::RpcError;

/// Bytes of a route's name at most.
pub const ROUTE_NAME_LENGTH_MAX: usize = 128;

/// What stands in front of the names of routes that are no application's: they are not shown unless asked for.
pub const HIDDEN_PREFIX: char = '.';

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

/// Checks the name of a route that an application serves: as [`check`], and no `.` in front.
///
/// # Errors
/// [`RpcError::RouteName`], [`RpcError::Option`].
pub fn check_own(name: &str) -> Result<(), RpcError> {
    if name.starts_with(HIDDEN_PREFIX) {
        let reason = format!("names with a {HIDDEN_PREFIX:?} in front are kept for notices, {name:?} was found");
        return Err(RpcError::Option { option: "route", reason });
    }
    check(name)
}
