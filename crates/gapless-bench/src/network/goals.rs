//! The goals of calls over Kafka: rows are judged by them, and a note of the report states them.

use gapless_measure::published::mercury::{PAYLOADS, PublishedPayload};
use gapless_measure::reporting::{number, put};
use gapless_measure::table::grouped;
use gapless_measure::{FloorRow, Row};

/// Multiples of the greatest published figure, by published size.
const TIMES_PUBLISHED: [f64; PAYLOADS.len()] = [20.0, 5.0, 3.0, 3.0];
/// Share of the rate of the bare pair.
const SHARE_OF_BARE: f64 = 0.6;
/// Multiple of the bare round trip at p50.
const TIMES_BARE_ROUND_TRIP: f64 = 1.3;

const RATE_MIN: &str = "target_per_s";
const FLOOR_RATIO_MAX: &str = "target_floor_ratio_max";
const IS_MET: &str = "target_met";

pub(super) fn judge_rate(row: &mut Row, published: &PublishedPayload, greatest: f64) {
    let times = PAYLOADS.iter().zip(TIMES_PUBLISHED).find(|(payload, _)| *payload == published);
    let (_, times) = times.expect("a published size");
    put(row, RATE_MIN, times * greatest);
    put(row, FLOOR_RATIO_MAX, 1.0 / SHARE_OF_BARE);
    put_result(row);
}

pub(super) fn judge_latency(row: &mut Row, bare: &FloorRow) {
    row.compare_with(bare);
    put(row, FLOOR_RATIO_MAX, TIMES_BARE_ROUND_TRIP);
    put_result(row);
}

fn put_result(row: &mut Row) {
    let results = [meets_rate(row), meets_floor(row)];
    put(row, IS_MET, results.into_iter().flatten().all(|is_met| is_met));
}

/// `None` without a published figure.
fn meets_rate(row: &Row) -> Option<bool> {
    let least = number(row, RATE_MIN)?;
    Some(row.throughput_per_s.is_some_and(|rate| rate >= least))
}

/// `None` without a floor.
fn meets_floor(row: &Row) -> Option<bool> {
    let most = number(row, FLOOR_RATIO_MAX)?;
    Some(row.floor_ratio.is_some_and(|ratio| ratio <= most))
}

pub(super) fn results(row: &Row) -> String {
    let word = |is_met| if is_met { "met" } else { "MISSED" };
    let of = |name: &str, is_met: Option<bool>| is_met.map(|is_met| format!("{name} {}", word(is_met)));
    [of("published", meets_rate(row)), of("floor", meets_floor(row))]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn note() -> String {
    let of_sizes = PAYLOADS.iter().zip(TIMES_PUBLISHED);
    let of_sizes: Vec<_> =
        of_sizes.map(|(size, times)| format!("{times} times at {} B", grouped(size.one_way as u64))).collect();
    format!(
        "goals: the greatest published figure {}; {SHARE_OF_BARE} of the bare pair; {TIMES_BARE_ROUND_TRIP} times the bare round trip at p50",
        of_sizes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::LatencyNs;
    use serde_json::Value;

    fn rated(rate: f64, floor_ratio: f64) -> Row {
        let mut row = Row { throughput_per_s: Some(rate), floor_ratio: Some(floor_ratio), ..Row::default() };
        judge_rate(&mut row, &PAYLOADS[0], 791.0);
        row
    }

    #[test]
    fn each_goal_has_its_result() {
        for (row, words, is_met) in [
            (rated(15_820.0, 1.66), "published met, floor met", true),
            (rated(15_819.0, 1.66), "published MISSED, floor met", false),
            (rated(15_820.0, 1.67), "published met, floor MISSED", false),
        ] {
            assert_eq!((results(&row).as_str(), &row.extra["target_met"]), (words, &Value::Bool(is_met)));
        }
        let mut unmeasured = Row { throughput_per_s: Some(1e6), ..Row::default() };
        judge_rate(&mut unmeasured, &PAYLOADS[0], 791.0);
        assert_eq!(results(&unmeasured), "published met, floor MISSED");
        assert_eq!(results(&Row::default()), "");
    }

    #[test]
    fn lone_calls_need_a_round_trip_goal() {
        let bare = FloorRow { name: "bare".to_owned(), p50_ns: Some(1_000), ..FloorRow::default() };
        for (p50, words) in [(1_300, "floor met"), (1_320, "floor MISSED")] {
            let latency_ns = Some(LatencyNs { p50, ..LatencyNs::default() });
            let mut row = Row { latency_ns, ..Row::default() };
            judge_latency(&mut row, &bare);
            assert_eq!(results(&row), words);
        }
    }

    #[test]
    fn note_states_each_goal() {
        let note = note();
        for words in ["20 times at 72 B", "5 times at 10,069 B", "3 times at 500,071 B", "0.6 of", "1.3 times"] {
            assert!(note.contains(words), "{words}: {note}");
        }
    }
}
