//! [`Resumption`]: a node that publishes the same messages again under the same token, after a crash for instance,
//! passes over those that the stream has already. No I/O.
//!
//! It rests on the numbers of a session: the sequencer says which number it expects next, and each message takes as
//! many numbers as it takes frames.

use crate::ClientError;
use gapless_wire::fnv::fnv_128;

/// Passes over the messages that were published before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumption {
    session: u64,
    /// The number that the stream expects.
    expected: u64,
    /// The number of the next message's first frame.
    next: u64,
}

impl Resumption {
    /// From the first message of `session` on, of which the stream expects the number `next_session_seq`.
    #[must_use]
    pub const fn new(session: u64, next_session_seq: u64) -> Self {
        Self { session, expected: next_session_seq, next: 1 }
    }

    /// Whether the stream has the next message, which takes `frames` frames, already. Asked once for each message, in
    /// the order of their publishing.
    ///
    /// # Errors
    /// [`ClientError::SessionLost`] if the stream has a part of it: other messages were published under the token, or
    /// the stream splits at another length now.
    pub const fn has(&mut self, frames: u64) -> Result<bool, ClientError> {
        let end = self.next + frames;
        if self.next >= self.expected {
            return Ok(false);
        }
        if end > self.expected {
            let Self { session, expected: found, next: expected } = *self;
            return Err(ClientError::SessionLost { session, expected, found });
        }
        self.next = end;
        Ok(true)
    }

    /// Whether everything that the stream had was met.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.next >= self.expected
    }
}

/// A token for a name, the same each time: the 128-bit FNV-1a hash, never 0. A process that knows the name can take the
/// session over.
#[must_use]
pub fn token_of(name: &str) -> u128 {
    fnv_128(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_passed_over_and_what_follows_is_not() {
        let mut resumption = Resumption::new(9, 6);
        let taken: Vec<bool> = [1, 3, 1, 1, 2].map(|frames| resumption.has(frames).unwrap()).to_vec();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(resumption.is_over());
        assert!(!Resumption::new(9, 1).has(1).unwrap() && Resumption::new(9, 1).is_over());
    }

    #[test]
    fn other_messages_than_before_are_noticed() {
        let mut resumption = Resumption::new(9, 6);
        assert!(resumption.has(4).unwrap() && !resumption.is_over());
        let error = resumption.has(2).unwrap_err();
        assert!(matches!(error, ClientError::SessionLost { session: 9, expected: 5, found: 6 }), "{error}");
    }

    #[test]
    fn a_name_is_always_the_same_token() {
        // The published hashes of the empty text and of "a".
        assert_eq!(token_of(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(token_of("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
