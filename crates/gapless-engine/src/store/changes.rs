//! Encoding of a transaction's changes.
//!
//! ```text
//!   0  u8   version, 1
//!   1  u32  operations, then each:
//!      u8       kind: 1 put, 2 patch, 3 remove, 4 push, 5 pop, 6 add, 7 queue begins (in snapshots only)
//!      varint   collection
//!      put      key, object
//!      patch    key, varint version of the object, varint length of the patched object,
//!               u32 lowest bits of its content hash, ranges: varint length, varint gap to
//!               the end of the previous range, bytes; a length of 0 ends them
//!      remove   key
//!      push     object
//!      pop      nothing
//!      add      zigzag varint, added with wrapping
//!      begins   varint, the number of the first item
//! ```
//! An object is a varint version, a varint length and its bytes. A key is 8 or 16 bytes, or a length byte and that many
//! bytes, or empty, depending on its collection. Numbers are little-endian. A varint has 7 bits per byte, lowest first,
//! at most 10 bytes, and must be in its shortest form. No key occurs twice, except that it may be put after a remove.

pub const VERSION: u8 = 1;
pub(super) const HEAD_LENGTH: usize = 5;

pub(super) const PUT: u8 = 1;
pub(super) const PATCH: u8 = 2;
pub(super) const REMOVE: u8 = 3;
pub(super) const PUSH: u8 = 4;
pub(super) const POP: u8 = 5;
pub(super) const ADD: u8 = 6;
pub(super) const BEGIN: u8 = 7;

/// Defect in foreign bytes, with its position; boxed, so that a result with it fits registers.
#[derive(Debug)]
pub struct ChangeError(pub(super) Box<ChangeErrorDetails>);

#[derive(Debug)]
pub struct ChangeErrorDetails {
    pub(super) offset: usize,
    pub(super) key: Option<String>,
    pub(super) reason: String,
}

impl ChangeError {
    #[cold]
    pub(super) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self(Box::new(ChangeErrorDetails { offset, key: None, reason: reason.into() }))
    }

    #[cold]
    pub(super) fn of_key(mut self, key: &dyn std::fmt::Debug) -> Self {
        self.0.key.get_or_insert_with(|| format!("{key:?}"));
        self
    }
}

/// Built on the stack and appended at once: each append to a vector stores its length, and the next one would wait for
/// that store.
pub struct OperationHead {
    bytes: [u8; Self::LENGTH_MAX],
    length: usize,
}

impl OperationHead {
    const LENGTH_MAX: usize = 64;

    #[inline(always)]
    pub(super) fn new(operation: u8, collection: u16) -> Self {
        let mut head = Self { bytes: [0; Self::LENGTH_MAX], length: 0 };
        head.bytes([operation]);
        head.varint(u64::from(collection));
        head
    }

    #[inline(always)]
    pub(super) fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(&bytes);
        self.length += N;
    }

    #[inline(always)]
    pub(super) fn part<const N: usize>(&mut self, bytes: [u8; N], length: usize) {
        self.bytes(bytes);
        self.length -= N - length;
    }

    #[inline(always)]
    pub(super) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes([value as u8 | 0x80]);
            value >>= 7;
        }
        self.bytes([value as u8]);
    }

    #[inline(always)]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        append_short(out, &self.bytes, self.length);
    }
}

#[inline(always)]
fn append_short<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], length: usize) {
    let begin = out.len();
    out.extend_from_slice(bytes);
    out.truncate(begin + length);
}

#[inline]
pub(super) fn begin(out: &mut Vec<u8>, operation: u8, collection: u16) {
    OperationHead::new(operation, collection).append_to(out);
}

#[inline]
pub(super) fn put_object(out: &mut Vec<u8>, version: u16, bytes: &[u8]) {
    put_varint(out, u64::from(version));
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[inline(always)]
pub(super) fn put_range(out: &mut Vec<u8>, object: &[u8], from: usize, to: usize, gap: usize) {
    const SHORT: usize = 16;
    let length = to - from;
    match object[from..].first_chunk::<SHORT>() {
        Some(bytes) if length <= SHORT && gap < 0x80 => {
            let mut stretch = [0; 2 + SHORT];
            (stretch[0], stretch[1]) = (length as u8, gap as u8);
            stretch[2..].copy_from_slice(bytes);
            append_short(out, &stretch, 2 + length);
        }
        _ => {
            put_varint(out, length as u64);
            put_varint(out, gap as u64);
            out.extend_from_slice(&object[from..to]);
        }
    }
}

#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(super) const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

pub struct ChangesReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> ChangesReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    #[inline]
    pub(super) fn bytes(&mut self, length: usize, what: &str) -> Result<&'a [u8], ChangeError> {
        let rest = &self.bytes[self.position..];
        let Some(bytes) = rest.get(..length) else {
            let reason = format!("{what} needs {length} bytes, only {} are left", rest.len());
            return Err(ChangeError::new(self.position, reason));
        };
        self.position += length;
        Ok(bytes)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ChangeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N, what)?);
        Ok(array)
    }

    #[inline]
    pub(super) fn byte(&mut self, what: &str) -> Result<u8, ChangeError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn varint(&mut self, what: &str) -> Result<u64, ChangeError> {
        match self.bytes.get(self.position) {
            Some(byte) if *byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(what),
        }
    }

    fn long_varint(&mut self, what: &str) -> Result<u64, ChangeError> {
        let begin = self.position;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if byte < 0x80 {
                let is_shortest = byte != 0 || shift == 0;
                if (bits << shift) >> shift != bits || !is_shortest {
                    break;
                }
                return Ok(value);
            }
        }
        Err(ChangeError::new(begin, format!("{what} is not a number of 64 bits in its shortest form")))
    }

    #[inline]
    pub(super) fn varint_u16(&mut self, what: &str) -> Result<u16, ChangeError> {
        let begin = self.position;
        let value = self.varint(what)?;
        u16::try_from(value)
            .map_err(|_| ChangeError::new(begin, format!("{what} is {value}, at most 65535 is possible")))
    }

    #[inline]
    pub(super) fn length(&mut self, what: &str) -> Result<usize, ChangeError> {
        let begin = self.position;
        let value = self.varint(what)?;
        usize::try_from(value).map_err(|_| ChangeError::new(begin, format!("{what} is {value}, too much")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_must_be_shortest() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = ChangesReader::new(&out);
            assert_eq!(reader.varint("x").unwrap(), value);
            assert!(reader.is_at_end());
            for length in 0..out.len() {
                assert!(ChangesReader::new(&out[..length]).varint("x").is_err());
            }
        }
        for wrong in [&[0x80, 0][..], &[0xff, 0x80, 0], &[0xff; 11], &[0xff, 255, 255, 255, 255, 255, 255, 255, 255, 2]]
        {
            assert!(ChangesReader::new(wrong).varint("x").is_err(), "{wrong:?}");
        }
        for value in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }
}
