//! The loop around one sample, and the two threads that most floors need.

use gapless_agent::monotonic::saturating_ns;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::FloorKind;
use crate::FloorRow;
use crate::affinity::pin_current_thread;
use crate::histogram::LatencyHistogram;
use crate::open_loop::Schedule;
use crate::{BenchError, Result};

pub(super) const PAYLOAD_MAX: usize = 1 << 20;
/// Default pace: that of the canonical latency.
pub(super) const PACED_PER_S: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct FloorEffort {
    pub(super) kind: FloorKind,
    pub(super) samples: u64,
    pub(super) time_limit: Duration,
    pub(super) cpus: Option<(usize, usize)>,
    pub(super) paced_per_s: u64,
}

impl FloorEffort {
    pub(super) fn row(&self, payload: usize) -> FloorRow {
        FloorRow {
            name: self.kind.name().to_owned(),
            payload_bytes: payload as u64,
            cpus: self.cpus.map(|(first, second)| vec![first, second]),
            ..FloorRow::default()
        }
    }

    pub(super) fn latency_row(&self, payload: usize, histogram: &LatencyHistogram) -> Result<FloorRow> {
        let row = histogram.floor_row(self.kind.name(), payload as u64);
        let row = row.ok_or_else(|| self.failed("no sample was taken"))?;
        Ok(FloorRow { cpus: self.row(payload).cpus, ..row })
    }

    pub(super) fn failed(&self, reason: impl ToString) -> BenchError {
        BenchError::measurement(self.kind.name(), reason)
    }

    /// Warms up with a tenth. A sample includes one reading of the clock.
    pub(super) fn sample(&self, mut once: impl FnMut() -> Result<()>) -> Result<LatencyHistogram> {
        let begin = self.warm_up(&mut once)?;
        let mut histogram = LatencyHistogram::new();
        let mut last = Instant::now();
        for _ in 0..self.samples {
            once()?;
            let now = Instant::now();
            let elapsed = now - last;
            histogram.record(saturating_ns(elapsed));
            last = now;
            if now - begin > self.time_limit {
                break;
            }
        }
        Ok(histogram)
    }

    /// Runs uncounted samples: until its partner runs on its own CPU, a thread may wait for long.
    fn warm_up(&self, once: &mut impl FnMut() -> Result<()>) -> Result<Instant> {
        let begin = Instant::now();
        for _ in 0..self.samples / 10 {
            once()?;
            if begin.elapsed() > self.time_limit / 5 {
                break;
            }
        }
        Ok(begin)
    }

    /// Each sample counts from its scheduled time, so it includes interruptions of both threads, and caches that forget
    /// in between.
    pub(super) fn sample_paced(&self, mut once: impl FnMut() -> Result<()>) -> Result<LatencyHistogram> {
        let planned = Duration::from_nanos(self.samples * 1_000_000_000 / self.paced_per_s);
        self.warm_up(&mut once)?;
        let begin = Instant::now();
        let now_ns = || saturating_ns(begin.elapsed());
        let mut pacer = Schedule::new(0, self.paced_per_s).pacer();
        let mut histogram = LatencyHistogram::new();
        for _ in 0..self.samples {
            let due_ns = pacer.wait_for_next(now_ns);
            once()?;
            histogram.record(now_ns() - due_ns);
            // If two threads share a CPU, each turn takes a time slice.
            if begin.elapsed() > planned + self.time_limit {
                break;
            }
        }
        Ok(histogram)
    }

    /// Pinned to the two CPUs if they are named. `partner` gets a flag that is set when the measurer has ended, well or
    /// not.
    pub(super) fn on_two_threads<T: Send>(
        &self,
        partner: impl FnOnce(&StopFlag) -> Result<()> + Send,
        measurer: impl FnOnce(&StopFlag) -> Result<T> + Send,
    ) -> Result<T> {
        let stop = StopFlag(AtomicBool::new(false));
        let cpus = self.cpus;
        thread::scope(|scope| {
            let stop = &stop;
            let partner = scope.spawn(move || {
                // A failing partner must end the measurer's wait, or it spins for ever.
                let _stop_at_end = stop.when_dropped();
                pin(cpus.map(|(_, second)| second))?;
                partner(stop)
            });
            let measurer = scope.spawn(move || {
                let _stop_at_end = stop.when_dropped();
                pin(cpus.map(|(first, _)| first))?;
                measurer(stop)
            });
            let measured = measurer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let partnered = partner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // The partner's error is the cause.
            partnered.and(measured)
        })
    }

    /// Uses the first CPU.
    pub(super) fn on_one_thread<T: Send>(&self, measurer: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let cpus = self.cpus;
        thread::scope(|scope| {
            let measurer = scope.spawn(move || {
                pin(cpus.map(|(first, _)| first))?;
                measurer()
            });
            measurer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Error for a wait that the other side will never end.
    pub(super) fn abandoned(&self) -> BenchError {
        self.failed("the other side stopped")
    }
}

fn pin(cpu: Option<usize>) -> Result<()> {
    cpu.map_or(Ok(()), |cpu| pin_current_thread(&[cpu]))
}

#[derive(Debug)]
pub(super) struct StopFlag(AtomicBool);

impl StopFlag {
    pub(super) fn is_set(&self) -> bool {
        // Relaxed: the flag guards no data; a late reader spins a little longer.
        self.0.load(Ordering::Relaxed)
    }

    fn when_dropped(&self) -> impl Drop {
        struct StopGuard<'a>(&'a StopFlag);
        impl Drop for StopGuard<'_> {
            fn drop(&mut self) {
                self.0.0.store(true, Ordering::Relaxed);
            }
        }
        StopGuard(self)
    }
}

/// Yields the CPU after long spins: both sides may share it.
#[derive(Debug, Default)]
pub(super) struct SpinWait {
    turns: u32,
}

impl SpinWait {
    /// `false` when the other side has stopped.
    #[inline]
    pub(super) fn turn(&mut self, stop: &StopFlag) -> bool {
        const TURNS_BEFORE_YIELD: u32 = 10_000;
        if self.turns < TURNS_BEFORE_YIELD {
            self.turns += 1;
            std::hint::spin_loop();
            return true;
        }
        if stop.is_set() {
            return false;
        }
        thread::yield_now();
        true
    }
}
