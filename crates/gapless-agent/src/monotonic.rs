//! The clock of deadlines: the machine's monotonic clock, the same in all its processes, independent of time
//! namespaces.

use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::Duration;

/// Machine's monotonic clock, ns.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    static OFFSET_NS: OnceLock<i64> = OnceLock::new();
    shown_ns(ClockId::Monotonic).wrapping_sub_signed(*OFFSET_NS.get_or_init(|| offset_ns("monotonic")))
}

/// Time since the machine's start, including sleep, ns.
#[must_use]
pub fn boottime_ns() -> u64 {
    shown_ns(ClockId::Boottime).wrapping_sub_signed(boottime_offset_ns())
}

/// Offset by which this process's time namespace shows a later [`boottime_ns`], also in `/proc`, ns.
#[must_use]
pub fn boottime_offset_ns() -> i64 {
    static OFFSET_NS: OnceLock<i64> = OnceLock::new();
    *OFFSET_NS.get_or_init(|| offset_ns("boottime"))
}

fn shown_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cold]
fn offset_ns(clock: &str) -> i64 {
    std::fs::read_to_string("/proc/self/timens_offsets").ok().and_then(|text| offset_in(&text, clock)).unwrap_or(0)
}

fn offset_in(offsets: &str, clock: &str) -> Option<i64> {
    let mut words = offsets.lines().find_map(|line| line.strip_prefix(clock))?.split_whitespace();
    let (seconds, nanoseconds) = (words.next()?.parse::<i64>().ok()?, words.next()?.parse::<i64>().ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// `u64::MAX`, 584 years, for a longer duration.
#[inline]
#[must_use]
pub fn saturating_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_namespaces_are_read() {
        let monotonic = |offsets| offset_in(offsets, "monotonic");
        assert_eq!(monotonic("monotonic           0         0\nboottime            0         0\n"), Some(0));
        assert_eq!(monotonic("boottime 3 3\nmonotonic     86400   5\n"), Some(86_400_000_000_005));
        assert_eq!(offset_in("monotonic     86400   5\nboottime 3 3\n", "boottime"), Some(3_000_000_003));
        assert_eq!(monotonic("monotonic -2 500000000\n"), Some(-1_500_000_000));
        assert_eq!((monotonic(""), monotonic("monotonic x 0\n")), (None, None));
    }

    #[test]
    fn too_long_duration_saturates() {
        assert_eq!(saturating_ns(Duration::from_millis(3)), 3_000_000);
        assert_eq!(saturating_ns(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(saturating_ns(Duration::MAX), u64::MAX);
    }
}
