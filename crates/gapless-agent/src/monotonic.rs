//! The clock of deadlines: the machine's monotonic clock, the same in all of its processes.

/// Nanoseconds of the monotonic clock.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
