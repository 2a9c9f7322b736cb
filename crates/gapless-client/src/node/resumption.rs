//! A node that publishes the same messages again skips those that the stream has. The sequencer reports the next number
//! it expects; each message takes one number for each of its frames.

use crate::ClientError;
use gapless_wire::fnv::fnv_128;

/// Skips messages that were published before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumption {
    session: u64,
    expected: u64,
    next: u64,
}

impl Resumption {
    /// Starts at the first message of `session`; the stream expects `next_session_seq`.
    #[must_use]
    pub const fn new(session: u64, next_session_seq: u64) -> Self {
        Self { session, expected: next_session_seq, next: 1 }
    }

    /// Whether the stream already has the next message, of `frames` frames. Call it once for each, in publishing order.
    ///
    /// # Errors
    /// [`ClientError::SessionLost`] if the stream has only a part of it: other messages were published under the token,
    /// or the frame length has changed.
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

    /// All messages of the stream were skipped.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.next >= self.expected
    }
}

/// 128-bit FNV-1a hash of `name`, never 0. Any process that knows the name can take over the session.
#[must_use]
pub fn token_of(name: &str) -> u128 {
    fnv_128(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_messages_are_skipped() {
        let mut resumption = Resumption::new(9, 6);
        let taken: Vec<bool> = [1, 3, 1, 1, 2].map(|frames| resumption.has(frames).unwrap()).to_vec();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(resumption.is_over());
        assert!(!Resumption::new(9, 1).has(1).unwrap() && Resumption::new(9, 1).is_over());
    }

    #[test]
    fn changed_messages_are_detected() {
        let mut resumption = Resumption::new(9, 6);
        assert!(resumption.has(4).unwrap() && !resumption.is_over());
        let error = resumption.has(2).unwrap_err();
        assert!(matches!(error, ClientError::SessionLost { session: 9, expected: 5, found: 6 }), "{error}");
    }

    #[test]
    fn token_of_a_name_is_stable() {
        // Published hashes of the empty text and of "a".
        assert_eq!(token_of(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(token_of("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
