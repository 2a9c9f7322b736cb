//! `gapless bench serialization`: writing and reading a Car, every field, in each of its four forms.
//!
//! A value is the mean of 100 messages, because one is too short to be timed by the same clock.

use super::{ComponentArguments, TimeUnit, is_interrupted, print_measured};
use crate::Result;
use crate::options::MessageEncoding;
use gapless_load::components::serialization::{TOGETHER, rows_of};
use gapless_measure::Report;
use gapless_measure::published::rumi::{DECODE_NS, ENCODE_NS, SOURCE};
use std::sync::atomic::AtomicBool;

const MESSAGES: u64 = 500_000;
/// Measures; returns the text to print.
///
/// # Errors
/// A Car that cannot be written or read, or read as another one; a report that cannot be written.
pub fn run(arguments: &ComponentArguments, interrupted: &AtomicBool) -> Result<String> {
    let count = arguments.count.unwrap_or(MESSAGES);
    let mut report = Report::new("serialization");
    for &encoding in MessageEncoding::ALL {
        if is_interrupted(&mut report, interrupted) {
            break;
        }
        let before = report.rows.len();
        rows_of(encoding, count, &mut report)?;
        print_measured(&report.rows[before..]);
    }
    let ((encode_min, encode_max), (decode_min, decode_max)) = (ENCODE_NS, DECODE_NS);
    report.notes.push(format!(
        "each value is the mean of {TOGETHER} messages; published for another wire on another machine ({SOURCE}): encode {encode_min} to {encode_max} ns, decode {decode_min} to {decode_max} ns"
    ));
    arguments.finish(&report, TimeUnit::Nanoseconds)
}
