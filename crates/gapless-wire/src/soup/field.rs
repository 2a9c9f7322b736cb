//! Fields of fixed length: text filled up with spaces. [`Field`] is a username or a password; feed sessions and
//! sequences are written right-justified and read on either side.

use super::{SEQUENCE_LENGTH, SoupError};
use crate::feed_session::FeedSession;
use std::fmt;

/// Why a text does not go into a [`Field`]. It says nothing of what the text is, because that may be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Longer than the field.
    #[error("at most {limit_characters} characters are allowed, {found_characters} were found")]
    Length {
        /// Characters that fit.
        limit_characters: usize,
        /// Characters of the text, without spaces around it.
        found_characters: usize,
    },
    /// A control character, or not ASCII.
    #[error("only printable ASCII characters are allowed, the one at byte {offset} is none")]
    Character {
        /// Where the first other character begins, bytes.
        offset: usize,
    },
}

/// A username (`N` = 6) or a password (`N` = 10): at most `N` printable ASCII characters. Spaces around it are
/// padding and no part of it; without a character it is blank. Debug does not show it.
///
/// ```
/// use gapless_wire::soup::Field;
/// let password = Field::<10>::new("swordfish")?;
/// assert!(password.matches(&Field::new("SwordFish ")?));
/// assert_eq!(format!("{password:?}"), "Field(hidden)");
/// # Ok::<(), gapless_wire::soup::FieldError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<const N: usize>(
    /// Left-justified, filled up with spaces.
    [u8; N],
);

impl<const N: usize> Field<N> {
    /// No text.
    pub const BLANK: Self = Self([b' '; N]);

    /// The field that says `text`.
    ///
    /// # Errors
    /// [`FieldError`] if it is longer than `N` characters or not printable ASCII.
    pub fn new(text: &str) -> Result<Self, FieldError> {
        if let Some((offset, _)) = text.char_indices().find(|(_, found)| !matches!(found, ' '..='~')) {
            return Err(FieldError::Character { offset });
        }
        let text = trim_spaces(text.as_bytes());
        let mut bytes = [b' '; N];
        let Some(place) = bytes.get_mut(..text.len()) else {
            return Err(FieldError::Length { limit_characters: N, found_characters: text.len() });
        };
        place.copy_from_slice(text);
        Ok(Self(bytes))
    }

    /// Reads a field, padded on either side; `None` unless it is printable ASCII.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; N]) -> Option<Self> {
        bytes.iter().all(|byte| matches!(byte, b' '..=b'~')).then(|| Self(left_justified(bytes)))
    }

    /// The field: the text, left-justified and filled up with spaces.
    #[must_use]
    pub const fn bytes(&self) -> [u8; N] {
        self.0
    }

    /// The text without its padding; empty if blank.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(trim_spaces(&self.0)).expect("every constructor checks for ASCII")
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }

    /// Whether this is the same username or password: as the specification has it, without regard to case. It takes
    /// as long whatever differs, so that nobody learns a password by the clock.
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

/// A feed session as a login has it: right-justified.
pub(super) fn feed_session_field(feed_session: FeedSession) -> [u8; FeedSession::LENGTH] {
    let name = feed_session.as_str().as_bytes();
    let mut bytes = [b' '; FeedSession::LENGTH];
    bytes[FeedSession::LENGTH - name.len()..].copy_from_slice(name);
    bytes
}

/// Reads a feed session that is padded on either side.
pub(super) fn read_feed_session(bytes: &[u8; FeedSession::LENGTH]) -> Result<FeedSession, SoupError> {
    FeedSession::from_bytes(left_justified(bytes)).ok_or(SoupError::FeedSession { found: *bytes })
}

/// A sequence as a login has it: decimal digits, right-justified.
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

/// Reads decimal digits, at least one, that are padded on either side.
pub(super) fn read_sequence(bytes: &[u8; SEQUENCE_LENGTH]) -> Result<u64, SoupError> {
    let digits = trim_spaces(bytes);
    let value = digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    });
    value.filter(|_| !digits.is_empty()).ok_or(SoupError::Sequence { found: *bytes })
}
