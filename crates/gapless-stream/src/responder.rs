//! [`Responder`]: answers frames that are not simply appended (opened sessions, repeats, gaps), and wakes sleeping
//! publishers. An appended frame comes back in the stream.

use crate::AgentRole;
use crate::egress::{CheckedPayload, Egress};
use crate::messages::{QueryMessage, ResponderMessage};
use gapless_agent::{Agent, AgentError, Now};
use gapless_log::Window;
use gapless_transport::link::ConnectionId;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{FrameHeader, Kind};

/// Agent that answers publishers.
pub struct Responder {
    from_sequencer: Mailbox<ResponderMessage>,
    egress: Egress,
    window: Window,
    opening: Vec<OpenAnswer>,
    repeats: Vec<RepeatAnswer>,
    pending: Option<PendingAnswer>,
    released_sequence: u64,
    next_sweep_ns: u64,
}

/// States what the stream contains, so it waits for the release of everything appended before.
struct RepeatAnswer {
    connection: ConnectionId,
    session: u64,
    session_seq: u64,
    reopened: Option<(u128, u64)>,
    appended_sequence: u64,
}

struct OpenAnswer {
    connection: ConnectionId,
    session: u64,
    token: u128,
}

/// An answer that a later one may replace: of many repeats or gaps of one session the last is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PendingAnswer {
    Repeat { connection: ConnectionId, session: u64, session_seq: u64, last_sequence: u64 },
    Refuse { connection: ConnectionId, session: u64, session_seq: u64, code: RefusalCode, detail: u64 },
}

/// More are dropped: a waiting publisher repeats its request.
const REPEATS_WAITING_MAX: usize = 4096;

/// Longest refusal with a leader, bytes.
pub const NOT_LEADER_LENGTH_MAX: usize = 512;

/// Refusal by a member that does not lead.
pub fn not_leader(leader: &str, payload: &mut [u8; NOT_LEADER_LENGTH_MAX]) -> (FrameHeader, usize) {
    let length = Refusal { code: RefusalCode::NotLeader, detail: 0, text: leader }.write_to(payload);
    (FrameHeader { kind: Kind::Reply, flags: REFUSED_FLAG, ..FrameHeader::default() }, length)
}

/// Longest refusal of a query.
pub const QUERY_REFUSAL_LENGTH_MAX: usize = 1024;

/// Refusal of a query after the frame `(sequence, timestamp_ns)` was handled.
pub fn refused_query(
    query: &QueryMessage,
    (sequence, timestamp_ns): (u64, u64),
    refusal: &Refusal<'_>,
    payload: &mut [u8; QUERY_REFUSAL_LENGTH_MAX],
) -> (FrameHeader, usize) {
    let (kind, flags, session_seq, schema) = (Kind::Answer, REFUSED_FLAG, query.number, query.schema);
    let header = FrameHeader { kind, flags, sequence, timestamp_ns, session_seq, schema, ..FrameHeader::default() };
    (header, refusal.write_to(payload))
}

impl PendingAnswer {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Repeat { connection, session, .. }, Self::Repeat { connection: c, session: s, .. }) => {
                (connection, session) == (c, s)
            }
            (
                Self::Refuse { connection, session, code, detail, .. },
                Self::Refuse { connection: c, session: s, code: k, detail: d, .. },
            ) => (connection, session, code, detail) == (c, s, k, d),
            _ => false,
        }
    }
}

impl Responder {
    /// An agent for the messages of `from_sequencer`.
    #[must_use]
    pub fn new(from_sequencer: Mailbox<ResponderMessage>, egress: Egress, window: Window) -> Self {
        let released_sequence = window.released_sequence();
        Self {
            from_sequencer,
            egress,
            window,
            opening: Vec::new(),
            repeats: Vec::new(),
            pending: None,
            released_sequence,
            next_sweep_ns: 0,
        }
    }

