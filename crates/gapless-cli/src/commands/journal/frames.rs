//! One frame as one line, or as one JSON object.

use gapless_wire::{Fragment, Frame};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How frames are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// As JSON objects.
    pub(super) is_json: bool,
    /// With the payload, as hexadecimal digits.
    pub(super) has_payload: bool,
}

impl Form {
    /// The frame in one line, without its line feed.
    pub(super) fn line(self, frame: &Frame<'_>) -> String {
        if self.is_json { self.object(frame).to_string() } else { self.text(frame) }
    }

    fn text(self, frame: &Frame<'_>) -> String {
        let (schema, template) = schema_and_template(frame);
        let mut line = format!(
            "{} {} {} session {} seq {} schema {schema}:{template} {} bytes",
            frame.sequence(),
            utc(frame.timestamp_ns()),
            kind(frame),
            frame.session(),
            frame.session_seq(),
            frame.length(),
        );
        let Fragment { index, count } = frame.fragment();
        if count > 1 {
            line += &format!(" fragment {} of {count}", index + 1);
        }
        if self.has_payload {
            line.push(' ');
            line += &hexadecimal(frame.payload());
        }
        line
    }

    fn object(self, frame: &Frame<'_>) -> Value {
        let (schema, template) = schema_and_template(frame);
        let mut object = Map::new();
        for (key, value) in [
            ("sequence", json!(frame.sequence())),
            ("timestamp_ns", json!(frame.timestamp_ns())),
            ("time", json!(utc(frame.timestamp_ns()))),
            ("kind", json!(kind(frame))),
            ("session", json!(frame.session())),
            ("session_seq", json!(frame.session_seq())),
            ("schema_id", json!(schema)),
            ("template_id", json!(template)),
            ("encoding", json!(hyphenated(&format!("{:?}", frame.encoding())))),
            ("length", json!(frame.length())),
        ] {
            object.insert(key.to_owned(), value);
        }
        let Fragment { index, count } = frame.fragment();
        if count > 1 {
            object.insert("fragment".to_owned(), json!({"index": index, "count": count}));
        }
        if self.has_payload {
            object.insert("payload".to_owned(), json!(hexadecimal(frame.payload())));
        }
        Value::Object(object)
    }
}

fn schema_and_template(frame: &Frame<'_>) -> (u32, u32) {
    (frame.schema() >> 16, frame.schema() & 0xffff)
}

fn kind(frame: &Frame<'_>) -> String {
    hyphenated(&format!("{:?}", frame.kind()))
}

/// `SessionOpen` → `session-open`.
fn hyphenated(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Nanoseconds since the epoch as a date and a time, by the algorithm `civil_from_days` of Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn utc(epoch_ns: u64) -> String {
    let (seconds, nanoseconds) = (epoch_ns / 1_000_000_000, epoch_ns % 1_000_000_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(utc(951_826_154_000_000_001), "2000-02-29T12:09:14.000000001Z");
        assert_eq!(utc(1_700_000_000_123_456_789), "2023-11-14T22:13:20.123456789Z");
        assert_eq!(utc(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn kinds_are_words() {
        assert_eq!(hyphenated("SessionOpen"), "session-open");
        assert_eq!(hyphenated("Command"), "command");
    }
}
