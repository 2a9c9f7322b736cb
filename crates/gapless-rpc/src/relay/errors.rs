//! Errors as bytes: for relays that carry the end of a call to the machine of its caller.

use crate::outcome::CallError;
use crate::remote::ended::{read_ended, write_ended};

/// An error as bytes, in the form in which [`RelayedRequest::end`](super::RelayedRequest::end) gives it to a caller. In one that is longer than
/// `length_max` bytes, texts are cut and a payload is left out; 13 bytes are enough for every error without its texts. The route is left
/// out: it may have another name where this is read.
#[must_use]
pub fn error_to_bytes(error: &CallError, length_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_ended(error, length_max, &mut bytes);
    bytes
}

/// The error of a call of `route`, from bytes of [`error_to_bytes`]; `None` for any others.
#[must_use]
pub fn error_from_bytes(route: &str, bytes: &[u8]) -> Option<CallError> {
    read_ended(route, bytes)
}
