//! Errors of a store.

use gapless_schema::{DecodeError, EncodeError};

/// Error of a store. The failed operation leaves no change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Changes or operations of another replica cannot be applied: they are damaged, or of another version of the
    /// program.
    #[error("changes at byte {offset}, {place}: {reason}; nothing was applied")]
    Changes {
        /// Byte in the changes, or in the piece of a snapshot.
        offset: usize,
        place: String,
        reason: String,
    },
    /// The snapshot cannot be read. Use another one.
    #[error("piece {piece} of the snapshot: {reason}; the store is now empty")]
    Snapshot {
        piece: u32,
        /// Defect and remedy.
        reason: String,
    },
    /// Reading or writing a snapshot failed. Remove the cause and retry.
    #[error("{action}: {source}")]
    System { action: &'static str, source: std::io::Error },
    /// The object cannot be encoded. Correct it and retry.
    #[error("collection {collection}, key {key}: {source}; the transaction was rolled back")]
    Object { collection: String, key: String, source: ObjectError },
    /// The transaction would exceed a limit. Store less in one transaction.
    #[error("{what} would be {found}, the limit is {limit}; the transaction was rolled back")]
    Limit {
        /// Limited quantity, and its place.
        what: String,
        limit: u64,
        /// Value that it would have.
        found: u64,
    },
    /// A snapshot is in progress, or none is. Finish one snapshot before the next begins.
    #[error("{0}")]
    Order(&'static str),
}

/// Error of encoding or decoding an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The bytes do not fit the schema.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The object does not fit the schema.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(
        "version {found} of the object is newer than {known}, the newest that this program knows; run a newer program"
    )]
    Version {
        /// Version of the bytes.
        found: u16,
        /// Newest known version.
        known: u16,
    },
    /// The bytes are no valid object, or the object does not fit its record.
    #[error("{0}")]
    Invalid(String),
}
