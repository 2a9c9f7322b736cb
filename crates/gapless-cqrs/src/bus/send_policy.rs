//! [`SendPolicy`]: interceptors of a handle, and retries as a [`RetryPolicy`] says.

use super::completion::{Arrived, Completion, Observer, Outcome};
use super::timer::Timer;
use crate::draft::Draft;
use crate::ending::Ending;
use crate::envelope::{Answer, Answered, change_identifier};
use crate::error::BusError;
use crate::identifiers::time_ordered_identifier;
use crate::identity::{Position, TypeKey};
use crate::interceptor::{DispatchInterceptor, Dispatched};
use gapless_message::Message;
use gapless_message::headers::Headers;
use gapless_wire::split_mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Policy of retries: which commands, how often and when.
///
/// A command without a decision (its handler panicked, or its outcome was lost) is retried under the same identifier:
/// it has its effect once, however often it is sent. A decision, such as a refusal, is the same each time under one
/// identifier. So the retry is another command under a new identifier if the bus chose the first one. If the caller
/// chose it, there is no retry.
///
/// A handle whose bus is gone stays so until a retry finds a bus again; then the handle goes on with it.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Most attempts, the first one included.
    pub attempts_max: u32,
    /// Delay after the first failure; doubles with each further one.
    pub delay_first: Duration,
    /// Upper bound of the delay.
    pub delay_max: Duration,
    /// Largest random part by which the delay is shortened, 0 to 100. With 0, commands that failed together are retried
    /// together.
    pub jitter_percent: u8,
    /// Whether a command with this ending is retried.
    pub retries: fn(&Ending<'_>) -> bool,
}

impl Default for RetryPolicy {
    /// Five attempts, with delays of 10 ms, 20 ms and so on up to 1 s, each shortened by half at most. Retries only
    /// commands without an outcome: the bus has lost it, or is gone.
    fn default() -> Self {
        Self {
            attempts_max: 5,
            delay_first: Duration::from_millis(10),
            delay_max: Duration::from_secs(1),
            jitter_percent: 50,
            retries: |ending| {
                matches!(ending, Ending::Bus(BusError::Disconnected | BusError::Forgotten | BusError::TimedOut))
            },
        }
    }
}

impl RetryPolicy {
    /// Delay before the next attempt; `None` to give up. `attempt` counts from 1; `random` is any number.
    fn delay(&self, ending: &Ending<'_>, attempt: u32, random: u64) -> Option<Duration> {
        if attempt >= self.attempts_max || !(self.retries)(ending) {
            return None;
        }
        let factor = 1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        let delay = self.delay_first.saturating_mul(factor).min(self.delay_max);
        let left_out = u64::from(self.jitter_percent.min(100)) * (random % 1001) / 1000;
        Some(delay.saturating_mul(100 - left_out as u32) / 100)
    }
}

pub(crate) struct Attempts {
    policy: RetryPolicy,
    sent: u32,
    /// The identifier was chosen by the bus.
    is_identifier_own: bool,
    identifier: Option<u128>,
}

impl Attempts {
    /// For a command with the caller's identifier; without one, [`Attempts::identifier`] is a new one.
    pub fn new(policy: RetryPolicy, identifier: Option<u128>) -> Self {
        let is_identifier_own = identifier.is_none();
        Self { policy, sent: 1, is_identifier_own, identifier: identifier.or_else(|| Some(time_ordered_identifier())) }
    }

    /// Identifier of the current attempt.
    pub const fn identifier(&self) -> Option<u128> {
        self.identifier
    }

    /// Delay before the next attempt; `None` to give up. Changes the identifier after a decision.
    pub fn again(&mut self, ending: &Ending<'_>) -> Option<Duration> {
        let identifier = self.identifier.unwrap_or_default() as u64;
        let delay = self.policy.delay(ending, self.sent, split_mix::finish(identifier ^ u64::from(self.sent)))?;
        if ending.is_decided() {
            if !self.is_identifier_own {
                return None;
            }
            self.identifier = Some(time_ordered_identifier());
        }
        self.sent += 1;
        Some(delay)
    }
}

/// Interceptors and retry policy of a handle.
#[derive(Clone, Default)]
pub(crate) struct SendPolicy {
    interceptors: Vec<Arc<dyn DispatchInterceptor>>,
    retry: Option<RetryPolicy>,
    timer: Arc<Timer>,
}

/// Sends a command's bytes; `false` if the bus is gone.
type SendAgain = Arc<dyn Fn(Vec<u8>, &Arc<Completion>) -> bool + Send + Sync>;

impl SendPolicy {
    pub fn add(&mut self, interceptor: Arc<dyn DispatchInterceptor>) {
        self.interceptors.push(interceptor);
    }

    pub const fn set_retry(&mut self, retry: RetryPolicy) {
        self.retry = Some(retry);
    }

    pub const fn retry(&self) -> Option<RetryPolicy> {
        self.retry
    }

    /// Runs the interceptors, which may change the command. An error is the outcome for the sender if one refuses.
    pub fn before<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> (Dispatched, Result<(), Outcome>) {
        let (aggregate, id, identifier, expected_version, headers) = draft.parts();
        let mut dispatched = Dispatched {
            aggregate,
            id: id.to_vec(),
            command_name: Command::TYPE_NAME,
            expected_version,
            identifier,
            headers: headers.cloned().unwrap_or_default(),
        };
        let asked = self.interceptors.iter().try_for_each(|interceptor| interceptor.before(&mut dispatched));
        (dispatched, asked.map_err(|reason| Ok(Arrived::Answer(Box::new(intercepted(reason))))))
    }

