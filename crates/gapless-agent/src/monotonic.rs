//! The clock of deadlines: the machine's monotonic clock, the same in all of its processes.

use std::time::Duration;

/// Nanoseconds of the monotonic clock.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The nanoseconds of a duration; `u64::MAX`, 584 years, for a longer one.
#[inline]
#[must_use]
pub fn saturating_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_that_has_no_number_of_nanoseconds_is_the_longest() {
        assert_eq!(saturating_ns(Duration::from_millis(3)), 3_000_000);
        assert_eq!(saturating_ns(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(saturating_ns(Duration::MAX), u64::MAX);
    }
}
