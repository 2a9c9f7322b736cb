//! `Json`: JSON text as a message, for callers that learn a route's types at run time, such as tools.

use super::{Encoding, Message, MessageError};
use serde::de::IgnoredAny;

/// JSON text, for callers that learn a route's types at run time: a route of another process reads its request from
/// JSON and answers in JSON; the fingerprint is not compared. Inside one process it is an ordinary type: call with
/// `Reach::OtherProcesses` there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(Vec<u8>);

impl Json {
    /// Checks and wraps a text.
    ///
    /// # Errors
    /// The text is not one JSON value.
    pub fn new(text: impl Into<Vec<u8>>) -> Result<Self, MessageError> {
        let text = text.into();
        // serde_json does not check ignored values for UTF-8.
        let checked = std::str::from_utf8(&text).map_err(|error| error.to_string());
        match checked.and_then(|text| serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())) {
            Ok(_) => Ok(Self(text)),
            Err(reason) => Err(MessageError::of::<Self>(format!("one value is expected: {reason}"))),
        }
    }

    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    #[must_use]
    pub fn into_text(self) -> Vec<u8> {
        self.0
    }
}

impl Message for Json {
    const TYPE_NAME: &'static str = "JSON";
    const ENCODING: Encoding = Encoding::Json;

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
    fn only_one_value_is_accepted() {
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
        assert!(Json::new(vec![b'['; 1 << 20]).is_err());
    }
}
