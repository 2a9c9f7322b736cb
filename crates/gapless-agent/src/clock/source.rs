//! The only place that reads the system's clocks.

use rustix::time::{ClockId, clock_gettime};

use super::tsc;
use super::virtual_time::VirtualTime;

#[derive(Debug)]
pub(crate) enum ClockSource {
    System,
    Tsc,
    Virtual(VirtualTime),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockSample {
    pub raw: u64,
    pub monotonic_ns: u64,
    pub wall_ns: u64,
}

/// The sample with the shortest span between its readings is kept.
const SAMPLE_TRIES: usize = 4;

impl ClockSource {
    #[inline]
    pub(crate) fn raw(&self) -> u64 {
        match self {
            Self::System => monotonic_ns(),
            Self::Tsc => tsc::read(),
            Self::Virtual(time) => time.monotonic_ns(),
        }
    }

    pub(crate) fn counts_nanoseconds(&self) -> bool {
        !matches!(self, Self::Tsc)
    }

    pub(crate) fn sample(&self) -> ClockSample {
        if let Self::Virtual(time) = self {
            let monotonic_ns = time.monotonic_ns();
            return ClockSample { raw: monotonic_ns, monotonic_ns, wall_ns: time.wall_ns() };
        }
        let mut best: Option<(u64, ClockSample)> = None;
        for _ in 0..SAMPLE_TRIES {
            let before = self.raw();
            let (monotonic_ns, wall_ns) = (monotonic_ns(), wall_ns());
            let after = self.raw();
            let span = after.saturating_sub(before);
            // The system reads its own counter in the middle of the first half.
            let raw = if self.counts_nanoseconds() { monotonic_ns } else { before + span / 4 };
            if best.as_ref().is_none_or(|(shortest, _)| span < *shortest) {
                best = Some((span, ClockSample { raw, monotonic_ns, wall_ns }));
            }
        }
        best.expect("there is at least one try").1
    }
}

fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn wall_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock is negative: the kernel refuses to set a wall clock before 1970.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
