//! Targets of the figures, and whether they are reached.

use crate::commands::axon_case;
use crate::commands::scale::RESTART;
use crate::commands::throughput::CANONICAL;
use gapless_load::commands::latency::SLEEPS;
use gapless_measure::reporting::{config_number, of_config, put};
use gapless_measure::{Report, Row};

/// SBE in memory, commands a second: of one aggregate, and of many.
const ONE_PER_S: f64 = 4.5e6;
const MANY_PER_S: f64 = 3.5e6;
/// Of one aggregate, the part of encoding and appending alone.
const PART_OF_FLOOR: f64 = 0.4;
const PART_OF_REPLICATED: f64 = 0.9;
/// Serde by SBE.
const PART_OF_SBE: f64 = 0.6;
const BY_AXON: f64 = 10.0;
const REPLAYED_PER_S: f64 = 5e6;
const RESTART_S: f64 = 2.0;
/// The median and the 99th percentile by those of the canonical row.
const P50_BY_CANONICAL: f64 = 1.5;
const P99_BY_CANONICAL: f64 = 2.0;

pub(crate) fn note(report: &mut Report) {
    let verdicts: Vec<_> = report.rows.iter().map(|row| (verdict(report, row), ratio_to_axon(report, row))).collect();
    for (row, (verdict, axon_ratio)) in report.rows.iter_mut().zip(verdicts) {
        if let Some(ratio) = axon_ratio {
            put(row, "axon_ratio", ratio);
        }
        if let Some((target, is_met)) = verdict {
            put(row, "target", target);
            put(row, "target_met", is_met);
        }
    }
}

fn ratio_to_axon(report: &Report, row: &Row) -> Option<f64> {
    let aggregates = config_number(row, "aggregates")?;
    let is_of_it = row.config.name.is_none()
        && (row.config.mode.as_deref(), row.config.tier.as_deref()) == (Some("throughput"), Some("memory"))
        && row.config.payload_bytes == Some(0);
    let ratio = row.throughput_per_s.filter(|_| is_of_it)? / axon_case::fastest(&report.rows, aggregates)?;
    Some((ratio * 100.0).round() / 100.0)
}

fn verdict(report: &Report, row: &Row) -> Option<(String, bool)> {
    if row.config.name.is_some() {
        return None;
    }
    match row.config.mode.as_deref()? {
        "throughput" => of_throughput(report, row),
        "replay" => Some((format!("{:.1} M/s", REPLAYED_PER_S / 1e6), row.throughput_per_s? >= REPLAYED_PER_S)),
        "latency" => of_latency(report, row),
        "scale" if of_config(row, "what") == RESTART => {
            Some((format!("{RESTART_S} s and the unsealed segment"), row.elapsed_ns? as f64 <= RESTART_S * 1e9))
        }
        _ => None,
    }
}

fn of_throughput(report: &Report, row: &Row) -> Option<(String, bool)> {
    let rate = row.throughput_per_s?;
    // Only the published ladder judges one command at a time.
    if config_number(row, "in_flight") == Some(1) {
        return None;
    }
    let is_plain = row.config.payload_bytes == Some(0) && of_config(row, "identifiers") == "position";
    let is_one = config_number(row, "aggregates") == Some(1);
    match (row.config.tier.as_deref()?, row.config.encoding.as_deref()?) {
        ("memory", "sbe") if is_plain => {
            let (per_s, is_near_floor) = match is_one {
                true => (ONE_PER_S, 1.0 / row.floor_ratio? >= PART_OF_FLOOR),
                false => (MANY_PER_S, true),
            };
            let mut target = format!("{:.1} M/s", per_s / 1e6);
            if is_one {
                target += &format!(", {PART_OF_FLOOR} of the floor");
            }
            let by_axon = ratio_to_axon(report, row);
            if by_axon.is_some() {
                target += &format!(", {BY_AXON} × Axon");
            }
            Some((target, rate >= per_s && is_near_floor && by_axon.is_none_or(|ratio| ratio >= BY_AXON)))
        }
        ("memory", "serde") if is_plain => {
            let by_sbe = report.rows.iter().find(|other| {
                other.config.encoding.as_deref() == Some("sbe")
                    && other.config.extra == row.config.extra
                    && (&other.config.tier, other.config.payload_bytes) == (&row.config.tier, row.config.payload_bytes)
            });
            Some((format!("{PART_OF_SBE} of SBE"), rate >= PART_OF_SBE * by_sbe?.throughput_per_s?))
        }
        ("journal", _) => Some(("the canonical row".to_owned(), row.floor_ratio? <= 1.0)),
        ("quorum", _) => {
            Some((format!("{PART_OF_REPLICATED} of the canonical row"), 1.0 / row.floor_ratio? >= PART_OF_REPLICATED))
        }
        _ => None,
    }
}

