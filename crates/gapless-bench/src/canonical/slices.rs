//! Slices of a row at a rate alternate with slices of the machine's bare round trip at the same pace, so that both meet
//! the same interruptions.

use crate::floor::{HEADER_BYTES, paced_slice};
use crate::histogram::{LatencyHistogram, RecordedRun};
use crate::options::{ReplicationLink, RunSettings};
use gapless_measure::{CpuPerMessage, Row};
use serde_json::{Map, Value, json};
use std::time::Duration;

const SLICES_MAX: u64 = 5;
const SLICE_SECONDS_MIN: f64 = 1.0;
/// A bare slice lasts half as long as one of the row, within these.
const BARE_MIN: Duration = Duration::from_millis(200);
const BARE_MAX: Duration = Duration::from_secs(1);
/// The bare round trip keeps no higher pace everywhere.
const BARE_RATE_MAX_PER_S: u64 = 50_000;

pub(super) fn of(settings: &RunSettings) -> Vec<RunSettings> {
    let Some(rate_per_s) = settings.rate_per_s else { return vec![settings.clone()] };
    let (seconds, warm_up) = (settings.count as f64 / rate_per_s as f64, settings.warm_up_ns as f64 / 1e9);
    let slices = ((seconds / (2.0 * warm_up + SLICE_SECONDS_MIN)) as u64).clamp(1, SLICES_MAX);
    let count = |slice: u64| settings.count * (slice + 1) / slices - settings.count * slice / slices;
    (0..slices).map(|slice| RunSettings { count: count(slice), ..settings.clone() }).collect()
}

pub(super) struct BareRoundTrip {
    is_over_tcp: bool,
    payload_bytes: u64,
    rate_per_s: u64,
    duration: Duration,
    latencies: LatencyHistogram,
    slices: u64,
}

impl BareRoundTrip {
    pub(super) fn for_slice(slice: &RunSettings, payload_bytes: u64) -> Option<Self> {
        let rate_per_s = slice.rate_per_s?;
        let seconds = slice.count as f64 / rate_per_s as f64 / 2.0;
        Some(Self {
            is_over_tcp: slice.cluster.as_ref().is_some_and(|cluster| cluster.link == ReplicationLink::Tcp),
            payload_bytes: payload_bytes + HEADER_BYTES,
            rate_per_s: rate_per_s.min(BARE_RATE_MAX_PER_S),
            duration: Duration::from_secs_f64(seconds.min(1e6)).clamp(BARE_MIN, BARE_MAX),
            latencies: LatencyHistogram::new(),
            slices: 0,
        })
    }

    pub(super) fn measure(&mut self) {
        if let Ok(slice) = paced_slice(self.is_over_tcp, self.payload_bytes, self.rate_per_s, self.duration) {
            self.latencies.merge(&slice);
            self.slices += 1;
        }
    }

    pub(super) fn add_to_row(&self, row: &mut Row) {
        let (Some(bare), Some(latency)) = (self.latencies.latency_ns(), row.latency_ns) else { return };
        row.extra.insert(
            "bare".to_owned(),
            json!({
                "name": if self.is_over_tcp { "tcp_round_trip_paced" } else { "shm_ping_pong_paced" },
                "payload_bytes": self.payload_bytes,
                "rate_per_s": self.rate_per_s,
                "slices": self.slices,
                "latency_ns": bare,
            }),
        );
        row.extra.insert(
            "tail".to_owned(),
            json!({"p99": tail_origin(latency.p99, bare.p99), "p99_9": tail_origin(latency.p99_9, bare.p99_9)}),
        );
    }
}

/// The machine's where the bare round trip has at least half of the tail.
fn tail_origin(row_ns: u64, bare_ns: u64) -> &'static str {
    if bare_ns.saturating_mul(2) >= row_ns { "machine" } else { "path" }
}

pub(super) fn add((row, latencies): (&mut Row, &mut RecordedRun), other: Row, recorded: RecordedRun) {
    let weights = [row.sent.unwrap_or(0) as f64, other.sent.unwrap_or(0) as f64];
    let offset_ns = row.elapsed_ns.unwrap_or(0);
    latencies.total.merge(&recorded.total);
    latencies.intervals.extend(recorded.intervals.into_iter().map(|mut interval| {
        interval.start_ns += offset_ns;
        interval
    }));
    row.latency_ns = row.latency_ns.and(latencies.total.latency_ns());
    row.intervals = latencies.interval_rows();
    for (sum, added) in [
        (&mut row.sent, other.sent),
        (&mut row.elapsed_ns, other.elapsed_ns),
        (&mut row.lost, other.lost),
        (&mut row.duplicated, other.duplicated),
    ] {
        *sum = sum.zip(added).map(|(sum, added)| sum + added);
    }
    if row.throughput_per_s.is_some() {
        let per_s = |sent: u64, elapsed_ns: u64| (sent as f64 * 1e9 / elapsed_ns.max(1) as f64).round();
        row.throughput_per_s = row.sent.zip(row.elapsed_ns).map(|(sent, elapsed_ns)| per_s(sent, elapsed_ns));
    }
    row.cpu_ns_per_message = row.cpu_ns_per_message.zip(other.cpu_ns_per_message).map(|(own, other)| CpuPerMessage {
        driver: mean([own.driver, other.driver], weights).round(),
        service: mean([own.service, other.service], weights).round(),
    });
    row.peak_memory_bytes = row.peak_memory_bytes.max(other.peak_memory_bytes);
    row.rate_reached = row.rate_reached.zip(other.rate_reached).map(|(own, other)| own && other);
    row.verified = row.verified.zip(other.verified).map(|(own, other)| own && other);
    for note in other.notes {
        if !row.notes.contains(&note) {
            row.notes.push(note);
        }
    }
    add_figures(&mut row.extra, &other.extra, weights);
}

