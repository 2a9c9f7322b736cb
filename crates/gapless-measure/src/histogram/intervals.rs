//! A recorder for the driver's hot loop: one histogram per interval, allocated before the run. Percentiles, compression
//! and files come after it: next to two spinning threads, a third one shows in the 99.9th percentile. Only printed
//! interval statistics need a helper thread.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::LatencyHistogram;
use crate::{IntervalRow, LatencyNs};
use serde::{Deserialize, Serialize};

/// Longer runs have longer intervals. Each takes 270 KB.
pub const INTERVALS_MAX: usize = 64;

const SECOND_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInterval {
    /// Time after the start of the counted section.
    pub start_ns: u64,
    pub length_ns: u64,
    pub histogram: LatencyHistogram,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedRun {
    pub total: LatencyHistogram,
    /// Non-empty parts, in order.
    pub intervals: Vec<RunInterval>,
}

impl RecordedRun {
    pub fn of_one_interval(total: LatencyHistogram, length_ns: u64) -> Self {
        let interval = RunInterval { start_ns: 0, length_ns, histogram: total.clone() };
        Self { total, intervals: vec![interval] }
    }

    pub fn interval_rows(&self) -> Vec<IntervalRow> {
        let row = |interval: &RunInterval| {
            let latency_ns = interval.histogram.latency_ns()?;
            Some(IntervalRow { start_ns: interval.start_ns, length_ns: interval.length_ns, latency_ns })
        };
        self.intervals.iter().filter_map(row).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalStatistics {
    /// Time after the start of the counted section.
    pub start_ns: u64,
    pub length_ns: u64,
    /// `None` when nothing came in.
    pub latency_ns: Option<LatencyNs>,
}

impl std::fmt::Display for IntervalStatistics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::table::{grouped, microseconds};
        let begin_s = self.start_ns as f64 / 1e9;
        let end_s = (self.start_ns + self.length_ns) as f64 / 1e9;
        write!(formatter, "{begin_s:.1}–{end_s:.1} s: ")?;
        let Some(latency) = &self.latency_ns else { return formatter.write_str("no replies") };
        let [p50, p90, p99, p99_9, max] =
            [latency.p50, latency.p90, latency.p99, latency.p99_9, latency.max].map(microseconds);
        let per_s = u128::from(latency.count) * u128::from(SECOND_NS) / u128::from(self.length_ns.max(1));
        let per_s = grouped(u64::try_from(per_s).unwrap_or(u64::MAX));
        write!(formatter, "{per_s} msg/s, µs: p50 {p50} p90 {p90} p99 {p99} p99.9 {p99_9} max {max}")
    }
}

/// Recorder by the interval of the reply.
#[derive(Debug)]
pub struct IntervalRecorder {
    start_ns: u64,
    interval_ns: u64,
    histograms: Vec<LatencyHistogram>,
    current: usize,
    current_end_ns: u64,
    ended: Option<Sender<(usize, LatencyHistogram)>>,
}

impl IntervalRecorder {
    /// Intervals are one second, or longer if `INTERVALS_MAX` are not enough.
    pub fn new(start_ns: u64, expected_length_ns: u64) -> Self {
        let seconds = expected_length_ns.div_ceil(SECOND_NS).max(1);
        let seconds_each = seconds.div_ceil(INTERVALS_MAX as u64);
        let count = usize::try_from(seconds.div_ceil(seconds_each)).unwrap_or(INTERVALS_MAX).min(INTERVALS_MAX);
        let interval_ns = seconds_each * SECOND_NS;
        Self {
            start_ns,
            interval_ns,
            histograms: vec![LatencyHistogram::new(); count],
            current: 0,
            current_end_ns: start_ns.saturating_add(interval_ns),
            ended: None,
        }
    }

    /// Calls `print` on a helper thread, which ends with the recorder, at the end of every interval but the last.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn print_intervals(
        &mut self,
        mut print: impl FnMut(IntervalStatistics) + Send + 'static,
    ) -> std::io::Result<std::thread::JoinHandle<()>> {
        let (sender, receiver): (_, Receiver<(usize, LatencyHistogram)>) = channel();
        self.ended = Some(sender);
        let length_ns = self.interval_ns;
        std::thread::Builder::new().name("interval-statistics".into()).spawn(move || {
            for (index, histogram) in receiver {
                let start_ns = index as u64 * length_ns;
                print(IntervalStatistics { start_ns, length_ns, latency_ns: histogram.latency_ns() });
            }
        })
    }

    /// Counts in the interval of arrival, so the count is the work done, less than the work due in a late run. A reply
    /// after the expected end counts in the last interval.
    #[inline]
    pub fn record(&mut self, scheduled_ns: u64, latency_ns: u64) {
        let replied_ns = scheduled_ns.saturating_add(latency_ns);
        if replied_ns >= self.current_end_ns {
            self.move_on(replied_ns);
        }
        self.histograms[self.current].record(latency_ns);
    }

    pub fn finish(self, end_ns: u64) -> RecordedRun {
        let mut total = LatencyHistogram::new();
        let run_ns = end_ns.saturating_sub(self.start_ns);
        let last = self.current;
        let mut intervals = Vec::with_capacity(last + 1);
        for (index, histogram) in self.histograms.into_iter().enumerate().take(last + 1) {
            total.merge(&histogram);
            let start_ns = index as u64 * self.interval_ns;
            let length_ns = if index == last { run_ns.saturating_sub(start_ns) } else { self.interval_ns };
            if histogram.count() > 0 {
                intervals.push(RunInterval { start_ns, length_ns, histogram });
            }
        }
        RecordedRun { total, intervals }
    }

    #[cold]
    fn move_on(&mut self, replied_ns: u64) {
        let index = usize::try_from((replied_ns - self.start_ns) / self.interval_ns).unwrap_or(usize::MAX);
        let next = index.min(self.histograms.len() - 1);
        if let Some(ended) = &self.ended {
            for index in self.current..next {
                // The receiver is gone only if the printing thread panicked.
                let _ = ended.send((index, self.histograms[index].clone()));
            }
        }
        self.current = next;
        self.current_end_ns = if next == self.histograms.len() - 1 {
            u64::MAX
        } else {
            self.start_ns.saturating_add((next as u64 + 1).saturating_mul(self.interval_ns))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_when_their_reply_came() {
        let mut recorder = IntervalRecorder::new(100, 3 * SECOND_NS);
        recorder.record(50, 1);
        recorder.record(100, 2);
        recorder.record(100 + SECOND_NS - 3, 3);
        recorder.record(100 + 9 * SECOND_NS, 4);
        let run = recorder.finish(100 + 10 * SECOND_NS);
        assert_eq!(run.total.count(), 4);
        let seen: Vec<_> =
            run.intervals.iter().map(|part| (part.start_ns, part.length_ns, part.histogram.count())).collect();
        assert_eq!(seen, [(0, SECOND_NS, 2), (SECOND_NS, SECOND_NS, 1), (2 * SECOND_NS, 8 * SECOND_NS, 1)]);
        assert_eq!(run.interval_rows().len(), 3);
    }

    #[test]
    fn interval_count_is_bounded() {
        let recorder = IntervalRecorder::new(0, 1_000 * SECOND_NS);
        assert_eq!(recorder.interval_ns, 16 * SECOND_NS);
        assert_eq!(recorder.histograms.len(), 63);
        assert_eq!(IntervalRecorder::new(0, 0).histograms.len(), 1);
    }

    #[test]
    fn ended_intervals_are_printed_in_order() {
        let mut recorder = IntervalRecorder::new(0, 4 * SECOND_NS);
        let (sender, receiver) = channel();
        let printer = recorder.print_intervals(move |statistics| sender.send(statistics).unwrap()).unwrap();
        recorder.record(1, 1_500);
        recorder.record(2 * SECOND_NS, 7);
        drop(recorder.finish(2 * SECOND_NS + 1));
        printer.join().unwrap();
        let printed: Vec<String> = receiver.iter().map(|statistics| statistics.to_string()).collect();
        assert_eq!(printed.len(), 2);
        assert!(printed[0].starts_with("0.0–1.0 s: 1 msg/s, µs: p50 1.50"), "{}", printed[0]);
        assert_eq!(printed[1], "1.0–2.0 s: no replies");
    }
}
