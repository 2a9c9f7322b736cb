//! Values that the rest of the core uses.

use std::fmt;
use std::num::NonZeroU64;

/// Limit of members of a cluster, all roles together.
pub const CONSENSUS_MEMBERS_MAX: usize = 64;

/// Highest index, term or sequence: adding one never overflows.
pub const NUMBER_MAX: u64 = u64::MAX >> 2;

/// Number of a member; never 0, and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(NonZeroU64);

impl MemberId {
    /// `None` for 0 and above [`NUMBER_MAX`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() <= NUMBER_MAX => Some(Self(number)),
            _ => None,
        }
    }

    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Frames of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    pub first_sequence: u64,
    /// `first_sequence − 1` for an entry without frames.
    pub end_sequence: u64,
    /// [`crate::consensus::Chain`] after the last frame.
    pub hash: u64,
}

impl Batch {
    /// Length of the encoding, bytes.
    pub const LENGTH: usize = 24;

    /// Batch without frames after a stream's `sequence`.
    #[must_use]
    pub const fn empty_after(sequence: u64, hash: u64) -> Self {
        Self { first_sequence: sequence + 1, end_sequence: sequence, hash }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.end_sequence < self.first_sequence
    }

    #[must_use]
    pub const fn frames(&self) -> u64 {
        (self.end_sequence + 1).saturating_sub(self.first_sequence)
    }

    /// Little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end_sequence.to_le_bytes());
        bytes[16..].copy_from_slice(&self.hash.to_le_bytes());
        bytes
    }

    /// `None` for another length, or sequences that no batch has.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.try_into().ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let [first_sequence, end_sequence, hash] = [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at]));
        let batch = Self { first_sequence, end_sequence, hash };
        let is_valid = first_sequence >= 1 && end_sequence <= NUMBER_MAX && first_sequence <= end_sequence + 1;
        is_valid.then_some(batch)
    }
}

/// Position in the log and in the stream, here the form of raft's snapshot (decision 39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    pub index: u64,
    pub term: u64,
    /// Last sequence covered by the entry and its predecessors.
    pub sequence: u64,
    /// Chain at that sequence.
    pub hash: u64,
}
