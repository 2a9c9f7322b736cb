//! Fetching frames of another member's journal, a piece at a time: for catch-up, and for a snapshot transfer.
//! [`PieceRequests`] decides which member is asked for the next piece, and when again; [`FetchedFrames`] checks the
//! received frames by the chain.
//!
//! ```text
//! request   u64 first sequence, u64 last sequence
//! frames    u64 first sequence, u64 last sequence asked for; without frames: the journal no longer holds the first
//! ```
//!
//! All numbers little-endian.

use crate::consensus::{Chain, LogPosition, MemberId};
use gapless_wire::fields::{put_at, u64_at};
use gapless_wire::{Frame, FrameError, aligned_length};
use std::ops::Range;

const ASK_AGAIN_NS: u64 = 500_000_000;
const HEADER_LENGTH: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("frame {found} came, {expected} is expected")]
    Sequence { expected: u64, found: u64 },
    #[error("frame {sequence} is cut in its padding")]
    Padding { sequence: u64 },
    #[error("the frames up to {sequence} are not those of the leader: the chain differs")]
    OtherChain { sequence: u64 },
}

pub(super) fn parse_header(bytes: &[u8]) -> Option<(u64, u64)> {
    (bytes.len() == HEADER_LENGTH).then(|| (u64_at(bytes, 0), u64_at(bytes, 8)))
}

pub(super) fn header(first: u64, last: u64) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    put_at(&mut bytes, 0, &first.to_le_bytes());
    put_at(&mut bytes, 8, &last.to_le_bytes());
    bytes
}

pub(super) struct PieceRequests {
    leader: MemberId,
    is_waiting: bool,
    next_ask_ns: u64,
}

impl PieceRequests {
    pub const fn new(leader: MemberId, now_ns: u64) -> Self {
        Self { leader, is_waiting: false, next_ask_ns: now_ns }
    }

    pub const fn leader(&self) -> MemberId {
        self.leader
    }

    /// Returns whether requests now go to another member.
    pub fn follow(&mut self, leader: MemberId) -> bool {
        let is_other = self.leader != leader;
        if is_other {
            (self.leader, self.is_waiting) = (leader, false);
        }
        is_other
    }

    /// The piece was received, or the connection is gone.
    pub const fn end_waiting(&mut self) {
        self.is_waiting = false;
    }

    /// Whether the caller is to request a piece now.
    pub const fn begin_waiting(&mut self, now_ns: u64) -> bool {
        let is_due = !self.is_waiting || now_ns >= self.next_ask_ns;
        if is_due {
            (self.is_waiting, self.next_ask_ns) = (true, now_ns + ASK_AGAIN_NS);
        }
        is_due
    }
}

#[derive(Clone, Copy)]
pub(super) struct FetchedFrames {
    pub to: LogPosition,
    chain: Chain,
    pub last_sequence: u64,
}

impl FetchedFrames {
    /// Before the first frame after `sequence`, with the chain's value `hash`.
    pub const fn after(sequence: u64, hash: u64, to: LogPosition) -> Self {
        Self { to, chain: Chain::at(hash), last_sequence: sequence }
    }

    pub const fn is_complete(&self) -> bool {
        self.last_sequence >= self.to.sequence
    }

    /// Request for the next piece.
    pub fn request(&self) -> [u8; HEADER_LENGTH] {
        header(self.last_sequence + 1, self.to.sequence)
    }

    /// Checks the frames that follow; `visit` gets sequence and place of each.
    pub fn checked(mut self, frames: &[u8], mut visit: impl FnMut(u64, Range<usize>)) -> Result<Self, FetchError> {
        let mut start = 0;
        while start < frames.len() {
            let frame = Frame::parse(&frames[start..])?;
            frame.verify()?;
            let sequence = self.last_sequence + 1;
            if frame.sequence() != sequence || sequence > self.to.sequence {
                return Err(FetchError::Sequence { expected: sequence, found: frame.sequence() });
            }
            let end = start + aligned_length(frame.length());
            if end > frames.len() {
                return Err(FetchError::Padding { sequence });
            }
            self.chain.extend(&frame);
            self.last_sequence = sequence;
            visit(sequence, start..end);
            start = end;
        }
        if self.last_sequence == self.to.sequence && self.chain.value() != self.to.hash {
            return Err(FetchError::OtherChain { sequence: self.last_sequence });
        }
        Ok(self)
    }
}
