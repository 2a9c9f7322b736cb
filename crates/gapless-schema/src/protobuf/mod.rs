//! Runtime of generated protobuf writers and readers. Signed integers are `sint32` and `sint64`, null is absent.
//! Objects and streaming share it, so that both have one form on the wire.

pub mod read;
pub mod write;

pub use read::{Packed, Reader, Value};
pub use write::{Mark, Writer};

pub const VARINT: u32 = 0;
pub const FIXED64: u32 = 1;
pub const LENGTH_DELIMITED: u32 = 2;
pub const FIXED32: u32 = 5;
