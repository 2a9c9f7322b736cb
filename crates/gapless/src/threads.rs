//! Threads, cores, clocks and counters of this process.
//!
//! ```
//! use gapless::threads::{CpuMask, OptimizeFor, PlanKind};
//! use gapless::prelude::*;
//!
//! let mut options = ServiceHostOptions::in_memory();
//! options.threads.plan = PlanKind::Min; // One thread with everything on a message's path.
//! options.threads.optimize_for = OptimizeFor::Latency;
//! options.threads.service_cpus = CpuMask::of(&[0]);
//! ```

pub use gapless_agent::lost_mappings::name_lost_mappings;
pub use gapless_agent::wait_notices::WaitNotices;
pub use gapless_agent::{
    Clock, Counters, CountersReader, CpuMask, Now, OptimizeFor, Pauses, PlanKind, ThreadPlan, VirtualTime,
};
pub use gapless_stream::AgentRole;
