//! Errors of windows, rings and call tables.

use gapless_wire::FrameError;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{what} is {found}; it must be a power of two from {min} to {max} bytes")]
    Capacity { what: &'static str, found: usize, min: usize, max: usize },
    #[error("the longest frame is {found} bytes; it must be from {min} to {max} in a window of this capacity")]
    FrameLengthMax {
        found: usize,
        /// Least allowed value: the length of a header.
        min: usize,
        /// Greatest allowed value: half of the capacity, and at most the limit of the frame layout.
        max: usize,
    },
    /// The operating system refused. Check the free memory, the limits and the permissions.
    #[error("{action}: {source}")]
    System {
        /// Attempted action, with the path where there is one.
        action: String,
        source: std::io::Error,
    },
    /// The file or descriptor is not a mapping of Gapless, or is of another kind, stream or version. Check the path and
    /// the versions of both programs.
    #[error("not a usable mapping: {field} is {found}, expected {expected}")]
    Foreign { field: &'static str, found: String, expected: String },
    /// Back-pressure, not a fault: nothing was written. Retry when the reader has advanced.
    #[error("no room for {needed_bytes} bytes: a reader lags {lag_bytes} of {capacity_bytes} bytes")]
    Full {
        needed_bytes: usize,
        /// Distance of the slowest reader, bytes.
        lag_bytes: u64,
        capacity_bytes: usize,
    },
    /// Nothing was written. Send less at a time, or raise the limit.
    #[error("a frame of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    /// The peer process broke the protocol, or overwrote the memory. Close the connection and open a new one.
    #[error("the mapping is corrupt at position {position}: {reason}; it can no longer be used")]
    Corrupt {
        /// Byte position in the ring.
        position: u64,
        /// Content found there.
        reason: String,
    },
    /// The bytes are damaged, or the position is not that of a frame.
    #[error("bad frame at position {position}: {source}")]
    Frame {
        /// Byte position.
        position: u64,
        source: FrameError,
    },
    /// Frames that the reader had passed were cut before their release, as after a change of leaders. Go back
    /// with [`crate::GatingCursor::rewind`].
    #[error("the window was truncated to position {position}; the cursor stood at {cursor_position}")]
    Truncated {
        /// New end of the window.
        position: u64,
        cursor_position: u64,
    },
    /// Readers may have acted on released frames. Nothing was cut.
    #[error("cannot truncate after sequence {sequence}: {released_sequence} is released already")]
    TruncatesReleased { sequence: u64, released_sequence: u64 },
}
