//! [`Region`]: sealed shared memory of a fixed length, mapped flat. Pages are allocated at first access, and can be
//! released. A forked child does not inherit the mapping: an access there kills the child, and affects no other
//! process.
//!
//! All raw access is in `region/mapped.rs`; under loom, `region/modelled.rs` replaces it.

use crate::LogError;
use crate::sync::AtomicU64;

/// Greatest length of a region, bytes.
pub const REGION_LENGTH_MAX: usize = 1 << 40;

#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
pub use mapped::Region;

#[cfg(loom)]
mod modelled;
#[cfg(loom)]
pub use modelled::Region;
