//! Windows and rings: frames in memory, one writer and many cursors; call tables and bells: requests between processes.
//!
//! | module | what lives there |
//! |---|---|
//! | [`ring`] | [`RingWriter`] and [`RingReader`]: one publisher to one consumer in another process |
//! | [`window`] | [`WindowWriter`], [`Window`] and [`Releaser`]: the ordered log of the last frames |
//! | [`cursor`] | [`GatingCursor`], which holds the writer back, and [`FreeCursor`], which can be lapped |
//! | [`call_table`] | [`CallTable`](call_table::CallTable) and [`InstanceSide`](call_table::InstanceSide): requests of one process to all instances of a route |
//! | [`bell`] | [`Bell`]: wakes an instance's workers |
//! | [`claim`] | [`Claim`](claim::Claim): ownership of a request, in one word |
//! | [`region`] | [`Region`]: sealed shared memory, mapped flat |
//! | [`memory`] | [`Memory`]: anonymous, shared and file-backed mappings with one interface |
//! | [`descriptor`] | layout of a mapping: header words, sequence index, data |
//! | `sealed` | sealed memory files |
//! | [`error`] | [`LogError`] |
//! | `sync` | atomics, replaced under loom |
//!
//! # Ordering arguments
//! A test under `tests/loom` model-checks each of them:
//! `RUSTFLAGS="--cfg loom" cargo test -p gapless-log --release --test loom`.
//!
//! 1. *Publication.* The writer writes a frame, then stores the tail with Release; a reader loads the tail with
//!    Acquire, so it sees whole frames only.
//! 2. *Gating.* A gating cursor (or a ring's reader) stores its position with Release after its last read of a frame;
//!    the writer loads it with Acquire before it overwrites that frame.
//! 3. *Lapping.* The writer announces how far it may write (`claimed`, which never goes back, and may be beyond the
//!    next frame) before it writes, separated by a Release fence. A free cursor copies, then runs an Acquire fence,
//!    then reads `claimed`: if its frame was not inside the announced range, no word of the copy can be newer (a
//!    sequence lock).
//! 4. *Parking.* The waiter stores its parked flag, then checks the tail once more; the writer stores the tail, then
//!    checks the flag. A sequentially consistent fence between the two on both sides ensures that at least one of them
//!    sees the other.
//! 5. *Release.* The releaser loads the tail with Acquire and stores the released position, then its sequence, with
//!    Release. So a reader of the released sequence sees its frame, its index entry and a released position after it,
//!    without having synchronised with the writer.
//! 6. *Truncation.* The writer stores the new tail, then counts the truncation at each gate, with Release. A cursor
//!    that sees the count sees the new tail, rewinds if it was beyond it, and notes the count with Release. Until all
//!    cursors have noted it, the writer has no room: no cursor reads a truncated frame while it is overwritten, and
//!    none takes new bytes for the rest of an old frame.
//!
//! # Limits of the proof
//! A free cursor in the writer's own process copies words while [`WindowWriter::claim`] may hand out the same bytes as
//! a plain slice. The copy is discarded in that case, and it is made in a way opaque to the compiler, but the
//! language's memory model does not cover such a reader (as for every sequence lock). In another process the question
//! does not arise.

pub mod bell;
pub mod call_table;
pub mod claim;
pub mod cursor;
pub mod descriptor;
pub mod error;
pub mod memory;
pub mod region;
pub mod ring;
#[cfg(not(loom))]
mod sealed;
mod sync;
pub mod window;

pub use bell::{Bell, Rung};
pub use cursor::{FreeCursor, FreeRead, GatingCursor, Scope};
pub use error::LogError;
pub use memory::{Memory, MemoryKind};
pub use region::Region;
pub use ring::{RingNotes, RingReader, RingWriter};
pub use window::{Releaser, StreamIdentity, Window, WindowOptions, WindowWriter};
