//! `Completion`: receives the outcome of one command, for a waiting thread, a task, a callback or no one.

use crate::envelope::{AnswerKind, CommandAnswer};
use crate::error::BusError;
use crate::identity::TypeKey;
use gapless_message::headers::Headers;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(crate) type AnswerResult = Result<WriterAnswer, BusError>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriterAnswer {
    /// Kept small, because it is copied often.
    Accepted {
        /// Sequence of the first event; without events, the sequence that it would have.
        sequence: u64,
        version: u64,
        events: u32,
    },
    Answer(Box<CommandAnswer<Vec<u8>>>),
    Failed(String),
}

impl WriterAnswer {
    /// Decodes an answer.
    #[inline]
    pub fn read(bytes: &[u8]) -> AnswerResult {
        Self::read_accepted(bytes).map_or_else(|| Self::read_other(bytes), Ok)
    }

    /// An answer that accepts without a reply; `None` for any other.
    #[inline]
    pub fn read_accepted(bytes: &[u8]) -> Option<Self> {
        let answer = CommandAnswer::read(bytes).ok()?;
        let is_plain = answer.kind == AnswerKind::Accepted && answer.message == TypeKey::NONE;
        let CommandAnswer { position, aggregate_version: version, events, .. } = answer;
        is_plain.then_some(Self::Accepted { sequence: position.sequence, version, events })
    }

    #[cold]
    fn read_other(bytes: &[u8]) -> AnswerResult {
        match CommandAnswer::read(bytes) {
            Ok(answer) => Ok(Self::Answer(Box::new(answer.owned()))),
            Err(error) => Err(BusError::Unreadable(error.to_string())),
        }
    }
}

pub(crate) type OutcomeCallback = Box<dyn FnOnce(AnswerResult) + Send>;

pub(crate) trait CompletionObserver: Send + Sync {
    /// Called with no lock held. Passes the outcome on by [`Completion::complete`], or has the command sent again.
    fn on_outcome(&self, completion: &Arc<Completion>, outcome: AnswerResult);

    fn on_change(&self, bytes: &[u8], headers: Headers);
}

/// One command's outcome. Most are [`WriterAnswer::Accepted`] before anyone waits, and use `progress` and `accepted`
/// alone. A waiter locks `state` and sets `progress` to [`IN_STATE`]; from then on everything uses `state`.
#[derive(Default)]
pub(crate) struct Completion {
    observer: Option<Box<dyn CompletionObserver>>,
    progress: AtomicU8,
    accepted: PlainAnswer,
    state: Mutex<CompletionState>,
    /// Tells the waiter to poll for answers itself; written with `state` locked.
    is_nudged: AtomicBool,
    arrived: Condvar,
}

const WAITING: u8 = 0;
/// A thread is writing `accepted`.
const ARRIVING: u8 = 1;
const ACCEPTED: u8 = 2;
const TAKEN: u8 = 3;
const IN_STATE: u8 = 4;

#[derive(Default)]
struct PlainAnswer {
    sequence: AtomicU64,
    version: AtomicU64,
    events: AtomicU32,
}

#[derive(Default)]
enum CompletionState {
    #[default]
    Waiting,
    Asleep,
    Task(Waker),
    Callback(OutcomeCallback),
    Done(AnswerResult),
    Taken,
}

impl Completion {
    /// A completion whose outcomes go to `observer` first.
    pub fn observed(observer: Box<dyn CompletionObserver>) -> Self {
        Self { observer: Some(observer), ..Self::default() }
    }

    pub fn observer(&self) -> Option<&dyn CompletionObserver> {
        self.observer.as_deref()
    }

    /// Delivers an outcome; call the returned callback with no lock held.
    #[must_use]
    #[inline]
    pub fn deliver(self: &Arc<Self>, outcome: AnswerResult) -> Option<(OutcomeCallback, AnswerResult)> {
        if self.observer.is_some() { Some((self.observer_callback(), outcome)) } else { self.complete(outcome) }
    }

    /// [`Completion::deliver`] for callers without a lock.
    pub fn deliver_now(self: &Arc<Self>, outcome: AnswerResult) {
        if let Some((callback, outcome)) = self.deliver(outcome) {
            callback(outcome);
        }
    }

