//! Answers to frames that are not appended, passed to the service.

use super::Ingress;
use crate::messages::ResponderMessage;
use crate::sequencer::Decision;
use gapless_transport::link::ConnectionId;
use gapless_wire::control::RefusalCode;

impl Ingress {
    /// An error makes the whole ring unusable.
    pub(super) fn answer(
        &mut self,
        decision: Decision,
        session: u64,
        session_seq: u64,
        connection: ConnectionId,
    ) -> Option<&'static str> {
        let refuse = |code, detail| ResponderMessage::Refuse { connection, session, session_seq, code, detail };
        let counter = match decision {
            Decision::Repeat => &self.links.counters.frames_repeated,
            _ => &self.links.counters.frames_refused,
        };
        counter.add(1);
        let message = match decision {
            Decision::Append | Decision::AppendRefused | Decision::Reopen { .. } | Decision::Query => {
                unreachable!("the caller appends, reopens, and takes queries")
            }
            Decision::Repeat => {
                let last_sequence = self.window.last_sequence();
                ResponderMessage::Repeat { session, session_seq, connection, last_sequence }
            }
            Decision::Gap { next_session_seq } => refuse(RefusalCode::Gap, next_session_seq),
            Decision::SessionUnknown => refuse(RefusalCode::SessionUnknown, 0),
            Decision::Limit { token } => refuse(RefusalCode::Limit, token as u64),
            Decision::Malformed(reason) => return Some(reason),
        };
        self.notify_service(message);
        None
    }

    #[inline]
    pub(super) fn recall(&mut self) {
        let now_ns = self.now.monotonic_ns;
        if self.fragments.next_recall_ns().is_some_and(|due_ns| now_ns >= due_ns)
            && self.links.service.has_room(1)
            && let Some((session, connection)) = self.fragments.recalled(now_ns)
            && let Ok(next) = self.sequencer.expected(session, connection)
        {
            let (session_seq, code, detail) = (next, RefusalCode::Gap, next);
            self.notify_service(ResponderMessage::Refuse { connection, session, session_seq, code, detail });
        }
    }

    pub(super) fn notify_service(&mut self, message: ResponderMessage) {
        self.has_notified = true;
        let refused = self.links.service.push(message);
        assert!(refused.is_ok(), "take_from makes sure of room");
    }
}
