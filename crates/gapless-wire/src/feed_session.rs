//! Name of a feed. MoldUDP64 and SoupBinTCP call it *session*; this project calls it *feed session*, because a session
//! here belongs to a publisher.
//!
//! ```text
//!  0 1 2 3 4 5 6 7 8 9   byte
//! +-------------------+
//! |name, ASCII 21 …7e |   left-justified, filled up with spaces (20)
//! +-------------------+
//! ```

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedSessionError {
    /// Empty, or too long.
    #[error("a feed session is named by 1 to {} characters, {found_characters} were found", FeedSession::LENGTH)]
    Length { found_characters: usize },
    /// A space, a control character, or not ASCII.
    #[error(
        "a feed session is named by printable ASCII characters other than the space, {found:?} was found at \
         byte {offset}"
    )]
    Character { found: char, offset: usize },
}

/// Name of a feed: 1 to 10 printable ASCII characters without spaces, or [`FeedSession::BLANK`].
///
/// ```
/// # mod gapless { pub mod stream { pub use gapless_wire::FeedSession; } }
/// use gapless::stream::FeedSession;
/// let feed_session = FeedSession::new("ORDERS-1")?;
/// assert_eq!(feed_session.bytes(), *b"ORDERS-1  ");
/// assert_eq!(FeedSession::from_bytes(*b"ORDERS-1  "), Some(feed_session));
/// assert_eq!(feed_session.to_string(), "ORDERS-1");
/// # Ok::<(), gapless_wire::feed_session::FeedSessionError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedSession([u8; FeedSession::LENGTH]);

impl FeedSession {
    /// Length of the field, and of the longest name, bytes.
    pub const LENGTH: usize = 10;

    /// Ten spaces: the current feed, for a SoupBinTCP login.
    pub const BLANK: Self = Self([b' '; Self::LENGTH]);

    /// Creates the feed session of this name.
    ///
    /// # Errors
    /// [`FeedSessionError`] unless the name is 1 to 10 printable ASCII characters without spaces.
    pub fn new(name: &str) -> Result<Self, FeedSessionError> {
        if let Some((offset, found)) = name.char_indices().find(|(_, found)| !found.is_ascii_graphic()) {
            return Err(FeedSessionError::Character { found, offset });
        }
        let mut bytes = [b' '; Self::LENGTH];
        match bytes.get_mut(..name.len()) {
            Some(place) if !name.is_empty() => place.copy_from_slice(name.as_bytes()),
            _ => return Err(FeedSessionError::Length { found_characters: name.len() }),
        }
        Ok(Self(bytes))
    }

    /// `None` unless it is a left-justified name padded with spaces, or blank.
    #[inline]
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        // From the end, without a branch: a space is padding only while all bytes after it are spaces.
        let mut is_valid = true;
        let mut is_name = false;
        let mut index = Self::LENGTH;
        while index > 0 {
            index -= 1;
            let is_graphic = bytes[index].is_ascii_graphic();
            is_valid &= is_graphic | ((bytes[index] == b' ') & !is_name);
            is_name |= is_graphic;
        }
        if is_valid { Some(Self(bytes)) } else { None }
    }

    #[inline]
    #[must_use]
    pub const fn bytes(self) -> [u8; Self::LENGTH] {
        self.0
    }

    #[inline]
    #[must_use]
    pub const fn is_blank(self) -> bool {
        self.0[0] == b' '
    }

    /// Name without its padding; empty if blank.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == b' ').unwrap_or(Self::LENGTH);
        std::str::from_utf8(&self.0[..length]).expect("every constructor checks for ASCII")
    }
}

impl FromStr for FeedSession {
    type Err = FeedSessionError;

    fn from_str(name: &str) -> Result<Self, FeedSessionError> {
        Self::new(name)
    }
}

impl fmt::Display for FeedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for FeedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FeedSession").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_padded_with_spaces() {
        let feed_session = FeedSession::new("A~!7").unwrap();
        assert_eq!(feed_session.bytes(), [b'A', b'~', b'!', b'7', 32, 32, 32, 32, 32, 32]);
        assert_eq!((feed_session.as_str(), feed_session.is_blank()), ("A~!7", false));
        assert_eq!("A~!7".parse(), Ok(feed_session));
        assert_eq!(format!("{feed_session} {feed_session:>6} {feed_session:?}"), r#"A~!7   A~!7 FeedSession("A~!7")"#);
        let full = FeedSession::new("0123456789").unwrap();
        assert_eq!((full.bytes(), full.as_str()), (*b"0123456789", "0123456789"));
    }

    #[test]
    fn blank_has_no_name() {
        assert_eq!(FeedSession::BLANK.bytes(), [0x20; 10]);
        assert_eq!(FeedSession::from_bytes([0x20; 10]), Some(FeedSession::BLANK));
        assert!(FeedSession::BLANK.is_blank());
        assert_eq!((FeedSession::BLANK.as_str(), FeedSession::BLANK.to_string()), ("", String::new()));
        assert_eq!(FeedSession::new(""), Err(FeedSessionError::Length { found_characters: 0 }));
    }

    #[test]
    fn invalid_name_is_refused() {
        let length = FeedSession::new("0123456789a").unwrap_err();
        assert_eq!(length, FeedSessionError::Length { found_characters: 11 });
        assert_eq!(length.to_string(), "a feed session is named by 1 to 10 characters, 11 were found");
        for (name, found, offset) in
            [("A B", ' ', 1), ("A ", ' ', 1), (" ", ' ', 0), ("größe", 'ö', 2), ("A\n", '\n', 1), ("\x7f", '\x7f', 0)]
        {
            let error = FeedSession::new(name).unwrap_err();
            assert_eq!(error, FeedSessionError::Character { found, offset }, "{name:?}");
        }
        let text = FeedSession::new("A\n").unwrap_err().to_string();
        assert!(text.ends_with(r"other than the space, '\n' was found at byte 1"), "{text}");
    }

    #[test]
    fn only_names_and_blank_decode() {
        for refused in [*b" A        ", *b"A B       ", *b"         A", *b"A\0\0\0\0\0\0\0\0\0", [0; 10], [0xff; 10]] {
            assert_eq!(FeedSession::from_bytes(refused), None, "{}", refused.escape_ascii());
        }
        for place in 0..FeedSession::LENGTH {
            for byte in 0..=u8::MAX {
                let mut bytes = *b"ABCDEFGHIJ";
                bytes[place] = byte;
                let expected = (0x21..=0x7e).contains(&byte) || (byte == 0x20 && place == FeedSession::LENGTH - 1);
                let read = FeedSession::from_bytes(bytes);
                assert_eq!(read.is_some(), expected, "{byte:#04x} at {place}");
                assert!(read.is_none_or(|read| read.bytes() == bytes && FeedSession::new(read.as_str()) == Ok(read)));
            }
        }
    }
}
