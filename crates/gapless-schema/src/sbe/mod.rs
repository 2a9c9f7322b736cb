//! Runtime of generated SBE flyweights.
//!
//! | module | what lives there |
//! |---|---|
//! | [`block`] | fields at fixed offsets of a block whose length the compiler knows |
//! | [`read`] | [`Reader`], which walks a payload once, and [`Group`], the entries of a repeating group |
//! | [`mod@write`] | [`Tail`], the unwritten part of a buffer |
//! | [`text`] | fixed-length text |
//!
//! Only generated code calls this. Bounds are checked once per block, group or data, never per field: a block is an
//! array reference of known length, so a field's offset is checked by the compiler.

pub mod block;
pub mod read;
pub mod text;
pub mod write;

pub use read::{Entry, Group, Header, Reader};
pub use write::Tail;
