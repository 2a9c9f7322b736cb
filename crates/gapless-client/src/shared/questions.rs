//! [`Questions`]: calls that ask for the outcome of a command that was sent earlier.

use super::call_state::{CallState, Ending};
use super::outbox::Outbox;
use crate::polled::{PolledClient, Reply};
use crate::{ClientError, CommandNumber, SessionKey};
use gapless_log::LogError;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

const QUESTIONS_MAX: usize = 1024;
/// Questions are asked again so often: a member on which the service does not run yet gives no answer.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
const FOREIGN: &str = "its session is none of this client's, or the service no longer knows it";

#[derive(Default)]
pub(super) struct Questions {
    all: Vec<Question>,
    /// Some are to be sent.
    are_due: bool,
    /// When all are asked again, while there are any.
    next_round: Option<Instant>,
    /// Last number of each lost session, by its identifier, which another incarnation of the stream may use again.
    former: FxHashMap<u64, u64>,
}

struct Question {
    number: CommandNumber,
    state: Arc<CallState>,
    /// Known once it is sent.
    session: Option<SessionKey>,
    is_due: bool,
}

impl Questions {
    pub fn room(&self) -> usize {
        QUESTIONS_MAX.saturating_sub(self.all.len())
    }

    /// Frees the places of questions whose callers have left, once there are many.
    pub fn make_room(&mut self) {
        if self.all.len() >= QUESTIONS_MAX / 2 {
            self.all.retain(|question| !question.state.is_abandoned());
        }
    }

    /// Whether to call [`Questions::ask`].
    #[inline]
    pub fn are_due(&mut self) -> bool {
        if !self.all.is_empty() {
            self.begin_round();
        }
        self.are_due
    }

    fn begin_round(&mut self) {
        let now = Instant::now();
        if self.next_round.is_some_and(|next_round| now < next_round) {
            return;
        }
        if self.next_round.replace(now + ASK_INTERVAL).is_some() {
            self.all.retain(|question| !question.state.is_abandoned());
            self.all.iter_mut().for_each(|question| question.is_due = true);
            self.are_due |= !self.all.is_empty();
        }
    }

    /// `None` without questions.
    pub fn next_round(&self) -> Option<Instant> {
        self.next_round.filter(|_| !self.all.is_empty())
    }

    pub fn push(&mut self, number: CommandNumber, state: Arc<CallState>) {
        if self.all.is_empty() {
            self.next_round = None;
        }
        self.all.push(Question { number, state, session: None, is_due: true });
        self.are_due = true;
    }

    /// Sends the questions that are due; a command in flight needs none. Returns false if the ring has no room.
    pub fn ask(
        &mut self,
        client: &mut PolledClient,
        is_own: impl Fn(SessionKey) -> bool,
        is_in_flight: impl Fn(SessionKey, u64) -> bool,
        outbox: &Outbox,
        wakers: &mut Vec<Waker>,
    ) -> bool {
        let (mut has_room, mut waits) = (true, false);
        let former = &self.former;
        self.all.retain_mut(|question| {
            if !question.is_due || !has_room {
                return true;
            }
            let CommandNumber { session, session_seq } = question.number;
            let is_former = former.get(&session).is_some_and(|last| session_seq <= *last);
            let Some(key) = client.session_of(session).filter(|key| is_own(*key) && !is_former) else {
                wakers.extend(question.end(FOREIGN, outbox));
                return false;
            };
            let asked = if is_in_flight(key, session_seq) { Ok(()) } else { client.repeat(key, session_seq) };
            match asked {
                Ok(()) => {
                    (question.session, question.is_due) = (Some(key), false);
                    // A second time it changes nothing.
                    question.state.send_by(&outbox.waiting, |_, _| Ok(question.number));
                    !question.state.is_abandoned()
                }
                Err(ClientError::Log(LogError::Full { .. })) => {
                    has_room = false;
                    true
                }
                // Until the session is open again.
                Err(ClientError::NotOpen) => {
                    waits = true;
                    true
                }
                Err(error @ ClientError::NotSent { .. }) => {
                    let reason = error.to_string();
                    wakers.extend(question.state.end(&outbox.waiting, |_, _| Ending::NotSent { reason }));
                    false
                }
                Err(error) => {
                    wakers.extend(question.end(&error.to_string(), outbox));
                    false
                }
            }
        });
        client.flush();
        self.are_due = !has_room || waits;
        has_room
    }

    /// Ends the questions for the command of a reply.
    #[inline]
    pub fn answered(&mut self, session: SessionKey, reply: &Reply<'_>, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        if self.all.is_empty() {
            return;
        }
        self.all.retain(|question| {
            let is_it = question.session == Some(session) && question.number.session_seq == reply.session_seq;
            if is_it {
                let of_reply = |number, bytes| Ending::of_reply(number, bytes, reply);
                wakers.extend(question.state.end(&outbox.waiting, of_reply));
            }
            !is_it
        });
    }

    /// Asks again in a session that another connection has opened.
    pub fn repeat(&mut self, session: SessionKey) {
        for question in self.all.iter_mut().filter(|question| question.session == Some(session)) {
            (question.is_due, self.are_due) = (true, true);
        }
    }

    /// The session is lost, whose last number is `last`.
    pub fn lose(
        &mut self,
        session: SessionKey,
        last: Option<CommandNumber>,
        reason: &str,
        outbox: &Outbox,
        wakers: &mut Vec<Waker>,
    ) {
        if let Some(CommandNumber { session, session_seq }) = last {
            let last = self.former.entry(session).or_default();
            *last = session_seq.max(*last);
        }
        self.all.retain(|question| {
            let is_lost = question.session == Some(session);
            if is_lost {
                wakers.extend(question.end(reason, outbox));
            }
            !is_lost
        });
    }

    pub fn end(&mut self, reason: &str, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        wakers.extend(self.all.drain(..).filter_map(|question| question.end(reason, outbox)));
    }
}

impl Question {
    fn end(&self, reason: &str, outbox: &Outbox) -> Option<Waker> {
        let (number, reason) = (self.number, reason.to_owned());
        self.state.end(&outbox.waiting, |_, _| Ending::Unknown { number, reason })
    }
}
