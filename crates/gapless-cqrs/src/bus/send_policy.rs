//! [`SendPolicy`]: what a handle does around each command: interceptors, and sending again as a [`RetryPolicy`] says.

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

/// Which commands are sent again, how often and when.
///
/// What has no decision, as a handler that has panicked or an outcome that was lost, is sent again under the same identifier: it has its effect
/// once, however often it is sent. What was decided, as a refusal, is the same each time under one identifier; so it is sent again as another command,
/// under a new identifier, where the bus has given it the first; where the caller has, it is not.
///
/// A handle whose bus is gone stays so; a command that is sent again looks whether there is one again, and the handle goes on with that.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// A command is sent so often at most, the first time counted.
    pub attempts_max: u32,
    /// So long behind the first failure; each time twice as long.
    pub delay_first: Duration,
    /// But not longer.
    pub delay_max: Duration,
    /// Up to so much of the delay is left out, at random: 0 to 100. With 0 those that have failed together come back together.
    pub jitter_percent: u8,
    /// Whether a command that has ended so is sent again.
    pub retries: fn(&Ending<'_>) -> bool,
}

impl Default for RetryPolicy {
    /// Five times, behind 10 ms, 20 ms and so on up to 1 s, each shortened by half at most; what has no outcome: the bus has lost it, or it is gone.
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
    /// Whether what has ended so at the attempt with this number, from 1, is sent again, and in how long. `random` is any number.
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

/// How often a command was sent, and whether it is again.
pub(crate) struct Attempts {
    policy: RetryPolicy,
    /// So often it was sent.
    sent: u32,
    /// The bus has given the identifier.
    is_identifier_own: bool,
    identifier: Option<u128>,
}

impl Attempts {
    /// Of a command that has this identifier of its caller; one without is to get that of [`Attempts::identifier`].
    pub fn new(policy: RetryPolicy, identifier: Option<u128>) -> Self {
        let is_identifier_own = identifier.is_none();
        Self { policy, sent: 1, is_identifier_own, identifier: identifier.or_else(|| Some(time_ordered_identifier())) }
    }

    /// Under which it is sent.
    pub const fn identifier(&self) -> Option<u128> {
        self.identifier
    }

    /// It has ended so: whether it is sent again, in how long, with the identifier that stands here then.
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

/// See the head of the file.
#[derive(Clone, Default)]
pub(crate) struct SendPolicy {
    interceptors: Vec<Arc<dyn DispatchInterceptor>>,
    retry: Option<RetryPolicy>,
    timer: Arc<Timer>,
}

/// Sends a command's bytes; `false` if there is no bus any more.
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

    /// Asks the interceptors about a command, as they change it; what its sender is told if one refuses.
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

    /// Tells them how it has ended.
    pub fn after(&self, dispatched: &Dispatched, outcome: &Outcome) {
        let ending = ending_of(outcome);
        for interceptor in self.interceptors.iter().rev() {
            // The thread may be any that looks for answers.
            if catch_unwind(AssertUnwindSafe(|| interceptor.after(dispatched, &ending))).is_err() {
                tracing::error!("an interceptor panicked behind the command {}", dispatched.command_name);
            }
        }
    }

    /// Where the outcomes of a command arrive. Its bytes are `bytes`; `send_again` sends them.
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

/// How a command has ended.
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

/// A command that was sent by a policy.
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

/// The outcome is the last one.
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
    fn the_delay_doubles_up_to_its_limit_and_is_shortened_at_random() {
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
    fn what_was_decided_is_another_command_and_never_one_of_the_caller_s() {
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
