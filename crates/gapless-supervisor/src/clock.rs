//! The machine's clocks, which are the same for the next supervisor, also in another time namespace. Whatever is decided is decided by the monotonic one:
//! it neither jumps with the wall clock, nor do time limits pass while the machine sleeps.

use std::time::{SystemTime, UNIX_EPOCH};

/// Since the machine's start, without the time in which it slept, ns.
pub use gapless_agent::monotonic::monotonic_ns as now_ns;

/// Since the machine's start, ns.
pub use gapless_agent::monotonic::boottime_ns as boot_ns;

/// Since 1970, ms.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
