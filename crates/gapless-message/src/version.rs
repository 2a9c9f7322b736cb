//! Which version of a message two programs speak.

use super::shape::{Shape, fingerprint, shape_at};
use super::{Message, MessageError};

/// So many older versions of a reply are told apart; one that is older still is refused.
pub const OLDER_MAX: usize = 63;

/// An older version of a message that a program reads and writes beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OlderVersion {
    /// Its number.
    pub version: u32,
    /// What [`Message::fingerprint`] was in a program of that version.
    pub fingerprint: u64,
}

impl OlderVersion {
    /// The version of that number, as the derive knows it.
    #[must_use]
    pub fn of<M: Message + Shape>(version: u32) -> Self {
        Self { version, fingerprint: fingerprint(&shape_at::<M>(version)) }
    }
}

/// The version in which to speak with a program whose fingerprint of `M` is this one: its own, an older one, or `None` if both
/// cannot speak (or only the other side can, because it is the newer one).
#[must_use]
pub fn version_of<M: Message>(fingerprint: u64) -> Option<u32> {
    let own = M::fingerprint();
    if own == fingerprint || own == 0 || fingerprint == 0 {
        return Some(M::VERSION);
    }
    M::older().iter().find(|older| older.fingerprint == fingerprint).map(|older| older.version)
}

/// The bytes of a message in the version whose fingerprint is `from`, in that of `to`. Fields that the older of them lacks are their
/// defaults, or are left out.
///
/// # Errors
/// A fingerprint of no version that this program speaks; as [`Message::decode_as`] and [`Message::encode_as`].
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
