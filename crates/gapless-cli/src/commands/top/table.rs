//! A reading as rows of words, shared by screen and text.

use crate::commands::routes::waiting;
use crate::commands::time_text::time;
use crate::printable::escaped;

use super::source::{CounterReading, DirectoryReading, ProcessState};

pub(super) const OVERVIEW: [&str; 13] = [
    "directory",
    "state",
    "role",
    "term",
    "leader",
    "tier",
    "released",
    "journaled",
    "frames/s",
    "lag",
    "sessions",
    "nodes",
    "restarts",
];
pub(super) const DOMAIN: [&str; 4] = ["domain", "state", "copies", "callers"];
const UNREADABLE_MAX: usize = 3;
pub(super) const OVERVIEW_WORDS: usize = 3;

pub(super) const PEERS: [&str; 5] = ["member", "kind", "connection", "has up to", "lags by"];
pub(super) const NODES: [&str; 6] = ["node", "transport", "position", "behind", "read/s", "published/s"];
/// `failed` counts panics and undecodable messages.
pub(super) const ROUTES: [&str; 14] = [
    "route",
    "process",
    "calls/s",
    "calls",
    "replied",
    "refused",
    "failed",
    "too late",
    "forwarded",
    "queued",
    "in flight",
    "overflowed",
    "p50",
    "p99",
];
/// `in flight`: requests that wait for an instance or run there; `waiting`: offered requests of all callers of the
/// route that no handler has begun; `failed`: panics and undecodable messages.
pub(super) const CALLS: [&str; 20] = [
    "called",
    "process",
    "offered/s",
    "offered",
    "replied",
    "refused",
    "failed",
    "unknown",
    "not begun",
    "timed out",
    "busy",
    "no route",
    "cancelled",
    "retried",
    "in flight",
    "waiting",
    "backlog",
    "overflowed",
    "p50",
    "p99",
];
/// Hidden while all their values are 0.
const SELDOM: [&str; 4] = ["busy", "no route", "cancelled", "overflowed"];
pub(super) const COUNTERS: [&str; 3] = ["counter", "value", "per second"];

