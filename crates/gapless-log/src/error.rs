use gapless_wire::FrameError;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Invalid size of a mapping.
    #[error("{what} is {found}; it must be a power of two from {min} to {max} bytes")]
    Capacity { what: &'static str, found: usize, min: usize, max: usize },
    /// Invalid limit for the length of a frame.
    #[error("the longest frame is {found} bytes; it must be from {min} to {max} in a window of this capacity")]
    FrameLengthMax {
        found: usize,
        /// Least allowed value: the length of a header.
        min: usize,
        /// Greatest allowed value: half of the capacity, and at most the limit of the frame layout.
        max: usize,
    },
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// The file or descriptor is not a mapping of ours, or not of this kind or stream.
    #[error("not a usable mapping: {field} is {found}, expected {expected}")]
    Foreign { field: &'static str, found: String, expected: String },
    /// No room until a reader moves on: back-pressure, not a fault.
    #[error("no room for {needed_bytes} bytes: a reader is {lag_bytes} bytes behind in {capacity_bytes}")]
    Full {
        needed_bytes: usize,
        /// Distance of the slowest reader, bytes.
        lag_bytes: u64,
        capacity_bytes: usize,
    },
    /// The frame is longer than the limit of this window or ring.
    #[error("a frame of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    /// The peer process broke the protocol.
    #[error("the mapping is corrupt at position {position}: {reason}; it is of no more use")]
    Corrupt { position: u64, reason: String },
    /// The bytes at this position are no valid frame.
    #[error("bad frame at position {position}: {source}")]
    Frame { position: u64, source: FrameError },
    /// Frames after this position were truncated while the cursor was past them.
    #[error("the window was truncated to position {position}; the cursor stood at {cursor_position}")]
    Truncated {
        /// New end of the window.
        position: u64,
        cursor_position: u64,
    },
    /// A truncation would cut released frames.
    #[error("cannot truncate after sequence {sequence}: {released_sequence} is released already")]
    TruncatesReleased { sequence: u64, released_sequence: u64 },
}
