//! Agreement of two programs on the version of a message.

use super::{Message, MessageError};

/// Limit of a reply's older versions; still older ones are refused.
pub const OLDER_MAX: usize = 63;

/// Version to use with a program whose fingerprint of `M` is this one; `None` if this program knows no common version.
#[must_use]
pub fn version_of<M: Message>(fingerprint: u64) -> Option<u32> {
    let own = M::fingerprint();
    if own == fingerprint || own == 0 || fingerprint == 0 {
        return Some(M::VERSION);
    }
    M::older().iter().find(|older| older.fingerprint == fingerprint).map(|older| older.version)
}

/// Converts between the versions with these fingerprints: fields missing in the older one get their defaults, or are
/// dropped.
///
/// # Errors
/// A fingerprint belongs to no supported version; also as [`Message::decode_as`] and [`Message::encode_as`].
pub fn rewritten<M: Message>((from, to): (u64, u64), bytes: &[u8]) -> Result<Vec<u8>, MessageError> {
    let spoken = |fingerprint: u64| {
        let unknown =
            || MessageError::of::<M>(format!("fingerprint {fingerprint:#x} is of no version that is spoken here"));
        version_of::<M>(fingerprint).ok_or_else(unknown)
    };
    let mut into = Vec::new();
    M::decode_as(spoken(from)?, bytes)?.encode_as(spoken(to)?, &mut into)?;
    Ok(into)
}
