//! `Logger`: the events of a node as readable text or JSON, one line each.

use gapless_client::node::{Message, NodeEvent};
use gapless_wire::{Encoding, Kind};
use serde_json::{Map, Value, json};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
    Payload,
}

/// Formats the stream's events of a node, one line each. Text holds sequence, time and kind; for a message also
/// session, number in the session, schema, template, length and payload, UTF-8 with control characters escaped, else as
/// `hex` and digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logger {
    pub format: LogFormat,
}

impl Logger {
    /// Appends the line with its line feed; returns whether `event` has one.
    pub fn line(&self, event: &NodeEvent<'_>, line: &mut Vec<u8>) -> bool {
        match (self.format, event) {
            (LogFormat::Payload, NodeEvent::Message(message)) => line.extend_from_slice(message.payload),
            (LogFormat::Payload, _) => return false,
            (LogFormat::Text, event) => match text(event) {
                Some(text) => line.extend_from_slice(text.as_bytes()),
                None => return false,
            },
            (LogFormat::Json, event) => match object(event) {
                Some(object) => line.extend_from_slice(object.to_string().as_bytes()),
                None => return false,
            },
        }
        line.push(b'\n');
        true
    }
}

fn text(event: &NodeEvent<'_>) -> Option<String> {
    let (sequence, timestamp_ns, kind) = place(event)?;
    let mut text = format!("{sequence} {} {kind}", utc(timestamp_ns));
    // Writing to a string cannot fail.
    let _ = match event {
        NodeEvent::Message(message) => {
            let Message { session, session_seq, schema, payload, own, .. } = message;
            let mark = if *own { " own" } else { "" };
            let (schema, template, length) = (schema >> 16, schema & 0xffff, payload.len());
            let _ =
                write!(text, "{mark} session {session} seq {session_seq} schema {schema}:{template} {length} bytes ");
            match std::str::from_utf8(payload) {
                Ok(payload) => {
                    escape(payload, &mut text);
                    Ok(())
                }
                Err(_) => write!(text, "hex {}", hexadecimal(payload)),
            }
        }
        NodeEvent::Timer { owner, timer, deadline_ns, own, .. }
        | NodeEvent::TimerRefused { owner, timer, deadline_ns, own, .. } => {
            let mark = if *own { " own" } else { "" };
            write!(text, "{mark} session {owner} timer {timer} due {}", utc(*deadline_ns))
        }
        NodeEvent::Session { session, own, .. } => {
            write!(text, "{} session {session}", if *own { " own" } else { "" })
        }
        NodeEvent::Halted { reason, .. } => {
            text.push(' ');
            escape(reason, &mut text);
            Ok(())
        }
        NodeEvent::FeedBegan { feed_session, .. } | NodeEvent::FeedEnded { feed_session, .. } => {
            write!(text, " {feed_session}")
        }
        _ => Ok(()),
    };
    Some(text)
}

fn object(event: &NodeEvent<'_>) -> Option<Value> {
    let (sequence, timestamp_ns, kind) = place(event)?;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("sequence", json!(sequence));
    put("timestamp_ns", json!(timestamp_ns));
    put("time", json!(utc(timestamp_ns)));
    put("kind", json!(kind));
    match event {
        NodeEvent::Message(message) => {
            put("own", json!(message.own));
            put("session", json!(message.session));
            put("session_seq", json!(message.session_seq));
            put("schema_id", json!(message.schema >> 16));
            put("template_id", json!(message.schema & 0xffff));
            put("encoding", json!(encoding_name(message.encoding)));
            put("length", json!(message.payload.len()));
            match std::str::from_utf8(message.payload) {
                Ok(text) => put("payload", json!(text)),
                Err(_) => put("payload_hex", json!(hexadecimal(message.payload))),
            };
        }
        NodeEvent::Timer { owner, timer, deadline_ns, own, .. }
        | NodeEvent::TimerRefused { owner, timer, deadline_ns, own, .. } => {
            put("own", json!(own));
            put("session", json!(owner));
            put("timer", json!(timer));
            put("deadline_ns", json!(deadline_ns));
        }
        NodeEvent::Session { session, own, .. } => {
            put("own", json!(own));
            put("session", json!(session));
        }
        NodeEvent::Halted { reason, .. } => {
            put("reason", json!(reason));
        }
        NodeEvent::FeedBegan { feed_session, .. } | NodeEvent::FeedEnded { feed_session, .. } => {
            put("feed_session", json!(feed_session.as_str()));
        }
        _ => {}
    }
    Some(Value::Object(object))
}

fn place(event: &NodeEvent<'_>) -> Option<(u64, u64, String)> {
    let (sequence, timestamp_ns, name) = match event {
        NodeEvent::Message(message) => return Some((message.sequence, message.timestamp_ns, kind_name(message.kind))),
        NodeEvent::Timer { sequence, timestamp_ns, .. } => (sequence, timestamp_ns, "timer"),
        NodeEvent::TimerRefused { sequence, timestamp_ns, .. } => (sequence, timestamp_ns, "timer-refused"),
        NodeEvent::Session { sequence, timestamp_ns, opened: true, .. } => (sequence, timestamp_ns, "session-open"),
        NodeEvent::Session { sequence, timestamp_ns, .. } => (sequence, timestamp_ns, "session-close"),
        NodeEvent::Halted { sequence, timestamp_ns, .. } => (sequence, timestamp_ns, "halted"),
        NodeEvent::Resumed { sequence, timestamp_ns } => (sequence, timestamp_ns, "resumed"),
        NodeEvent::FeedBegan { sequence, timestamp_ns, .. } => (sequence, timestamp_ns, "feed-began"),
        NodeEvent::FeedEnded { sequence, timestamp_ns, .. } => (sequence, timestamp_ns, "feed-ended"),
        _ => return None,
    };
    Some((*sequence, *timestamp_ns, name.to_owned()))
}

