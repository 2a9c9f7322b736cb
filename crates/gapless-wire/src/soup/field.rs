//! Fields of fixed length: text padded with spaces.

use super::{SEQUENCE_LENGTH, SoupError};
use crate::feed_session::FeedSession;
use std::fmt;

/// Does not repeat the text, which may be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoupFieldError {
    /// Longer than the field.
    #[error("at most {limit_characters} characters are allowed, {found_characters} were found")]
    Length { limit_characters: usize, found_characters: usize },
    /// A control character, or not ASCII.
    #[error("only printable ASCII characters are allowed, the one at byte {offset} is none")]
    Character { offset: usize },
}

/// A username (`N` = 6) or a password (`N` = 10): at most `N` printable ASCII characters. Surrounding spaces are
/// padding and not part of it; without a character it is blank. Debug does not show it.
///
/// ```
/// use gapless_wire::soup::Field;
/// let password = Field::<10>::new("swordfish")?;
/// assert!(password.matches(&Field::new("SwordFish ")?));
/// assert_eq!(format!("{password:?}"), "Field(hidden)");
/// # Ok::<(), gapless_wire::soup::SoupFieldError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<const N: usize>([u8; N]);

impl<const N: usize> Field<N> {
    pub const BLANK: Self = Self([b' '; N]);

    /// Creates the field with `text`.
    ///
    /// # Errors
    /// [`SoupFieldError`] if the text is longer than `N` characters or not printable ASCII.
    pub fn new(text: &str) -> Result<Self, SoupFieldError> {
        if let Some((offset, _)) = text.char_indices().find(|(_, found)| !matches!(found, ' '..='~')) {
            return Err(SoupFieldError::Character { offset });
        }
        let text = trim_spaces(text.as_bytes());
        let mut bytes = [b' '; N];
        let Some(place) = bytes.get_mut(..text.len()) else {
            return Err(SoupFieldError::Length { limit_characters: N, found_characters: text.len() });
        };
        place.copy_from_slice(text);
        Ok(Self(bytes))
    }

    /// Padded on either side; `None` unless printable ASCII.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; N]) -> Option<Self> {
        bytes.iter().all(|byte| matches!(byte, b' '..=b'~')).then(|| Self(left_justified(bytes)))
    }

    #[must_use]
    pub const fn bytes(&self) -> [u8; N] {
        self.0
    }

    /// Text without its padding; empty if blank.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(trim_spaces(&self.0)).expect("every constructor checks for ASCII")
    }

    #[must_use]
    pub fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }

    /// Compares without regard to case, as the specification requires. The time does not depend on the difference, so
    /// that it reveals nothing about a password.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        let differing = |(one, other): (&u8, &u8)| one.to_ascii_uppercase() ^ other.to_ascii_uppercase();
        self.0.iter().zip(&other.0).map(differing).fold(0, |sum, bits| sum | bits) == 0
    }
}

impl<const N: usize> fmt::Debug for Field<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Field(hidden)")
    }
}

fn trim_spaces(bytes: &[u8]) -> &[u8] {
    let Some(start) = bytes.iter().position(|byte| *byte != b' ') else { return &[] };
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(start, |last| last + 1);
    &bytes[start..end]
}

fn left_justified<const N: usize>(bytes: &[u8; N]) -> [u8; N] {
    let text = trim_spaces(bytes);
    let mut justified = [b' '; N];
    justified[..text.len()].copy_from_slice(text);
    justified
}

pub(super) fn feed_session_field(feed_session: FeedSession) -> [u8; FeedSession::LENGTH] {
    let name = feed_session.as_str().as_bytes();
    let mut bytes = [b' '; FeedSession::LENGTH];
    bytes[FeedSession::LENGTH - name.len()..].copy_from_slice(name);
    bytes
}

pub(super) fn read_feed_session(bytes: &[u8; FeedSession::LENGTH]) -> Result<FeedSession, SoupError> {
    FeedSession::from_bytes(left_justified(bytes)).ok_or(SoupError::FeedSession { found: *bytes })
}

pub(super) fn sequence_field(mut sequence: u64) -> [u8; SEQUENCE_LENGTH] {
    let mut bytes = [b' '; SEQUENCE_LENGTH];
    for place in bytes.iter_mut().rev() {
        *place = b'0' + (sequence % 10) as u8;
        sequence /= 10;
        if sequence == 0 {
            break;
        }
    }
    bytes
}

/// At least one digit, padded on either side.
pub(super) fn read_sequence(bytes: &[u8; SEQUENCE_LENGTH]) -> Result<u64, SoupError> {
    let digits = trim_spaces(bytes);
    let value = digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    });
    value.filter(|_| !digits.is_empty()).ok_or(SoupError::Sequence { found: *bytes })
}
