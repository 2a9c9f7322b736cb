//! What can go wrong with a store.

use gapless_schema::{DecodeError, EncodeError};

/// What can go wrong with a store. None of these leaves a change behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Changes or operations from elsewhere cannot be applied.
    #[error("changes at byte {offset}, {place}: {reason}; nothing was applied")]
    Changes {
        /// Byte in the changes, or in the piece of a snapshot.
        offset: usize,
        /// Collection and key as far as they are known.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A snapshot cannot be read.
    #[error("snapshot, piece {piece}: {reason}; the store is empty now")]
    Snapshot {
        /// The piece, from 0.
        piece: u32,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Reading or writing a snapshot failed.
    #[error("{action}: {source}")]
    System {
        /// What was being done.
        action: &'static str,
        /// The answer.
        source: std::io::Error,
    },
    /// An object cannot be encoded.
    #[error("collection {collection}, key {key}: {source}; the transaction was rolled back")]
    Object {
        /// Name of the collection.
        collection: String,
        /// The key.
        key: String,
        /// What the object says.
        source: ObjectError,
    },
    /// The transaction would take the store beyond a limit.
    #[error("{what} would be {found}, the limit is {limit}; the transaction was rolled back")]
    Limit {
        /// What is limited, and where.
        what: String,
        /// The limit.
        limit: u64,
        /// What it would be.
        found: u64,
    },
    /// A snapshot is under way, or none is.
    #[error("{0}")]
    Order(&'static str),
}

/// Why an object cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// As the schema layer says.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// As the schema layer says.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The bytes were written by a version that is not known here.
    #[error("version {found} of the object is newer than {known}, which is known here: run a newer program")]
    Version {
        /// The version of the bytes.
        found: u16,
        /// The newest that is known.
        known: u16,
    },
    /// Anything else.
    #[error("{0}")]
    Invalid(String),
}
