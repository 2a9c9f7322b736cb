//! [`Region`]: sealed shared memory of a fixed length, mapped flat, made by one process and opened by others. Call tables and
//! bells lie in it; windows and rings have [`Memory`](crate::Memory), which maps its data twice.
//!
//! `region/mapped.rs` owns all mapping and raw access, `region/modelled.rs` is its model under loom. Users see words and ranges
//! of bytes, never a pointer. Its pages come into being when they are first touched, and can be given back.
//! A child that `fork` makes does not have it: a look at it there ends the child, and harms nobody else.

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
