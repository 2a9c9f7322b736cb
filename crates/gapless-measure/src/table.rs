//! Tables of figures, floors and published references, from a [`Report`] alone: a committed JSON file prints the same
//! table.

use std::io::IsTerminal;

use serde_json::Value;

pub use crate::numbers::{grouped, rate, time};
use crate::published::rumi::{self, ServiceLatency};
use crate::report::FAILED;
use crate::{FloorRow, LatencyNs, Report, Row};

mod grid;
mod measured;
mod published_matrix;

pub use grid::{RowColumn, TextTable};
pub use measured::{in_words, measured};
use published_matrix::published_matrix;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableStyle {
    Terminal,
    Markdown,
}

impl TableStyle {
    /// Lines on a terminal, else Markdown.
    #[must_use]
    pub fn for_stdout() -> Self {
        if std::io::stdout().is_terminal() { Self::Terminal } else { Self::Markdown }
    }
}

pub const ABSENT: &str = "–";

pub const WHAT_IS_INCLUDED: &str = "\
Latency: from the scheduled time of a message until the driver reads its released reply; inbound decoding, dispatch, \
business logic, persistence as far as the tier says, and outbound encoding are in it; no network hop, no replication.\n\
Throughput: the same flow with full persistence of the tier, exactly-once included.";

pub const WHAT_IS_INCLUDED_CLUSTERED: &str = "\
Latency: from the scheduled time of a message until the driver, in the primary's process, reads its released reply; inbound \
decoding, dispatch, business logic, the journal of the primary, replication over the link, the backup's journal and its \
acknowledgement, and outbound encoding are in it; no network hop between driver and primary.\n\
Throughput: the same flow; a message counts when primary and backup have it as the tier says, exactly-once included.";

const PAUSED_AND_STOLEN: &str = "\
Prepared: the rate while the journal's first segment lasts, which is written full of zeros before the node is ready, without the \
first quarter of that. Steady: that of the last quarter of the messages, in segments that are prepared on the way.\n\
Bare: the machine's own round trip at the same pace, from its scheduled time, in slices that alternate with those of the row. \
Tail: machine where the bare percentile is at least half of the row's, so that most of it would be there with nothing done; \
else path.\n\
Paused: share of the time in which driver or service spun and was kept from running for 2 µs or more; above 1, one \
message in a hundred meets such a pause whatever the path does.\n\
Stolen: CPU time that the hypervisor withheld from this machine during the run, all CPUs together.";

const TIERS: [(&str, &str); 5] = [
    ("memory", "in this process"),
    ("journal", "in the operating system's hands, survives the process"),
    ("sync", "on the device, survives power"),
    ("quorum", "in the operating systems' hands of primary and backup, survives either process"),
    ("quorum-sync", "on the devices of primary and backup, survives the power of both"),
];

fn legend(rows: &[Row]) -> String {
    let clustered = rows.iter().filter(|row| row.config.clustered == Some(true)).count();
    let included = match clustered {
        0 => WHAT_IS_INCLUDED.to_owned(),
        _ if clustered == rows.len() => WHAT_IS_INCLUDED_CLUSTERED.to_owned(),
        _ => format!("On one node. {WHAT_IS_INCLUDED}\nClustered. {WHAT_IS_INCLUDED_CLUSTERED}"),
    };
    let is_of_cluster = |tier: &str| tier.starts_with("quorum");
    let shown =
        |tier: &str| if is_of_cluster(tier) { clustered > 0 } else { clustered < rows.len() || rows.is_empty() };
    let tiers: Vec<String> =
        TIERS.iter().filter(|(tier, _)| shown(tier)).map(|(tier, meaning)| format!("{tier} = {meaning}")).collect();
    format!("{included}\n{PAUSED_AND_STOLEN}\nTiers: {}.", tiers.join("; "))
}

fn name_of(row: &Row) -> String {
    let config = &row.config;
    let parts =
        [&config.name, &config.program, &config.mode, &config.encoding, &config.access, &config.cpu, &config.tier];
    let sessions = config.extra.get("sessions").and_then(Value::as_u64);
    let sessions =
        sessions.map(|sessions| format!("{} session{}", grouped(sessions), if sessions == 1 { "" } else { "s" }));
    let bytes = config.name.as_ref().and(config.payload_bytes).map(|bytes| format!("{} bytes", grouped(bytes)));
    parts.into_iter().flatten().cloned().chain(bytes).chain(sessions).collect::<Vec<_>>().join(" ")
}