fn mean(figures: [f64; 2], weights: [f64; 2]) -> f64 {
    (figures[0] * weights[0] + figures[1] * weights[1]) / (weights[0] + weights[1]).max(1.0)
}

fn add_figures(own: &mut Map<String, Value>, other: &Map<String, Value>, weights: [f64; 2]) {
    let number = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_u64);
    for key in ["stolen_ns", "repeats_sent", "repeats_answered"] {
        if let Some((one, two)) = number(own, key).zip(number(other, key)) {
            own.insert(key.to_owned(), json!(one + two));
        }
    }
    for key in ["anonymous_memory_bytes", "mapped_memory_bytes"] {
        if let Some((one, two)) = number(own, key).zip(number(other, key)) {
            own.insert(key.to_owned(), json!(one.max(two)));
        }
    }
    let decimal = |map: &Map<String, Value>| map.get("backup_cpu_ns_per_message").and_then(Value::as_f64);
    if let Some((one, two)) = decimal(own).zip(decimal(other)) {
        own.insert("backup_cpu_ns_per_message".to_owned(), json!(mean([one, two], weights)));
    }
    if let Some((one, two)) = own.get("paused").cloned().zip(other.get("paused")) {
        let sum = |side: &str, key: &str| one[side][key].as_u64().unwrap_or(0) + two[side][key].as_u64().unwrap_or(0);
        let longest = [&one, two].map(|paused| paused["driver"]["longest_ns"].as_u64()).into_iter().max();
        let share = mean([&one, two].map(|paused| paused["share"].as_f64().unwrap_or(0.0)), weights);
        let paused = json!({
            "driver": {"count": sum("driver", "count"), "total_ns": sum("driver", "total_ns"), "longest_ns": longest},
            "service": {"count": sum("service", "count"), "total_ns": sum("service", "total_ns")},
            "share": share,
        });
        own.insert("paused".to_owned(), paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::LatencyNs;

    fn finished(latency_ns: u64, sent: u64) -> (Row, RecordedRun) {
        let mut total = LatencyHistogram::new();
        total.record_many(latency_ns, sent);
        let latencies = RecordedRun::of_one_interval(total, 10);
        let mut row = Row {
            latency_ns: latencies.total.latency_ns(),
            sent: Some(sent),
            elapsed_ns: Some(10),
            cpu_ns_per_message: Some(CpuPerMessage { driver: latency_ns as f64, service: 1.0 }),
            rate_reached: Some(true),
            verified: Some(sent > 1),
            lost: Some(1),
            ..Row::default()
        };
        row.extra.insert("stolen_ns".to_owned(), json!(5));
        row.extra.insert(
            "paused".to_owned(),
            json!({"driver": {"count": 1, "longest_ns": sent}, "service": {}, "share": 0.5}),
        );
        (row, latencies)
    }

    #[test]
    fn slices_are_added_to_one_row() {
        let (mut row, mut latencies) = finished(100, 3);
        let (other, recorded) = finished(500, 1);
        add((&mut row, &mut latencies), other, recorded);
        let LatencyNs { count, max, .. } = row.latency_ns.unwrap();
        assert_eq!((count, max, row.sent, row.lost, row.verified), (4, 500, Some(4), Some(2), Some(false)));
        assert_eq!(row.cpu_ns_per_message.unwrap().driver, 200.0);
        assert_eq!(
            (row.extra["stolen_ns"].as_u64(), row.extra["paused"]["driver"]["count"].as_u64()),
            (Some(10), Some(2))
        );
        assert_eq!(row.intervals.iter().map(|interval| interval.start_ns).collect::<Vec<_>>(), [0, 10]);
    }

    #[test]
    fn tail_is_attributed_to_the_machine() {
        assert_eq!((tail_origin(100, 50), tail_origin(100, 49)), ("machine", "path"));
    }
}
