//! `SendPolicy`: interceptors of a handle, and retries as a `RetryPolicy` says.

use super::completion::{AnswerResult, Completion, CompletionObserver, WriterAnswer};
use super::timer::RetryTimer;
use crate::draft::Draft;
use crate::envelope::{AnswerKind, CommandAnswer, change_identifier};
use crate::error::BusError;
use crate::identifiers::time_ordered_identifier;
use crate::identity::{Position, TypeKey};
use crate::interceptor::{DispatchInterceptor, DispatchedCommand};
use crate::outcome::CommandOutcome;
use gapless_message::Message;
use gapless_message::headers::Headers;
use gapless_wire::split_mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Policy of retries.
///
/// A command without a decision (its handler panicked, or its outcome was lost) is retried under the same identifier,
/// so it has its effect once. A decision, such as a refusal, stays the same under one identifier: it is retried as
/// another command under a new identifier if the bus chose the first one, and never if the caller did.
///
/// A handle whose bus is gone goes on once a retry finds a bus again.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Most attempts, including the first.
    pub attempts_max: u32,
    /// Delay after the first failure; then doubled each time.
    pub delay_first: Duration,
    /// Longest delay.
    pub delay_max: Duration,
    /// Random part by which the delay is shortened at most, 0 to 100 %; 0 retries commands together that failed
    /// together.
    pub jitter_percent: u8,
    /// Whether this outcome is retried.
    pub retries: fn(&CommandOutcome<'_>) -> bool,
}

impl Default for RetryPolicy {
    /// Five attempts, with delays of 10 ms, 20 ms and so on up to 1 s, each shortened by half at most; only for
    /// commands without an outcome.
    fn default() -> Self {
        Self {
            attempts_max: 5,
            delay_first: Duration::from_millis(10),
            delay_max: Duration::from_secs(1),
            jitter_percent: 50,
            retries: |outcome| {
                matches!(
                    outcome,
                    CommandOutcome::Bus(BusError::Disconnected | BusError::Forgotten | BusError::TimedOut)
                )
            },
        }
    }
}

impl RetryPolicy {
    /// `None` to give up. `attempt` counts from 1; `random` is any number.
    fn delay(&self, outcome: &CommandOutcome<'_>, attempt: u32, random: u64) -> Option<Duration> {
        if attempt >= self.attempts_max || !(self.retries)(outcome) {
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
    attempt: u32,
    is_identifier_own: bool,
    identifier: Option<u128>,
}

impl Attempts {
    /// Creates the attempts for a caller's `identifier`; without one, [`Attempts::identifier`] is a new one.
    pub fn new(policy: RetryPolicy, identifier: Option<u128>) -> Self {
        let is_identifier_own = identifier.is_none();
        Self {
            policy,
            attempt: 1,
            is_identifier_own,
            identifier: identifier.or_else(|| Some(time_ordered_identifier())),
        }
    }

    /// Identifier of the current attempt.
    pub const fn identifier(&self) -> Option<u128> {
        self.identifier
    }

    /// Delay, `None` to give up; changes the identifier after a decision.
    pub fn next_delay(&mut self, outcome: &CommandOutcome<'_>) -> Option<Duration> {
        let identifier = self.identifier.unwrap_or_default() as u64;
        let delay =
            self.policy.delay(outcome, self.attempt, split_mix::finish(identifier ^ u64::from(self.attempt)))?;
        if outcome.is_decided() {
            if !self.is_identifier_own {
                return None;
            }
            self.identifier = Some(time_ordered_identifier());
        }
        self.attempt += 1;
        Some(delay)
    }
}

#[derive(Clone, Default)]
pub(crate) struct SendPolicy {
    interceptors: Vec<Arc<dyn DispatchInterceptor>>,
    retry: Option<RetryPolicy>,
    timer: Arc<RetryTimer>,
}

type Resend = Arc<dyn Fn(Vec<u8>, &Arc<Completion>) -> bool + Send + Sync>;

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

    /// Runs the interceptors, which may change or refuse the command.
    pub fn before<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> (DispatchedCommand, Result<(), AnswerResult>) {
        let (aggregate, id, identifier, expected_version, headers) = draft.parts();
        let mut dispatched = DispatchedCommand {
            aggregate,
            id: id.to_vec(),
            command_name: Command::TYPE_NAME,
            expected_version,
            identifier,
            headers: headers.cloned().unwrap_or_default(),
        };
        let interception = self.interceptors.iter().try_for_each(|interceptor| interceptor.before(&mut dispatched));
        (dispatched, interception.map_err(|reason| Ok(WriterAnswer::Answer(Box::new(interception_answer(reason))))))
    }

    /// Tells interceptors the outcome.
    pub fn after(&self, dispatched: &DispatchedCommand, outcome: &AnswerResult) {
        let outcome = command_outcome(outcome);
        for interceptor in self.interceptors.iter().rev() {
            // A panic must not end the thread, which may be any that polls for answers.
            if catch_unwind(AssertUnwindSafe(|| interceptor.after(dispatched, &outcome))).is_err() {
                tracing::error!("an interceptor panicked behind the command {}", dispatched.command_name);
            }
        }
    }

    /// Completion of an encoded command; `send_again` retries it.
    pub fn completion(
        self: &Arc<Self>,
        dispatched: DispatchedCommand,
        retry: Option<(Attempts, Vec<u8>, Resend)>,
    ) -> Arc<Completion> {
        let retry = retry.map(|(attempts, bytes, send)| CommandRetry { attempts, bytes, send });
        let command = Mutex::new(ObservedCommand { dispatched, retry });
        Arc::new(Completion::observed(Box::new(PolicyObserver { policy: Arc::clone(self), command })))
    }
}

fn interception_answer(reason: String) -> CommandAnswer<Vec<u8>> {
    CommandAnswer {
        kind: AnswerKind::Intercepted,
        message: TypeKey::NONE,
        message_version: 0,
        position: Position::default(),
        aggregate_version: 0,
        events: 0,
        rest: reason.into_bytes(),
    }
}

pub(crate) fn command_outcome(outcome: &AnswerResult) -> CommandOutcome<'_> {
    match outcome {
        Ok(WriterAnswer::Accepted { sequence, version, events }) => {
            let position = Position { sequence: *sequence, ordinal: 0 };
            CommandOutcome::Accepted { position, events: *events, version: *version }
        }
        Ok(WriterAnswer::Answer(answer)) => CommandOutcome::of_answer(answer),
        Ok(WriterAnswer::Failed(reason)) => CommandOutcome::Failed(reason),
        Err(error) => CommandOutcome::Bus(error),
    }
}

