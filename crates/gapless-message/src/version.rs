//! Which version of a message two programs speak.

use super::Message;
use super::shape::{Shape, fingerprint, shape_at};

/// An older version of a message that a program reads and writes beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
