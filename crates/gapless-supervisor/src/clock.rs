//! The machine's clocks, which are the same for the next supervisor. Whatever is decided is decided by the monotonic one:
//! it neither jumps with the wall clock, nor do time limits pass while the machine sleeps.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Since the machine's start, without the time in which it slept, ns.
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Since the machine's start, ns.
pub fn boot_ns() -> u64 {
    read_ns(ClockId::Boottime)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Since 1970, ms.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
