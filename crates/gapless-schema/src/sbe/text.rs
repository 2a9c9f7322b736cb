//! Fixed-length text, which ends at the first NUL or at the end of its field.

use crate::{DecodeError, EncodeError};

#[inline]
#[must_use]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Text as UTF-8, which includes ASCII.
///
/// # Errors
/// [`DecodeError::Text`].
#[inline]
pub fn utf8<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, DecodeError> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => Err(bad_text(field, "UTF-8", error.valid_up_to())),
    }
}

#[inline(always)]
const fn bad_text(field: &'static str, expected: &'static str, index: usize) -> DecodeError {
    DecodeError::Text { field, expected, index }
}

#[must_use]
pub fn latin1_to_string(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Encodes a text in ISO 8859-1.
///
/// # Errors
/// [`EncodeError::Text`] for a character that ISO 8859-1 does not have.
pub fn latin1_bytes(text: &str, field: &'static str) -> Result<Vec<u8>, EncodeError> {
    let bytes = text.chars().map(|character| u8::try_from(u32::from(character)));
    bytes.collect::<Result<_, _>>().map_err(|_| EncodeError::Text {
        field,
        found_bytes: text.len(),
        limit_bytes: text.len(),
        expected: "ISO-8859-1",
    })
}

/// Fills the rest with NUL.
///
/// # Errors
/// [`EncodeError::Text`] for a text that is longer than the field or that would be read back shorter.
#[inline]
pub fn put(field_bytes: &mut [u8], text: &[u8], field: &'static str) -> Result<(), EncodeError> {
    let limit_bytes = field_bytes.len();
    match field_bytes.split_at_mut_checked(text.len()) {
        Some((head, rest)) if !text.contains(&0) => {
            head.copy_from_slice(text);
            rest.fill(0);
            Ok(())
        }
        _ => Err(does_not_fit(field, text.len(), limit_bytes)),
    }
}

/// Like [`put`].
///
/// # Errors
/// [`EncodeError::Text`], also for a character that US-ASCII does not have.
#[inline]
pub fn put_ascii(field_bytes: &mut [u8], text: &[u8], field: &'static str) -> Result<(), EncodeError> {
    check_ascii(text, field)?;
    put(field_bytes, text, field)
}

/// Checks that a text is US-ASCII.
///
/// # Errors
/// [`EncodeError::Text`].
#[inline]
pub const fn check_ascii(text: &[u8], field: &'static str) -> Result<(), EncodeError> {
    if text.is_ascii() {
        return Ok(());
    }
    Err(EncodeError::Text { field, found_bytes: text.len(), limit_bytes: text.len(), expected: "US-ASCII" })
}

#[inline(always)]
const fn does_not_fit(field: &'static str, found_bytes: usize, limit_bytes: usize) -> EncodeError {
    EncodeError::Text { field, found_bytes, limit_bytes, expected: "text" }
}

/// Like [`put`].
///
/// # Errors
/// [`EncodeError::Text`], also for a character that ISO 8859-1 does not have.
pub fn put_latin1(field_bytes: &mut [u8], text: &str, field: &'static str) -> Result<(), EncodeError> {
    let limit_bytes = field_bytes.len();
    let mut characters = text.chars();
    for slot in field_bytes {
        *slot = match characters.next() {
            None => 0,
            Some(character) => match u8::try_from(u32::from(character)) {
                Ok(byte) if byte != 0 => byte,
                _ => return Err(does_not_fit(field, text.chars().count(), limit_bytes)),
            },
        };
    }
    if characters.next().is_some() {
        return Err(does_not_fit(field, text.chars().count(), limit_bytes));
    }
    Ok(())
}
