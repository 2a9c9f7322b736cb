//! `gapless bench time`: cost and resolution of each clock. `latency_ns` is the cost of a reading (each value the mean
//! of 100); `extra` has the kernel's resolution and the least step seen.

use gapless_agent::monotonic::saturating_ns;
use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use serde_json::json;

use crate::histogram::LatencyHistogram;
use crate::{Row, RowConfig};

#[inline]
pub fn elapsed_ns(begin: Instant) -> u64 {
    saturating_ns(begin.elapsed())
}

pub struct TimeSource {
    pub name: &'static str,
    pub read_ns: Box<dyn Fn() -> u64>,
    pub resolution_ns: Option<u64>,
}

impl std::fmt::Debug for TimeSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TimeSource").field("name", &self.name).finish_non_exhaustive()
    }
}

pub fn sources() -> Vec<TimeSource> {
    let begin = Instant::now();
    let mut sources = vec![
        TimeSource { name: "std_instant", read_ns: Box::new(move || elapsed_ns(begin)), resolution_ns: None },
        TimeSource {
            name: "std_system_time",
            read_ns: Box::new(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                saturating_ns(since)
            }),
            resolution_ns: None,
        },
    ];
    let kernel = [
        ("clock_monotonic", ClockId::Monotonic),
        ("clock_monotonic_raw", ClockId::MonotonicRaw),
        ("clock_monotonic_coarse", ClockId::MonotonicCoarse),
        ("clock_realtime", ClockId::Realtime),
        ("clock_realtime_coarse", ClockId::RealtimeCoarse),
        ("clock_boottime", ClockId::Boottime),
        ("clock_thread_cpu_time", ClockId::ThreadCPUTime),
        ("clock_process_cpu_time", ClockId::ProcessCPUTime),
    ];
    sources.extend(kernel.map(|(name, id)| TimeSource {
        name,
        read_ns: Box::new(move || nanoseconds(clock_gettime(id))),
        resolution_ns: Some(nanoseconds(clock_getres(id))),
    }));
    sources
}

/// One is too short to be timed by the same clock.
const READS: u64 = 100;

/// Each sample is 100 readings.
pub fn measure(sources: &[TimeSource], samples: u64) -> Vec<Row> {
    sources.iter().map(|source| measure_one(source, samples.max(1))).collect()
}

fn measure_one(source: &TimeSource, samples: u64) -> Row {
    let mut histogram = LatencyHistogram::new();
    let mut step_ns: Option<u64> = None;
    let run = Instant::now();
    for sample in 0..samples + samples / 10 {
        let begin = Instant::now();
        let mut last_ns = 0;
        for read in 0..READS {
            let now_ns = black_box((source.read_ns)());
            let step = now_ns.saturating_sub(last_ns);
            if read > 0 && step > 0 {
                step_ns = Some(step_ns.map_or(step, |least| least.min(step)));
            }
            last_ns = now_ns;
        }
        let elapsed_ns = elapsed_ns(begin);
        if sample >= samples / 10 {
            histogram.record((elapsed_ns + READS / 2) / READS);
        }
    }
    let latency_ns = histogram.latency_ns();
    let mut row = Row {
        config: RowConfig { name: Some(source.name.to_owned()), count: Some(samples * READS), ..RowConfig::default() },
        latency_ns,
        throughput_per_s: latency_ns.filter(|latency| latency.mean > 0.0).map(|latency| (1e9 / latency.mean).round()),
        elapsed_ns: Some(self::elapsed_ns(run)),
        ..Row::default()
    };
    if let Some(resolution_ns) = source.resolution_ns {
        row.extra.insert("resolution_ns".into(), json!(resolution_ns));
    }
    if let Some(step_ns) = step_ns {
        row.extra.insert("least_step_ns".into(), json!(step_ns));
    }
    row
}

fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_have_cost_and_resolution() {
        let sources = sources();
        let rows = measure(&sources, 20);
        assert_eq!(rows.len(), sources.len());
        for (row, source) in rows.iter().zip(&sources) {
            assert_eq!(row.config.name.as_deref(), Some(source.name));
            assert_eq!(row.latency_ns.unwrap().count, 20);
            assert!(row.throughput_per_s.unwrap() > 0.0);
            assert_eq!(row.extra.contains_key("resolution_ns"), source.name.starts_with("clock_"));
        }
    }

    #[test]
    fn the_least_step_of_a_clock_is_seen() {
        let ticks = std::cell::Cell::new(0);
        let read_ns = move || {
            ticks.set(ticks.get() + 1);
            ticks.get() / 2 * 40
        };
        let source = TimeSource { name: "ticks", read_ns: Box::new(read_ns), resolution_ns: None };
        let rows = measure(&[source], 5);
        assert_eq!(rows[0].extra["least_step_ns"], 40);
    }
}