    #[cold]
    fn observer_callback(self: &Arc<Self>) -> OutcomeCallback {
        let this = Arc::clone(self);
        Box::new(move |outcome| {
            if let Some(observer) = &this.observer {
                observer.on_outcome(&this, outcome);
            }
        })
    }

    /// Delivers to the waiter; call the returned callback with no lock held.
    #[must_use]
    #[inline]
    pub fn complete(&self, outcome: AnswerResult) -> Option<(OutcomeCallback, AnswerResult)> {
        if let Ok(WriterAnswer::Accepted { sequence, version, events }) = outcome
            && self.advance_to(ARRIVING)
        {
            self.accepted.sequence.store(sequence, Ordering::Relaxed);
            self.accepted.version.store(version, Ordering::Relaxed);
            self.accepted.events.store(events, Ordering::Relaxed);
            // Release: pairs with the Acquire loads in `take` and `enter_state`.
            self.progress.store(ACCEPTED, Ordering::Release);
            return None;
        }
        self.complete_in_state(outcome)
    }

    #[inline]
    fn advance_to(&self, progress: u8) -> bool {
        self.progress.compare_exchange(WAITING, progress, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn complete_in_state(&self, outcome: AnswerResult) -> Option<(OutcomeCallback, AnswerResult)> {
        let mut state = self.lock();
        if !self.enter_state() {
            return None;
        }
        match std::mem::replace(&mut *state, CompletionState::Taken) {
            CompletionState::Waiting => *state = CompletionState::Done(outcome),
            CompletionState::Asleep => {
                *state = CompletionState::Done(outcome);
                drop(state);
                self.arrived.notify_all();
            }
            CompletionState::Task(waker) => {
                *state = CompletionState::Done(outcome);
                drop(state);
                waker.wake();
            }
            CompletionState::Callback(callback) => return Some((callback, outcome)),
            other => *state = other,
        }
        None
    }

    /// Moves progress to [`IN_STATE`]. Call with `state` locked. `false`: an outcome arrived before.
    fn enter_state(&self) -> bool {
        loop {
            match self.progress.load(Ordering::Acquire) {
                WAITING => _ = self.advance_to(IN_STATE),
                // Another thread is between three stores, and may have lost its core.
                ARRIVING => std::thread::yield_now(),
                progress => return progress == IN_STATE,
            }
        }
    }

    /// Takes the outcome, once.
    #[inline]
    pub fn take(&self) -> Option<AnswerResult> {
        match self.progress.load(Ordering::Acquire) {
            ACCEPTED => self.take_accepted(),
            IN_STATE => self.take_from_state(),
            _ => None,
        }
    }

    #[inline]
    fn take_accepted(&self) -> Option<AnswerResult> {
        // The values stay: a second taker at the same time gets the same ones.
        self.progress.store(TAKEN, Ordering::Relaxed);
        Some(Ok(WriterAnswer::Accepted {
            sequence: self.accepted.sequence.load(Ordering::Relaxed),
            version: self.accepted.version.load(Ordering::Relaxed),
            events: self.accepted.events.load(Ordering::Relaxed),
        }))
    }

    fn take_from_state(&self) -> Option<AnswerResult> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, CompletionState::Taken) {
            CompletionState::Done(outcome) => Some(outcome),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Polls like a future.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<AnswerResult> {
        let mut state = self.lock();
        if !self.enter_state() {
            drop(state);
            return self.take().map_or(Poll::Pending, Poll::Ready);
        }
        match std::mem::replace(&mut *state, CompletionState::Taken) {
            CompletionState::Done(outcome) => Poll::Ready(outcome),
            CompletionState::Task(waker) if waker.will_wake(context.waker()) => {
                *state = CompletionState::Task(waker);
                Poll::Pending
            }
            _ => {
                *state = CompletionState::Task(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Registers a callback, or returns it if the outcome is there.
    #[must_use]
    pub fn call(&self, callback: OutcomeCallback) -> Option<(OutcomeCallback, AnswerResult)> {
        let mut state = self.lock();
        if !self.enter_state() {
            drop(state);
            return self.take().map(|outcome| (callback, outcome));
        }
        match std::mem::replace(&mut *state, CompletionState::Taken) {
            CompletionState::Done(outcome) => Some((callback, outcome)),
            _ => {
                *state = CompletionState::Callback(callback);
                None
            }
        }
    }

    /// Sleeps until the outcome arrives, a nudge, or the timeout.
    pub fn sleep_for(&self, most: Duration) {
        let mut state = self.lock();
        if self.enter_state()
            && !self.is_nudged.swap(false, Ordering::Relaxed)
            && matches!(*state, CompletionState::Waiting)
        {
            *state = CompletionState::Asleep;
            let (mut state, _) = self.arrived.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, CompletionState::Asleep) {
                *state = CompletionState::Waiting;
            }
            self.is_nudged.store(false, Ordering::Relaxed);
        }
    }

    /// Wakes the waiting thread; `false` if it has its outcome.
    pub fn nudge(&self) -> bool {
        let state = self.lock();
        if !self.enter_state() || !matches!(*state, CompletionState::Waiting | CompletionState::Asleep) {
            return false;
        }
        self.is_nudged.store(true, Ordering::Relaxed);
        drop(state);
        self.arrived.notify_all();
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CompletionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    fn answer() -> AnswerResult {
        Ok(WriterAnswer::Failed("no".to_owned()))
    }

    fn accepted() -> AnswerResult {
        Ok(WriterAnswer::Accepted { sequence: 7, version: 8, events: 9 })
    }

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn outcome_arrives_once() {
        for answer in [answer, accepted] {
            arrives_once(answer);
        }
    }

    fn arrives_once(answer: fn() -> AnswerResult) {
        let completion = Arc::new(Completion::default());
        assert_eq!(completion.take(), None);
        assert!(completion.deliver(answer()).is_none());
        for other in [Err(BusError::Disconnected), accepted()] {
            assert!(completion.deliver(other).is_none());
        }
        assert_eq!((completion.take(), completion.take()), (Some(answer()), None));
        assert!(completion.deliver(accepted()).is_none() && completion.take().is_none());

        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counts));
        let completion = Arc::new(Completion::default());
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert!(completion.deliver(answer()).is_none());
        assert_eq!(counts.0.load(Ordering::SeqCst), 1);
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Ready(answer()));

        for is_there in [false, true] {
            let called = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&called);
            let completion = Arc::new(Completion::default());
            let callback = Box::new(move |_: AnswerResult| _ = counts.fetch_add(1, Ordering::SeqCst));
            let (callback, outcome) = if is_there {
                assert!(completion.deliver(answer()).is_none());
                completion.call(callback).unwrap()
            } else {
                assert!(completion.call(callback).is_none());
                completion.deliver(answer()).unwrap()
            };
            callback(outcome);
            assert_eq!(called.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn first_of_two_outcomes_counts() {
        for round in 0..2_000 {
            let (completion, others) = (Arc::new(Completion::default()), [answer(), accepted()]);
            let threads = others.clone().map(|outcome| {
                let completion = Arc::clone(&completion);
                std::thread::spawn(move || completion.deliver(outcome).is_none())
            });
            let taken = match round % 3 {
                0 => loop {
                    match completion.take() {
                        Some(outcome) => break outcome,
                        None => std::thread::yield_now(),
                    }
                },
                1 => loop {
                    match completion.poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(outcome) => break outcome,
                        Poll::Pending => std::thread::yield_now(),
                    }
                },
                _ => loop {
                    completion.sleep_for(Duration::from_secs(100));
                    if let Some(outcome) = completion.take() {
                        break outcome;
                    }
                },
            };
            assert!(others.contains(&taken));
            assert!(threads.map(|thread| thread.join().unwrap()).iter().all(|is_settled| *is_settled));
            assert_eq!(completion.take(), None);
        }
    }

    #[test]
    fn sleeping_thread_is_woken() {
        for round in 0..2_000 {
            let completion = Arc::new(Completion::default());
            let other = Arc::clone(&completion);
            let outcome = if round % 2 == 0 { answer() } else { accepted() };
            let expected = outcome.clone();
            let thread = std::thread::spawn(move || other.deliver(outcome).is_none());
            let taken = loop {
                match completion.take() {
                    Some(outcome) => break outcome,
                    None => completion.sleep_for(Duration::from_secs(100)),
                }
            };
            assert_eq!(taken, expected);
            assert!(thread.join().unwrap());
        }
        let completion = Arc::new(Completion::default());
        assert!(completion.nudge());
        completion.sleep_for(Duration::from_secs(100));
        completion.sleep_for(Duration::ZERO);
        assert!(completion.deliver(answer()).is_none() && !completion.nudge());
    }
}
