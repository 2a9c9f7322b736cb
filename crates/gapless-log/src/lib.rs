//! Windows and rings: frames in memory, one writer and many cursors.
//!
//! | module | what lives there |
//! |---|---|
//! | [`descriptor`] | the layout of a mapping: header words, sequence index, data |
//! | [`memory`] | [`Memory`]: anonymous, shared and file-backed mappings behind one type |
//! | [`window`] | [`WindowWriter`], [`Window`] and [`Releaser`]: the ordered log of the last frames |
//! | [`cursor`] | [`GatingCursor`], which the writer waits for, and [`FreeCursor`], which can be lapped |
//! | [`ring`] | [`RingWriter`] and [`RingReader`]: one publisher to one consumer in another process |
//! | [`error`] | [`LogError`] |
//!
//! # The ordering arguments
//! Each of them is model-checked by a test under `tests/loom_*.rs`.
//!
//! 1. *Publication.* The writer writes a frame, then stores the tail with Release; a reader loads the
//!    tail with Acquire, so it sees whole frames only.
//! 2. *Gating.* A gating cursor (or a ring's reader) stores its position with Release after its last
//!    look at a frame; the writer loads it with Acquire before it writes over that frame.
//! 3. *Lapping.* The writer announces how far it may write (`claimed`) before it writes, separated by
//!    a Release fence; a free cursor copies, then an Acquire fence, then reads `claimed`: if its frame
//!    was not inside the announced range, no word of the copy can be newer (a sequence lock).
//! 4. *Parking.* The waiter stores its parked flag, then looks at the tail once more; the writer
//!    stores the tail, then looks at the flag; a sequentially consistent fence between the two on both
//!    sides makes sure that at least one of them sees the other.

pub mod cursor;
pub mod descriptor;
pub mod error;
pub mod memory;
pub mod ring;
mod sync;
pub mod window;

pub use cursor::{FreeCursor, FreeRead, GatingCursor, Scope};
pub use error::LogError;
pub use memory::{Memory, MemoryKind};
pub use ring::{RingReader, RingWriter};
pub use window::{Releaser, StreamIdentity, Window, WindowOptions, WindowWriter};
