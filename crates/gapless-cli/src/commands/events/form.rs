//! An event as a line or as a JSON object.

use crate::printable::escaped;
use gapless_cqrs::events::RecordedTransaction;
use gapless_cqrs::{RecordedEvent, TypeKey, TypeNames};
use gapless_stream::logger::{hexadecimal, utc};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

pub(super) fn id(names: &TypeNames, key: TypeKey, id: &[u8]) -> String {
    names.aggregates.get(&key).map(|named| named.id).unwrap_or_default().text(id)
}

/// `TYPE/ID`.
pub(super) fn aggregate(names: &TypeNames, key: TypeKey, bytes: &[u8]) -> String {
    format!("{}/{}", names.aggregate_name(key), id(names, key, bytes))
}

/// Text if printable, else hexadecimal digits.
fn bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => escaped(text),
        _ => format!("hex {}", hexadecimal(bytes)),
    }
}

pub(super) fn line(names: &TypeNames, transaction: &RecordedTransaction<'_>, event: &RecordedEvent<'_>) -> String {
    let mut line =
        format!("{} {} {}", event.position, utc(transaction.time_ns), escaped(&names.message_name(event.event)));
    if event.version != 1 {
        let _ = write!(line, " v{}", event.version);
    }
    if event.aggregate != TypeKey::NONE {
        let _ = write!(line, " {}", escaped(&aggregate(names, event.aggregate, event.id)));
    }
    for (name, value) in event.tags() {
        let _ = write!(line, " #{}={}", escaped(name), bytes(value));
    }
    let payload = names.json_of(event).map_or_else(|| bytes(event.payload), |json| escaped(&json));
    let _ = write!(line, " {payload}");
    line
}

pub(super) fn origin(transaction: &RecordedTransaction<'_>) -> String {
    let mut text = format!("session {} command {}", transaction.session, transaction.number);
    if let Some(identity) = transaction.identity() {
        let _ = write!(text, " identifier {:#x}", identity.identifier);
    }
    for (name, value) in transaction.headers().iter() {
        let _ = write!(text, " {}={}", escaped(name), bytes(value));
    }
    text
}

pub(super) fn object(names: &TypeNames, transaction: &RecordedTransaction<'_>, event: &RecordedEvent<'_>) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("position", json!(event.position.to_string()));
    put("sequence", json!(event.position.sequence));
    put("ordinal", json!(event.position.ordinal));
    put("timestamp_ns", json!(transaction.time_ns));
    put("time", json!(utc(transaction.time_ns)));
    put("type", json!(names.message_name(event.event)));
    put("version", json!(event.version));
    if event.aggregate != TypeKey::NONE {
        put("aggregate", json!(aggregate(names, event.aggregate, event.id)));
        put("aggregate_type", json!(names.aggregate_name(event.aggregate)));
        put("aggregate_id", json!(id(names, event.aggregate, event.id)));
    }
    let tags: Vec<Value> =
        event.tags().map(|(name, value)| json!({ "name": name, "value": bytes_value(value) })).collect();
    put("tags", json!(tags));
    put("session", json!(transaction.session));
    put("number", json!(transaction.number));
    if let Some(identity) = transaction.identity() {
        // JSON readers cannot hold a number of 128 bits.
        put("identifier", json!(format!("{:032x}", identity.identifier)));
    }
    let headers = transaction.headers();
    let headers: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_owned(), bytes_value(value))).collect();
    put("headers", Value::Object(headers));
    match names.json_of(event).and_then(|json| serde_json::from_str(&json).ok()) {
        Some(payload) => put("payload", payload),
        None => put("payload_hex", json!(hexadecimal(event.payload))),
    };
    Value::Object(object)
}

fn bytes_value(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| json!({ "hex": hexadecimal(bytes) }), |text| json!(text))
}
