//! The layout of a counters file, little-endian.
//!
//! ```text
//!  0                   8         12         16       20        24          32          128
//! +-------------------+---------+----------+--------+---------+-----------+------------+
//! | magic "GPLSCNTR"  | version | capacity | used   | pid     | namespace | zero       |  header
//! +-------------------+---------+----------+--------+---------+-----------+------------+
//!  0        4                                                                          128
//! +--------+---------------------------------------------------------------------------+
//! | length | label, UTF-8, then zero                                                   |  × capacity
//! +--------+---------------------------------------------------------------------------+
//!  0                   8                                                               128
//! +-------------------+----------------------------------------------------------------+
//! | value             | zero: no other value on this pair of cache lines               |  × capacity
//! +-------------------+----------------------------------------------------------------+
//! ```
//!
//! The pid is that of the owner's process namespace; the inode number of that namespace follows, or zero without
//! `/proc`. `used` counts the complete labels; it only grows. Each value has two cache lines, because processors fetch
//! them in pairs.

use std::os::unix::fs::MetadataExt;

pub const MAGIC: [u8; 8] = *b"GPLSCNTR";
/// The layout described here.
pub const VERSION: u32 = 1;
pub const CAPACITY_MAX: usize = 65_536;
/// Longest label, bytes.
pub const LABEL_LENGTH_MAX: usize = RECORD_LENGTH - 4;

/// Offset of the version, bytes from the start of the file.
pub const VERSION_OFFSET: usize = 8;
pub const CAPACITY_OFFSET: usize = 12;
/// Offset of the number of complete labels.
pub const USED_OFFSET: usize = 16;
pub const PID_OFFSET: usize = 20;
pub const NAMESPACE_OFFSET: usize = 24;
pub const HEADER_LENGTH: usize = RECORD_LENGTH;
pub const RECORD_LENGTH: usize = 128;

#[must_use]
pub const fn label_offset(index: usize) -> usize {
    HEADER_LENGTH + index * RECORD_LENGTH
}

#[must_use]
pub const fn value_offset(capacity: usize, index: usize) -> usize {
    label_offset(capacity) + index * RECORD_LENGTH
}

#[must_use]
pub const fn file_length(capacity: usize) -> usize {
    value_offset(capacity, capacity)
}

#[must_use]
pub(crate) fn blank(capacity: usize) -> Vec<u8> {
    let mut bytes = vec![0; file_length(capacity)];
    let pid = rustix::process::getpid().as_raw_nonzero().get() as u32;
    bytes[..VERSION_OFFSET].copy_from_slice(&MAGIC);
    bytes[VERSION_OFFSET..CAPACITY_OFFSET].copy_from_slice(&VERSION.to_le_bytes());
    bytes[CAPACITY_OFFSET..USED_OFFSET].copy_from_slice(&(capacity as u32).to_le_bytes());
    bytes[PID_OFFSET..PID_OFFSET + 4].copy_from_slice(&pid.to_le_bytes());
    bytes[NAMESPACE_OFFSET..NAMESPACE_OFFSET + 8].copy_from_slice(&process_namespace().to_le_bytes());
    bytes
}

/// Inode number of this process's process namespace; 0 without `/proc`.
#[must_use]
pub fn process_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

#[must_use]
pub(crate) fn label_record(label: &str) -> [u8; RECORD_LENGTH] {
    let mut record = [0; RECORD_LENGTH];
    record[..4].copy_from_slice(&(label.len() as u32).to_le_bytes());
    record[4..4 + label.len()].copy_from_slice(label.as_bytes());
    record
}

pub(crate) fn check_label(bytes: &[u8]) -> Result<&str, &'static str> {
    if bytes.is_empty() || bytes.len() > LABEL_LENGTH_MAX {
        return Err("must have 1 to 124 bytes");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "must be UTF-8")?;
    if text.chars().any(char::is_control) {
        return Err("must not contain control characters");
    }
    Ok(text)
}
