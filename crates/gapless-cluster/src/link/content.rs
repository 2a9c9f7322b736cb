//! What goes over a link: a message's content, and a message as it lies in the receive buffer.

use super::wire::{Kind, MemberId};

/// What a message is for. Links do not care, their users do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A message of consensus with the frames that belong to it.
    Consensus,
    /// A follower asks for old frames; such a message has no frames.
    CatchUpRequest,
    /// Old frames.
    CatchUpFrames,
    /// Who is a member, as its sender knows; such a message has no frames.
    Members,
    /// Whether a service has the same state on all members; such a message is short and has no frames.
    DivergenceCheck,
    /// Where publishers find its sender; such a message has no frames.
    Endpoints,
    /// A follower asks for a snapshot transfer; such a message is short and has no frames.
    SnapshotTransferRequest,
    /// What a snapshot transfer offers, or a piece of it in the place of frames.
    SnapshotTransfer,
    /// The time of the stream, as its sender knows it; such a message is short and has no frames.
    Time,
    /// How far all full members are; such a message is short and has no frames.
    RetentionWatermark,
    /// What its sender's log holds; such a message is short and has no frames.
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

/// A message as it lies in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: MemberId,
    /// What it is for.
    pub content: Content,
    /// The consensus part; its checksum is checked.
    pub consensus: &'a [u8],
    /// The frames part, at an address that is a multiple of 8. Frames have checksums of their own, which are *not*
    /// checked here.
    pub frames: &'a [u8],
}
