use gapless_schema::{DecodeError, EncodeError};

/// Error of a store. The failed operation leaves no change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Changes or operations of another replica cannot be applied.
    #[error("changes at byte {offset}, {place}: {reason}; nothing was applied")]
    Changes {
        /// Byte in the changes, or in the piece of a snapshot.
        offset: usize,
        place: String,
        reason: String,
    },
    /// A snapshot cannot be read.
    #[error("snapshot, piece {piece}: {reason}; the store is empty now")]
    Snapshot {
        piece: u32,
        /// Defect and remedy.
        reason: String,
    },
    /// Reading or writing a snapshot failed.
    #[error("{action}: {source}")]
    System { action: &'static str, source: std::io::Error },
    /// An object cannot be encoded.
    #[error("collection {collection}, key {key}: {source}; the transaction was rolled back")]
    Object { collection: String, key: String, source: ObjectError },
    /// The transaction would exceed a limit.
    #[error("{what} would be {found}, the limit is {limit}; the transaction was rolled back")]
    Limit { what: String, limit: u64, found: u64 },
    /// A snapshot is in progress, or none is.
    #[error("{0}")]
    Order(&'static str),
}

/// Error of encoding or decoding an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// Error of the schema layer.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Error of the schema layer.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The bytes were written by an unknown, newer version.
    #[error("version {found} of the object is newer than {known}, which is known here: run a newer program")]
    Version { found: u16, known: u16 },
    /// Any other defect.
    #[error("{0}")]
    Invalid(String),
}
