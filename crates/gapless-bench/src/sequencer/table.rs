//! Tables of figures, targets and published figures, from a [`Report`] alone: a committed JSON file prints the same
//! table.

use super::RoleFigures;
use super::slices::{LatencySlice, PERCENTS};
use gapless_measure::published::coralsequencer::{self as published, latency_of, rate_of};
use gapless_measure::reporting::{config_number, number};
use gapless_measure::table::{
    RowColumn, TableStyle, TextTable, absent, bytes, column, driver_cpu, floor_section, grouped, latency, microseconds,
    notes, rate, service_cpu, stolen, text, throughput, unverified,
};
use gapless_measure::{LatencyNs, Report, Row};
use gapless_wire::mtu::Mtu;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

const WHAT_IS_INCLUDED: &str = "\
Round trip: published by the node, stamped by the sequencer, journaled, back at the node and copied out; one message in \
flight, warm-up excluded, both checksums on. The floor is the same number of bytes there and back with nothing done to \
them: through shared memory and by TCP payload + 64; by UDP on connected sockets payload + 64 + 22, the one that is not connected \
stands beside it. Measured in repetitions, each with processes started anew and the floor right before; the ratio and the \
floor are those of the repetition in the middle, the times those of all.\n\
Through the sequencer: messages handled, from the first to the last by the sequencer's own stamps. Delivered: the same \
messages until the slowest node has all. A node's rate: its own messages, from its first publish until its last one came \
back. CPU: of a process, for each message that it handled; a process that spins shows what it burns.\n\
Verified: every node has seen every message of every node once, in order, with the right contents, and all the same as \
the journal.\n\
Tiers: memory = in the sequencer's process; journal = in the operating system's hands, survives the process; sync = on \
the device, survives power.";

pub fn whole(report: &Report, style: TableStyle) -> String {
    let of_mode = |mode: &str| -> Vec<&Row> {
        report.rows.iter().filter(|row| row.config.mode.as_deref() == Some(mode)).collect()
    };
    let (latency, throughput, rewind) = (of_mode("latency"), of_mode("throughput"), of_mode("rewind"));
    let mut text = format!("{}\n", report.environment.summary());
    let mut section = |title: &str, table: TextTable| text += &format!("\n{title}\n{table}\n");
    if !latency.is_empty() {
        section("Round trip node → sequencer → node", round_trips(&latency, style));
        section("Slices of the round trip: average / greatest of the fastest, µs", slices(&latency, style));
    }
    if !throughput.is_empty() {
        section("Throughput, each node reads everything", throughputs(&throughput, style));
    }
    if !rewind.is_empty() {
        section(
            "Rewind of a late joiner, and the live node's latency from the scheduled time",
            rewinds(&rewind, style),
        );
    }
    section("Each process", roles(&report.rows, style));
    text += &format!("\n{WHAT_IS_INCLUDED}\n");
    text += &floor_section(&report.floor, "each before its row", style);
    text += &format!("\n{}.\n{}.\n{}.\n", published::LATENCY_SOURCE, published::RATE_SOURCE, published::WIRE);
    text + unverified(report) + &notes(report)
}

pub fn line(row: &Row, took: Duration) -> String {
    let config = &row.config;
    let mut line = format!("{} {} {} B", text(&config.mode), text(&config.transport), bytes(row));
    line += match is_batched(row) {
        Some(false) => ", one per packet",
        Some(true) if row.throughput_per_s.is_some() => ", batched",
        _ => "",
    };
    if let Some(mtu) = config_number(row, "mtu_bytes") {
        line += &format!(", mtu {}", grouped(mtu));
    }
    line += &match (row.throughput_per_s, row.latency_ns) {
        (Some(per_s), _) => format!(": {}/s", rate(per_s)),
        (None, Some(latency)) => {
            format!(": p50 {} µs, p99 {} µs", microseconds(latency.p50), microseconds(latency.p99))
        }
        (None, None) => String::new(),
    };
    if let Some(ratio) = row.floor_ratio {
        line += &format!(", {ratio:.2} × floor");
    }
    line += if row.verified == Some(true) { ", verified" } else { ", NOT VERIFIED" };
    format!("{line} ({:.1} s)", took.as_secs_f64())
}

