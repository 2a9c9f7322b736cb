//! Messages delivered by a poll, and the effect of each on its session.

use super::session::{CommandSession, ReplyKind};
use crate::ClientError;
use crate::session_key::SessionKey;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Encoding, Frame, Kind};
use rustc_hash::FxHashMap;

#[derive(Debug)]
pub enum Incoming<'a> {
    Opened {
        session: SessionKey,
    },
    Reply {
        session: SessionKey,
        reply: Reply<'a>,
        /// False for the answer to a repeat.
        first: bool,
    },
    Notice {
        session: SessionKey,
        /// Message whose session_seq counts the notices of this session.
        notice: Reply<'a>,
    },
    /// The session has expired, or the stream is a new incarnation. Commands without a reply may or may not have taken
    /// effect. Its token opens a new session, with another key.
    SessionLost {
        session: SessionKey,
    },
}

/// A message from the service.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    pub session_seq: u64,
    /// Place of the command in the total order.
    pub sequence: u64,
    /// Sequenced, ns since the epoch.
    pub timestamp_ns: u64,
    /// Schema id << 16 | template id; 0 if the handler gave no reply.
    pub schema: u32,
    pub encoding: Encoding,
    /// CRC-32C of the last fragment, as computed by the service.
    pub payload_crc: u32,
    /// Payload of all fragments.
    pub payload: &'a [u8],
    /// Replaces the service's payload if the command was refused.
    pub refusal: Option<Refusal<'a>>,
}

/// A reply that outlives its poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedReply {
    /// Place of the command in the total order.
    pub sequence: u64,
    /// Sequenced, ns since the epoch.
    pub timestamp_ns: u64,
    /// Schema id << 16 | template id; 0 if the handler gave no reply.
    pub schema: u32,
    pub encoding: Encoding,
    pub payload: Vec<u8>,
}

impl OwnedReply {
    #[must_use]
    pub const fn is_acknowledgement(&self) -> bool {
        is_acknowledgement(self.schema, self.payload.as_slice())
    }
}

const fn is_acknowledgement(schema: u32, payload: &[u8]) -> bool {
    schema == 0 && payload.is_empty()
}

impl<'a> Reply<'a> {
    /// Whether the command is done and its handler gave no reply (schema 0, which no message has).
    #[must_use]
    pub const fn is_acknowledgement(&self) -> bool {
        self.refusal.is_none() && is_acknowledgement(self.schema, self.payload)
    }

