//! Content of a link's messages, and a message in the receive buffer.

use super::wire::{Kind, MemberId};

/// Purpose of a message. Links ignore it, their users do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A message of consensus with the frames that belong to it.
    Consensus,
    /// A follower's request for old frames; such a message has no frames.
    CatchUpRequest,
    /// Old frames.
    CatchUpFrames,
    /// The sender's view of the membership; such a message has no frames.
    Members,
    /// Comparison of a service's state between members; such a message is short and has no frames.
    DivergenceCheck,
    /// Endpoints of the sender for publishers; such a message has no frames.
    Endpoints,
    /// A follower's request for a snapshot transfer; such a message is short and has no frames.
    SnapshotTransferRequest,
    /// Offer of a snapshot transfer, or a piece of it in place of frames.
    SnapshotTransfer,
    /// The sender's view of the stream's time; such a message is short and has no frames.
    Time,
    /// The position that the journals of all full members have reached; such a message is short and has no frames.
    RetentionWatermark,
    /// Summary of the sender's log; such a message is short and has no frames.
    History,
}

impl Content {
    const ALL: [Self; 11] = [
        Self::Consensus,
        Self::CatchUpRequest,
        Self::CatchUpFrames,
        Self::Members,
        Self::DivergenceCheck,
        Self::Endpoints,
        Self::SnapshotTransferRequest,
        Self::SnapshotTransfer,
        Self::Time,
        Self::RetentionWatermark,
        Self::History,
    ];

    #[inline]
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Consensus => Kind::Consensus,
            Self::CatchUpRequest => Kind::CatchUpRequest,
            Self::CatchUpFrames => Kind::CatchUpFrames,
            Self::Members => Kind::Members,
            Self::DivergenceCheck => Kind::DivergenceCheck,
            Self::Endpoints => Kind::Endpoints,
            Self::SnapshotTransferRequest => Kind::SnapshotTransferRequest,
            Self::SnapshotTransfer => Kind::SnapshotTransfer,
            Self::Time => Kind::Time,
            Self::RetentionWatermark => Kind::RetentionWatermark,
            Self::History => Kind::History,
        }
    }

    #[inline]
    pub(super) fn from_kind(kind: Kind) -> Option<Self> {
        Self::ALL.into_iter().find(|content| content.kind() == kind)
    }
}

/// A message in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The sender.
    pub from: MemberId,
    pub content: Content,
    /// Consensus part, with its checksum verified.
    pub consensus: &'a [u8],
    /// Frames part, at an address that is a multiple of 8. Frames have their own checksums, which are *not* verified
    /// here.
    pub frames: &'a [u8],
}