/// `SessionOpen` → `session-open`.
#[must_use]
pub fn kind_name(kind: Kind) -> String {
    hyphenated(&format!("{kind:?}"))
}

/// `Opaque` → `opaque`.
#[must_use]
pub fn encoding_name(encoding: Encoding) -> String {
    hyphenated(&format!("{encoding:?}"))
}

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

/// Keeps a line one line, and a terminal unharmed.
fn escape(payload: &str, text: &mut String) {
    for letter in payload.chars() {
        if letter.is_control() || letter == '\\' {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
}

/// Two hexadecimal digits per byte.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Date and time, by `civil_from_days` of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[must_use]
pub fn utc(epoch_ns: u64) -> String {
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
    use gapless_client::node::NodeState;

    fn message(payload: &[u8], own: bool) -> NodeEvent<'_> {
        NodeEvent::Message(Message {
            sequence: 7,
            timestamp_ns: 1_700_000_000_123_456_789,
            session: 2,
            session_seq: 5,
            own,
            kind: Kind::Event,
            schema: 3 << 16 | 1,
            encoding: Encoding::Opaque,
            payload_crc: 0,
            payload,
        })
    }

    fn line(format: LogFormat, event: &NodeEvent<'_>) -> Option<String> {
        let mut line = Vec::new();
        Logger { format }.line(event, &mut line).then(|| String::from_utf8(line).unwrap())
    }

    #[test]
    fn any_message_is_one_line() {
        let start = "7 2023-11-14T22:13:20.123456789Z event";
        for (payload, own, expected) in [
            (&b"hello"[..], false, " session 2 seq 5 schema 3:1 5 bytes hello\n"),
            (b"", true, " own session 2 seq 5 schema 3:1 0 bytes \n"),
            (
                "gr\u{fc}n\n\x1b[31m\\".as_bytes(),
                false,
                " session 2 seq 5 schema 3:1 12 bytes gr\u{fc}n\\n\\u{1b}[31m\\\\\n",
            ),
            (&[0xff, 0], false, " session 2 seq 5 schema 3:1 2 bytes hex ff00\n"),
        ] {
            assert_eq!(line(LogFormat::Text, &message(payload, own)).unwrap(), format!("{start}{expected}"));
        }
    }

    #[test]
    fn json_payload_is_text_or_hex() {
        let object: Value = serde_json::from_str(&line(LogFormat::Json, &message(b"a\"\n", true)).unwrap()).unwrap();
        assert_eq!(
            object,
            json!({
                "sequence": 7, "timestamp_ns": 1_700_000_000_123_456_789u64, "time": "2023-11-14T22:13:20.123456789Z",
                "kind": "event", "own": true, "session": 2, "session_seq": 5, "schema_id": 3, "template_id": 1,
                "encoding": "opaque", "length": 3, "payload": "a\"\n"
            })
        );
        let object: Value = serde_json::from_str(&line(LogFormat::Json, &message(&[0xff], true)).unwrap()).unwrap();
        assert_eq!((&object["payload_hex"], &object["payload"]), (&json!("ff"), &Value::Null));
    }

    #[test]
    fn own_state_changes_are_left_out() {
        let (sequence, timestamp_ns) = (9, 0);
        let opened = NodeEvent::Session { sequence, timestamp_ns, session: 9, opened: true, own: false };
        assert_eq!(
            line(LogFormat::Text, &opened).unwrap(),
            "9 1970-01-01T00:00:00.000000000Z session-open session 9\n"
        );
        let halted = NodeEvent::Halted { sequence, timestamp_ns, reason: "enough" };
        assert_eq!(line(LogFormat::Text, &halted).unwrap(), "9 1970-01-01T00:00:00.000000000Z halted enough\n");
        assert!(line(LogFormat::Json, &halted).unwrap().contains(r#""reason":"enough""#));
        assert_eq!(line(LogFormat::Payload, &halted), None);
        assert_eq!(line(LogFormat::Payload, &message(b"x", false)).unwrap(), "x\n");
        assert_eq!(line(LogFormat::Text, &NodeEvent::State(NodeState::Live)), None);
        assert_eq!(line(LogFormat::Json, &NodeEvent::Limit), None);
        let (owner, timer, deadline_ns, own) = (4, 5, 0, true);
        let refused = NodeEvent::TimerRefused { sequence, timestamp_ns, owner, timer, deadline_ns, own };
        let expected =
            "9 1970-01-01T00:00:00.000000000Z timer-refused own session 4 timer 5 due 1970-01-01T00:00:00.000000000Z\n";
        assert_eq!(line(LogFormat::Text, &refused).unwrap(), expected);
    }

    #[test]
    fn utc_matches_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(utc(951_826_154_000_000_001), "2000-02-29T12:09:14.000000001Z");
        assert_eq!(utc(1_700_000_000_123_456_789), "2023-11-14T22:13:20.123456789Z");
        assert_eq!(utc(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn kind_names_are_hyphenated() {
        assert_eq!((kind_name(Kind::SessionOpen), kind_name(Kind::Command)), ("session-open".into(), "command".into()));
    }
}
