//! Agreement of two programs on the version of a message.

use super::shape::{Shape, fingerprint, shape_at};
use super::{Message, MessageError};

/// Limit of older versions of a reply that can be distinguished; still older ones are refused.
pub const OLDER_MAX: usize = 63;

/// An older version of a message that a program also reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OlderVersion {
    pub version: u32,
    /// [`Message::fingerprint`] in a program of that version.
    pub fingerprint: u64,
}

impl OlderVersion {
    /// Version of that number, as the derive knows it.
    #[must_use]
    pub fn of<M: Message + Shape>(version: u32) -> Self {
        Self { version, fingerprint: fingerprint(&shape_at::<M>(version)) }
    }
}

/// Version to use with a program whose fingerprint of `M` is this one: the own version, an older one, or `None` if
/// there is no common version (or only the other side knows it, because it is newer).
#[must_use]
pub fn version_of<M: Message>(fingerprint: u64) -> Option<u32> {
    let own = M::fingerprint();
    if own == fingerprint || own == 0 || fingerprint == 0 {
        return Some(M::VERSION);
    }
    M::older().iter().find(|older| older.fingerprint == fingerprint).map(|older| older.version)
}

/// Converts an encoded message from the version with fingerprint `from` to the one with `to`. Fields missing in the
/// older version get their defaults, or are dropped.
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