#[must_use]
pub fn canonical(report: &Report, style: TableStyle) -> String {
    let mut text = format!("{}\n\n{}\n", report.environment.summary(), figures(&report.rows, style));
    for row in &report.rows {
        if let Some(reason) = row.failure() {
            text += &format!("FAILED: {}: {reason}; its figures are not a result.\n", name_of(row));
        }
        if let Some(rate) = row.missed_rate_per_s() {
            let rate = grouped(rate);
            text +=
                &format!("MISSED: {}: the rate of {rate} messages/s; its latencies are not a result.\n", name_of(row));
        }
    }
    text += &format!("\n{}\n", legend(&report.rows));
    text += &floor_section(&report.floor, "same run", style);
    if let Some(matrix) = published_matrix(&report.rows, style) {
        text += &format!(
            "\nThe published matrix, and ours of event sourcing: latency in µs, p50 / p99 / p99.9, at 10,000 messages/s; \
             throughput in messages/s ({})\n{matrix}\n",
            rumi::SOURCE
        );
    } else if let Some(references) = references(&report.rows, style) {
        text += &format!("\nReference, on another machine and another wire ({})\n{references}\n", rumi::SOURCE);
    }
    text + &notes(report)
}

/// A line each, without repeats.
#[must_use]
pub fn notes(report: &Report) -> String {
    let mut all: Vec<&String> = report.notes.iter().chain(report.rows.iter().flat_map(|row| &row.notes)).collect();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|note| seen.insert(*note));
    all.iter().map(|note| format!("note: {note}\n")).collect()
}

/// `when` is part of the title; empty without floors.
#[must_use]
pub fn floor_section(rows: &[FloorRow], when: &str, style: TableStyle) -> String {
    if rows.is_empty() {
        return String::new();
    }
    format!("\nThe machine's own floor, {when}, same cores\n{}\n", floors(rows, style))
}

#[must_use]
pub fn whole(report: &Report, figures: &str, floors: &[FloorRow]) -> String {
    let floors = floor_section(floors, "same run", TableStyle::for_stdout());
    format!("{}\n\n{figures}\n{}{floors}{}", report.environment.summary(), unverified(report), notes(report))
}

/// Empty if all figures are results.
#[must_use]
pub fn unverified(report: &Report) -> &'static str {
    let is_wrong = report.rows.iter().any(|row| row.verified == Some(false));
    if is_wrong {
        "NOT VERIFIED: messages were lost, doubled or wrong in that row; its figures are not a result.\n"
    } else {
        ""
    }
}

pub mod column {
    use super::{RowColumn, bytes, floor_ratio, latency, text, verified};

    pub const NAME: RowColumn = ("what", |row| text(&row.config.name));
    pub const ENCODING: RowColumn = ("encoding", |row| text(&row.config.encoding));
    pub const TIER: RowColumn = ("tier", |row| text(&row.config.tier));
    pub const BYTES: RowColumn = ("bytes", bytes);
    pub const P50: RowColumn = ("p50 µs", |row| latency(row, |latency| latency.p50));
    pub const P90: RowColumn = ("p90 µs", |row| latency(row, |latency| latency.p90));
    pub const P99: RowColumn = ("p99 µs", |row| latency(row, |latency| latency.p99));
    pub const P99_9: RowColumn = ("p99.9 µs", |row| latency(row, |latency| latency.p99_9));
    pub const P99_99: RowColumn = ("p99.99 µs", |row| latency(row, |latency| latency.p99_99));
    pub const MAX: RowColumn = ("max µs", |row| latency(row, |latency| latency.max));
    pub const BY_FLOOR: RowColumn = ("× floor", floor_ratio);
    pub const VERIFIED: RowColumn = ("verified", verified);
}