    #[cold]
    fn handle(&mut self, message: ResponderMessage) {
        let next = match message {
            ResponderMessage::Attach { session, token, connection } => {
                self.opening.push(OpenAnswer { connection, session, token });
                return;
            }
            ResponderMessage::Reopen { session, token, next_session_seq, connection, last_sequence, .. } => {
                self.send_pending();
                let appended_sequence = last_sequence;
                if appended_sequence > self.released_sequence {
                    let reopened = Some((token, next_session_seq));
                    self.repeats.push(RepeatAnswer {
                        connection,
                        session,
                        session_seq: 0,
                        reopened,
                        appended_sequence,
                    });
                } else {
                    self.send_opened(connection, session, token, next_session_seq);
                }
                return;
            }
            ResponderMessage::Repeat { session, session_seq, connection, last_sequence } => {
                PendingAnswer::Repeat { connection, session, session_seq, last_sequence }
            }
            ResponderMessage::Refuse { connection, session, session_seq, code, detail } => {
                PendingAnswer::Refuse { connection, session, session_seq, code, detail }
            }
            ResponderMessage::NotLeader { connection, leader } => {
                self.send_pending();
                let mut payload = [0; NOT_LEADER_LENGTH_MAX];
                let (header, length) = not_leader(&leader, &mut payload);
                self.send(connection, &header, &payload[..length]);
                return;
            }
            ResponderMessage::Deposed => {
                self.opening.clear();
                self.repeats.clear();
                // The next leader assigns the awaited sequence to another frame.
                self.pending.take_if(|pending| matches!(pending, PendingAnswer::Repeat { .. }));
                return;
            }
            // A stream without a service has no timers of its own.
            ResponderMessage::Leads { .. } => return,
            ResponderMessage::Query(query) => {
                self.send_pending();
                let text = "no service runs here that would answer a query; ask another member";
                let mut payload = [0; QUERY_REFUSAL_LENGTH_MAX];
                let refusal = Refusal { code: RefusalCode::Unhandled, detail: 0, text };
                let (header, length) = refused_query(&query, (0, 0), &refusal, &mut payload);
                self.send(query.connection, &header, &payload[..length]);
                return;
            }
        };
        if self.pending.is_some_and(|pending| !pending.is_like(&next)) {
            self.send_pending();
        }
        self.pending = Some(next);
    }

    fn send_pending(&mut self) {
        match self.pending.take() {
            None => {}
            Some(PendingAnswer::Repeat { connection, session, session_seq, last_sequence }) => {
                if last_sequence > self.released_sequence {
                    // The answer states that the stream has the frame, which must first be as durable as the stream
                    // promises.
                    let (appended_sequence, reopened) = (last_sequence, None);
                    self.repeats.push(RepeatAnswer { connection, session, session_seq, reopened, appended_sequence });
                    return;
                }
                let header = FrameHeader { kind: Kind::Reply, session, session_seq, ..FrameHeader::default() };
                self.send(connection, &header, &[]);
            }
            Some(PendingAnswer::Refuse { connection, session, session_seq, code, detail }) => {
                let text = match code {
                    RefusalCode::Gap => "earlier messages of the session are missing",
                    RefusalCode::SessionUnknown => "the stream has no such session; open it again",
                    RefusalCode::Throttled => "too many messages at once; they wait",
                    RefusalCode::Limit => "the stream has as many sessions as it may have",
                    _ => "the frame is malformed",
                };
                let mut payload = [0; 128];
                let length = Refusal { code, detail, text }.write_to(&mut payload);
                let (kind, flags) = (Kind::Reply, REFUSED_FLAG);
                let header = FrameHeader { kind, flags, session, session_seq, ..FrameHeader::default() };
                self.send(connection, &header, &payload[..length]);
            }
        }
    }

    fn send_opened(&mut self, connection: ConnectionId, session: u64, token: u128, next_session_seq: u64) {
        let opened = SessionOpened { token, next_session_seq, notices_acknowledged: 0 };
        let header = FrameHeader { kind: Kind::Reply, sequence: session, session, ..FrameHeader::default() };
        self.send(connection, &header, &opened.to_bytes());
    }

    /// Drops an answer that does not fit: a waiting publisher asks again.
    fn send(&mut self, connection: ConnectionId, header: &FrameHeader, payload: &[u8]) {
        let _ = self.egress.deliver(connection, header, CheckedPayload::new(payload));
    }

