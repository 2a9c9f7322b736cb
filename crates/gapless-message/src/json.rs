//! [`Json`]: JSON text as a message: for callers that know a route's types only when they run, such as tools.

use super::{Encoding, Message, MessageError};
use serde::de::IgnoredAny;

/// JSON text. A route of other processes that is called with it, whatever its types, reads its request from JSON and answers in
/// JSON ([`Message::from_json`], [`Message::to_json`]); its fingerprint is not compared. Inside one process, where values move,
/// it is a type like any other: ask with `Reach::OtherProcesses` there.
///
/// A route that is served with it gets and gives text: for programs that understand JSON and no Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(Vec<u8>);

impl Json {
    /// The text.
    ///
    /// # Errors
    /// What is not one JSON value.
    pub fn new(text: impl Into<Vec<u8>>) -> Result<Self, MessageError> {
        let text = text.into();
        // What is passed over is not looked at for UTF-8.
        let checked = std::str::from_utf8(&text).map_err(|error| error.to_string());
        match checked.and_then(|text| serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())) {
            Ok(_) => Ok(Self(text)),
            Err(reason) => Err(MessageError::of::<Self>(format!("one value is expected: {reason}"))),
        }
    }

    /// The text as it was given.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// The text, which is not needed here any more.
    #[must_use]
    pub fn into_text(self) -> Vec<u8> {
        self.0
    }
}

impl Message for Json {
    const TYPE_NAME: &'static str = "JSON";
    const ENCODING: Encoding = Encoding::Json;

    /// What stands in it is the other side's to check.
    fn fingerprint() -> u64 {
        0
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        into.extend_from_slice(&self.0);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        Self::new(bytes)
    }

    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        Ok(self.0.clone())
    }

    fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_stays_as_it_was_written_and_nothing_else_is_taken() {
        for text in ["1", " {\"a\": [1.0, null]}\n", "\"\u{e4}\"", "1e400", "123456789012345678901234567890"] {
            let json = Json::new(text).unwrap();
            let mut bytes = Vec::new();
            json.encode(&mut bytes).unwrap();
            assert_eq!(bytes, text.as_bytes());
            assert_eq!(Json::decode(&bytes).unwrap(), json);
            assert_eq!(Json::from_json(&json.to_json().unwrap()).unwrap().into_text(), text.as_bytes());
        }
        for text in [&b""[..], b" ", b"{", b"1 2", b"nul", b"\"\xff\"", b"{a:1}"] {
            let error = Json::new(text).unwrap_err().to_string();
            assert!(error.starts_with("JSON: one value is expected: "), "{error}");
        }
        // Deep nesting is an error, and no overflow of the stack.
        assert!(Json::new(vec![b'['; 1 << 20]).is_err());
    }
}
