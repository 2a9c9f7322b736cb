//! ```text
//!   request:  0  u64 number    8  56 bytes that differ with the number
//!   answer:   0  u64 number    8  u8 attempt    9  the other bytes of the request, each incremented
//! ```

use gapless_measure::{BenchError, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

pub const LENGTH: usize = 64;

/// Caller, and count of its earlier requests.
pub fn number(caller: usize, count: u64) -> u64 {
    (caller as u64) << 48 | count
}

pub fn request(number: u64, seed: u64) -> [u8; LENGTH] {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    for (index, byte) in bytes.iter_mut().enumerate().skip(8) {
        *byte = word.to_le_bytes()[index % 8].wrapping_add(index as u8);
    }
    bytes
}

pub fn number_of(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}

pub fn answer(request: &[u8], attempt: u8) -> Vec<u8> {
    let mut bytes = request.to_vec();
    bytes.iter_mut().skip(9).for_each(|byte| *byte = byte.wrapping_add(1));
    if let Some(byte) = bytes.get_mut(8) {
        *byte = attempt;
    }
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerCheck {
    Right {
        attempt: u8,
    },
    /// The answer to another call, which its caller already has.
    Doubled,
    Wrong,
}

pub fn check(number: u64, seed: u64, found: &[u8]) -> AnswerCheck {
    let is_of = |number: u64| {
        let expected = answer(&request(number, seed), 0);
        found.len() == LENGTH && found[..8] == expected[..8] && found[9..] == expected[9..]
    };
    match number_of(found) {
        Some(same) if same == number && is_of(number) => AnswerCheck::Right { attempt: found[8] },
        Some(other) if other >> 48 == number >> 48 && other < number && is_of(other) => AnswerCheck::Doubled,
        _ => AnswerCheck::Wrong,
    }
}

/// Appended to, so that it survives the process.
pub struct NumberFile(File);

impl NumberFile {
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options().append(true).create(true).open(path);
        Ok(Self(file.map_err(|source| BenchError::io("open", path, source))?))
    }

    pub fn note(&self, number: u64) -> std::io::Result<()> {
        (&self.0).write_all(&number.to_le_bytes())
    }
}

/// Sums up all processes.
pub fn read_numbers(path: &Path) -> Result<HashMap<u64, u32>> {
    let bytes = std::fs::read(path).map_err(|source| BenchError::io("read", path, source))?;
    let mut counted = HashMap::new();
    for number in bytes.chunks_exact(8).filter_map(number_of) {
        *counted.entry(number).or_default() += 1;
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_must_match_its_number() {
        let of = |count| number(3, count);
        let found = answer(&request(of(7), 1), 2);
        assert_eq!(check(of(7), 1, &found), AnswerCheck::Right { attempt: 2 });
        assert_eq!(check(of(8), 1, &found), AnswerCheck::Doubled, "an earlier answer");
        assert_eq!(check(of(6), 1, &found), AnswerCheck::Wrong, "an answer to no request");
        assert_eq!(check(number(4, 8), 1, &found), AnswerCheck::Wrong, "an answer to another caller");
        assert_eq!(check(of(7), 2, &found), AnswerCheck::Wrong, "an answer of another run");
        assert_eq!(check(of(7), 1, &request(of(7), 1)), AnswerCheck::Wrong, "the request itself");
        for length in [0, 7, 8, 63] {
            assert_eq!(check(of(7), 1, &found[..length]), AnswerCheck::Wrong);
        }
        assert!(answer(&[], 1).is_empty());
    }

    #[test]
    fn numbers_are_counted_over_processes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("begun");
        let (first, second) = (NumberFile::open(&path).unwrap(), NumberFile::open(&path).unwrap());
        [1, 2].into_iter().for_each(|number| first.note(number).unwrap());
        [2, 3].into_iter().for_each(|number| second.note(number).unwrap());
        let counted = read_numbers(&path).unwrap();
        assert_eq!([1, 2, 3, 4].map(|number| counted.get(&number).copied()), [Some(1), Some(2), Some(1), None]);
        assert!(read_numbers(&directory.path().join("missing")).unwrap_err().to_string().contains("missing"));
    }
}
