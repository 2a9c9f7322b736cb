//! Content of a link's messages, and a message in the receive buffer.

use super::wire::{MemberNumber, MessageKind};

/// Purpose of a message, ignored by links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageContent {
    Consensus,
    /// No frames.
    CatchUpRequest,
    CatchUpFrames,
    /// The sender's view of the membership; no frames.
    Members,
    /// Comparison of a service's state; short, no frames.
    DivergenceCheck,
    /// Endpoints for publishers; no frames.
    Endpoints,
    /// Short, no frames.
    SnapshotTransferRequest,
    /// Offer of a transfer, or a piece of it in place of frames.
    SnapshotTransfer,
    /// View of the stream's time; short, no frames.
    Time,
    /// Position reached by the journals of all full members; short, no frames.
    RetentionWatermark,
    /// Summary of the sender's log; short, no frames.
    History,
}

impl MessageContent {
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
    pub(super) const fn kind(self) -> MessageKind {
        match self {
            Self::Consensus => MessageKind::Consensus,
            Self::CatchUpRequest => MessageKind::CatchUpRequest,
            Self::CatchUpFrames => MessageKind::CatchUpFrames,
            Self::Members => MessageKind::Members,
            Self::DivergenceCheck => MessageKind::DivergenceCheck,
            Self::Endpoints => MessageKind::Endpoints,
            Self::SnapshotTransferRequest => MessageKind::SnapshotTransferRequest,
            Self::SnapshotTransfer => MessageKind::SnapshotTransfer,
            Self::Time => MessageKind::Time,
            Self::RetentionWatermark => MessageKind::RetentionWatermark,
            Self::History => MessageKind::History,
        }
    }

    #[inline]
    pub(super) fn from_kind(kind: MessageKind) -> Option<Self> {
        Self::ALL.into_iter().find(|content| content.kind() == kind)
    }
}

/// A message in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage<'a> {
    /// Sender.
    pub from: MemberNumber,
    pub content: MessageContent,
    /// Consensus part, with its checksum verified.
    pub consensus: &'a [u8],
    /// At an address that is a multiple of 8; the frames' own checksums are *not* verified.
    pub frames: &'a [u8],
}
