//! The display of a run while it is driven: the bar, and a line for each interval.

use crate::histogram::IntervalRecorder;
use gapless_load::canonical::driver::DriverSignals;
use gapless_measure::progress::BenchProgress;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub(super) struct RunProgress<'a> {
    pub progress: &'a BenchProgress,
    /// Position of the bar when this run begins; it moves by 100.
    pub base: u64,
    pub has_lines: bool,
    pub interrupted: &'a AtomicBool,
}

impl RunProgress<'_> {
    pub(super) fn print_intervals(self, recorder: &mut IntervalRecorder) {
        if self.has_lines {
            let progress = self.progress.clone();
            // Without the thread there are no lines; the figures are the same.
            let _ = recorder.print_intervals(move |statistics| progress.line(&statistics.to_string()));
        }
    }

    /// Moves the bar with the replies to `count` messages, and passes on an interrupt, until `done`. Without a rate,
    /// prints the replies of each second, where lines are asked for.
    pub(super) fn follow(self, signals: &DriverSignals, count: u64, has_rate: bool, done: &AtomicBool) {
        let (begun, mut last) = (Instant::now(), (Instant::now(), 0));
        let mut position = || {
            if self.interrupted.load(Ordering::Relaxed) {
                signals.interrupted.store(true, Ordering::Relaxed);
            }
            let replied = signals.replied.load(Ordering::Relaxed);
            let elapsed = last.0.elapsed();
            if self.has_lines && !has_rate && elapsed >= INTERVAL {
                let per_s = (replied - last.1) as f64 / elapsed.as_secs_f64();
                self.progress
                    .line(&format!("{:>6.1} s: {replied} replies, {per_s:.0} a second", begun.elapsed().as_secs_f64()));
                last = (Instant::now(), replied);
            }
            self.base + replied * 100 / count.max(1)
        };
        self.progress.follow(&mut position, &mut || done.load(Ordering::Acquire));
    }
}
