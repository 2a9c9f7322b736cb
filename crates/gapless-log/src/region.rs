//! [`Region`]: sealed shared memory of a fixed length, mapped flat, made by one process and opened by others. It holds
//! call tables and bells; windows and rings use [`Memory`](crate::Memory), which maps its data twice.
//!
//! `region/mapped.rs` has all mapping and raw access, `region/modelled.rs` is its model under loom. Users see words and
//! byte ranges, never a pointer. Pages are allocated at first access, and can be released. A forked child does not
//! inherit the mapping: an access there kills the child, and affects no other process.

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