#[must_use]
pub fn figures(rows: &[Row], style: TableStyle) -> String {
    let columns: [RowColumn; 27] = [
        ("program", |row| text(&row.config.program)),
        ("mode", |row| text(&row.config.mode)),
        column::ENCODING,
        ("access", |row| text(&row.config.access)),
        ("cpu", |row| text(&row.config.cpu)),
        column::TIER,
        ("sessions", |row| row.config.extra.get("sessions").and_then(Value::as_u64).map_or_else(absent, grouped)),
        ("rate msg/s", |row| row.config.rate_per_s.map_or_else(|| "max".into(), grouped)),
        column::P50,
        column::P90,
        column::P99,
        column::P99_9,
        column::P99_99,
        column::MAX,
        ("bare p50 µs", |row| bare(row, |latency| latency.p50)),
        ("bare p99 µs", |row| bare(row, |latency| latency.p99)),
        ("bare p99.9 µs", |row| bare(row, |latency| latency.p99_9)),
        ("tail p99, p99.9", |row| {
            let whose = |key: &str| row.extra.get("tail").and_then(|tail| tail[key].as_str());
            whose("p99").zip(whose("p99_9")).map_or_else(absent, |(p99, p99_9)| format!("{p99}, {p99_9}"))
        }),
        ("msg/s", throughput),
        ("prepared msg/s", |row| extra_rate(row, "prepared_per_s")),
        ("steady msg/s", |row| extra_rate(row, "steady_per_s")),
        ("CPU ns/msg driver", driver_cpu),
        ("CPU ns/msg service", service_cpu),
        column::BY_FLOOR,
        ("paused %", |row| {
            let paused = row.extra.get("paused").and_then(|paused| paused["share"].as_f64());
            paused.map_or_else(absent, |share| format!("{:.2}", share * 100.0))
        }),
        ("stolen ms", stolen),
        column::VERIFIED,
    ];
    TextTable::of_rows(style, &rows.iter().collect::<Vec<_>>(), 6, &columns).to_string()
}

/// One thing per row, named by `config.name`.
#[must_use]
pub fn components(rows: &[Row], style: TableStyle) -> String {
    let columns: [RowColumn; 12] = [
        column::NAME,
        column::ENCODING,
        column::TIER,
        column::BYTES,
        column::P50,
        column::P90,
        column::P99,
        column::P99_9,
        column::P99_99,
        column::MAX,
        ("msg/s", throughput),
        column::BY_FLOOR,
    ];
    TextTable::of_rows(style, &rows.iter().collect::<Vec<_>>(), 3, &columns).to_string()
}

/// Shows nanoseconds, which microseconds with two decimals would hide.
#[must_use]
pub fn components_in_nanoseconds(rows: &[Row], style: TableStyle) -> String {
    let columns: [RowColumn; 9] = [
        column::NAME,
        column::ENCODING,
        column::BYTES,
        ("mean ns", |row| row.latency_ns.map_or_else(absent, |latency| format!("{:.1}", latency.mean))),
        ("p50 ns", |row| row.latency_ns.map_or_else(absent, |latency| grouped(latency.p50))),
        ("p99 ns", |row| row.latency_ns.map_or_else(absent, |latency| grouped(latency.p99))),
        ("p99.9 ns", |row| row.latency_ns.map_or_else(absent, |latency| grouped(latency.p99_9))),
        ("a second", throughput),
        column::BY_FLOOR,
    ];
    TextTable::of_rows(style, &rows.iter().collect::<Vec<_>>(), 2, &columns).to_string()
}

#[must_use]
pub fn floors(rows: &[FloorRow], style: TableStyle) -> String {
    let mut table =
        TextTable::new(style, &["floor", "bytes", "p50 µs", "p99 µs", "p99.9 µs", "msg/s", "GB/s", "CPUs"], 1);
    for row in rows {
        let percentile = |value: Option<u64>| value.map_or_else(absent, microseconds);
        table.add_row(&[
            row.name.clone(),
            grouped(row.payload_bytes),
            percentile(row.p50_ns),
            percentile(row.p99_ns),
            percentile(row.p99_9_ns),
            row.rate_per_s.map_or_else(absent, rate),
            row.bytes_per_s.map_or_else(absent, |bytes| format!("{:.2}", bytes / 1e9)),
            row.cpus
                .as_ref()
                .map_or_else(absent, |cpus| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        ]);
    }
    table.to_string()
}

/// References for the accesses and CPU configurations in `rows`; `None` without any.
#[must_use]
pub fn references(rows: &[Row], style: TableStyle) -> Option<String> {
    let occurs = |access: &str, cpu: &str| {
        rows.iter().any(|row| row.config.access.as_deref() == Some(access) && row.config.cpu.as_deref() == Some(cpu))
    };
    let head = ["access", "cpu", "p50 µs", "p99 µs", "p99.9 µs", "msg/s (version)"];
    let mut table = TextTable::new(style, &head, 2);
    let shown = rumi::LATENCIES.iter().filter(|row| occurs(row.access, row.cpu));
    for &ServiceLatency { access, cpu, p50_us, p99_us, p99_9_us } in shown {
        let throughputs: Vec<String> = rumi::THROUGHPUTS
            .iter()
            .filter(|row| row.access == access && row.cpu == cpu)
            .map(|row| format!("{} ({})", grouped(row.messages_per_s), row.version))
            .collect();
        let throughputs = if throughputs.is_empty() { "none published".to_owned() } else { throughputs.join(", ") };
        table.add_row(&[
            access.to_owned(),
            cpu.to_owned(),
            format!("{p50_us:.2}"),
            format!("{p99_us:.2}"),
            format!("{p99_9_us:.2}"),
            throughputs,
        ]);
    }
    (!table.is_empty()).then(|| table.to_string())
}

#[must_use]
pub fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(absent)
}

