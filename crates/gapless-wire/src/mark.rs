//! [`Mark`]: the payload of a [`crate::Kind::Mark`] frame, the sequencer's own note in the stream. Marks have a
//! sequence like any frame, so every reader meets them at the same place.
//!
//! ```text
//!  0  u32  code             1 feed began, 2 feed ended, 3 halted, 4 resumed,
//!                          5 service version
//!  4  u32  reserved, 0
//!  8  …    codes 1 and 2: the feed session's name, 10 bytes ASCII, padded with spaces; 3: a text, UTF-8; 4: nothing;
//!         5: u32 version, not 0
//! ```

use crate::feed_session::FeedSession;
use crate::fields::u32_at;

/// What the sequencer notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// The first frame of a feed session.
    FeedBegan { feed_session: FeedSession },
    /// The last frame of a feed session.
    FeedEnded { feed_session: FeedSession },
    /// From here on nothing of the publishers is taken until [`Mark::Resumed`].
    Halted {
        /// Why, for a person.
        reason: &'a str,
    },
    /// Publishers' messages are taken again.
    Resumed,
    /// From here on the stream's service acts as this version of itself.
    ServiceVersion {
        /// Which; never 0.
        version: u32,
    },
}

/// Bytes before the name or text.
pub const FIXED_LENGTH: usize = 8;
/// The longest reason of a halt in bytes; a longer one is cut at a character boundary.
pub const REASON_LENGTH_MAX: usize = 200;
/// Room for any mark, bytes.
pub const LENGTH_MAX: usize = FIXED_LENGTH + REASON_LENGTH_MAX;

const FEED_BEGAN: u32 = 1;
const FEED_ENDED: u32 = 2;
const HALTED: u32 = 3;
const RESUMED: u32 = 4;
const SERVICE_VERSION: u32 = 5;

impl<'a> Mark<'a> {
    /// Bytes before the name or text.
    pub const FIXED_LENGTH: usize = 8;
    /// The longest reason of a halt in bytes; a longer one is cut at a character boundary.
    pub const REASON_LENGTH_MAX: usize = 200;
    /// Writes the payload and returns its length in bytes.
    #[must_use]
    pub fn write_to(&self, buffer: &mut [u8; LENGTH_MAX]) -> usize {
        let number;
        let (code, content) = match self {
            Self::FeedBegan { feed_session } => (FEED_BEGAN, &feed_session.bytes()[..]),
            Self::FeedEnded { feed_session } => (FEED_ENDED, &feed_session.bytes()[..]),
            Self::Halted { reason } => (HALTED, cut(reason).as_bytes()),
            Self::Resumed => (RESUMED, &[][..]),
            Self::ServiceVersion { version } => {
                number = version.to_le_bytes();
                (SERVICE_VERSION, &number[..])
            }
        };
        buffer[..4].copy_from_slice(&code.to_le_bytes());
        buffer[4..8].fill(0);
        buffer[FIXED_LENGTH..][..content.len()].copy_from_slice(content);
        FIXED_LENGTH + content.len()
    }

    /// Reads a payload; `None` unless it has this form.
    #[must_use]
    pub fn from_bytes(payload: &'a [u8]) -> Option<Self> {
        let (fixed, content) = payload.split_first_chunk::<FIXED_LENGTH>()?;
        if fixed[4..] != [0; 4] {
            return None;
        }
        let name = || FeedSession::from_bytes(content.try_into().ok()?).filter(|name| !name.is_blank());
        Some(match u32_at(fixed, 0) {
            FEED_BEGAN => Self::FeedBegan { feed_session: name()? },
            FEED_ENDED => Self::FeedEnded { feed_session: name()? },
            HALTED if content.len() <= REASON_LENGTH_MAX => Self::Halted { reason: std::str::from_utf8(content).ok()? },
            RESUMED if content.is_empty() => Self::Resumed,
            SERVICE_VERSION => {
                let version = u32::from_le_bytes(content.try_into().ok()?);
                (version > 0).then_some(Self::ServiceVersion { version })?
            }
            _ => return None,
        })
    }
}

fn cut(text: &str) -> &str {
    let mut length = text.len().min(REASON_LENGTH_MAX);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    &text[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FeedSession {
        FeedSession::new(text).unwrap()
    }

    #[test]
    fn every_mark_is_read_as_it_was_written() {
        let long = "é".repeat(150);
        let marks = [
            Mark::FeedBegan { feed_session: name("MONDAY") },
            Mark::FeedEnded { feed_session: name("A") },
            Mark::Halted { reason: "" },
            Mark::Halted { reason: "prices are wrong" },
            Mark::Halted { reason: &long },
            Mark::Resumed,
            Mark::ServiceVersion { version: 1 },
            Mark::ServiceVersion { version: u32::MAX },
        ];
        for mark in marks {
            let mut buffer = [0xa5; LENGTH_MAX];
            let length = mark.write_to(&mut buffer);
            let expected = match mark {
                Mark::Halted { reason } => Mark::Halted { reason: cut(reason) },
                other => other,
            };
            assert_eq!(Mark::from_bytes(&buffer[..length]), Some(expected));
        }
        assert_eq!(cut(&long).len(), 200);
    }

    #[test]
    fn what_is_no_mark_is_none() {
        let with = |code: u8, content: &[u8]| [&[code, 0, 0, 0, 0, 0, 0, 0], content].concat();
        for bytes in [
            Vec::new(),
            vec![1; 7],
            with(0, b""),
            with(5, b""),
            with(5, &[0; 4]),
            with(5, &[1; 5]),
            with(6, b""),
            with(1, b"SHORT"),
            with(1, b"          "),
            with(2, b"MONDAY    X"),
            with(3, &[0xff]),
            with(3, &[b'x'; 201]),
            with(4, b"x"),
            vec![4, 0, 0, 0, 1, 0, 0, 0],
        ] {
            assert_eq!(Mark::from_bytes(&bytes), None, "{bytes:?}");
        }
    }
}