pub(super) fn clean(text: &str) -> String {
    escaped(text)
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

pub(super) fn overview(reading: &DirectoryReading) -> [String; 13] {
    let member = reading.member.as_ref();
    let value = |label: &str| reading.counter(label).map(|counter| counter.value);
    let last = ["sequencer.last_sequence", "relay.last_sequence"].iter().find_map(|label| reading.counter(label));
    let role = match (member, reading.state) {
        (Some(member), _) => clean(&member.role),
        (None, ProcessState::Running) if value("relay.last_sequence").is_some() => "relay".to_owned(),
        (None, ProcessState::Running) if value("service.last_sequence").is_some() => "service".to_owned(),
        (None, ProcessState::Running) if last.is_some() => "sequencer".to_owned(),
        (None, ProcessState::Running) if !reading.routes.is_empty() => "domain".to_owned(),
        (None, ProcessState::Running) => "node".to_owned(),
        (None, _) => "-".to_owned(),
    };
    let journaled = member.map(|member| member.journaled_sequence).or_else(|| value("journaler.last_sequence"));
    let lag = match (member, last) {
        // The slowest member, as known to the leader.
        (Some(member), _) => member.members.iter().filter_map(|peer| peer.lag_frames).max(),
        (None, Some(last)) => journaled.map(|journaled| last.value.saturating_sub(journaled)),
        (None, None) => None,
    };
    [
        clean(&reading.directory.display().to_string()),
        reading.state.name().to_owned(),
        role,
        number(member.map(|member| member.term)),
        number(member.and_then(|member| member.leader)),
        member.map_or_else(|| "-".to_owned(), |member| clean(&member.tier)),
        number(member.map(|member| member.released_sequence).or(last.map(|last| last.value))),
        number(journaled),
        rate(last.and_then(|last| last.per_s)),
        number(lag),
        number(member.map(|member| member.sessions).or_else(|| value("sequencer.sessions"))),
        if reading.state == ProcessState::Running { reading.nodes.len().to_string() } else { "-".to_owned() },
        reading.restarts.to_string(),
    ]
}

pub(super) fn domain(reading: &DirectoryReading) -> [String; 4] {
    let path = clean(&reading.directory.display().to_string());
    let (copies, callers) = (reading.routes.len().to_string(), reading.calls.len().to_string());
    [path, reading.state.name().to_owned(), copies, callers]
}

pub(super) fn peers(reading: &DirectoryReading) -> Vec<[String; 5]> {
    let Some(report) = &reading.member else { return Vec::new() };
    let row = |peer: &gapless_cluster::member::control::MemberReport| {
        let connection = match (peer.member == report.member, peer.is_connected) {
            (true, _) => "itself",
            (false, true) => "connected",
            (false, false) => "none",
        };
        let (has, lag) = (number(peer.matched_sequence), number(peer.lag_frames));
        [peer.member.to_string(), clean(&peer.kind), connection.to_owned(), has, lag]
    };
    report.members.iter().map(row).collect()
}

pub(super) fn nodes(reading: &DirectoryReading) -> Vec<[String; 6]> {
    let row = |node: &gapless_client::control::NodeReading| {
        let name = clean(&node.row.name);
        [
            if name.is_empty() { "-".to_owned() } else { name },
            node.row.transport.name().to_owned(),
            node.row.position.to_string(),
            node.row.lag_frames.to_string(),
            rate(node.read_per_s),
            rate(node.published_per_s),
        ]
    };
    reading.nodes.iter().map(row).collect()
}

fn process(name: Option<&str>, process_id: u32) -> String {
    name.map_or_else(|| process_id.to_string(), |name| format!("{} {process_id}", clean(name)))
}

pub(super) fn routes(reading: &DirectoryReading) -> Vec<[String; 14]> {
    let row = |(copy, per_s): &(gapless_rpc::domain::InstanceReading, Option<f64>)| {
        let of = &copy.statistics;
        [
            clean(&copy.route),
            process(copy.process_name.as_deref(), copy.process_id),
            rate(*per_s),
            of.begun.to_string(),
            of.replied.to_string(),
            of.refused.to_string(),
            of.panicked.saturating_add(of.bad_messages).to_string(),
            of.too_late.to_string(),
            of.forwarded.to_string(),
            of.queued.to_string(),
            of.in_flight.to_string(),
            of.overflowed.to_string(),
            time(of.p50_ns),
            time(of.p99_ns),
        ]
    };
    reading.routes.iter().map(row).collect()
}

pub(super) fn calls(reading: &DirectoryReading) -> Vec<[String; 20]> {
    let row = |(calls, per_s): &(gapless_rpc::domain::CallReading, Option<f64>)| {
        let of = &calls.statistics;
        let copies = reading.routes.iter().map(|(copy, _)| copy);
        [
            clean(&calls.route),
            process(calls.process_name.as_deref(), calls.process_id),
            rate(*per_s),
            of.offered.to_string(),
            of.replied.to_string(),
            of.refused.to_string(),
            of.panicked.saturating_add(of.bad_messages).to_string(),
            of.unknown.to_string(),
            of.not_begun.to_string(),
            of.timed_out.to_string(),
            of.busy.to_string(),
            of.no_route.to_string(),
            of.cancelled.to_string(),
            of.retried.to_string(),
            of.in_flight.to_string(),
            waiting(&calls.route, copies, reading.calls.iter().map(|(calls, _)| calls)).to_string(),
            of.in_backlog.to_string(),
            of.overflowed.to_string(),
            time(of.p50_ns),
            time(of.p99_ns),
        ]
    };
    reading.calls.iter().map(row).collect()
}

pub(super) fn counters(reading: &DirectoryReading) -> Vec<[String; 3]> {
    let row = |counter: &CounterReading| [clean(&counter.label), counter.value.to_string(), rate(counter.per_s)];
    reading.counters.iter().map(row).collect()
}

pub(super) fn remark(reading: &DirectoryReading) -> String {
    let mut words = Vec::new();
    if let (ProcessState::Gone, Some(process)) = (reading.state, reading.process) {
        words.push(format!("process {process} has gone"));
    }
    if let Some(to) = reading.member.as_ref().and_then(|member| member.fetching_to) {
        words.push(format!("fetching frames up to {to}"));
    }
    if !reading.has_node && !reading.has_routes() {
        words.push("no route is served or called".to_owned());
    }
    words.extend(reading.silent.iter().map(|process| format!("process {process} is not answering")));
    words.extend(reading.problem.as_deref().map(clean));
    words.extend(reading.unreadable.iter().take(UNREADABLE_MAX).map(|unreadable| clean(&unreadable.to_string())));
    if let Some(more @ 1..) = reading.unreadable.len().checked_sub(UNREADABLE_MAX) {
        words.push(format!("{more} more cannot be read"));
    }
    words.join("; ")
}

pub(super) fn aligned<const COLUMNS: usize>(
    titles: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    words: usize,
) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([titles[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let is_shown: [bool; COLUMNS] =
        std::array::from_fn(|column| !SELDOM.contains(&titles[column]) || rows.iter().any(|row| row[column] != "0"));
    let titles = titles.map(str::to_owned);
    let line = |row: &[String; COLUMNS]| {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if column < words { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        };
        let cells: Vec<_> = row.iter().enumerate().filter(|(column, _)| is_shown[*column]).map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    };
    std::iter::once(&titles).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{CALLS, aligned};

    #[test]
    fn rare_counts_get_a_column_when_set() {
        let place = CALLS.iter().position(|title| *title == "no route").unwrap();
        let mut row: [String; CALLS.len()] = std::array::from_fn(|_| "0".to_owned());
        let lines = aligned(CALLS, &[row.clone()], 1);
        assert!(lines[0].contains("timed out") && !lines[0].contains("no route"), "{lines:?}");
        assert_eq!(lines[1].split_whitespace().count(), CALLS.len() - 4);
        row[place] = "123456789".to_owned();
        let lines = aligned(CALLS, &[row], 1);
        assert!(lines[0].contains("timed out   no route  retried"), "{lines:?}");
        assert!(lines[1].contains(" 123456789 "), "{lines:?}");
    }
}
