//! Identifiers: `Position` of an event, `AggregateId` and its text form (`IdForm`), `TypeKey` of a type's name.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Longest identifier of an aggregate, bytes.
pub const ID_LENGTH_MAX: usize = 64;

/// Position of an event in its stream, and its identifier: no other event of the stream ever has it. Positions grow
/// with the stream, and have gaps, because frames without events have sequences, too.
///
/// ```
/// use gapless_cqrs::Position;
///
/// let position = Position { sequence: 17, ordinal: 2 };
/// assert_eq!(position.to_string(), "17.2");
/// assert_eq!("17.2".parse(), Ok(position));
/// assert!(position < Position { sequence: 18, ordinal: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Sequence of the transaction's first frame.
    pub sequence: u64,
    /// Index in the transaction, from 0.
    pub ordinal: u16,
}

impl Position {
    /// The next position, where a reader continues.
    #[must_use]
    pub const fn following(self) -> Self {
        match self.ordinal.checked_add(1) {
            Some(ordinal) => Self { ordinal, ..self },
            None => Self { sequence: self.sequence + 1, ordinal: 0 },
        }
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.sequence, self.ordinal)
    }
}

/// Error for a text that is no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no position: a sequence number, a dot and an ordinal up to 65535 are one, as in 17.0")]
pub struct NoPosition(String);

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let parse = || {
            let (sequence, ordinal) = text.split_once('.')?;
            Some(Self { sequence: sequence.parse().ok()?, ordinal: ordinal.parse().ok()? })
        };
        parse().ok_or_else(|| NoPosition(text.to_owned()))
    }
}

/// Identifier of an aggregate, unique within its type, of at most [`ID_LENGTH_MAX`] bytes. Equal ones, and only those,
/// have equal encodings. Numbers are big-endian, so that encodings sort like numbers; text is UTF-8.
pub trait AggregateId: Clone + Send + 'static {
    /// Text form of the identifiers.
    const FORM: IdForm = IdForm::Bytes;

    /// Encodes into the beginning of `into`; returns the length.
    ///
    /// # Errors
    /// The length, if there is not enough room.
    fn write(&self, into: &mut [u8; ID_LENGTH_MAX]) -> Result<usize, usize>;

    /// `None` if the bytes are invalid.
    fn read(bytes: &[u8]) -> Option<Self>;
}

#[inline]
fn copied(bytes: &[u8], into: &mut [u8; ID_LENGTH_MAX]) -> Result<usize, usize> {
    into.get_mut(..bytes.len()).ok_or(bytes.len())?.copy_from_slice(bytes);
    Ok(bytes.len())
}

macro_rules! number_is_id {
    ($($number:ty),*) => {$(
        impl AggregateId for $number {
            const FORM: IdForm = IdForm::Number { length: size_of::<$number>() };

            #[inline]
            fn write(&self, into: &mut [u8; ID_LENGTH_MAX]) -> Result<usize, usize> {
                copied(&self.to_be_bytes(), into)
            }

            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_be_bytes)
            }
        }
    )*};
}

number_is_id!(u32, u64, u128);

impl AggregateId for String {
    const FORM: IdForm = IdForm::Text;

    fn write(&self, into: &mut [u8; ID_LENGTH_MAX]) -> Result<usize, usize> {
        copied(self.as_bytes(), into)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(Self::from)
    }
}

impl<const LENGTH: usize> AggregateId for [u8; LENGTH] {
    fn write(&self, into: &mut [u8; ID_LENGTH_MAX]) -> Result<usize, usize> {
        copied(self, into)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

/// Text form of an aggregate's identifier, as in `gapless events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdForm {
    Text,
    /// Encoded big-endian in `length` bytes, 1 to 16.
    Number {
        length: usize,
    },
    /// Shown as text if they are text, else as `0x` and hexadecimal digits.
    #[default]
    Bytes,
}

impl IdForm {
    /// Description for error messages.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Text => format!("texts of at most {ID_LENGTH_MAX} bytes"),
            Self::Number { length } => format!("numbers of {length} bytes"),
            Self::Bytes => format!("texts, or 0x and hexadecimal digits, of at most {ID_LENGTH_MAX} bytes"),
        }
    }

    /// Formats an identifier; as [`IdForm::Bytes`] if it does not match.
    #[must_use]
    pub fn text(self, id: &[u8]) -> String {
        let number = |id: &[u8]| id.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        match (self, std::str::from_utf8(id)) {
            (Self::Number { length }, _) if length == id.len() && length <= 16 => number(id).to_string(),
            (Self::Text, Ok(text)) => text.to_owned(),
            (_, Ok(text)) if is_written_as_text(text) => text.to_owned(),
            _ => id.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        }
    }

    /// Parses and encodes an identifier; `None` if the text does not match the form, or is too long.
    ///
    /// ```
    /// use gapless_cqrs::{AggregateId, IdForm};
    ///
    /// assert_eq!(u64::FORM.bytes("258"), Some(vec![0, 0, 0, 0, 0, 0, 1, 2]));
    /// assert_eq!(u64::FORM.text(&[0, 0, 0, 0, 0, 0, 1, 2]), "258");
    /// assert_eq!(IdForm::Bytes.bytes("0x01ff"), Some(vec![1, 255]));
    /// ```
    #[must_use]
    pub fn bytes(self, text: &str) -> Option<Vec<u8>> {
        let bytes = match self {
            Self::Text => text.as_bytes().to_vec(),
            Self::Number { length } if !text.starts_with("0x") => {
                let bytes = text.parse::<u128>().ok()?.to_be_bytes();
                let (zeros, rest) = bytes.split_at(bytes.len().checked_sub(length)?);
                zeros.iter().all(|byte| *byte == 0).then(|| rest.to_vec())?
            }
            _ => match text.strip_prefix("0x") {
                Some(digits) if digits.is_ascii() && digits.len().is_multiple_of(2) => {
                    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
                    (0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?
                }
                Some(_) => return None,
                None => text.as_bytes().to_vec(),
            },
        };
        (bytes.len() <= ID_LENGTH_MAX).then_some(bytes)
    }
}

