//! Runtime of generated SBE flyweights. Bounds are checked once per block, group or data, never per field: a block is
//! an array reference of known length, so a field's offset is checked by the compiler.

pub mod block;
pub mod read;
pub mod text;
pub mod write;

pub use read::{Entry, Group, Header, Reader};
pub use write::Tail;
