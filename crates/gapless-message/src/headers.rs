//! `Headers`: metadata that the application sends with a request.

/// Names and values that travel with a request, in the caller's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Vec<u8>)>);

/// Longest encoded headers, bytes.
pub const HEADERS_LENGTH_MAX: usize = 16 << 10;

impl Headers {
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        match self.0.iter_mut().find(|(each, _)| each == name) {
            Some((_, old)) => *old = value.into(),
            None => self.0.push((name.to_owned(), value.into())),
        }
    }

    /// First value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(each, _)| *each == name).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the last header, if it has that name.
    pub fn take_last(&mut self, name: &str) -> Option<Vec<u8>> {
        self.0.pop_if(|(last, _)| last == name).map(|(_, value)| value)
    }

    /// Each header as u16 length, name, u32 length, value, little-endian.
    ///
    /// # Errors
    /// The headers are too long; `into` is then unchanged.
    pub fn encode(&self, into: &mut Vec<u8>) -> Result<(), String> {
        let before = into.len();
        // A length beyond the limit might not fit into its field.
        let length: usize = self.0.iter().map(|(name, value)| 6 + name.len() + value.len()).sum();
        if length > HEADERS_LENGTH_MAX {
            return Err(format!("headers of {length} bytes; at most {HEADERS_LENGTH_MAX} are allowed"));
        }
        for (name, value) in &self.0 {
            into.extend_from_slice(&(name.len() as u16).to_le_bytes());
            into.extend_from_slice(name.as_bytes());
            into.extend_from_slice(&(value.len() as u32).to_le_bytes());
            into.extend_from_slice(value);
        }
        debug_assert_eq!(into.len() - before, length);
        Ok(())
    }

    #[must_use]
    pub fn are_encoded(mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match read_first(bytes) {
                Some((name, _, rest)) if name.is_ascii() || std::str::from_utf8(name).is_ok() => bytes = rest,
                _ => return false,
            }
        }
        true
    }

    #[must_use]
    pub fn find_encoded<'a>(mut bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
        loop {
            let (each, value, rest) = read_first(bytes)?;
            if each == name.as_bytes() {
                return Some(value);
            }
            bytes = rest;
        }
    }

    /// `None` if `bytes` are malformed.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut headers = Vec::new();
        while !bytes.is_empty() {
            let (name, value, rest) = read_first(bytes)?;
            headers.push((std::str::from_utf8(name).ok()?.to_owned(), value.to_vec()));
            bytes = rest;
        }
        Some(Self(headers))
    }
}

fn read_first(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((name, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_a_round_trip() {
        let headers = Headers::default().with("tenant", "blue").with("empty", "").with("tenant", vec![0, 255]);
        let mut bytes = Vec::new();
        headers.encode(&mut bytes).unwrap();
        assert_eq!(Headers::decode(&bytes), Some(headers.clone()));
        assert_eq!(headers.get("tenant"), Some(&b"blue"[..]));
        for name in ["tenant", "empty", "none"] {
            assert_eq!(Headers::find_encoded(&bytes, name), headers.get(name));
        }
        let mut changed = headers.clone();
        changed.set("tenant", "green");
        changed.set("new", "x");
        let names: Vec<_> = changed.iter().collect();
        let expected = [("tenant", &b"green"[..]), ("empty", b""), ("tenant", &[0, 255]), ("new", b"x")];
        assert_eq!(names, expected);
        for cut in 1..bytes.len() {
            assert!(Headers::decode(&bytes[..cut]).is_none_or(|shorter| shorter != headers), "cut at {cut}");
            assert_eq!(Headers::are_encoded(&bytes[..cut]), Headers::decode(&bytes[..cut]).is_some(), "cut at {cut}");
        }
        let long = Headers::default().with("x", vec![0; HEADERS_LENGTH_MAX]);
        assert!(long.encode(&mut bytes).is_err());
    }
}
