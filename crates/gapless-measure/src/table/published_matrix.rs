//! The published matrix of the canonical benchmark, with our row of the same mode, access and CPU configuration.

use super::{TableStyle, TextTable, absent, microseconds, rate};
use crate::published::rumi::{LATENCIES, LATENCY_RATE_PER_S, THROUGHPUTS};
use crate::{LatencyNs, Row};

const ACCESSES: [&str; 2] = ["indirect", "direct"];
const CPUS: [&str; 3] = ["min", "default", "max"];
const ENCODINGS: [&str; 2] = ["sbe", "protobuf"];

/// Our rows are clustered ones; `None` without such rows.
pub(super) fn published_matrix(rows: &[Row], style: TableStyle) -> Option<String> {
    rows.iter().any(|row| row.config.clustered == Some(true)).then(|| {
        let head = [
            "mode",
            "access",
            "cpu",
            "version",
            "published",
            "ours, sbe",
            "ours, protobuf",
            "bare link of ours p50 µs",
        ];
        let mut table = TextTable::new(style, &head, 4);
        for access in ACCESSES {
            for cpu in CPUS {
                let published = LATENCIES.iter().find(|row| row.access == access && row.cpu == cpu);
                let published = published.map_or_else(
                    || "none published".to_owned(),
                    |row| format!("{:.2} / {:.2} / {:.2}", row.p50_us, row.p99_us, row.p99_9_us),
                );
                let ours = ENCODINGS.map(|encoding| find(rows, ("latency", access, cpu, encoding)));
                add(&mut table, ["latency", access, cpu, "4.0"], published, ours);
            }
        }
        for access in ACCESSES {
            for cpu in CPUS {
                let ours = ENCODINGS.map(|encoding| find(rows, ("throughput", access, cpu, encoding)));
                for version in ["4.0", "3.16"] {
                    let published =
                        THROUGHPUTS.iter().find(|row| (row.access, row.cpu, row.version) == (access, cpu, version));
                    let published =
                        published.map_or_else(|| "none published".to_owned(), |row| rate(row.messages_per_s as f64));
                    add(&mut table, ["throughput", access, cpu, version], published, ours);
                }
            }
        }
        table.to_string()
    })
}

fn add(table: &mut TextTable, key: [&str; 4], published: String, ours: [Option<&Row>; 2]) {
    let mut cells: Vec<String> = key.map(str::to_owned).into();
    cells.push(published);
    cells.extend(ours.map(|row| row.map_or_else(|| "not measured".to_owned(), figures)));
    let bare = ours.into_iter().flatten().find_map(bare_p50_ns);
    cells.push(bare.map_or_else(absent, microseconds));
    table.add_row(&cells);
}

/// Event sourcing, one session; a latency at the published rate.
fn find<'row>(rows: &'row [Row], (mode, access, cpu, encoding): (&str, &str, &str, &str)) -> Option<&'row Row> {
    let is = |value: &Option<String>, expected: &str| value.as_deref() == Some(expected);
    rows.iter().find(|row| {
        let config = &row.config;
        let sessions = config.extra.get("sessions").and_then(serde_json::Value::as_u64);
        config.clustered == Some(true)
            && is(&config.program, "es")
            && is(&config.mode, mode)
            && is(&config.access, access)
            && is(&config.cpu, cpu)
            && is(&config.tier, "quorum")
            && config.encoding.as_ref().is_some_and(|found| found.starts_with(encoding))
            && (mode == "throughput" || (config.rate_per_s == Some(LATENCY_RATE_PER_S) && sessions == Some(1)))
    })
}

fn figures(row: &Row) -> String {
    if row.failure().is_some() {
        return "FAILED".to_owned();
    }
    if row.missed_rate_per_s().is_some() {
        return "rate MISSED".to_owned();
    }
    let latency = |LatencyNs { p50, p99, p99_9, .. }| [p50, p99, p99_9].map(microseconds).join(" / ");
    row.latency_ns.map(latency).or_else(|| row.throughput_per_s.map(rate)).unwrap_or_else(absent)
}

fn bare_p50_ns(row: &Row) -> Option<u64> {
    row.extra.get("bare")?["latency_ns"]["p50"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowConfig;

    fn row(mode: &str, encoding: &str) -> Row {
        let text = |text: &str| Some(text.to_owned());
        let mut row = Row {
            config: RowConfig {
                program: text("es"),
                mode: text(mode),
                access: text("direct"),
                encoding: text(encoding),
                tier: text("quorum"),
                cpu: text("default"),
                clustered: Some(true),
                rate_per_s: (mode == "latency").then_some(LATENCY_RATE_PER_S),
                ..RowConfig::default()
            },
            ..Row::default()
        };
        row.config.extra.insert("sessions".to_owned(), 1.into());
        row
    }

    #[test]
    fn published_rows_are_next_to_ours() {
        let latency = LatencyNs { p50: 11_900, p99: 42_000, p99_9: 99_000, ..LatencyNs::default() };
        let mut ours = row("latency", "sbe.serial");
        (ours.latency_ns, ours.rate_reached) = (Some(latency), Some(true));
        ours.extra.insert("bare".to_owned(), serde_json::json!({"latency_ns": {"p50": 7_000}}));
        let fast = Row { throughput_per_s: Some(1_668_225.0), ..row("throughput", "protobuf.serial") };
        let missed = Row { rate_reached: Some(false), ..row("latency", "protobuf.serial") };
        let text = published_matrix(&[ours, fast, missed], TableStyle::Markdown).unwrap();
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(squeezed).collect();
        assert_eq!(lines.len(), 2 + 6 + 12, "{text}");
        let line = |start: &str| lines.iter().find(|line| line.starts_with(start)).unwrap();
        let default = line("| latency | direct | default | 4.0 ");
        for part in ["23.60 / 26.40 / 31.98", "11.9 / 42.0 / 99.0", "rate MISSED", "7.00"] {
            assert!(default.contains(part), "{part}: {default}");
        }
        assert!(line("| throughput | direct | default | 4.0 ").contains("1,668,225"), "{text}");
        assert!(line("| throughput | indirect | max | 3.16 ").contains("56,419"), "{text}");
        assert!(line("| throughput | direct | max | 4.0 ").contains("none published"), "{text}");
        assert_eq!(published_matrix(&[Row::default()], TableStyle::Markdown), None);
    }
}
