//! [`Mark`]: the payload of a [`crate::Kind::Mark`] frame, a note of the sequencer in the stream.
//!
//! ```text
//!  0  u32  code             1 feed began, 2 feed ended, 3 halted, 4 resumed,
//!                          5 service version, 6 skipped, 7 fault rules
//!  4  u32  reserved, 0
//!  8  …    codes 1 and 2: the feed session's name, 10 bytes ASCII, padded with spaces; 3: a text, UTF-8; 4: nothing;
//!         5: u32 version, not 0; 6: u64 sequence, not 0; 7: u32 flags: bit 0 a panic is a dead letter, bit 1 an
//!         unhandled message stops the service
//! ```

use crate::feed_session::FeedSession;
use crate::fields::u32_at;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    FeedBegan {
        feed_session: FeedSession,
    },
    FeedEnded {
        feed_session: FeedSession,
    },
    /// Publishers' frames are refused until [`Mark::Resumed`].
    Halted {
        reason: &'a str,
    },
    Resumed,
    ServiceVersion {
        version: u32,
    },
    Skipped {
        sequence: u64,
    },
    FaultRules(FaultRules),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FaultRules {
    /// A panic is a refusal and a dead letter; if false, the service stops.
    pub panic_is_dead_letter: bool,
    /// The service stops; if false, the message is refused and recorded as a dead letter.
    pub unhandled_stops: bool,
}

impl FaultRules {
    const PANIC_IS_DEAD_LETTER: u32 = 1;
    const UNHANDLED_STOPS: u32 = 2;

    #[must_use]
    pub const fn bits(self) -> u32 {
        (if self.panic_is_dead_letter { Self::PANIC_IS_DEAD_LETTER } else { 0 })
            | (if self.unhandled_stops { Self::UNHANDLED_STOPS } else { 0 })
    }

    /// `None` if an undefined flag is set.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !(Self::PANIC_IS_DEAD_LETTER | Self::UNHANDLED_STOPS) != 0 {
            return None;
        }
        Some(Self {
            panic_is_dead_letter: bits & Self::PANIC_IS_DEAD_LETTER != 0,
            unhandled_stops: bits & Self::UNHANDLED_STOPS != 0,
        })
    }
}

pub const FIXED_LENGTH: usize = 8;
/// Longest reason, bytes; a longer one is cut at a character boundary.
pub const REASON_LENGTH_MAX: usize = 200;
/// Longest mark, bytes.
pub const LENGTH_MAX: usize = FIXED_LENGTH + REASON_LENGTH_MAX;

const FEED_BEGAN: u32 = 1;
const FEED_ENDED: u32 = 2;
const HALTED: u32 = 3;
const RESUMED: u32 = 4;
const SERVICE_VERSION: u32 = 5;
const SKIPPED: u32 = 6;
const FAULT_RULES: u32 = 7;

impl<'a> Mark<'a> {
    #[must_use]
    pub fn write_to(&self, buffer: &mut [u8; LENGTH_MAX]) -> usize {
        let (number, long_number);
        let (code, content) = match self {
            Self::FeedBegan { feed_session } => (FEED_BEGAN, &feed_session.bytes()[..]),
            Self::FeedEnded { feed_session } => (FEED_ENDED, &feed_session.bytes()[..]),
            Self::Halted { reason } => (HALTED, cut(reason).as_bytes()),
            Self::Resumed => (RESUMED, &[][..]),
            Self::ServiceVersion { version } => {
                number = version.to_le_bytes();
                (SERVICE_VERSION, &number[..])
            }
            Self::Skipped { sequence } => {
                long_number = sequence.to_le_bytes();
                (SKIPPED, &long_number[..])
            }
            Self::FaultRules(rules) => {
                number = rules.bits().to_le_bytes();
                (FAULT_RULES, &number[..])
            }
        };
        buffer[..4].copy_from_slice(&code.to_le_bytes());
        buffer[4..8].fill(0);
        buffer[FIXED_LENGTH..][..content.len()].copy_from_slice(content);
        FIXED_LENGTH + content.len()
    }

    /// `None` unless `payload` has this form.
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
            SKIPPED => {
                let sequence = u64::from_le_bytes(content.try_into().ok()?);
                (sequence > 0).then_some(Self::Skipped { sequence })?
            }
            FAULT_RULES => Self::FaultRules(FaultRules::from_bits(u32::from_le_bytes(content.try_into().ok()?))?),
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
    fn marks_round_trip() {
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
            Mark::Skipped { sequence: 1 },
            Mark::Skipped { sequence: u64::MAX },
            Mark::FaultRules(FaultRules::default()),
            Mark::FaultRules(FaultRules { panic_is_dead_letter: true, unhandled_stops: false }),
            Mark::FaultRules(FaultRules { panic_is_dead_letter: false, unhandled_stops: true }),
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
    fn invalid_mark_is_refused() {
        let with = |code: u8, content: &[u8]| [&[code, 0, 0, 0, 0, 0, 0, 0], content].concat();
        for bytes in [
            Vec::new(),
            vec![1; 7],
            with(0, b""),
            with(5, b""),
            with(5, &[0; 4]),
            with(5, &[1; 5]),
            with(6, b""),
            with(6, &[0; 8]),
            with(6, &[1; 9]),
            with(7, &[0; 3]),
            with(7, &[4, 0, 0, 0]),
            with(8, b""),
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