fn round_trips(rows: &[&Row], style: TableStyle) -> TextTable {
    let columns: [RowColumn; 21] = [
        ("transport", |row| text(&row.config.transport)),
        column::TIER,
        ("threads", |row| text(&row.config.cpu)),
        column::BYTES,
        ("mtu", mtu),
        ("min µs", |row| latency(row, |latency| latency.min)),
        ("avg µs", |row| latency(row, |latency| latency.mean.round() as u64)),
        column::P50,
        column::P90,
        column::P99,
        column::P99_9,
        column::P99_99,
        column::MAX,
        ("count", |row| row.latency_ns.map_or_else(absent, |latency| grouped(latency.count))),
        ("floor p50 µs", |row| number(row, "floor_p50_ns").map_or_else(absent, |ns| format!("{:.2}", ns / 1e3))),
        column::BY_FLOOR,
        ("target", |row| target(row, "floor_ratio_max", |most| format!("≤ {most}"))),
        ("CPU ns/msg node", driver_cpu),
        ("CPU ns/msg sequencer", service_cpu),
        column::VERIFIED,
        ("published avg µs", |row| {
            let published = row.config.payload_bytes.and_then(latency_of).filter(|_| is_udp(row));
            published.map_or_else(absent, |published| microseconds(published.mean_ns))
        }),
    ];
    TextTable::of_rows(style, rows, 3, &columns)
}

fn slices(rows: &[&Row], style: TableStyle) -> TextTable {
    let percents = PERCENTS.map(|percent| format!("{percent} %"));
    let mut head = vec!["transport", "bytes", "min"];
    head.extend(percents.iter().map(String::as_str));
    head.extend(["max", "count"]);
    let mut table = TextTable::new(style, &head, 1);
    for row in rows {
        let Some(latency) = row.latency_ns else { continue };
        let of_row: Vec<LatencySlice> = extra(row, "slices").unwrap_or_default();
        let mut cells = vec![text(&row.config.transport), bytes(row), microseconds(latency.min)];
        for percent in PERCENTS {
            let slice = of_row.iter().find(|slice| slice.percent == percent);
            cells.push(slice.map_or_else(absent, |slice| {
                format!("{} / {}", microseconds(slice.average_ns.round() as u64), microseconds(slice.greatest_ns))
            }));
        }
        cells.extend([microseconds(latency.max), grouped(latency.count)]);
        table.add_row(&cells);
    }
    for published in &published::LATENCIES {
        let Some(rest) = published.rest else { continue };
        let mut cells = vec!["udp, published".to_owned(), grouped(published.payload_bytes), microseconds(rest.min_ns)];
        cells.extend(
            rest.average_ns.into_iter().zip(rest.greatest_ns).map(|(average_ns, greatest_ns)| {
                format!("{} / {}", microseconds(average_ns), microseconds(greatest_ns))
            }),
        );
        cells.extend([microseconds(rest.max_ns), grouped(1_000_000)]);
        table.add_row(&cells);
    }
    table
}

