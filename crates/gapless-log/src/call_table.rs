//! The table between one calling process and all instances of one route: two regions, both made by the caller.
//!
//! ```text
//! request region: the caller writes, instances map it read-only
//!      0  u64 magic "GAPCALL\4"   8 u64 slots   16 u64 stride of a slot, bytes   24 u64 longest payload, bytes
//!   4096  u64 × 4  tails: number of entries ever put into the ring of each priority class
//!   4128  u64 × 4  latest entry of each ring again: generation u32 | low bits of its position u20 | slot u12
//!   4224  u64 × RING × 4  offers: the ring of each class; an entry is generation u32 | slot u32
//!    ...  slot 0: header of 128 bytes, then user headers and payload; slot 1, a stride later; ...
//!
//! claim region: both sides write
//!      0  u64 magic "GAPCLAI\4"
//!    128  u64  1 while the caller's reactor sleeps
//!    192  u64  1 when an instance was woken for a request that it cannot take yet: another may sleep
//!    256  u64 × 64  done: a bit for each slot whose answer must be reported to the reactor
//!   4096  slot 0: u64 claim word, u32 status of the reply, u32 its length; slot 1 64 bytes later; ...
//!    ...  slot 0: a cache line for the notice: answered generation u32 | length u25 | status u7; then the
//!         reply; slot 1, a stride later; ...
//! ```
//! An entry of a ring is only a hint. Only the caller writes hints, so no death can lose one; the
//! [`Claim`](crate::claim::Claim) is authoritative. Before the caller overwrites an entry whose request is still
//! offered, it enters that request again.

mod instance;
mod layout;
mod owner;
pub mod slot_queue;
pub mod turn_scheduler;

const PREFETCHED_LENGTH: usize = 256;

pub use instance::{AnswerOutcome, ClaimedSlot, InstanceSide};
pub use layout::{
    CLASS_TURNS, CLASSES, CallTableShape, HEADERS_ROOM, PAYLOAD_LENGTH_MAX, REQUEST_HEADER_LENGTH, RequestHeader,
    SLOTS_MAX, STATUS_MAX,
};
pub use owner::{CallTable, OfferRings, ReplyHeader};
