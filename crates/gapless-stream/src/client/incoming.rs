//! What a poll hands out, and the putting together of fragmented messages.

use super::SessionKey;
use crate::StreamError;
use gapless_wire::control::Refusal;
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Encoding, Frame};

/// Something from the service.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A session is open.
    Opened {
        /// Which.
        session: SessionKey,
    },
    /// The reply to a command.
    Reply {
        /// Whose.
        session: SessionKey,
        /// It.
        reply: Reply<'a>,
        /// Whether this command had no reply before; false for the answer to a repeat.
        first: bool,
    },
    /// A message from the service that nobody asked for.
    Notice {
        /// To whom.
        session: SessionKey,
        /// It; its session_seq counts the notices of this session.
        notice: Reply<'a>,
    },
    /// The service no longer knows the session: it has expired, or the stream is a new incarnation.
    SessionLost {
        /// Which.
        session: SessionKey,
    },
}

/// A message from the service.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// The command's number in its session.
    pub session_seq: u64,
    /// The command's place in the total order.
    pub sequence: u64,
    /// The command's sequenced time, ns since the epoch.
    pub timestamp_ns: u64,
    /// Schema id << 16 | template id; 0 for an empty acknowledgement.
    pub schema: u32,
    /// How the payload is encoded.
    pub encoding: Encoding,
    /// CRC-32C of the payload's last fragment, as the service computed it.
    pub payload_crc: u32,
    /// The payload, of all fragments.
    pub payload: &'a [u8],
    /// Set if the command was refused; the payload is then not the service's.
    pub refusal: Option<Refusal<'a>>,
}

/// A reply that outlives the poll that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedReply {
    /// The command's place in the total order.
    pub sequence: u64,
    /// The command's sequenced time, ns since the epoch.
    pub timestamp_ns: u64,
    /// Schema id << 16 | template id; 0 for an empty acknowledgement.
    pub schema: u32,
    /// How the payload is encoded.
    pub encoding: Encoding,
    /// The payload.
    pub payload: Vec<u8>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(frame: &Frame<'_>, payload: &'a [u8]) -> Result<Self, StreamError> {
        let refusal = if frame.flags() & REFUSED_FLAG != 0 {
            let malformed = || StreamError::Protocol { what: "a malformed refusal".to_owned() };
            Some(Refusal::from_bytes(payload).ok_or_else(malformed)?)
        } else {
            None
        };
        Ok(Self {
            session_seq: frame.session_seq(),
            sequence: frame.sequence(),
            timestamp_ns: frame.timestamp_ns(),
            schema: frame.schema(),
            encoding: frame.encoding(),
            payload_crc: frame.payload_crc(),
            payload,
            refusal,
        })
    }
}

/// The fragments of one message so far; the service sends them one behind the other.
#[derive(Default)]
pub(super) struct Assembly {
    payload: Vec<u8>,
    next_index: u16,
    complete: bool,
}

impl Assembly {
    /// Adds a fragment; the whole payload with the last one. It cannot be longer than `limit_bytes`, the ring
    /// that a message comes through whole.
    pub(super) fn add(&mut self, frame: &Frame<'_>, limit_bytes: usize) -> Result<Option<&[u8]>, StreamError> {
        let fragment = frame.fragment();
        if self.complete || fragment.index == 0 {
            self.payload.clear();
            self.next_index = 0;
            self.complete = false;
        }
        if fragment.index != self.next_index {
            let what = format!("fragment {} where {} was due", fragment.index, self.next_index);
            return Err(StreamError::Protocol { what });
        }
        if self.payload.len() + frame.payload().len() > limit_bytes {
            let what = format!("a message of more than {limit_bytes} bytes, which its ring does not hold");
            return Err(StreamError::Protocol { what });
        }
        self.payload.extend_from_slice(frame.payload());
        self.next_index += 1;
        self.complete = fragment.is_last();
        Ok(self.complete.then_some(self.payload.as_slice()))
    }
}