    /// Tells the interceptors the outcome.
    pub fn after(&self, dispatched: &Dispatched, outcome: &Outcome) {
        let ending = ending_of(outcome);
        for interceptor in self.interceptors.iter().rev() {
            // A panic must not end the thread, which may be any that polls for answers.
            if catch_unwind(AssertUnwindSafe(|| interceptor.after(dispatched, &ending))).is_err() {
                tracing::error!("an interceptor panicked behind the command {}", dispatched.command_name);
            }
        }
    }

    /// Completion of a command encoded as `bytes`; `send_again` retries it.
    pub fn completion(
        self: &Arc<Self>,
        dispatched: Dispatched,
        again: Option<(Attempts, Vec<u8>, SendAgain)>,
    ) -> Arc<Completion> {
        let again = again.map(|(attempts, bytes, send)| Again { attempts, bytes, send });
        let sending = Mutex::new(Sending { dispatched, again });
        Arc::new(Completion::observed(Box::new(Observed { policy: Arc::clone(self), sending })))
    }
}

fn intercepted(reason: String) -> Answer<Vec<u8>> {
    Answer {
        answered: Answered::Intercepted,
        message: TypeKey::NONE,
        message_version: 0,
        position: Position::default(),
        aggregate_version: 0,
        events: 0,
        rest: reason.into_bytes(),
    }
}

pub(crate) fn ending_of(outcome: &Outcome) -> Ending<'_> {
    match outcome {
        Ok(Arrived::Accepted { sequence, version, events }) => {
            let position = Position { sequence: *sequence, ordinal: 0 };
            Ending::Accepted { position, events: *events, version: *version }
        }
        Ok(Arrived::Answer(answer)) => Ending::of_answer(answer),
        Ok(Arrived::Failed(reason)) => Ending::Failed(reason),
        Err(error) => Ending::Bus(error),
    }
}

struct Observed {
    policy: Arc<SendPolicy>,
    sending: Mutex<Sending>,
}

struct Sending {
    dispatched: Dispatched,
    again: Option<Again>,
}

struct Again {
    attempts: Attempts,
    bytes: Vec<u8>,
    send: SendAgain,
}

impl Observed {
    fn lock(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Observed {
    fn arrived(&self, completion: &Arc<Completion>, outcome: Outcome) {
        let mut sending = self.lock();
        let Sending { dispatched, again } = &mut *sending;
        let delayed = again.as_mut().and_then(|again| Some((again.attempts.again(&ending_of(&outcome))?, again)));
        let Some((delay, again)) = delayed else {
            let dispatched = dispatched.clone();
            drop(sending);
            return end(&self.policy, &dispatched, completion, outcome);
        };
        dispatched.identifier = again.attempts.identifier();
        change_identifier(&mut again.bytes, again.attempts.identifier().unwrap_or_default());
        let (bytes, send, completion) = (again.bytes.clone(), Arc::clone(&again.send), Arc::clone(completion));
        let (policy, dispatched) = (Arc::clone(&self.policy), dispatched.clone());
        drop(sending);
        let work = move || {
            if !send(bytes, &completion) {
                end(&policy, &dispatched, &completion, outcome);
            }
        };
        self.policy.timer.after(delay, Box::new(work));
    }

    fn changed(&self, bytes: &[u8], headers: Headers) {
        let mut sending = self.lock();
        sending.dispatched.headers = headers;
        if let Some(again) = &mut sending.again {
            again.bytes = bytes.to_vec();
        }
    }
}

fn end(policy: &SendPolicy, dispatched: &Dispatched, completion: &Arc<Completion>, outcome: Outcome) {
    policy.after(dispatched, &outcome);
    if let Some((callback, outcome)) = completion.settle(outcome) {
        callback(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_with_jitter() {
        let policy = RetryPolicy {
            attempts_max: 40,
            delay_max: Duration::from_millis(100),
            jitter_percent: 0,
            ..RetryPolicy::default()
        };
        let lost = Ending::Bus(&BusError::Forgotten);
        let delays = |policy: RetryPolicy, random| {
            [1, 2, 3, 4, 5, 39].map(|attempt| policy.delay(&lost, attempt, random).unwrap().as_millis())
        };
        assert_eq!(delays(policy, u64::MAX), [10, 20, 40, 80, 100, 100]);
        let shortened = RetryPolicy { jitter_percent: 50, ..policy };
        assert_eq!(
            (delays(shortened, 0), delays(shortened, 1000)),
            ([10, 20, 40, 80, 100, 100], [5, 10, 20, 40, 50, 50])
        );
        assert_eq!((policy.delay(&lost, 40, 0), policy.delay(&Ending::Refused, 1, 0)), (None, None));
    }

    #[test]
    fn decided_retry_gets_new_identifier() {
        let policy = RetryPolicy { retries: |_| true, ..RetryPolicy::default() };
        let mut own = Attempts::new(policy, None);
        let first = own.identifier();
        assert!(own.again(&Ending::Failed("")).is_some() && own.identifier() == first);
        assert!(own.again(&Ending::Refused).is_some() && own.identifier() != first);
        let mut callers = Attempts::new(policy, Some(7));
        assert!(callers.again(&Ending::Refused).is_none());
        assert!(callers.again(&Ending::Failed("")).is_some() && callers.identifier() == Some(7));
    }
}
