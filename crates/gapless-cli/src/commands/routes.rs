//! `gapless routes`: the routes that processes of a domain serve, once or at an interval.

use super::domain::{DomainArguments, seconds};
use super::watch::{clear, sleep_until};
use super::{Outcome, interrupt, is_printed};
use clap::Args;
use gapless_rpc::domain::{CallReading, CopyReading, KnownRoute};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    domain: DomainArguments,

    /// Print again every so many seconds, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    watch: Option<Duration>,

    /// Print one JSON array, a line each time, with an object for each route of each process
    #[arg(long)]
    json: bool,

    /// Show also where processes receive notices: routes with a "." in front
    #[arg(long)]
    all: bool,
}

/// Processes that have not told their routes by then are left out.
const DISCOVERY_MAX: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let domain = arguments.domain.open()?;
    let interrupted = arguments.watch.map(|_| interrupt()).transpose()?;
    let mut is_again = false;
    loop {
        let now = Instant::now();
        let mut known = domain.routes(DISCOVERY_MAX)?;
        known.retain(|route| arguments.all || !route.is_hidden());
        let text =
            if arguments.json { in_json(&known, &domain.counters()?, &domain.calls()?) } else { in_text(&known) };
        let is_again_as_text = is_again && !arguments.json;
        let clear = clear(is_again_as_text);
        let gap = if is_again_as_text && clear.is_empty() { "\n" } else { "" };
        if !is_printed(&format!("{clear}{gap}{text}"))? {
            return Ok(());
        }
        let (Some(interval), Some(interrupted)) = (arguments.watch, &interrupted) else {
            if known.is_empty() && !arguments.json {
                eprintln!("note: no process serves a route in the domain {}", domain.name());
            }
            return Ok(());
        };
        is_again = true;
        // Relaxed: the flag guards no data.
        if !sleep_until(now + interval, || interrupted.load(Ordering::Relaxed)) {
            return Ok(());
        }
    }
}

/// What a copy or a caller counts, by name.
pub(crate) fn counters_in_json(values: &[(&'static str, u64)]) -> Value {
    Value::Object(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect())
}

/// What processes count of their calls of a route.
pub(crate) fn calls_in_json(calls: &CallReading) -> Value {
    serde_json::json!({ "process_id": calls.process_id, "counters": counters_in_json(&calls.statistics.values()) })
}

/// Requests of a route that its callers have offered and no handler has begun, about: both are read one after the other.
pub(crate) fn waiting<'a>(
    route: &str,
    copies: impl Iterator<Item = &'a CopyReading>,
    calls: impl Iterator<Item = &'a CallReading>,
) -> u64 {
    let calls = calls.filter(|calls| calls.route == route).map(|calls| calls.statistics.in_flight);
    let copies = copies.filter(|copy| copy.route == route).map(|copy| copy.statistics.in_flight);
    calls.fold(0, u64::saturating_add).saturating_sub(copies.fold(0, u64::saturating_add))
}

fn in_json(known: &[KnownRoute], all: &[CopyReading], calls: &[CallReading]) -> String {
    let objects = known.iter().map(|route| {
        let is_same = |found: &&CopyReading| (&found.route, found.process_id) == (&route.route, route.process_id);
        let counters = all.iter().find(is_same).map(|copy| counters_in_json(&copy.statistics.values()));
        let callers = calls.iter().filter(|calls| calls.route == route.route).map(calls_in_json);
        let callers: Vec<Value> = callers.collect();
        let metadata: serde_json::Map<String, Value> =
            route.metadata.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        serde_json::json!({
            "route": route.route,
            "state": route.state,
            "version": route.version,
            "request": route.types.0,
            "reply": route.types.1,
            "workers": route.workers,
            "process_id": route.process_id,
            "process": route.process_name,
            "metadata": metadata,
            "counters": counters,
            "callers": callers,
            "waiting": waiting(&route.route, all.iter(), calls.iter()),
        })
    });
    format!("{}\n", Value::Array(objects.collect()))
}

/// Processes of a line at most.
const PROCESSES_MAX: usize = 8;
/// Letters of a cell at most, but those of a route's name.
const CELL_MAX: usize = 64;

/// A line for each route, version, types and state, with the copies that have them in common.
fn in_text(known: &[KnownRoute]) -> String {
    let is_same = |a: &KnownRoute, b: &KnownRoute| {
        (&a.route, a.state, &a.version, &a.types) == (&b.route, b.state, &b.version, &b.types)
    };
    let mut groups: Vec<Vec<&KnownRoute>> = Vec::new();
    for route in known {
        match groups.iter_mut().find(|group| is_same(group[0], route)) {
            Some(group) => group.push(route),
            None => groups.push(vec![route]),
        }
    }
    let head = ["ROUTE", "VERSION", "REQUEST → REPLY", "STATE", "COPIES", "WORKERS", "PROCESSES"].map(str::to_owned);
    let rows = groups.iter().map(|group| {
        let first = group[0];
        let more = group.len().saturating_sub(PROCESSES_MAX);
        let shown = group.iter().take(PROCESSES_MAX);
        let mut processes: Vec<_> =
            shown.map(|route| format!("{} {}", cell(&route.process_name), route.process_id)).collect();
        processes.extend((more > 0).then(|| format!("{more} more")));
        [
            first.route.clone(),
            if first.version.is_empty() { "-".to_owned() } else { cell(&first.version) },
            format!("{} → {}", cell(&first.types.0), cell(&first.types.1)),
            first.state.to_owned(),
            group.len().to_string(),
            group.iter().map(|route| u64::from(route.workers)).sum::<u64>().to_string(),
            processes.join(", "),
        ]
    });
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(rows).collect();
    let widths: Vec<usize> =
        (0..7).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What another process has written: nothing of it moves the cursor, and it is no longer than a cell.
fn cell(text: &str) -> String {
    let seen = |letter: char| if letter.is_control() { '?' } else { letter };
    let mut cell: String = text.chars().map(seen).take(CELL_MAX).collect();
    if text.chars().nth(CELL_MAX).is_some() {
        cell.pop();
        cell.push('…');
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_say_the_same_are_one_line_and_nothing_moves_the_cursor() {
        let copy = |process_id, version: &str| KnownRoute {
            route: "calculator/add".to_owned(),
            state: "open",
            process_id,
            process_name: "calc\u{1b}[2J".to_owned(),
            version: version.to_owned(),
            metadata: Vec::new(),
            types: ("Add".to_owned(), "Sum".to_owned()),
            workers: 4,
        };
        let text = in_text(&[copy(11, ""), copy(12, ""), copy(13, "2")]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        let first = ["calculator/add", "-", "Add", "→", "Sum", "open", "2", "8", "calc?[2J", "11,", "calc?[2J", "12"];
        assert_eq!(lines[1], first);
        assert_eq!((lines[2][1], &lines[2][6..8]), ("2", &["1", "4"][..]));

        let many: Vec<_> = (1..=100).map(|process_id| copy(process_id, &"9".repeat(1_000))).collect();
        let text = in_text(&many);
        let line = text.lines().nth(1).unwrap_or_default();
        assert!(line.ends_with(" 8, 92 more") && line.contains("9…") && line.chars().count() < 300, "{line}");
    }
}
