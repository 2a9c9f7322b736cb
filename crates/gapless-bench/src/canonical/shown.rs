//! The display of a run while it is driven: the bar, and a line for each interval.

use super::driver::Signals;
use crate::histogram::IntervalRecorder;
use gapless_report::progress::Progress;
use std::sync::atomic::{AtomicBool, Ordering};

/// The progress of one run of several.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub progress: &'a Progress,
    /// Where the bar is when this run begins; it moves by 100.
    pub base: u64,
    /// Whether a line is printed at the end of each interval.
    pub has_lines: bool,
    pub interrupted: &'a AtomicBool,
}

impl Shown<'_> {
    /// Prints the intervals of `recorder`, where that is asked for.
    pub(super) fn print_intervals(self, recorder: &mut IntervalRecorder) {
        if self.has_lines {
            let progress = self.progress.clone();
            // Without the thread there are no lines; the figures are the same.
            let _ = recorder.print_intervals(move |statistics| progress.line(&statistics.to_string()));
        }
    }

    /// Moves the bar with the replies to `count` messages, and passes on an interrupt, until `done`.
    pub(super) fn follow(self, signals: &Signals, count: u64, done: &AtomicBool) {
        let mut position = || {
            if self.interrupted.load(Ordering::Relaxed) {
                signals.interrupted.store(true, Ordering::Relaxed);
            }
            self.base + signals.replied.load(Ordering::Relaxed) * 100 / count.max(1)
        };
        self.progress.follow(&mut position, &mut || done.load(Ordering::Acquire));
    }
}
