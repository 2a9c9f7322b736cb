//! [`DecodeError`] and [`EncodeError`]: what generated code answers to bytes and values that do not fit.
//!
//! Fields are named by their path in the schema (`Car.performanceFigure.acceleration`), positions are bytes from the
//! start of the payload. Encode errors are made in their cold branch without a call: a call would return them through memory,
//! the compiler could not tell that they are never `Ok`, and the encoder's state would live on the stack. Decoding has
//! no state to lose, so its errors are made out of line.

/// Why a payload is not the message it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The payload ends inside of a field.
    #[error("{field} at byte {position} needs {needed_bytes} bytes, but only {found_bytes} are left")]
    Truncated {
        /// Path of the field, group or data.
        field: &'static str,
        /// Where it begins.
        position: usize,
        /// Bytes that it takes.
        needed_bytes: usize,
        /// Bytes that are left.
        found_bytes: usize,
    },
    /// The message header names another schema.
    #[error("{message}: the header names schema {found}, expected {expected}")]
    Schema {
        /// Message that was expected.
        message: &'static str,
        /// Its schema id.
        expected: u16,
        /// The id in the header.
        found: u64,
    },
    /// The message header names another message of the schema.
    #[error("{message}: the header names template {found}, expected {expected}")]
    Template {
        /// Message that was expected.
        message: &'static str,
        /// Its template id.
        expected: u16,
        /// The id in the header.
        found: u64,
    },
    /// The block is shorter than the fields of the version that wrote it.
    #[error(
        "{field} at byte {position}: block length {found_bytes} is below the {needed_bytes} bytes of version {version}"
    )]
    BlockLength {
        /// Path of the message or group.
        field: &'static str,
        /// Where the block begins.
        position: usize,
        /// Bytes that the fields of that version take.
        needed_bytes: usize,
        /// The block length in the header or dimensions.
        found_bytes: u64,
        /// The acting version.
        version: u64,
    },
    /// More entries than a group can hold.
    #[error("{field} at byte {position}: {found} entries do not fit into the payload")]
    GroupLength {
        /// Path of the group.
        field: &'static str,
        /// Where its first entry begins.
        position: usize,
        /// The number of entries in the dimensions.
        found: u64,
    },
    /// A text is not in the character encoding that the schema names.
    #[error("{field} is not valid {expected}: bad byte at index {index}")]
    Text {
        /// Path of the field.
        field: &'static str,
        /// The character encoding.
        expected: &'static str,
        /// Index of the first bad byte in the text.
        index: usize,
    },
    /// A protobuf field is malformed.
    #[error("{field} at byte {position}: {problem}")]
    Protobuf {
        /// Path of the field or message.
        field: &'static str,
        /// Where it begins.
        position: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Why a message could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too short; make it longer, or the message smaller.
    #[error("{field} at byte {position} needs {needed_bytes} bytes, but the buffer has only {found_bytes} left")]
    Capacity {
        /// Path of the field, group or data.
        field: &'static str,
        /// Where it begins.
        position: usize,
        /// Bytes that it takes.
        needed_bytes: usize,
        /// Bytes that are left.
        found_bytes: usize,
    },
    /// Groups and data must be written in the order of the schema.
    #[error("{field} comes too late: write groups and data in the order of the schema")]
    Order {
        /// Path of the group or data.
        field: &'static str,
    },
    /// More entries or bytes than the length field of the group or data can express.
    #[error("{field} is too long: {found}, its length field allows at most {limit}")]
    Length {
        /// Path of the group or data.
        field: &'static str,
        /// Entries or bytes that were asked for.
        found: usize,
        /// Entries or bytes that are allowed.
        limit: u64,
    },
    /// A text is longer than its field, holds a NUL, or has characters outside of its encoding.
    #[error("{field}: text of {found_bytes} bytes does not fit into {limit_bytes} bytes of {expected} without NUL")]
    Text {
        /// Path of the field.
        field: &'static str,
        /// Bytes of the text.
        found_bytes: usize,
        /// Bytes of the field.
        limit_bytes: usize,
        /// The character encoding.
        expected: &'static str,
    },
    /// A value is the one that means null, or outside of the range that the schema gives.
    #[error("{field}: the value is outside of the range {range}")]
    Range {
        /// Path of the field.
        field: &'static str,
        /// The range in the schema.
        range: &'static str,
    },
}

/// Marks the branch that calls it as one that is rarely taken.
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