fn throughputs(rows: &[&Row], style: TableStyle) -> TextTable {
    let columns: [RowColumn; 18] = [
        ("transport", |row| text(&row.config.transport)),
        column::TIER,
        ("threads", |row| text(&row.config.cpu)),
        ("batching", |row| match is_batched(row) {
            None => "no packets".to_owned(),
            Some(true) => "node and sequencer".to_owned(),
            Some(false) => "one per packet".to_owned(),
        }),
        column::BYTES,
        ("mtu", mtu),
        ("nodes", |row| config_number(row, "nodes").map_or_else(absent, grouped)),
        ("messages", |row| row.sent.map_or_else(absent, grouped)),
        ("through the sequencer msg/s", throughput),
        ("target", |row| target(row, "throughput_min_per_s", |least| format!("≥ {}", rate(least)))),
        ("delivered msg/s", |row| number(row, "delivered_per_s").map_or_else(absent, rate)),
        ("each node msg/s", |row| {
            let nodes: Vec<RoleFigures> = extra(row, "roles").unwrap_or_default();
            let rates = nodes.iter().filter(|role| role.role.starts_with("node")).map(|role| role.rate_per_s);
            let (least, most) = rates.fold((f64::MAX, 0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
            if most > 0.0 { format!("{} – {}", rate(least), rate(most)) } else { absent() }
        }),
        column::BY_FLOOR,
        ("CPU ns/msg nodes", driver_cpu),
        ("CPU ns/msg sequencer", service_cpu),
        ("stolen ms", stolen),
        column::VERIFIED,
        ("published msg/s", |row| {
            let batched = row.config.payload_bytes.zip(is_batched(row));
            let published = batched.and_then(|(bytes, batch)| rate_of(bytes, batch)).filter(|_| is_udp(row));
            published.map_or_else(absent, |published| {
                format!("{} ({})", grouped(published.sequencer_per_s), grouped(published.node_per_s))
            })
        }),
    ];
    TextTable::of_rows(style, rows, 4, &columns)
}

fn rewinds(rows: &[&Row], style: TableStyle) -> TextTable {
    fn before(row: &Row, figure: fn(LatencyNs) -> u64) -> String {
        extra(row, "latency_before_ns").map_or_else(absent, |latency| microseconds(figure(latency)))
    }
    let columns: [RowColumn; 15] = [
        ("transport", |row| text(&row.config.transport)),
        column::TIER,
        ("threads", |row| text(&row.config.cpu)),
        column::BYTES,
        ("mtu", mtu),
        ("frames", |row| row.sent.map_or_else(absent, grouped)),
        ("frames/s", throughput),
        ("target", |row| target(row, "throughput_min_per_s", |least| format!("≥ {}", rate(least)))),
        ("live msg/s", |row| row.config.rate_per_s.map_or_else(absent, grouped)),
        ("p50 µs before", |row| before(row, |latency| latency.p50)),
        ("p50 µs during", |row| latency(row, |latency| latency.p50)),
        ("p99 µs before", |row| before(row, |latency| latency.p99)),
        ("p99 µs during", |row| latency(row, |latency| latency.p99)),
        ("lost", |row| row.lost.map_or_else(absent, grouped)),
        column::VERIFIED,
    ];
    TextTable::of_rows(style, rows, 3, &columns)
}

fn roles(rows: &[Row], style: TableStyle) -> TextTable {
    let head = [
        "row",
        "process",
        "bytes",
        "sent",
        "handled",
        "total ms",
        "msg/s",
        "avg time ns",
        "CPU ns/msg",
        "peak MiB",
        "sent again",
        "asked again",
    ];
    let mut table = TextTable::new(style, &head, 2);
    for row in rows {
        let batch = if is_batched(row) == Some(false) { ", one per packet" } else { "" };
        let name = format!("{} {}{batch}", text(&row.config.mode), text(&row.config.transport));
        let of_row: Vec<RoleFigures> = extra(row, "roles").unwrap_or_default();
        for role in of_row {
            // A row that mostly waits for one message has no rate.
            let timed = |text: String| if role.elapsed_ns > 0 { text } else { absent() };
            table.add_row(&[
                name.clone(),
                role.role.clone(),
                bytes(row),
                grouped(role.sent),
                grouped(role.handled),
                timed(format!("{:.1}", role.elapsed_ns as f64 / 1e6)),
                timed(rate(role.rate_per_s)),
                timed(rate(role.mean_ns)),
                role.cpu_ns_per_message.map_or_else(absent, rate),
                role.peak_memory_bytes.map_or_else(absent, |bytes| grouped(bytes >> 20)),
                grouped(role.resent),
                grouped(role.requested),
            ]);
        }
    }
    table
}

fn mtu(row: &Row) -> String {
    let by_default = is_udp(row).then(|| u64::from(Mtu::DEFAULT.bytes()));
    config_number(row, "mtu_bytes").or(by_default).map_or_else(absent, grouped)
}

/// `None` without packets.
fn is_batched(row: &Row) -> Option<bool> {
    row.config.extra.get("batch_node").and_then(Value::as_bool)
}

fn is_udp(row: &Row) -> bool {
    matches!(row.config.transport.as_deref(), Some("udp" | "multicast"))
}

fn extra<T: DeserializeOwned>(row: &Row, key: &str) -> Option<T> {
    row.extra.get(key).and_then(|value| serde_json::from_value(value.clone()).ok())
}

fn target(row: &Row, key: &str, words: impl FnOnce(f64) -> String) -> String {
    let Some(value) = number(row, key) else { return absent() };
    let is_met = row.extra.get("target_met").and_then(Value::as_bool) == Some(true);
    format!("{}, {}", words(value), if is_met { "reached" } else { "not reached" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::RowConfig;

    fn row(mode: &str, transport: &str, payload_bytes: u64) -> Row {
        Row {
            config: RowConfig {
                mode: Some(mode.to_owned()),
                transport: Some(transport.to_owned()),
                tier: Some("journal".to_owned()),
                payload_bytes: Some(payload_bytes),
                ..RowConfig::default()
            },
            verified: Some(true),
            ..Row::default()
        }
    }

    #[test]
    fn figures_are_next_to_published_ones() {
        let mut batched = row("throughput", "multicast", 64);
        batched.config.extra.insert("batch_node".to_owned(), true.into());
        batched.extra.insert("throughput_min_per_s".to_owned(), 2.3e6.into());
        batched.extra.insert("target_met".to_owned(), false.into());
        batched.throughput_per_s = Some(2_111_222.0);
        let mut latency = row("latency", "udp", 1024);
        latency.latency_ns =
            Some(LatencyNs { min: 3_000, mean: 4_000.0, p50: 3_900, max: 9_000, ..LatencyNs::default() });
        let rows = vec![batched, latency, row("throughput", "shared-memory", 64)];
        let text = whole(&Report { rows, ..Report::default() }, TableStyle::Markdown);
        for expected in [
            "2,330,160 (1,641,239)",
            "2,111,222",
            "≥ 2,300,000, not reached",
            "3.24 / 3.43",
            "3.38 / 5.55",
            "3.38 / 11.3",
            "382 ns",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert_eq!(text.matches("2,330,160").count(), 1, "shared memory is not what was published");
    }

    #[test]
    fn line_says_row_and_figure() {
        let mut row = row("throughput", "multicast", 1400);
        row.config.extra.extend([("batch_node".to_owned(), false.into()), ("mtu_bytes".to_owned(), 9_000.into())]);
        (row.throughput_per_s, row.floor_ratio) = (Some(700_000.4), Some(0.5));
        let expected =
            "throughput multicast 1,400 B, one per packet, mtu 9,000: 700,000/s, 0.50 × floor, verified (2.5 s)";
        assert_eq!(line(&row, Duration::from_millis(2_500)), expected);
        row.verified = Some(false);
        assert!(line(&row, Duration::ZERO).contains("NOT VERIFIED"));
    }

    #[test]
    fn a_row_that_failed_says_so() {
        let failed =
            Row { verified: Some(false), notes: vec!["node 1: 3 lost".to_owned()], ..row("latency", "udp", 64) };
        let text = whole(&Report { rows: vec![failed], ..Report::default() }, TableStyle::Terminal);
        assert!(text.contains("NOT VERIFIED") && text.contains("note: node 1: 3 lost"), "{text}");
    }
}
