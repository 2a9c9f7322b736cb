//! A reading as rows of words: the same on a screen and in text.

use crate::commands::routes::waiting;

use super::source::{CounterReading, ProcessState, Reading};

/// The columns of [`overview`].
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
/// Columns of words, which stand to the left.
pub(super) const OVERVIEW_WORDS: usize = 3;

/// The columns of [`peers`].
pub(super) const PEERS: [&str; 5] = ["member", "kind", "connection", "has up to", "lags by"];
/// The columns of [`nodes`].
pub(super) const NODES: [&str; 6] = ["node", "transport", "position", "behind", "read/s", "published/s"];
/// The columns of [`routes`]: times in µs; what failed has panicked, or was a message that nobody could read.
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
    "p50 µs",
    "p99 µs",
];
/// The columns of [`calls`]: in flight is what waits for a copy or runs there, waiting what all callers of the route have offered and no
/// handler has begun; failed has panicked, or could not be read, or found no room.
pub(super) const CALLS: [&str; 16] = [
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
    "retried",
    "in flight",
    "waiting",
    "backlog",
    "p50 µs",
    "p99 µs",
];
/// The columns of [`counters`].
pub(super) const COUNTERS: [&str; 3] = ["counter", "value", "per second"];

/// A text from elsewhere, without the characters that would move a terminal's cursor.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

/// A directory in one row.
pub(super) fn overview(reading: &Reading) -> [String; 13] {
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
        // Of a cluster: by the lag of the slowest member, as its leader knows it.
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

/// A row for each member of its cluster.
pub(super) fn peers(reading: &Reading) -> Vec<[String; 5]> {
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

/// A row for each node that is connected to its stream.
pub(super) fn nodes(reading: &Reading) -> Vec<[String; 6]> {
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

/// A row for each copy of a route.
pub(super) fn routes(reading: &Reading) -> Vec<[String; 14]> {
    let row = |(copy, per_s): &(gapless_rpc::domain::CopyReading, Option<f64>)| {
        let of = &copy.statistics;
        [
            clean(&copy.route),
            copy.process_id.to_string(),
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
            in_us(of.p50_ns),
            in_us(of.p99_ns),
        ]
    };
    reading.routes.iter().map(row).collect()
}

/// A row for each process that calls a route of others.
pub(super) fn calls(reading: &Reading) -> Vec<[String; 16]> {
    let row = |(calls, per_s): &(gapless_rpc::domain::CallReading, Option<f64>)| {
        let of = &calls.statistics;
        let failed = [of.panicked, of.bad_messages, of.busy, of.no_route];
        let copies = reading.routes.iter().map(|(copy, _)| copy);
        [
            clean(&calls.route),
            calls.process_id.to_string(),
            rate(*per_s),
            of.offered.to_string(),
            of.replied.to_string(),
            of.refused.to_string(),
            failed.into_iter().fold(0, u64::saturating_add).to_string(),
            of.unknown.to_string(),
            of.not_begun.to_string(),
            of.timed_out.to_string(),
            of.retried.to_string(),
            of.in_flight.to_string(),
            waiting(&calls.route, copies, reading.calls.iter().map(|(calls, _)| calls)).to_string(),
            of.in_backlog.to_string(),
            in_us(of.p50_ns),
            in_us(of.p99_ns),
        ]
    };
    reading.calls.iter().map(row).collect()
}

fn in_us(time_ns: u64) -> String {
    format!("{:.1}", time_ns as f64 / 1000.0)
}

/// A row for each counter.
pub(super) fn counters(reading: &Reading) -> Vec<[String; 3]> {
    let row = |counter: &CounterReading| [counter.label.clone(), counter.value.to_string(), rate(counter.per_s)];
    reading.counters.iter().map(row).collect()
}

/// Further notes on a directory, in a line; empty if there are none.
pub(super) fn remark(reading: &Reading) -> String {
    let mut words = Vec::new();
    if let (ProcessState::Gone, Some(process)) = (reading.state, reading.process) {
        words.push(format!("process {process} has gone"));
    }
    if let Some(to) = reading.member.as_ref().and_then(|member| member.fetching_to) {
        words.push(format!("fetching frames up to {to}"));
    }
    words.extend(reading.problem.as_deref().map(clean));
    words.join("; ")
}

/// Rows under their titles, a line each; nothing without rows. The first `words` columns stand to the left.
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
    let titles = titles.map(str::to_owned);
    let line = |row: &[String; COLUMNS]| {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if column < words { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        };
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    };
    std::iter::once(&titles).chain(rows).map(line).collect()
}