fn of_latency(report: &Report, row: &Row) -> Option<(String, bool)> {
    let is_canonical = |row: &&Row| row.config.name.as_deref() == Some(CANONICAL) && row.latency_ns.is_some();
    let canonical = report.rows.iter().find(is_canonical)?.latency_ns?;
    // The canonical row's driver spins: one that sleeps has no target.
    let latency = row.latency_ns.filter(|_| of_config(row, "caller") != SLEEPS)?;
    let is_within = |mine: u64, its: u64, most: f64| mine as f64 <= its as f64 * most;
    let is_met = is_within(latency.p50, canonical.p50, P50_BY_CANONICAL)
        && is_within(latency.p99, canonical.p99, P99_BY_CANONICAL)
        && !row.has_missed_rate();
    Some((format!("{P50_BY_CANONICAL} × canonical p50, {P99_BY_CANONICAL} × p99"), is_met))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::rows;
    use gapless_load::commands::case::{BusCase, BusDrive, BusTier, CommandEncoding};
    use gapless_measure::LatencyNs;

    fn row(case: &BusCase, per_s: f64, floor_ratio: Option<f64>) -> Row {
        let config = rows::config(case, "throughput", 9);
        Row { config, throughput_per_s: Some(per_s), floor_ratio, ..Row::default() }
    }

    fn met(rows: Vec<Row>) -> Vec<Option<bool>> {
        let mut report = Report { rows, ..Report::default() };
        note(&mut report);
        report.rows.iter().map(|row| row.extra.get("target_met").and_then(serde_json::Value::as_bool)).collect()
    }

    #[test]
    fn rates_are_held_to_their_targets() {
        let base = BusCase::base(BusDrive::Pipelined);
        let (many, journal) = (BusCase { aggregates: 7, ..base }, BusCase { tier: BusTier::Journal, ..base });
        let serde = BusCase { encoding: CommandEncoding::Serde, ..base };
        let rows = |sbe: f64, of_serde: f64, ratio: f64| {
            vec![
                row(&base, sbe, Some(ratio)),
                row(&many, sbe - 1e6, None),
                row(&serde, of_serde, None),
                row(&journal, 1.0, Some(ratio - 1.5)),
                row(&BusCase { size: 256, ..base }, 1.0, Some(9.0)),
                {
                    let mut one_by_one = row(&base, 1.0, Some(9.0));
                    one_by_one.config.extra.insert("in_flight".to_owned(), 1.into());
                    one_by_one
                },
            ]
        };
        assert_eq!(met(rows(4.5e6, 2.7e6, 2.5)), [Some(true), Some(true), Some(true), Some(true), None, None]);
        assert_eq!(met(rows(4.4e6, 2.6e6, 2.6)), [Some(false), Some(false), Some(false), Some(false), None, None]);
        assert_eq!(met(rows(4.5e6, 2.7e6, 2.6))[0], Some(false), "too far from the floor");
    }

    #[test]
    fn latency_target_is_canonical_row() {
        let of = |p50, p99, name: Option<&str>| {
            let mut config = rows::config(&BusCase::base(BusDrive::Pipelined), "latency", 1);
            config.name = name.map(str::to_owned);
            Row { config, latency_ns: Some(LatencyNs { p50, p99, ..LatencyNs::default() }), ..Row::default() }
        };
        let canonical = of(1000, 2000, Some(CANONICAL));
        assert_eq!(met(vec![canonical.clone(), of(1500, 4000, None)]), [None, Some(true)]);
        assert_eq!(met(vec![canonical.clone(), of(1501, 4000, None)]), [None, Some(false)]);
        assert_eq!(met(vec![canonical, of(1500, 4001, None)]), [None, Some(false)]);
    }
}
