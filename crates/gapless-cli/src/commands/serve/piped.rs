//! Callers with JSON may send JSON to a program, and get its JSON.

use gapless_rpc::{Encoding, Json, Message, MessageError};

/// JSON objects pass unchanged.
pub(super) struct Piped(pub Vec<u8>);

impl Message for Piped {
    const TYPE_NAME: &'static str = <Vec<u8> as Message>::TYPE_NAME;
    const ENCODING: Encoding = <Vec<u8> as Message>::ENCODING;

    fn fingerprint() -> u64 {
        <Vec<u8> as Message>::fingerprint()
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        self.0.encode(into)
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        Message::decode(bytes).map(Self)
    }

    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        let is_object = self.0.trim_ascii_start().starts_with(b"{");
        match is_object.then(|| Json::new(self.0.as_slice())) {
            Some(Ok(object)) => Ok(object.into_text()),
            _ => self.0.to_json(),
        }
    }

    fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        if text.trim_ascii_start().starts_with(b"{") {
            return Json::new(text).map(|json| Self(json.into_text()));
        }
        Message::from_json(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn json_passes_through_byte_route() {
        for (json, bytes) in [
            (&b"\"text\""[..], &b"text"[..]),
            (b"[104, 105]", b"hi"),
            (b"null", b""),
            (b"{\"a\": [1]}", b"{\"a\": [1]}"),
        ] {
            assert_eq!(Piped::from_json(json).unwrap().0, bytes);
        }
        assert!([&b"{"[..], b"3", b"[1000]"].iter().all(|json| Piped::from_json(json).is_err()));
        for (bytes, json) in [
            (&b" {\"a\": 1}\n"[..], &b" {\"a\": 1}\n"[..]),
            (b"{a}", b"\"{a}\""),
            (b"12", b"\"12\""),
            (b"\xff", b"[255]"),
        ] {
            assert_eq!(Piped(bytes.to_vec()).to_json().unwrap(), json);
        }
    }
}