struct PolicyObserver {
    policy: Arc<SendPolicy>,
    command: Mutex<ObservedCommand>,
}

struct ObservedCommand {
    dispatched: DispatchedCommand,
    retry: Option<CommandRetry>,
}

struct CommandRetry {
    attempts: Attempts,
    bytes: Vec<u8>,
    send: Resend,
}

impl PolicyObserver {
    fn lock(&self) -> MutexGuard<'_, ObservedCommand> {
        self.command.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompletionObserver for PolicyObserver {
    fn on_outcome(&self, completion: &Arc<Completion>, outcome: AnswerResult) {
        let mut command = self.lock();
        let ObservedCommand { dispatched, retry } = &mut *command;
        let delayed =
            retry.as_mut().and_then(|retry| Some((retry.attempts.next_delay(&command_outcome(&outcome))?, retry)));
        let Some((delay, retry)) = delayed else {
            let dispatched = dispatched.clone();
            drop(command);
            return end(&self.policy, &dispatched, completion, outcome);
        };
        dispatched.identifier = retry.attempts.identifier();
        change_identifier(&mut retry.bytes, retry.attempts.identifier().unwrap_or_default());
        let (bytes, send, completion) = (retry.bytes.clone(), Arc::clone(&retry.send), Arc::clone(completion));
        let (policy, dispatched) = (Arc::clone(&self.policy), dispatched.clone());
        drop(command);
        let work = move || {
            if !send(bytes, &completion) {
                end(&policy, &dispatched, &completion, outcome);
            }
        };
        self.policy.timer.after(delay, Box::new(work));
    }

    fn on_change(&self, bytes: &[u8], headers: Headers) {
        let mut command = self.lock();
        command.dispatched.headers = headers;
        if let Some(retry) = &mut command.retry {
            retry.bytes = bytes.to_vec();
        }
    }
}

fn end(policy: &SendPolicy, dispatched: &DispatchedCommand, completion: &Arc<Completion>, outcome: AnswerResult) {
    policy.after(dispatched, &outcome);
    if let Some((callback, outcome)) = completion.complete(outcome) {
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
        let lost = CommandOutcome::Bus(&BusError::Forgotten);
        let delays = |policy: RetryPolicy, random| {
            [1, 2, 3, 4, 5, 39].map(|attempt| policy.delay(&lost, attempt, random).unwrap().as_millis())
        };
        assert_eq!(delays(policy, u64::MAX), [10, 20, 40, 80, 100, 100]);
        let shortened = RetryPolicy { jitter_percent: 50, ..policy };
        assert_eq!(
            (delays(shortened, 0), delays(shortened, 1000)),
            ([10, 20, 40, 80, 100, 100], [5, 10, 20, 40, 50, 50])
        );
        assert_eq!((policy.delay(&lost, 40, 0), policy.delay(&CommandOutcome::Refused, 1, 0)), (None, None));
    }

    #[test]
    fn decided_retry_gets_new_identifier() {
        let policy = RetryPolicy { retries: |_| true, ..RetryPolicy::default() };
        let mut own = Attempts::new(policy, None);
        let first = own.identifier();
        assert!(own.next_delay(&CommandOutcome::Failed("")).is_some() && own.identifier() == first);
        assert!(own.next_delay(&CommandOutcome::Refused).is_some() && own.identifier() != first);
        let mut callers = Attempts::new(policy, Some(7));
        assert!(callers.next_delay(&CommandOutcome::Refused).is_none());
        assert!(callers.next_delay(&CommandOutcome::Failed("")).is_some() && callers.identifier() == Some(7));
    }
}
