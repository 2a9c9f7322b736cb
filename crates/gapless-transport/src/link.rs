//! A publisher's link: its number, the sizes of its rings, and its limits of frames and messages.

use gapless_wire::HEADER_LENGTH;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;

/// Publishing process or in-process client; never reused in a process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Size of the ring from publisher to sequencer, bytes; a power of two.
    pub command_ring_bytes: usize,
    /// Size of the ring from service to publisher, bytes; a power of two.
    pub reply_ring_bytes: usize,
}

impl Default for RingSizes {
    fn default() -> Self {
        Self { command_ring_bytes: 1 << 20, reply_ring_bytes: 1 << 20 }
    }
}

impl RingSizes {
    pub const RING_BYTES: std::ops::RangeInclusive<usize> = 4096..=1 << 30;

    /// Both are powers of two in range.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        [self.command_ring_bytes, self.reply_ring_bytes]
            .iter()
            .all(|bytes| bytes.is_power_of_two() && Self::RING_BYTES.contains(bytes))
    }
}

/// Longest payload of one answer in any stream: the longest frame without its header. Must never change.
pub const ANSWER_LENGTH_MAX: usize = FRAME_LENGTH_MAX - HEADER_LENGTH;

#[must_use]
pub fn ring_size_reason(link: RingSizes) -> String {
    format!(
        "ring sizes {} and {} must be powers of two from {} to {} bytes",
        link.command_ring_bytes,
        link.reply_ring_bytes,
        RingSizes::RING_BYTES.start(),
        RingSizes::RING_BYTES.end()
    )
}
