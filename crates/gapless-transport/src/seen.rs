//! [`Seen`]: the last frame that somebody has seen of a stream.

use gapless_log::StreamIdentity;

/// The last frame that somebody has seen of a stream; zeros for none. It says nothing of another stream, or of another
/// incarnation of this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of which stream, and which life of it.
    pub identity: StreamIdentity,
    /// Its sequence.
    pub sequence: u64,
    /// Its time stamp, ns since the epoch. No two histories give a sequence the same one.
    pub timestamp_ns: u64,
}

impl Seen {
    /// Nothing of the stream `identity` yet.
    #[must_use]
    pub const fn nothing_of(identity: StreamIdentity) -> Self {
        Self { identity, sequence: 0, timestamp_ns: 0 }
    }

    /// A frame of the stream was seen, perhaps an earlier one.
    #[inline]
    pub const fn see(&mut self, sequence: u64, timestamp_ns: u64) {
        if sequence > self.sequence {
            (self.sequence, self.timestamp_ns) = (sequence, timestamp_ns);
        }
    }
}
