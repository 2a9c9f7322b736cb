//! An unclosed quote spoils only its own line.

use crate::fnv;
use std::fs::File;
use std::io::{BufRead, BufReader, Result};

/// Limit of the part of a line that is read, bytes.
pub const LINE_LENGTH_MAX: usize = 4096;

pub struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
    is_too_long: bool,
    number: u64,
    fingerprint: u64,
    bytes_read: u64,
}

impl Lines {
    pub fn new(file: File) -> Self {
        let reader = BufReader::with_capacity(1 << 16, file);
        let (line, is_too_long, number) = (Vec::new(), false, 0);
        Self { reader, line, is_too_long, number, fingerprint: fnv::EMPTY, bytes_read: 0 }
    }

    pub fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.is_too_long = false;
        let before = self.bytes_read;
        let mut is_ended = false;
        while !is_ended {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = (LINE_LENGTH_MAX + 1).saturating_sub(self.line.len());
            self.is_too_long |= part.len() > room;
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            self.fingerprint = fnv::extend(self.fingerprint, part);
            is_ended = end.is_some();
            let taken = part.len() + usize::from(is_ended);
            self.reader.consume(taken);
            self.bytes_read += taken as u64;
        }
        if self.bytes_read == before {
            return Ok(false);
        }
        // Counted even for a last line without its line end, so that the file may grow after it.
        self.fingerprint = fnv::extend(self.fingerprint, b"\n");
        self.number += 1;
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        self.is_too_long |= self.line.len() > LINE_LENGTH_MAX;
        Ok(true)
    }

    /// Line without its end; only the beginning of one that is too long.
    pub fn text(&self) -> &[u8] {
        &self.line
    }

    pub const fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    pub const fn number(&self) -> u64 {
        self.number
    }

    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub const fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}
