//! `InstanceName`: name of a process and number of an instance, as `calculator.1`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const NAME_BYTES_MAX: usize = 64;

/// Name of a process and number of an instance, from 1; `calculator.1` as text, which is a valid directory name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct InstanceName {
    process: String,
    number: u32,
}

/// A text that is not the name of an instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no instance: expected the name of a process (letters, digits, `-`, `_`, at most {NAME_BYTES_MAX}), a point \
     and a number from 1, as `calculator.1`"
)]
pub struct InstanceNameError(String);

impl InstanceName {
    /// Creates the name of an instance.
    ///
    /// # Errors
    /// The process name is empty, longer than 64 bytes or has characters other than ASCII letters, digits, `-` and `_`;
    /// or the number is 0.
    pub fn new(process: &str, number: u32) -> Result<Self, InstanceNameError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_name = (1..=NAME_BYTES_MAX).contains(&process.len()) && process.bytes().all(is_allowed);
        if is_name && number > 0 {
            Ok(Self { process: process.to_owned(), number })
        } else {
            Err(InstanceNameError(format!("{process}.{number}")))
        }
    }

    #[must_use]
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Number of the instance, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.process, self.number)
    }
}

impl FromStr for InstanceName {
    type Err = InstanceNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || InstanceNameError(text.to_owned());
        let (process, number) = text.rsplit_once('.').ok_or_else(refused)?;
        // Unique text for each instance: no sign, no leading zero.
        let parsed: u32 = number.parse().map_err(|_| refused())?;
        if parsed.to_string() != number {
            return Err(refused());
        }
        Self::new(process, parsed).map_err(|_| refused())
    }
}

impl From<InstanceName> for String {
    fn from(name: InstanceName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for InstanceName {
    type Error = InstanceNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in ["calculator.1", "order-entry_2.12"] {
            assert_eq!(text.parse::<InstanceName>().unwrap().to_string(), text);
        }
        let long = "x".repeat(65) + ".1";
        for text in ["", "calculator", "calculator.0", "calculator.01", "a.+1", ".1", "a/b.1", "..1", "a.b.1", &long] {
            assert!(text.parse::<InstanceName>().is_err(), "{text:?}");
        }
    }
}