    #[cold]
    fn answer_repeats(&mut self) {
        let repeats = std::mem::take(&mut self.repeats);
        let is_released = |each: &RepeatAnswer| each.appended_sequence <= self.released_sequence;
        let (released, mut waiting): (Vec<_>, Vec<_>) = repeats.into_iter().partition(is_released);
        waiting.truncate(REPEATS_WAITING_MAX);
        self.repeats = waiting;
        for RepeatAnswer { connection, session, session_seq, reopened, .. } in released {
            if let Some((token, next_session_seq)) = reopened {
                self.send_opened(connection, session, token, next_session_seq);
                continue;
            }
            let header = FrameHeader { kind: Kind::Reply, session, session_seq, ..FrameHeader::default() };
            self.send(connection, &header, &[]);
        }
    }

    #[cold]
    fn answer_opened(&mut self) {
        let opening = std::mem::take(&mut self.opening);
        let (released, waiting): (Vec<_>, Vec<_>) =
            opening.into_iter().partition(|each| each.session <= self.released_sequence);
        self.opening = waiting;
        for OpenAnswer { connection, session, token } in released {
            self.send_opened(connection, session, token, 1);
        }
    }
}

impl Agent for Responder {
    fn name(&self) -> &str {
        AgentRole::Responder.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.egress.refresh();
        let released_sequence = self.window.released_sequence();
        let is_news = released_sequence != self.released_sequence;
        self.released_sequence = released_sequence;
        let mut work = 0;
        while let Some(message) = self.from_sequencer.pop() {
            self.handle(message);
            work += 1;
        }
        self.send_pending();
        if !self.opening.is_empty() {
            self.answer_opened();
        }
        if !self.repeats.is_empty() {
            self.answer_repeats();
        }
        self.egress.flush();
        if is_news {
            self.egress.wake_sleepers();
        }
        if now.monotonic_ns >= self.next_sweep_ns {
            self.next_sweep_ns = now.monotonic_ns + 1_000_000_000;
            self.egress.drop_closed();
        }
        Ok(work)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::acceptor::{Acceptor, AcceptorLinks, StreamDescription};
    use gapless_agent::Waker;
    use gapless_log::{StreamIdentity, WindowOptions};
    use gapless_transport::link::RingSizes;
    use gapless_transport::tier::Tier;

    #[test]
    fn no_repeat_for_deposed_leaders_frame() {
        let identity = StreamIdentity { stream_id: 5, incarnation: 1 };
        let (writer, mut releaser) = WindowOptions { identity, ..WindowOptions::default() }.create(1).unwrap();
        let (delivery, answers) = (Mailbox::new(64), Mailbox::new(64));
        let acceptor_links = AcceptorLinks {
            ingress: Mailbox::new(64),
            egress: delivery.clone(),
            ingress_waker: Waker::new().unwrap(),
            egress_waker: Waker::new().unwrap(),
        };
        let description = StreamDescription {
            identity,
            frame_length_max: 1024,
            message_length_max: 4096,
            tier: Tier::Quorum,
            mtu: None,
        };
        let acceptor = Acceptor::start(None, description, acceptor_links, None, None, None).unwrap();
        let mut publisher = acceptor.connect(RingSizes::default()).unwrap();
        let mut responder = Responder::new(answers.clone(), Egress::new(delivery, 1024), writer.window());
        let mut poll = |told: &[ResponderMessage]| {
            told.iter().for_each(|each| answers.push(each.clone()).unwrap());
            responder.poll(Now { monotonic_ns: 1, epoch_ns: 1 }).unwrap();
            publisher.reader.next_length().unwrap().is_some()
        };
        let repeat =
            ResponderMessage::Repeat { session: 1, session_seq: 1, connection: ConnectionId(1), last_sequence: 5 };
        assert!(!poll(&[repeat.clone(), ResponderMessage::Deposed]));
        releaser.release(0, 5);
        assert!(!poll(&[]), "sequence 5 belongs to the next leader");
        assert!(poll(&[repeat]), "the frame is released by now");
    }
}