#[must_use]
pub fn absent() -> String {
    ABSENT.to_owned()
}

#[must_use]
pub fn bytes(row: &Row) -> String {
    row.config.payload_bytes.map_or_else(absent, grouped)
}

/// Withheld by the hypervisor, ms.
#[must_use]
pub fn stolen(row: &Row) -> String {
    row.extra.get("stolen_ns").and_then(Value::as_u64).map_or_else(absent, |ns| grouped(ns / 1_000_000))
}

#[must_use]
pub fn verified(row: &Row) -> String {
    match row.verified {
        None if row.extra.contains_key(FAILED) => "FAILED".to_owned(),
        Some(true) => "yes".to_owned(),
        Some(false) => "NO".to_owned(),
        None => absent(),
    }
}

#[must_use]
pub fn throughput(row: &Row) -> String {
    row.throughput_per_s.map_or_else(absent, rate)
}

#[must_use]
pub fn driver_cpu(row: &Row) -> String {
    row.cpu_ns_per_message.map_or_else(absent, |cpu| rate(cpu.driver))
}

#[must_use]
pub fn service_cpu(row: &Row) -> String {
    row.cpu_ns_per_message.map_or_else(absent, |cpu| rate(cpu.service))
}

#[must_use]
pub fn floor_ratio(row: &Row) -> String {
    row.floor_ratio.map_or_else(absent, |ratio| format!("{ratio:.2}"))
}

#[must_use]
pub fn latency(row: &Row, figure: fn(LatencyNs) -> u64) -> String {
    let Some(ns) = row.latency_ns.map(figure) else { return absent() };
    if row.has_missed_rate() { format!("MISSED {}", microseconds(ns)) } else { microseconds(ns) }
}

fn extra_rate(row: &Row, name: &str) -> String {
    row.extra.get(name).and_then(Value::as_f64).map_or_else(absent, rate)
}

fn bare(row: &Row, figure: fn(LatencyNs) -> u64) -> String {
    let latency = row.extra.get("bare").and_then(|bare| serde_json::from_value(bare["latency_ns"].clone()).ok());
    latency.map_or_else(absent, |latency| microseconds(figure(latency)))
}

