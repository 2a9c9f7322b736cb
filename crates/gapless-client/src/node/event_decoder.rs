//! Meaning of a frame of the stream to a node: the facts for its publisher, and the event.

use super::event::{Message, NodeEvent};
use super::publishing_session::PublishingSession;
use crate::ClientError;
use crate::assembly::Assembly;
use gapless_wire::control::{SessionOpen, TimerFired};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::mark::Mark;
use gapless_wire::{Fragment, Frame, Kind};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamClosure {
    pub is_halted: bool,
    pub is_between_feeds: bool,
}

/// Returns whether this node published the frame or asked for it.
#[inline]
pub(super) fn observe(
    publisher: Option<&mut PublishingSession>,
    closed: &mut StreamClosure,
    frame: &Frame<'_>,
    now_ns: u64,
) -> bool {
    if !is_message(frame.kind()) {
        return observe_note(publisher, closed, frame, now_ns);
    }
    let Some(publisher) = publisher.filter(|each| each.session() == Some(frame.session())) else { return false };
    publisher.frame_returned(frame.session_seq(), now_ns);
    true
}

/// Tested first, because nearly every frame is a message.
#[inline]
const fn is_message(kind: Kind) -> bool {
    matches!(kind, Kind::Event | Kind::Command)
}

#[cold]
fn observe_note(
    publisher: Option<&mut PublishingSession>,
    closed: &mut StreamClosure,
    frame: &Frame<'_>,
    now_ns: u64,
) -> bool {
    match frame.kind() {
        Kind::Mark => {
            match Mark::from_bytes(frame.payload()) {
                Some(Mark::Halted { .. }) => closed.is_halted = true,
                Some(Mark::Resumed) => closed.is_halted = false,
                Some(Mark::FeedEnded { .. }) => closed.is_between_feeds = true,
                Some(Mark::FeedBegan { .. }) => closed.is_between_feeds = false,
                _ => {}
            }
            if let Some(publisher) = publisher {
                publisher.release();
            }
            return false;
        }
        Kind::SessionOpen => {
            let token = SessionOpen::from_bytes(frame.payload()).map(|open| open.token);
            let Some(publisher) = publisher.filter(|each| Some(each.token()) == token) else { return false };
            publisher.session_seen(frame.session());
            return true;
        }
        _ => {}
    }
    let Some(publisher) = publisher.filter(|each| each.session() == Some(frame.session())) else { return false };
    match frame.kind() {
        Kind::Timer => {}
        Kind::SessionClose => publisher.closed(now_ns),
        _ => publisher.frame_returned(frame.session_seq(), now_ns),
    }
    true
}

#[derive(Default)]
pub(super) struct EventDecoder {
    assembly: Assembly,
}

impl EventDecoder {
    #[inline]
    pub fn decode(
        &mut self,
        frame: &Frame<'_>,
        own: bool,
        take: &mut impl FnMut(NodeEvent<'_>),
    ) -> Result<(), ClientError> {
        if !is_message(frame.kind()) {
            note(frame, own, take)
        } else if frame.fragment() == Fragment::WHOLE {
            take(NodeEvent::Message(message(frame, frame.payload(), own)));
            Ok(())
        } else {
            self.fragment(frame, own, take)
        }
    }

    #[cold]
    fn fragment(
        &mut self,
        frame: &Frame<'_>,
        own: bool,
        take: &mut dyn FnMut(NodeEvent<'_>),
    ) -> Result<(), ClientError> {
        if frame.fragment().index > 0 && !self.assembly.is_begun() {
            return Ok(());
        }
        // The sequencer limits the length of messages.
        if let Some(payload) = self.assembly.add(frame, usize::MAX)? {
            take(NodeEvent::Message(message(frame, payload, own)));
        }
        Ok(())
    }
}

#[cold]
fn note(frame: &Frame<'_>, own: bool, take: &mut dyn FnMut(NodeEvent<'_>)) -> Result<(), ClientError> {
    let (sequence, session, timestamp_ns) = (frame.sequence(), frame.session(), frame.timestamp_ns());
    let malformed = |what: &str| Err(ClientError::Protocol { what: format!("frame {sequence}: {what}") });
    match frame.kind() {
        Kind::SessionOpen => take(NodeEvent::Session { sequence, timestamp_ns, session, opened: true, own }),
        Kind::SessionClose => take(NodeEvent::Session { sequence, timestamp_ns, session, opened: false, own }),
        Kind::Timer => {
            let Some(TimerFired { timer, deadline_ns }) = TimerFired::from_bytes(frame.payload()) else {
                return malformed("a malformed timer");
            };
            take(NodeEvent::Timer { sequence, timestamp_ns, owner: session, timer, deadline_ns, own });
        }
        Kind::TimerRequest if frame.flags() & REFUSED_FLAG != 0 => {
            let Some(TimerFired { timer, deadline_ns }) = TimerFired::from_bytes(frame.payload()) else {
                return malformed("a malformed timer request");
            };
            take(NodeEvent::TimerRefused { sequence, timestamp_ns, owner: session, timer, deadline_ns, own });
        }
        Kind::Mark => match Mark::from_bytes(frame.payload()) {
            Some(Mark::FeedBegan { feed_session }) => {
                take(NodeEvent::FeedBegan { sequence, timestamp_ns, feed_session })
            }
            Some(Mark::FeedEnded { feed_session }) => {
                take(NodeEvent::FeedEnded { sequence, timestamp_ns, feed_session })
            }
            Some(Mark::Halted { reason }) => take(NodeEvent::Halted { sequence, timestamp_ns, reason }),
            Some(Mark::Resumed) => take(NodeEvent::Resumed { sequence, timestamp_ns }),
            Some(Mark::ServiceVersion { .. } | Mark::Skipped { .. } | Mark::FaultRules(_)) => {}
            None => return malformed("a malformed mark"),
        },
        _ => {}
    }
    Ok(())
}

#[inline]
fn message<'a>(frame: &Frame<'_>, payload: &'a [u8], own: bool) -> Message<'a> {
    Message {
        sequence: frame.sequence(),
        timestamp_ns: frame.timestamp_ns(),
        session: frame.session(),
        session_seq: frame.session_seq(),
        own,
        kind: frame.kind(),
        schema: frame.schema(),
        encoding: frame.encoding(),
        payload_crc: frame.payload_crc(),
        payload,
    }
}
