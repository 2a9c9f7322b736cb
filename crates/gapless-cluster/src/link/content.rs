//! Content of a link's messages, and a message in the receive buffer.

use super::wire::{MemberNumber, MessageKind};

/// Purpose of a message. Links ignore it, their users do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageContent {
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
    /// The sender.
    pub from: MemberNumber,
    pub content: MessageContent,
    /// Consensus part, with its checksum verified.
    pub consensus: &'a [u8],
    /// Frames part, at an address that is a multiple of 8. Frames have their own checksums, which are *not* verified
    /// here.
    pub frames: &'a [u8],
}
