//! `Writer`, which appends protobuf fields to a buffer and remembers whether they fitted.

use super::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};
use crate::EncodeError;

/// Longest key and integer: 5 and 10 bytes, and one to spare.
const FIELD_LENGTH_MAX: usize = 16;

/// A field that does not fit is counted but not written, so a setter cannot fail: [`Writer::finish`] returns the error.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    /// Beyond the buffer's length after the first field that did not fit.
    position: usize,
}

/// Start of a nested message or packed list, for [`Writer::close`].
#[derive(Debug)]
#[must_use]
pub struct Mark(usize);

impl<'a> Writer<'a> {
    /// An empty `buffer` only counts.
    #[inline]
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, position: 0 }
    }

    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`] if the buffer is too short.
    #[inline]
    pub const fn finish(self, message: &'static str) -> Result<usize, EncodeError> {
        if self.position > self.buffer.len() {
            return Err(EncodeError::capacity(message, 0, self.position, self.buffer.len()));
        }
        Ok(self.position)
    }

    /// Writes an unsigned integer, a boolean or an enum.
    #[inline]
    pub fn uint(&mut self, number: u32, value: u64) {
        self.short(number << 3 | VARINT, |room, at| put_varint(room, at, value));
    }

    /// In zigzag form.
    #[inline]
    pub fn sint(&mut self, number: u32, value: i64) {
        self.uint(number, zigzag(value));
    }

    #[inline]
    pub fn float(&mut self, number: u32, value: f32) {
        self.short(number << 3 | FIXED32, |room, at| put_array(room, at, value.to_le_bytes()));
    }

    #[inline]
    pub fn double(&mut self, number: u32, value: f64) {
        self.short(number << 3 | FIXED64, |room, at| put_array(room, at, value.to_le_bytes()));
    }

    #[inline]
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.short(number << 3 | LENGTH_DELIMITED, |room, at| put_varint(room, at, value.len() as u64));
        self.append(value);
    }

    #[inline]
    pub fn open(&mut self, number: u32) -> Mark {
        // One byte is reserved for the length; a longer length moves the body when it is known.
        self.short(number << 3 | LENGTH_DELIMITED, |room, at| put_varint(room, at, 0));
        Mark(self.position)
    }

    #[inline]
    pub fn close(&mut self, mark: Mark) {
        let length = self.position - mark.0;
        match self.buffer.get_mut(mark.0.wrapping_sub(1)) {
            Some(byte) if length < 0x80 => *byte = length as u8,
            _ => self.close_long(mark.0, length),
        }
    }

    #[inline(never)]
    fn close_long(&mut self, start: usize, length: usize) {
        let mut encoded = [0; FIELD_LENGTH_MAX];
        let more = put_varint(&mut encoded, 0, length as u64) - 1;
        if self.position + more <= self.buffer.len() {
            self.buffer.copy_within(start..self.position, start + more);
            self.buffer[start - 1..start + more].copy_from_slice(&encoded[..=more]);
        }
        self.position += more;
    }

    #[inline]
    pub fn packed_uint(&mut self, value: u64) {
        self.raw(|room, at| put_varint(room, at, value));
    }

    #[inline]
    pub fn packed_sint(&mut self, value: i64) {
        self.packed_uint(zigzag(value));
    }

    #[inline]
    pub fn packed_float(&mut self, value: f32) {
        self.raw(|room, at| put_array(room, at, value.to_le_bytes()));
    }

    #[inline]
    pub fn packed_double(&mut self, value: f64) {
        self.raw(|room, at| put_array(room, at, value.to_le_bytes()));
    }

    #[inline(always)]
    fn short(&mut self, key: u32, put: impl FnOnce(&mut [u8; FIELD_LENGTH_MAX], usize) -> usize) {
        self.raw(|room, at| {
            let at = put_varint(room, at, u64::from(key));
            put(room, at)
        });
    }

    /// `put` returns the number of its bytes.
    #[inline(always)]
    fn raw(&mut self, put: impl FnOnce(&mut [u8; FIELD_LENGTH_MAX], usize) -> usize) {
        if let Some(room) = self.buffer.get_mut(self.position..).and_then(|rest| rest.first_chunk_mut()) {
            self.position += put(room, 0);
        } else {
            let mut field = [0; FIELD_LENGTH_MAX];
            let length = put(&mut field, 0);
            self.append(&field[..length.min(FIELD_LENGTH_MAX)]);
        }
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        let end = self.position + bytes.len();
        if let Some(room) = self.buffer.get_mut(self.position..end) {
            crate::sbe::write::copy(room, bytes);
        }
        self.position = end;
    }
}

#[inline]
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Returns the end. Indices wrap within the array, so there is no bounds check; keys and values together are shorter
/// than the array.
#[inline(always)]
fn put_varint(room: &mut [u8; FIELD_LENGTH_MAX], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        room[at % FIELD_LENGTH_MAX] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    room[at % FIELD_LENGTH_MAX] = value as u8;
    at + 1
}

#[inline(always)]
fn put_array<const N: usize>(room: &mut [u8; FIELD_LENGTH_MAX], at: usize, bytes: [u8; N]) -> usize {
    if let Some(field) = room.get_mut(at..at + N) {
        field.copy_from_slice(&bytes);
    }
    at + N
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_nested_message_is_moved() {
        let mut buffer = [0; 400];
        let mut writer = Writer::new(&mut buffer);
        let mark = writer.open(1);
        writer.bytes(2, &[7; 200]);
        writer.close(mark);
        writer.uint(3, 1);
        let length = writer.finish("Test").unwrap();
        assert_eq!(buffer[..6], [0x0a, 0xcb, 0x01, 0x12, 0xc8, 0x01]);
        assert_eq!(buffer[6..206], [7; 200]);
        assert_eq!((&buffer[206..length], length), (&[0x18, 1][..], 208));
    }

    #[test]
    fn overflow_is_reported_at_the_end() {
        let fields = |writer: &mut Writer<'_>| {
            writer.sint(1, -70_000);
            let mark = writer.open(2);
            writer.bytes(1, &[1; 150]);
            writer.double(2, 1.5);
            writer.close(mark);
            writer.float(700, 2.5);
        };
        let mut counting = Writer::new(&mut []);
        fields(&mut counting);
        let needed = counting.position();
        for capacity in 0..needed {
            let mut buffer = vec![0; capacity];
            let mut writer = Writer::new(&mut buffer);
            fields(&mut writer);
            let error = writer.finish("Test").unwrap_err();
            assert_eq!(error, EncodeError::capacity("Test", 0, needed, capacity));
        }
        let mut buffer = vec![0; needed];
        let mut writer = Writer::new(&mut buffer);
        fields(&mut writer);
        assert_eq!(writer.finish("Test"), Ok(needed));
    }
}
