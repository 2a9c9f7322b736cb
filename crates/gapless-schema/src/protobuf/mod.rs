//! Runtime of generated protobuf writers and readers.
//!
//! | module | what lives there |
//! |---|---|
//! | [`mod@write`] | [`Writer`], which appends fields and remembers whether they fitted |
//! | [`read`] | [`Reader`], which walks fields, and [`Packed`], the values of a repeated scalar |
//!
//! Field numbers are SBE field ids, signed integers are `sint32` and `sint64`, null is absent. Only generated code
//! calls this; nothing here allocates. Objects and streaming share it, so that both have one form on the wire. The
//! tests compare that form with `prost`.

pub mod read;
pub mod write;

pub use read::{Packed, Reader, Value};
pub use write::{Mark, Writer};

/// Wire type of integers.
pub const VARINT: u32 = 0;
/// Wire type of 8 bytes.
pub const FIXED64: u32 = 1;
/// Wire type of text, bytes, messages and packed values.
pub const LENGTH_DELIMITED: u32 = 2;
/// Wire type of 4 bytes.
pub const FIXED32: u32 = 5;
