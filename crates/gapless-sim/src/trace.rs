//! [`Trace`]: a hash of a run's events, and their text on request. Equal hashes mean equal runs.

use std::fmt;
use std::io::{self, Write};

#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    events: u64,
    is_printed: bool,
}

impl Trace {
    pub(crate) const fn new(is_printed: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, events: 0, is_printed }
    }

    /// Adds an event that is not printed.
    pub(crate) fn fold(&mut self, numbers: &[u64]) {
        self.events += 1;
        for number in numbers {
            self.hash = mixed(self.hash ^ number);
        }
    }

    /// Prints on request.
    pub(crate) fn log(&mut self, now_ns: u64, what: fmt::Arguments<'_>) {
        let text = what.to_string();
        self.fold(&[now_ns, hash_of(text.as_bytes())]);
        if self.is_printed {
            let _unread = writeln!(io::stdout(), "{:>10.3} ms  {text}", now_ns as f64 / 1e6);
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) const fn events(&self) -> u64 {
        self.events
    }
}

const fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for word in bytes.chunks(8) {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        hash = mixed(hash ^ u64::from_le_bytes(padded)).rotate_left(5);
    }
    mixed(hash)
}
