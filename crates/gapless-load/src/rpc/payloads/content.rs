//! Content of a payload, by which both ends tell a whole one from a part or from another one.
//!
//! ```text
//!   0  u64 length            … a pattern that differs with the payload's number …      length - 8  u64 !length
//! ```

const DISTINCT: usize = 64;
const LENGTH_MIN: usize = 32;

/// Written before the clock runs.
pub struct TaggedPayloads(Vec<Vec<u8>>);

impl TaggedPayloads {
    pub fn new(length: usize) -> Self {
        assert!(length >= LENGTH_MIN, "a payload of {length} bytes has no room for what tells it apart");
        let payload = |number: usize| {
            let mut bytes: Vec<u8> = (0..length).map(|index| (number * 31 + index * 7) as u8).collect();
            bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
            bytes[length - 8..].copy_from_slice(&(!(length as u64)).to_le_bytes());
            bytes
        };
        Self((0..DISTINCT).map(payload).collect())
    }

    pub fn of(&self, call: u64) -> &[u8] {
        &self.0[call as usize % DISTINCT]
    }
}

/// Checks both ends: for a receiver that sends nothing back.
pub fn is_whole(bytes: &[u8]) -> bool {
    let length = bytes.len() as u64;
    bytes.len() >= LENGTH_MIN && bytes.starts_with(&length.to_le_bytes()) && bytes.ends_with(&(!length).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_payload_is_detected() {
        for length in [32, 69, 500_071] {
            let payloads = TaggedPayloads::new(length);
            assert_eq!(payloads.of(3).len(), length);
            assert!(is_whole(payloads.of(3)));
            assert!(!is_whole(&payloads.of(3)[..length - 1]) && !is_whole(&payloads.of(3)[1..]));
            assert!(payloads.of(3) != payloads.of(4) && payloads.of(3) == payloads.of(67));
        }
        assert!(!is_whole(b""));
    }
}
