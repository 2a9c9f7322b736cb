//! [`Notice`]: a message of a service that no command asked for.

use crate::ClientError;
use crate::message_type::read;
use crate::polled::{MessageType, Reply};
use gapless_message::Message;
use std::sync::Arc;

/// A notice; its clones share the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Counts the notices of its session, from 1.
    pub number: u64,
    /// Place in the total order of the command or timer whose handler has sent it.
    pub sequence: u64,
    /// Sequenced, ns since the epoch.
    pub timestamp_ns: u64,
    pub message: MessageType,
    pub payload: Arc<[u8]>,
}

impl Notice {
    pub(super) fn of(notice: &Reply<'_>) -> Self {
        Self {
            number: notice.session_seq,
            sequence: notice.sequence,
            timestamp_ns: notice.timestamp_ns,
            message: notice.message_type(),
            payload: notice.payload.into(),
        }
    }

    /// Whether [`Notice::read`] takes it for an `M`.
    #[must_use]
    pub fn is<M: Message>(&self) -> bool {
        self.message == MessageType::typed::<M>()
    }

    /// Reads as a typed message, of any version that this program reads.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message, or malformed.
    pub fn read<M: Message>(&self) -> Result<M, ClientError> {
        read(self.message, &self.payload)
    }
}

/// A gap between two notices. Ask the service for its present state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoticesLost {
    /// The program took notices more slowly than they came, and as many as may be were kept for it.
    #[error("{count} notices were discarded, because too many waited to be taken; take them faster")]
    Slow { count: u64 },
    /// The service no longer knows a session of this client, which has expired, or its stream was restored. A new one
    /// has taken its place; notices to the former one are gone.
    #[error("a session was lost, and with it any notices that had not arrived")]
    Session,
}
