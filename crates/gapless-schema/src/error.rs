//! Positions are bytes from the start of the payload.
//!
//! Encode errors are made in their cold branch without a call: a call would return them through memory, and the
//! encoder's state would live on the stack. Decoding has no state to lose, so its errors are made out of line.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The payload ends inside of a field.
    #[error("{field} at byte {position} needs {needed_bytes} bytes, but only {found_bytes} are left")]
    Truncated { field: &'static str, position: usize, needed_bytes: usize, found_bytes: usize },
    /// The message header names another schema.
    #[error("{message}: the header names schema {found}, expected {expected}")]
    Schema { message: &'static str, expected: u16, found: u64 },
    /// The message header names another message of the schema.
    #[error("{message}: the header names template {found}, expected {expected}")]
    Template { message: &'static str, expected: u16, found: u64 },
    /// The block is shorter than the fields of the version that wrote it.
    #[error(
        "{field} at byte {position}: block length {found_bytes} is below the {needed_bytes} bytes of version {version}"
    )]
    BlockLength { field: &'static str, position: usize, needed_bytes: usize, found_bytes: u64, version: u64 },
    /// More entries than a group can hold.
    #[error("{field} at byte {position}: {found} entries do not fit into the payload")]
    GroupLength { field: &'static str, position: usize, found: u64 },
    /// A text is not in the character encoding that the schema names.
    #[error("{field} is not valid {expected}: bad byte at index {index}")]
    Text { field: &'static str, expected: &'static str, index: usize },
    /// A protobuf field is malformed.
    #[error("{field} at byte {position}: {problem}")]
    Protobuf { field: &'static str, position: usize, problem: &'static str },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too short; make it longer, or the message smaller.
    #[error("{field} at byte {position} needs {needed_bytes} bytes, but the buffer has only {found_bytes} left")]
    Capacity { field: &'static str, position: usize, needed_bytes: usize, found_bytes: usize },
    /// Groups and data must be written in the order of the schema.
    #[error("{field} comes too late: write groups and data in the order of the schema")]
    Order { field: &'static str },
    /// More entries or bytes than the length field of the group or data can express.
    #[error("{field} is too long: {found}, its length field allows at most {limit}")]
    Length { field: &'static str, found: usize, limit: u64 },
    /// A text is longer than its field, holds a NUL, or has characters outside of its encoding.
    #[error("{field}: text of {found_bytes} bytes does not fit into {limit_bytes} bytes of {expected} without NUL")]
    Text { field: &'static str, found_bytes: usize, limit_bytes: usize, expected: &'static str },
    /// A value that means null, or is outside of the schema's range.
    #[error("{field}: the value is outside of the range {range}")]
    Range { field: &'static str, range: &'static str },
}

#[cold]
#[inline(never)]
pub(crate) const fn cold() {}

impl DecodeError {
    #[cold]
    #[inline(never)]
    pub(crate) const fn truncated(
        field: &'static str,
        position: usize,
        needed_bytes: usize,
        found_bytes: usize,
    ) -> Self {
        Self::Truncated { field, position, needed_bytes, found_bytes }
    }

    #[cold]
    #[inline(never)]
    pub(crate) const fn protobuf(field: &'static str, position: usize, problem: &'static str) -> Self {
        Self::Protobuf { field, position, problem }
    }
}

impl EncodeError {
    #[inline(always)]
    pub(crate) const fn capacity(
        field: &'static str,
        position: usize,
        needed_bytes: usize,
        found_bytes: usize,
    ) -> Self {
        cold();
        Self::Capacity { field, position, needed_bytes, found_bytes }
    }
}
