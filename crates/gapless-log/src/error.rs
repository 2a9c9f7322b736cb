//! What can go wrong with a window or a ring.

use gapless_wire::FrameError;

/// What can go wrong with a window or a ring.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A size that no mapping can have.
    #[error("{what} is {found}; it must be a power of two from {min} to {max} bytes")]
    Capacity { what: &'static str, found: usize, min: usize, max: usize },
    /// A longest frame that no window can have.
    #[error("the longest frame is {found} bytes; it must be from {min} to {max} in a window of this capacity")]
    FrameLengthMax {
        found: usize,
        /// The least allowed: a header.
        min: usize,
        /// The greatest allowed: half of the capacity, and no more than the frame layout's limit.
        max: usize,
    },
    /// The operating system refused.
    #[error("{action}: {source}")]
    System {
        /// What was being done, with the path where there is one.
        action: String,
        source: std::io::Error,
    },
    /// The file or descriptor is not a mapping of ours, or not of this kind or stream.
    #[error("not a usable mapping: {field} is {found}, expected {expected}")]
    Foreign {
        field: &'static str,
        found: String,
        /// What it should hold.
        expected: String,
    },
    /// There is no room until a reader moves on: back-pressure, not a fault.
    #[error("no room for {needed_bytes} bytes: a reader is {lag_bytes} bytes behind in {capacity_bytes}")]
    Full {
        needed_bytes: usize,
        /// How far the slowest reader is behind.
        lag_bytes: u64,
        capacity_bytes: usize,
    },
    /// The frame is longer than this window or ring takes.
    #[error("a frame of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    /// The process at the other end broke the protocol.
    #[error("the mapping is corrupt at position {position}: {reason}; it is of no more use")]
    Corrupt {
        /// Byte position in the ring.
        position: u64,
        /// What was found there.
        reason: String,
    },
    /// The frame at this position is not one.
    #[error("bad frame at position {position}: {source}")]
    Frame {
        /// Byte position.
        position: u64,
        source: FrameError,
    },
    /// The frames behind this position were cut off while the cursor stood beyond them.
    #[error("the window was truncated to position {position}; the cursor stood at {cursor_position}")]
    Truncated {
        /// Where the window ends now.
        position: u64,
        /// Where the cursor stood.
        cursor_position: u64,
    },
    /// A truncation would cut what was promised.
    #[error("cannot truncate after sequence {sequence}: {released_sequence} is released already")]
    TruncatesReleased {
        /// The asked sequence.
        sequence: u64,
        /// The last released one.
        released_sequence: u64,
    },
}