    pub(super) fn new(frame: &Frame<'_>, payload: &'a [u8]) -> Result<Self, ClientError> {
        let refusal = if frame.flags() & REFUSED_FLAG != 0 {
            let malformed = || ClientError::Protocol { what: "a malformed refusal".to_owned() };
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

    pub(super) fn refused(&self) -> Option<ClientError> {
        let refusal = self.refusal.as_ref()?;
        if refusal.code == RefusalCode::ReplyTooLong {
            return Some(ClientError::ReplyTooLong { sequence: self.sequence, length_bytes: refusal.detail });
        }
        let (code, detail, reason) = (refusal.code, refusal.detail, refusal.text.to_owned());
        Some(ClientError::Refused { code, detail, reason })
    }

    pub(super) fn owned(&self) -> Result<OwnedReply, ClientError> {
        if let Some(error) = self.refused() {
            return Err(error);
        }
        Ok(OwnedReply {
            sequence: self.sequence,
            timestamp_ns: self.timestamp_ns,
            schema: self.schema,
            encoding: self.encoding,
            payload: self.payload.to_vec(),
        })
    }
}

pub(super) struct DeferredMessage {
    pub session: SessionKey,
    /// `None` for a notice, which is not counted yet.
    first: Option<bool>,
    is_refused: bool,
    reply: Reply<'static>,
    payload: Vec<u8>,
}

impl DeferredMessage {
    pub fn new(session: SessionKey, reply: &Reply<'_>, first: Option<bool>) -> Self {
        Self {
            session,
            first,
            is_refused: reply.refusal.is_some(),
            reply: Reply { payload: &[], refusal: None, ..*reply },
            payload: reply.payload.to_vec(),
        }
    }

    pub fn notice_number(&self) -> Option<u64> {
        self.first.is_none().then_some(self.reply.session_seq)
    }

    pub fn incoming(&self) -> Incoming<'_> {
        let refusal = if self.is_refused { Refusal::from_bytes(&self.payload) } else { None };
        let reply = Reply { payload: &self.payload, refusal, ..self.reply };
        match self.first {
            Some(first) => Incoming::Reply { session: self.session, reply, first },
            None => Incoming::Notice { session: self.session, notice: reply },
        }
    }
}

/// Whether a frame states only that the stream has a message, as event streams and members without a service do. The
/// answer of a service has a sequence.
#[cold]
pub(super) fn is_without_service(frame: &Frame<'_>) -> bool {
    frame.kind() == Kind::Reply && frame.session_seq() != 0 && frame.flags() & REFUSED_FLAG == 0
}

/// Returns the number from which a session's commands must be resent.
#[inline]
pub(super) fn take_message(
    sessions: &mut [CommandSession],
    by_id: &mut FxHashMap<u64, SessionKey>,
    by_token: &FxHashMap<u128, SessionKey>,
    key: Option<SessionKey>,
    frame: &Frame<'_>,
    payload: &[u8],
    take: &mut dyn FnMut(Incoming<'_>),
) -> Result<Option<(SessionKey, u64)>, ClientError> {
    let protocol = |what: &str| Err(ClientError::Protocol { what: what.to_owned() });
    match frame.kind() {
        Kind::Reply if frame.session_seq() != 0 => {
            let reply = Reply::new(frame, payload)?;
            if let Some(refusal) = &reply.refusal {
                match (refusal.code, key) {
                    (RefusalCode::Gap, Some(key)) => return Ok(Some((key, refusal.detail))),
                    (RefusalCode::SessionUnknown, Some(key)) => {
                        sessions[key.index()].refused(frame.session_seq());
                        take(Incoming::SessionLost { session: key });
                        return Ok(None);
                    }
                    _ => {}
                }
            }
            let Some(key) = key else { return Ok(None) };
            match sessions[key.index()].answered(frame.session_seq()) {
                ReplyKind::Acknowledgement => {}
                answered => take(Incoming::Reply { session: key, reply, first: answered == ReplyKind::First }),
            }
            Ok(None)
        }
        Kind::Reply => {
            let refused = Reply::new(frame, payload)?.refusal;
            if let Some(refusal) = refused {
                if refusal.code == RefusalCode::NotLeader {
                    return Err(ClientError::NotLeader { leader: refusal.text.to_owned() });
                }
                // Frames already sent wait in the ring, and are taken later.
                if refusal.code == RefusalCode::Throttled {
                    return Ok(None);
                }
                if refusal.code == RefusalCode::Limit {
                    let refused = by_token.iter().find(|(token, _)| **token as u64 == refusal.detail);
                    if let Some((_, key)) = refused {
                        sessions[key.index()].refuse_open();
                    }
                    let (code, detail, reason) = (refusal.code, refusal.detail, refusal.text.to_owned());
                    return Err(ClientError::Refused { code, detail, reason });
                }
                return protocol(&format!("a refusal of this connection: {:?} {}", refusal.code, refusal.text));
            }
            let Some(opened) = SessionOpened::from_bytes(payload).filter(is_possible) else {
                return protocol("a malformed answer to a session open");
            };
            if let Some(key) = by_token.get(&opened.token).copied()
                && let session = &mut sessions[key.index()]
                && !session.is_lost()
            {
                let former = session.id().filter(|id| *id != frame.session());
                if session.opened(frame.session(), &opened) {
                    former.inspect(|former| _ = by_id.remove(former));
                    by_id.insert(frame.session(), key);
                    take(Incoming::Opened { session: key });
                    return Ok(Some((key, 0)));
                }
                take(Incoming::SessionLost { session: key });
            }
            Ok(None)
        }
        Kind::Notice => {
            let Some(key) = key else { return Ok(None) };
            if sessions[key.index()].notice(frame.session_seq()) {
                take(Incoming::Notice { session: key, notice: Reply::new(frame, payload)? });
            }
            Ok(None)
        }
        kind => protocol(&format!("a frame of kind {kind:?}")),
    }
}

/// Whether numbers can follow those of the answer.
fn is_possible(opened: &SessionOpened) -> bool {
    const NUMBER_MAX: u64 = u64::MAX / 2;
    (1..=NUMBER_MAX).contains(&opened.next_session_seq) && opened.notices_acknowledged <= NUMBER_MAX
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH};

    #[test]
    fn throttled_client_waits() {
        let take = |code| {
            let refusal = Refusal { code, detail: 0, text: "wait" };
            let mut bytes = [0; HEADER_LENGTH + 32];
            let mut writer = FrameWriter::new(&mut bytes);
            let length = refusal.write_to(&mut writer.payload_mut()[..20]);
            let header = FrameHeader { kind: Kind::Reply, flags: REFUSED_FLAG, ..FrameHeader::default() };
            writer.finish(&header, length);
            let frame = Frame::parse(&bytes).unwrap();
            let (mut by_id, by_token) = (FxHashMap::default(), FxHashMap::default());
            take_message(&mut [], &mut by_id, &by_token, None, &frame, frame.payload(), &mut |told| panic!("{told:?}"))
        };
        assert_eq!(take(RefusalCode::Throttled).unwrap(), None);
        assert!(matches!(take(RefusalCode::Limit), Err(ClientError::Refused { code: RefusalCode::Limit, .. })));
        assert!(matches!(take(RefusalCode::Malformed), Err(ClientError::Protocol { .. })));
        assert!(matches!(take(RefusalCode::NotLeader), Err(ClientError::NotLeader { .. })));
    }
}
