//! Clocks of the machine, valid also for later supervisors and across time namespaces. Decisions use the monotonic
//! clock: independent of the wall clock, and timeouts do not pass during suspend.

use std::time::{SystemTime, UNIX_EPOCH};

/// Time since boot without suspend, ns.
pub use gapless_agent::monotonic::monotonic_ns as now_ns;

/// Time since boot, ns.
pub use gapless_agent::monotonic::boottime_ns as boot_ns;

/// Time since 1970, ms.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
