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
/// The columns of [`domain`].
pub(super) const DOMAIN: [&str; 4] = ["domain", "state", "copies", "callers"];
/// Columns of words, which stand to the left.
pub(super) const OVERVIEW_WORDS: usize = 3;

/// The columns of [`peers`].
pub(super) const PEERS: [&str; 5] = ["member", "kind", "connection", "has up to", "lags by"];
/// The columns of [`nodes`].
pub(super) const NODES: [&str; 6] = ["node", "transport", "position", "behind", "read/s", "published/s"];
/// The columns of [`routes`]: what failed has panicked, or was a message that nobody could read.
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
    "p50",
    "p99",
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

/// A domain in one row.
pub(super) fn domain(reading: &Reading) -> [String; 4] {
    let path = clean(&reading.directory.display().to_string());
    let (copies, callers) = (reading.routes.len().to_string(), reading.calls.len().to_string());
    [path, reading.state.name().to_owned(), copies, callers]
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
            time(of.p50_ns),
            time(of.p99_ns),
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
            time(of.p50_ns),
            time(of.p99_ns),
        ]
    };
    reading.calls.iter().map(row).collect()
}

/// A time with three digits and its unit; of a time that was not measured there is none.
fn time(time_ns: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    if time_ns == 0 {
        return "-".to_owned();
    }
    // What would be rounded to 1000 is 1.00 of the next unit.
    let time_ns = time_ns as f64;
    let (unit, in_ns) = UNITS.into_iter().find(|(_, in_ns)| time_ns < 999.5 * in_ns).unwrap_or(UNITS[3]);
    let value = time_ns / in_ns;
    match value {
        _ if unit == "ns" => format!("{value:.0} {unit}"),
        ..9.995 => format!("{value:.2} {unit}"),
        ..99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
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
    if !reading.has_node && reading.routes.is_empty() && reading.calls.is_empty() {
        words.push("no route is served or called".to_owned());
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

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn a_time_has_three_digits_and_a_unit() {
        for (time_ns, expected) in [
            (0, "-"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (4_567, "4.57 µs"),
            (9_994, "9.99 µs"),
            (9_999, "10.0 µs"),
            (45_678, "45.7 µs"),
            (456_789, "457 µs"),
            (999_600, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (999_999_999, "1.00 s"),
            (86_400_000_000_000, "86400 s"),
        ] {
            assert_eq!(time(time_ns), expected, "{time_ns} ns");
        }
    }
}
