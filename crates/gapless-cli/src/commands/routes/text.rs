//! The routes of a domain as text, with equal ones in one line.

use crate::printable::escaped;
use gapless_rpc::domain::KnownRoute;
use gapless_rpc::message::Encoding;
use gapless_rpc::message::described::TypeDescription;
use std::fmt::Write as _;

const PROCESSES_MAX: usize = 8;
const CELL_MAX: usize = 64;
const UNKNOWN: &str = "?";

pub(super) fn in_text(known: &[KnownRoute]) -> String {
    let head = ["ROUTE", "VERSION", "REQUEST → REPLY", "STATE", "INSTANCES", "WORKERS", "PROCESSES"].map(str::to_owned);
    let groups = together(known, |a, b| {
        // A bridge represents instances of other machines.
        let is_instance = a.stands_for.is_empty() && b.stands_for.is_empty();
        is_instance && (&a.route, a.state, &a.version, types(a)) == (&b.route, b.state, &b.version, types(b))
    });
    let rows = groups.iter().map(|group| {
        let first = group[0];
        let (request, reply) = types(first);
        [
            first.route.clone(),
            if first.version.is_empty() { "-".to_owned() } else { cell(&first.version) },
            format!("{} → {}", cell(&request), cell(&reply)),
            first.state.as_str().to_owned(),
            first.stands_for.len().max(group.len()).to_string(),
            group.iter().map(|route| u64::from(route.workers)).sum::<u64>().to_string(),
            processes(group),
        ]
    });
    table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

pub(super) fn types_in_text(known: &[KnownRoute]) -> String {
    let head = ["ROUTE", "SIDE", "TYPE", "ENCODING", "FINGERPRINT", "PROCESSES"].map(str::to_owned);
    let groups = together(known, |a, b| (&a.route, &a.types) == (&b.route, &b.types));
    let rows = groups.iter().flat_map(|group| {
        let first = group[0];
        let types = first.types.as_ref();
        let sides = [("request", types.map(|(request, _)| request)), ("reply", types.map(|(_, reply)| reply))];
        sides.map(|(side, described)| {
            let unknown = || UNKNOWN.to_owned();
            let name = described.map_or_else(unknown, |described| cell(&described.to_string()));
            let encoding = described.map_or(UNKNOWN, encoding).to_owned();
            let fingerprint = described.map_or_else(unknown, fingerprint);
            [first.route.clone(), side.to_owned(), name, encoding, fingerprint, processes(group)]
        })
    });
    table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn types(known: &KnownRoute) -> (String, String) {
    let unknown = || (UNKNOWN.to_owned(), UNKNOWN.to_owned());
    known.types.as_ref().map_or_else(unknown, |(request, reply)| (request.to_string(), reply.to_string()))
}

pub(super) const fn encoding(described: &TypeDescription) -> &'static str {
    match described.encoding {
        Encoding::Bytes => "bytes",
        Encoding::Postcard => "postcard",
        Encoding::Sbe => "sbe",
        Encoding::Protobuf => "protobuf",
        Encoding::Json => "json",
    }
}

/// `-` if it is not compared.
pub(super) fn fingerprint(described: &TypeDescription) -> String {
    match described.fingerprint {
        0 => "-".to_owned(),
        fingerprint => format!("{fingerprint:016x}"),
    }
}

fn together(known: &[KnownRoute], is_same: impl Fn(&KnownRoute, &KnownRoute) -> bool) -> Vec<Vec<&KnownRoute>> {
    let mut groups: Vec<Vec<&KnownRoute>> = Vec::new();
    for route in known {
        match groups.iter_mut().find(|group| is_same(group[0], route)) {
            Some(group) => group.push(route),
            None => groups.push(vec![route]),
        }
    }
    groups
}

fn processes(group: &[&KnownRoute]) -> String {
    if let [bridge] = group
        && !bridge.stands_for.is_empty()
    {
        let more = bridge.stands_for.len().saturating_sub(PROCESSES_MAX);
        let mut shown: Vec<_> = bridge.stands_for.iter().take(PROCESSES_MAX).map(|each| cell(&each.name)).collect();
        shown.extend((more > 0).then(|| format!("{more} more")));
        let name = cell(bridge.process_name.as_deref().unwrap_or(UNKNOWN));
        return format!("{name} {} for {}", bridge.process_id, shown.join(", "));
    }
    let more = group.len().saturating_sub(PROCESSES_MAX);
    let shown = group.iter().take(PROCESSES_MAX);
    let mut processes: Vec<_> = shown
        .map(|route| format!("{} {}", cell(route.process_name.as_deref().unwrap_or(UNKNOWN)), route.process_id))
        .collect();
    processes.extend((more > 0).then(|| format!("{more} more")));
    processes.join(", ")
}

pub(in crate::commands) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let widths: [usize; COLUMNS] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Escapes text of another process, and cuts it to a cell.
pub(in crate::commands) fn cell(text: &str) -> String {
    let shown = escaped(text);
    let mut cell: String = shown.chars().take(CELL_MAX).collect();
    if shown.chars().nth(CELL_MAX).is_some() {
        cell.pop();
        cell.push('…');
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::routes::in_json;
    use gapless_rpc::domain::{DomainReading, KnownRouteState};
    use gapless_rpc::relay::Instance;

    #[test]
    fn equal_instances_share_one_line() {
        let described = |name: &str| TypeDescription {
            name: name.to_owned(),
            fingerprint: 0,
            encoding: Encoding::Postcard,
            version: 1,
        };
        let instance = |process_id, version: &str| KnownRoute {
            route: "calculator/add".to_owned(),
            state: KnownRouteState::Open,
            process_id,
            process_name: Some("calc\u{1b}[2J".to_owned()),
            version: version.to_owned(),
            metadata: Vec::new(),
            types: Some((described("Add"), described("Sum"))),
            workers: 4,
            identity: 1,
            stands_for: Vec::new(),
        };
        let text = in_text(&[instance(11, ""), instance(12, ""), instance(13, "2")]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        let first = [
            "calculator/add",
            "-",
            "Add",
            "→",
            "Sum",
            "open",
            "2",
            "8",
            r"calc\u{1b}[2J",
            "11,",
            r"calc\u{1b}[2J",
            "12",
        ];
        assert_eq!(lines[1], first);
        assert_eq!((lines[2][1], &lines[2][6..8]), ("2", &["1", "4"][..]));

        let turned = in_text(&[instance(11, "1\u{202e}\u{200f}\u{2066}")]);
        assert!(turned.contains(r" 1\u{202e}\u{200f}\u{2066} "), "{turned}");

        let many: Vec<_> = (1..=100).map(|process_id| instance(process_id, &"9".repeat(1_000))).collect();
        let text = in_text(&many);
        let line = text.lines().nth(1).unwrap_or_default();
        assert!(line.ends_with(" 8, 92 more") && line.contains("9…") && line.chars().count() < 300, "{line}");
    }

    #[test]
    fn bridge_names_its_instances() {
        let here = KnownRoute {
            route: "bank/pay".to_owned(),
            state: KnownRouteState::Open,
            process_id: 11,
            process_name: Some("bank".to_owned()),
            version: String::new(),
            metadata: Vec::new(),
            types: None,
            workers: 4,
            identity: 1,
            stands_for: Vec::new(),
        };
        let instance = |identity, name: &str| Instance { identity, name: name.to_owned() };
        let bridge = KnownRoute {
            process_id: 12,
            process_name: Some("bridge berlin".to_owned()),
            workers: 8,
            stands_for: vec![instance(7, "m2/bank.1"), instance(u64::MAX, "m3/bank\u{7}")],
            ..here.clone()
        };
        let known = [here, bridge];
        let text = in_text(&known);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("  1          4        bank 11"), "{text}");
        assert!(lines[2].ends_with("  2          8        bridge berlin 12 for m2/bank.1, m3/bank\\u{7}"), "{text}");
        let told: serde_json::Value = serde_json::from_str(&in_json(&known, &DomainReading::default())).unwrap();
        assert_eq!(told[0]["stands_for"], serde_json::json!([]));
        let elsewhere = serde_json::json!({ "identity": "0000000000000007", "name": "m2/bank.1" });
        assert_eq!(told[1]["stands_for"][0], elsewhere);
    }

    #[test]
    fn unknown_route_is_marked() {
        let silent = KnownRoute {
            route: "calculator/add".to_owned(),
            state: KnownRouteState::NotAnswering,
            process_id: 11,
            process_name: None,
            version: String::new(),
            metadata: Vec::new(),
            types: None,
            workers: 0,
            identity: 0,
            stands_for: Vec::new(),
        };
        let text = in_text(std::slice::from_ref(&silent));
        let line: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().collect();
        assert_eq!(line, ["calculator/add", "-", "?", "→", "?", "not", "answering", "1", "0", "?", "11"]);
        let text = in_json(&[silent], &DomainReading::default());
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told[0]["state"], "not answering");
        assert!(["process", "request", "reply", "request_type"].iter().all(|key| told[0][key].is_null()), "{text}");
    }
}