/// Visible, and parsed back to the same bytes.
fn is_written_as_text(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with("0x")
        && !text.chars().any(|letter| letter.is_control() || letter == '\u{fffd}')
}

/// Key of a type's name: FNV-1a of 32 bits, with the highest bit set; 0 is no type. A model with a collision is
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeKey(pub u32);

impl TypeKey {
    /// No type.
    pub const NONE: Self = Self(0);

    /// Key of a name.
    #[must_use]
    pub const fn of(name: &str) -> Self {
        Self(gapless_message::contract::name_key(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_text_round_trips() {
        for position in [Position::default(), Position { sequence: u64::MAX, ordinal: u16::MAX }] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        for text in ["", "1", "1.", ".1", "1.65536", "-1.0", "1.0.0"] {
            assert!(text.parse::<Position>().unwrap_err().to_string().starts_with(&format!("{text:?} is no position")));
        }
    }

    #[test]
    fn identifier_round_trips() {
        fn round_trips<Id: AggregateId + PartialEq>(id: Id) -> bool {
            let mut bytes = [0; ID_LENGTH_MAX];
            let length = id.write(&mut bytes).unwrap();
            Id::read(&bytes[..length]) == Some(id)
        }
        assert!(
            round_trips(7_u32)
                && round_trips(u64::MAX)
                && round_trips(1_u128 << 100)
                && round_trips("Zürich".to_owned())
                && round_trips([1_u8; 16])
        );
        assert_eq!("x".repeat(65).write(&mut [0; ID_LENGTH_MAX]), Err(65));
        assert!(u64::read(&[0; 7]).is_none() && String::read(&[0xff]).is_none() && <[u8; 3]>::read(&[0; 4]).is_none());
    }

    #[test]
    fn identifier_text_round_trips() {
        let round_trip = |form: IdForm, id: &[u8]| {
            let text = form.text(id);
            assert_eq!(form.bytes(&text).as_deref(), Some(id), "{text}");
            text
        };
        assert_eq!(round_trip(u64::FORM, &7_u64.to_be_bytes()), "7");
        assert_eq!(round_trip(u128::FORM, &[0xff; 16]), u128::MAX.to_string());
        assert_eq!(round_trip(u32::FORM, &[0, 1]), "0x0001", "wrong length for u32");
        assert_eq!(round_trip(String::FORM, "0x1 \u{e9}".as_bytes()), "0x1 \u{e9}");
        assert_eq!(round_trip(IdForm::Bytes, b"A-17"), "A-17");
        assert_eq!(round_trip(IdForm::Bytes, b"0x17"), "0x30783137", "text with 0x would be parsed as hexadecimal");
        assert_eq!(round_trip(<[u8; 2]>::FORM, &[1, 0xff]), "0x01ff");
        for (form, text) in [(u32::FORM, "4294967296"), (u32::FORM, "-1"), (u64::FORM, "0x1"), (IdForm::Bytes, "0xg0")]
        {
            assert_eq!(form.bytes(text), None, "{text}");
        }
        assert_eq!(IdForm::Text.bytes(&"x".repeat(65)), None);
    }

    #[test]
    fn type_key_is_fnv_1a() {
        // Published hashes: FNV-1a of "foobar" is bf9cf968, of "" 811c9dc5.
        assert_eq!((TypeKey::of("foobar").0, TypeKey::of("").0), (0xbf9c_f968, 0x811c_9dc5));
        assert_ne!(TypeKey::of("a"), TypeKey::of("b"));
    }
}
