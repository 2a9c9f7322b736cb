//! [`QueryLane`]: queries on their way. They need no session, and take no number of one.

use super::call_state::{CallKind, CallState, Ending, Sending};
use super::outbox::Outbox;
use crate::polled::{PolledClient, QUERIES_IN_FLIGHT_MAX};
use crate::{ClientError, CommandNumber};
use gapless_log::LogError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

#[derive(Default)]
pub(super) struct QueryLane {
    pub ready: VecDeque<Arc<CallState>>,
    in_flight: Vec<(u64, Arc<CallState>)>,
}

impl QueryLane {
    pub fn room(&self) -> usize {
        QUERIES_IN_FLIGHT_MAX.saturating_sub(self.ready.len() + self.in_flight.len())
    }

    /// Returns false if the ring has no room.
    pub fn send(&mut self, client: &mut PolledClient, outbox: &Outbox, wakers: &mut Vec<Waker>) -> bool {
        while let Some(state) = self.ready.pop_front() {
            let sending = state.send_by(&outbox.waiting, |message, bytes| {
                let (after, wait_max) = match state.kind {
                    CallKind::Query { after, wait_max } => (after, wait_max),
                    CallKind::Command | CallKind::Outcome(_) => (0, Duration::ZERO),
                };
                // The service's own answer, that it is behind, says more than a timeout.
                let number = client.send_query_payload(message, bytes, after, wait_max - wait_max / 8)?;
                Ok(CommandNumber { session: 0, session_seq: number })
            });
            match sending {
                Sending::Sent(number) => self.in_flight.push((number.session_seq, state)),
                Sending::Skipped => {}
                Sending::Failed(ClientError::Log(LogError::Full { .. })) => {
                    self.ready.push_front(state);
                    return false;
                }
                Sending::Failed(error) => {
                    wakers.extend(state.end(&outbox.waiting, |_, _| Ending::unsendable(&error)));
                }
            }
        }
        true
    }

    /// Frees the places of queries whose callers have left, once there are many in flight.
    pub fn make_room(&mut self, client: &mut PolledClient) {
        if self.in_flight.len() >= QUERIES_IN_FLIGHT_MAX / 2 {
            self.forget_abandoned(client);
        }
    }

    #[cold]
    pub fn forget_abandoned(&mut self, client: &mut PolledClient) {
        self.in_flight.retain(|(number, state)| {
            let is_kept = !state.is_abandoned();
            if !is_kept {
                client.forget_query(*number);
            }
            is_kept
        });
    }

    /// Takes arrived answers.
    pub fn receive(&mut self, client: &mut PolledClient, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        if self.in_flight.is_empty() || !client.has_new_answers() {
            return;
        }
        self.in_flight.retain(|(number, state)| {
            let Some(answer) = client.take_raw_answer(*number) else { return true };
            wakers.extend(state.end(&outbox.waiting, |_, _| Ending::Answer(answer)));
            false
        });
    }

    /// Ends all queries.
    pub fn end(&mut self, outbox: &Outbox, reason: &str, wakers: &mut Vec<Waker>) {
        let sent = self.in_flight.drain(..).map(|(_, state)| state);
        for state in self.ready.drain(..).chain(sent) {
            wakers.extend(state.end(&outbox.waiting, |_, _| Ending::NotSent { reason: reason.to_owned() }));
        }
    }
}
