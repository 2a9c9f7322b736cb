//! Threads, cores, clocks and counters of this process.
//!
//! ```
//! use gapless::threads::{CpuMask, OptimizeFor, PlanKind};
//! use gapless::prelude::*;
//!
//! // One thread with everything on a message's path.
//! let threads = Threads { plan: PlanKind::Min, optimize_for: OptimizeFor::Latency, service_cpus: CpuMask::of(&[0]), ..Threads::default() };
//! let host = Host::in_memory().threads(threads);
//! ```

pub use gapless_agent::lost_mappings::name_lost_mappings;
pub use gapless_agent::{Clock, Counters, CountersReader, CpuMask, Now, OptimizeFor, Pauses, PlanKind, ThreadPlan};
pub use gapless_stream::AgentRole;
