//! Bytes and `()` as messages; the application gives the bytes their meaning.

use super::{Encoding, Message, MessageError};

/// Unused buffer capacity that a short message may keep.
const SPARE_BYTES_MAX: usize = 512;

impl Message for Vec<u8> {
    const TYPE_NAME: &'static str = "bytes";
    const ENCODING: Encoding = Encoding::Bytes;

    fn fingerprint() -> u64 {
        0
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        into.extend_from_slice(self);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        Ok(bytes.to_vec())
    }

    fn encoded(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn decode_owned(version: u32, bytes: &mut Vec<u8>) -> Result<Self, MessageError> {
        let is_much = bytes.capacity() / 2 > bytes.len() + SPARE_BYTES_MAX;
        if version == Self::VERSION && !is_much { Ok(std::mem::take(bytes)) } else { Self::decode_as(version, bytes) }
    }

    fn into_buffer(self) -> Vec<u8> {
        self
    }

    /// A string if the bytes are UTF-8, else an array of numbers.
    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        let json = match std::str::from_utf8(self) {
            Ok(text) => serde_json::to_vec(text),
            Err(_) => serde_json::to_vec(self),
        };
        json.map_err(|error| MessageError::of::<Self>(error.to_string()))
    }

    /// `null` means no bytes.
    fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        if text.trim_ascii() == b"null" {
            return Ok(Self::new());
        }
        if let Ok(text) = serde_json::from_slice::<String>(text) {
            return Ok(text.into_bytes());
        }
        serde_json::from_slice(text).map_err(|error| {
            MessageError::of::<Self>(format!(
                "a text or an array of numbers from 0 to 255 is expected as JSON: {error}"
            ))
        })
    }
}

impl Message for () {
    const TYPE_NAME: &'static str = "nothing";
    const ENCODING: Encoding = Encoding::Bytes;

    fn fingerprint() -> u64 {
        0
    }

    fn encode(&self, _into: &mut Vec<u8>) -> Result<(), MessageError> {
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        if bytes.is_empty() {
            return Ok(());
        }
        Err(MessageError::of::<Self>(format!("no bytes are expected, {} were found", bytes.len())))
    }

    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        Ok(b"null".to_vec())
    }

    /// Accepts `null` and empty text.
    fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        if text.trim_ascii().is_empty() || text.trim_ascii() == b"null" {
            return Ok(());
        }
        let found = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        Err(MessageError::of::<Self>(format!("null is expected as JSON, {found:?} was found")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_survive_both_forms(bytes: Vec<u8>) {
            let mut encoded = vec![7];
            bytes.encode(&mut encoded).unwrap();
            prop_assert_eq!(&Vec::decode(&encoded[1..]).unwrap(), &bytes);
            prop_assert_eq!(bytes.encoded(), Some(&encoded[1..]));
            prop_assert_eq!(&Vec::decode_owned(1, &mut encoded[1..].to_vec()).unwrap(), &bytes);
            prop_assert_eq!(&bytes.clone().into_buffer(), &bytes);
            prop_assert!(Vec::<u8>::decode_owned(2, &mut encoded).unwrap_err().to_string().contains("version 2"));
            prop_assert_eq!(&Vec::from_json(&bytes.to_json().unwrap()).unwrap(), &bytes);
        }
    }

    #[test]
    fn short_message_drops_a_long_buffer() {
        let mut buffer = vec![7; 1 << 20];
        buffer.truncate(10);
        assert!(Vec::decode_owned(1, &mut buffer).unwrap().capacity() < 100);
        let mut buffer = vec![7; 1 << 20];
        let (address, length) = (buffer.as_ptr(), buffer.len());
        let message = Vec::decode_owned(1, &mut buffer).unwrap();
        assert_eq!((message.as_ptr(), message.len()), (address, length));
    }

    #[test]
    fn unit_is_no_bytes() {
        let mut encoded = Vec::new();
        ().encode(&mut encoded).unwrap();
        assert_eq!(encoded, b"");
        assert_eq!(<()>::decode(b""), Ok(()));
        assert_eq!(<()>::decode(b"a").unwrap_err().to_string(), "nothing: no bytes are expected, 1 were found");
        assert_eq!(<()>::from_json(b" null\n"), Ok(()));
        assert_eq!(<()>::from_json(b""), Ok(()));
        assert!(<()>::from_json(b"1").unwrap_err().to_string().contains("\"1\" was found"));
    }

    #[test]
    fn other_json_is_refused() {
        assert_eq!(Vec::<u8>::from_json(b" null\n").unwrap(), b"");
        for text in ["1", "{}", "[256]", "[-1]", "\"a", ""] {
            let error = Vec::<u8>::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("bytes: a text or an array of numbers"), "{error}");
        }
    }
}