/// Three significant digits, or all whole ones.
#[must_use]
pub fn microseconds(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match ns {
        0..10_000 => format!("{us:.2}"),
        10_000..100_000 => format!("{us:.1}"),
        _ => grouped(ns / 1000 + u64::from(ns % 1000 >= 500)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuPerMessage, RowConfig};

    fn row() -> Row {
        Row {
            config: RowConfig {
                program: Some("es".into()),
                mode: Some("latency".into()),
                access: Some("indirect".into()),
                encoding: Some("sbe.random".into()),
                tier: Some("journal".into()),
                cpu: Some("min".into()),
                rate_per_s: Some(10_000),
                ..RowConfig::default()
            },
            latency_ns: Some(LatencyNs { p50: 1_234, p99: 45_678, max: 9_876_543, ..LatencyNs::default() }),
            throughput_per_s: Some(2_345_678.4),
            cpu_ns_per_message: Some(CpuPerMessage { driver: 12.34, service: 456.7 }),
            floor_ratio: Some(1.5),
            rate_reached: Some(true),
            verified: Some(true),
            ..Row::default()
        }
    }

    #[test]
    fn row_shows_latency_rate_and_tier() {
        let text = figures(&[row()], TableStyle::Markdown);
        let line = text.lines().find(|line| line.contains("sbe.random")).unwrap();
        for expected in ["journal", "10,000", "1.23", "45.7", "9,877", "2,345,678", "12.3", "457", "1.50", "yes"] {
            assert!(line.contains(expected), "{expected} is missing in {line}");
        }
        assert!(text.lines().next().unwrap().contains("p99.99 µs"));
    }

    #[test]
    fn row_shows_sessions_and_stolen_time() {
        let mut row = row();
        row.config.extra.insert("sessions".to_owned(), 4_321.into());
        row.extra.insert("stolen_ns".to_owned(), 87_999_999.into());
        row.extra.insert("paused".to_owned(), serde_json::json!({"share": 0.025}));
        let latency = LatencyNs { p99: 54_321, ..LatencyNs::default() };
        row.extra.insert("bare".to_owned(), serde_json::json!({"latency_ns": latency}));
        row.extra.insert("tail".to_owned(), serde_json::json!({"p99": "machine", "p99_9": "path"}));
        let text = figures(&[row], TableStyle::Markdown);
        let line = text.lines().find(|line| line.contains("sbe.random")).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert!(cells.contains(&"4,321") && cells.contains(&"87") && cells.contains(&"2.50"), "{line}");
        assert!(cells.contains(&"54.3") && cells.contains(&"machine, path"), "{line}");
    }

    #[test]
    fn missed_rate_marks_the_latencies() {
        let missed = Row { rate_reached: Some(false), ..row() };
        let text = canonical(&Report { rows: vec![missed], ..Report::default() }, TableStyle::Terminal);
        assert!(text.contains("MISSED 1.23"), "{text}");
        let line = text.lines().find(|line| line.starts_with("MISSED: es latency sbe.random ")).unwrap();
        assert!(line.contains(" min journal") && line.contains("the rate of 10,000 messages/s"), "{line}");
        let text = canonical(&Report { rows: vec![row()], ..Report::default() }, TableStyle::Terminal);
        assert!(!text.contains("MISSED"), "{text}");
    }

    #[test]
    fn unmeasured_row_shows_its_reason() {
        let mut lost = Row { config: row().config, ..Row::default() };
        lost.extra.insert(FAILED.to_owned(), "the backup has gone".into());
        lost.config.clustered = Some(true);
        lost.config.tier = Some("quorum".into());
        lost.compare_with(&FloorRow { rate_per_s: Some(1.0), ..FloorRow::default() });
        assert_eq!(lost.floor_ratio, None);
        let text = canonical(&Report { rows: vec![lost], ..Report::default() }, TableStyle::Markdown);
        assert!(text.contains("FAILED: es latency sbe.random indirect min quorum: the backup has gone"), "{text}");
        assert!(
            text.contains("quorum = in the") && !text.contains("memory = ") && text.contains("acknowledgement"),
            "{text}"
        );
        let text = canonical(&Report { rows: vec![row()], ..Report::default() }, TableStyle::Markdown);
        assert!(text.contains("memory = ") && !text.contains("quorum") && text.contains("no replication"), "{text}");
    }

    #[test]
    fn unmeasured_is_a_dash() {
        let text = figures(&[Row::default()], TableStyle::Markdown);
        let line = text.lines().last().unwrap();
        assert!(line.contains(" max "));
        assert_eq!(line.matches(ABSENT).count(), 26);
    }

    #[test]
    fn references_match_measured_rows() {
        let text = canonical(&Report { rows: vec![row()], ..Report::default() }, TableStyle::Terminal);
        assert!(text.contains("31.46") && text.contains("139,875 (4.0), 117,124 (3.16)"));
        assert!(!text.contains("23.60"), "direct was not run");
        assert!(references(&[Row::default()], TableStyle::Terminal).is_none());
    }

    #[test]
    fn floors_and_notes_are_printed() {
        let report = Report {
            floor: vec![FloorRow {
                name: "shm_stream".into(),
                payload_bytes: 320,
                rate_per_s: Some(45e6),
                cpus: Some(vec![0, 1]),
                ..FloorRow::default()
            }],
            notes: vec!["CPU 9 is missing".into()],
            ..Report::default()
        };
        let text = canonical(&report, TableStyle::Terminal);
        assert!(text.contains("45,000,000") && text.contains("0,1") && text.contains("note: CPU 9 is missing"));
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0, 999, 1_000, 12_345_678].map(grouped).each_ref().map(String::as_str)
        );
        assert_eq!(microseconds(310), "0.31");
        assert_eq!(microseconds(80_000), "80.0");
        assert_eq!(microseconds(765_499), "765");
        assert_eq!(microseconds(u64::MAX), "18,446,744,073,709,552");
    }

    #[test]
    fn a_table_of_components_has_its_names() {
        let part = Row {
            config: RowConfig { name: Some("clock".into()), ..RowConfig::default() },
            throughput_per_s: Some(5e7),
            ..Row::default()
        };
        let text = components(&[part], TableStyle::Markdown);
        assert!(text.contains("clock") && text.contains("50,000,000"));
    }
}
