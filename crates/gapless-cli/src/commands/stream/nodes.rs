//! The connected nodes of a stream, for `gapless stream status`: as a table and as JSON.

use crate::printable::escaped;
use gapless_client::control::NodeReading;
use gapless_client::control_messages::NodeRow;
use serde_json::{Value, json};
use std::fmt::Write;

const TITLES: [&str; 11] = [
    "node",
    "where",
    "transport",
    "state",
    "position",
    "behind",
    "asked again",
    "sent again",
    "on their way",
    "read/s",
    "published/s",
];
const WORDS: usize = 4;

pub(crate) fn in_json(nodes: &[NodeReading]) -> Value {
    let node = |NodeReading { row, read_per_s, published_per_s }: &NodeReading| {
        json!({
            "node": row.name,
            "process": row.process_id,
            "address": row.address.map(|address| address.to_string()),
            "connection": row.connection,
            "transport": row.transport.name(),
            "state": state(row),
            "position": row.position,
            "lag_frames": row.lag_frames,
            "frames_asked_again": row.frames_requested,
            "frames_sent_again": row.frames_resent,
            "frames_published": row.frames_published,
            "frames_dropped": row.frames_dropped,
            "in_flight": row.in_flight,
            "read_per_s": read_per_s.map(f64::round),
            "published_per_s": published_per_s.map(f64::round),
        })
    };
    nodes.iter().map(node).collect()
}

pub(super) fn in_text(nodes: &[NodeReading]) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let titles = TITLES.map(str::to_owned);
    let rows: Vec<[String; 11]> = std::iter::once(titles).chain(nodes.iter().map(cells)).collect();
    let widths: [usize; 11] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = if column < WORDS { write!(text, "{cell:width$}  ") } else { write!(text, "{cell:>width$}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn cells(NodeReading { row, read_per_s, published_per_s }: &NodeReading) -> [String; 11] {
    let address = match (row.process_id, row.address) {
        (Some(process), _) => format!("process {process}"),
        (None, Some(address)) => address.to_string(),
        (None, None) => "-".to_owned(),
    };
    // A name comes from the node.
    let name = escaped(&row.name);
    let name = if name.is_empty() { "-".to_owned() } else { name };
    let position = if row.position == 0 { "-".to_owned() } else { row.position.to_string() };
    let rate = |rate: &Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    [
        name,
        address,
        row.transport.name().to_owned(),
        state(row).unwrap_or("-").to_owned(),
        position,
        row.lag_frames.to_string(),
        row.frames_requested.to_string(),
        row.frames_resent.to_string(),
        row.in_flight.to_string(),
        rate(read_per_s),
        rate(published_per_s),
    ]
}

fn state(row: &NodeRow) -> Option<&'static str> {
    row.is_live.map(|is_live| if is_live { "live" } else { "rewinding" })
}
