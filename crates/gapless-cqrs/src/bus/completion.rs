//! [`Completion`]: where one command's outcome arrives, for whoever waits for it: a thread, a task, a function, or nobody.

use crate::envelope::{Answer, Answered};
use crate::error::BusError;
use crate::identity::TypeKey;
use gapless_message::headers::Headers;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What the writer has said, or why there is nothing.
pub(crate) type Outcome = Result<Arrived, BusError>;

/// What the writer has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Accepted, without a reply, as most are; small, because it goes through many hands.
    Accepted {
        /// Of its first event; where it has none, where that would stand.
        sequence: u64,
        version: u64,
        events: u32,
    },
    /// Any other answer.
    Answer(Box<Answer<Vec<u8>>>),
    /// It has failed, and why.
    Failed(String),
}

impl Arrived {
    /// Of an answer's bytes.
    #[inline]
    pub fn read(bytes: &[u8]) -> Outcome {
        Self::accepted(bytes).map_or_else(|| Self::read_other(bytes), Ok)
    }

    /// Of an answer's bytes, if it is accepted without a reply.
    #[inline]
    pub fn accepted(bytes: &[u8]) -> Option<Self> {
        let answer = Answer::read(bytes).ok()?;
        let is_plain = answer.answered == Answered::Accepted && answer.message == TypeKey::NONE;
        let Answer { position, aggregate_version: version, events, .. } = answer;
        is_plain.then_some(Self::Accepted { sequence: position.sequence, version, events })
    }

    #[cold]
    fn read_other(bytes: &[u8]) -> Outcome {
        match Answer::read(bytes) {
            Ok(answer) => Ok(Self::Answer(Box::new(answer.owned()))),
            Err(error) => Err(BusError::Unreadable(error.to_string())),
        }
    }
}

/// A function that waits for an outcome.
pub(crate) type Callback = Box<dyn FnOnce(Outcome) + Send>;

/// What takes an outcome before the one that waits for it.
pub(crate) trait Observer: Send + Sync {
    /// An outcome has arrived: hands it on by [`Completion::settle`], or has the command sent again. No lock is held.
    fn arrived(&self, completion: &Arc<Completion>, outcome: Outcome);

    /// The command's bytes and headers are these now; it is not sent yet.
    fn changed(&self, bytes: &[u8], headers: Headers);
}

/// See the head of the file.
///
/// Most outcomes are [`Arrived::Accepted`], and come before anybody asks: those go through `progress` and `accepted` alone. Whoever waits locks
/// `state` and says so in `progress`; from then on everything goes through `state`.
#[derive(Default)]
pub(crate) struct Completion {
    observer: Option<Box<dyn Observer>>,
    /// One of the constants below.
    progress: AtomicU8,
    accepted: PlainAnswer,
    state: Mutex<State>,
    /// Whoever waits is to look for answers itself. Set and taken with `state` locked.
    is_nudged: AtomicBool,
    arrived: Condvar,
}

/// Nothing has arrived, and nobody has asked.
const WAITING: u8 = 0;
/// One thread writes `accepted`.
const ARRIVING: u8 = 1;
/// It is there.
const ACCEPTED: u8 = 2;
/// That was taken.
const TAKEN: u8 = 3;
/// `state` says how far it is.
const IN_STATE: u8 = 4;

/// What [`Arrived::Accepted`] says.
#[derive(Default)]
struct PlainAnswer {
    sequence: AtomicU64,
    version: AtomicU64,
    events: AtomicU32,
}

#[derive(Default)]
enum State {
    #[default]
    Waiting,
    /// A thread sleeps until it is there.
    Asleep,
    Woken(Waker),
    Called(Callback),
    Done(Outcome),
    /// It was taken, or nobody wants it.
    Taken,
}

impl Completion {
    /// One whose outcomes go to an observer first.
    pub fn observed(observer: Box<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..Self::default() }
    }

    /// Who takes its outcomes first.
    pub fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    /// An outcome has arrived. What is returned is to be called with it where no lock is held.
    #[must_use]
    #[inline]
    pub fn arrive(self: &Arc<Self>, outcome: Outcome) -> Option<(Callback, Outcome)> {
        if self.observer.is_some() { Some((self.to_observer(), outcome)) } else { self.settle(outcome) }
    }

    /// As [`Completion::arrive`], where no lock is held.
    pub fn arrive_now(self: &Arc<Self>, outcome: Outcome) {
        if let Some((callback, outcome)) = self.arrive(outcome) {
            callback(outcome);
        }
    }

    #[cold]
    fn to_observer(self: &Arc<Self>) -> Callback {
        let this = Arc::clone(self);
        Box::new(move |outcome| {
            if let Some(observer) = &this.observer {
                observer.arrived(&this, outcome);
            }
        })
    }

    /// It is there for whoever waits for it. A function that does is returned, to be called where no lock is held.
    #[must_use]
    #[inline]
    pub fn settle(&self, outcome: Outcome) -> Option<(Callback, Outcome)> {
        if let Ok(Arrived::Accepted { sequence, version, events }) = outcome
            && self.go_on_to(ARRIVING)
        {
            self.accepted.sequence.store(sequence, Ordering::Relaxed);
            self.accepted.version.store(version, Ordering::Relaxed);
            self.accepted.events.store(events, Ordering::Relaxed);
            // Release: pairs with the Acquire of who takes it.
            self.progress.store(ACCEPTED, Ordering::Release);
            return None;
        }
        self.settle_in_state(outcome)
    }

    /// From [`WAITING`] to another progress; `false` if it was another one already.
    #[inline]
    fn go_on_to(&self, progress: u8) -> bool {
        self.progress.compare_exchange(WAITING, progress, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn settle_in_state(&self, outcome: Outcome) -> Option<(Callback, Outcome)> {
        let mut state = self.lock();
        if !self.enter_state() {
            // Only the first one counts.
            return None;
        }
        match std::mem::replace(&mut *state, State::Taken) {
            State::Waiting => *state = State::Done(outcome),
            State::Asleep => {
                *state = State::Done(outcome);
                drop(state);
                self.arrived.notify_all();
            }
            State::Woken(waker) => {
                *state = State::Done(outcome);
                drop(state);
                waker.wake();
            }
            State::Called(callback) => return Some((callback, outcome)),
            other => *state = other,
        }
        None
    }

    /// With `state` locked: has it say how far this is from now on. `false`: it has arrived before.
    fn enter_state(&self) -> bool {
        loop {
            match self.progress.load(Ordering::Acquire) {
                WAITING => _ = self.go_on_to(IN_STATE),
                // Three stores, of a thread that may have lost its core.
                ARRIVING => std::thread::yield_now(),
                progress => return progress == IN_STATE,
            }
        }
    }

    /// What has arrived, once.
    #[inline]
    pub fn take(&self) -> Option<Outcome> {
        match self.progress.load(Ordering::Acquire) {
            ACCEPTED => self.take_accepted(),
            IN_STATE => self.take_from_state(),
            _ => None,
        }
    }

    #[inline]
    fn take_accepted(&self) -> Option<Outcome> {
        // It stays where it is: a second one who looked at the same time gets the same.
        self.progress.store(TAKEN, Ordering::Relaxed);
        Some(Ok(Arrived::Accepted {
            sequence: self.accepted.sequence.load(Ordering::Relaxed),
            version: self.accepted.version.load(Ordering::Relaxed),
            events: self.accepted.events.load(Ordering::Relaxed),
        }))
    }

    fn take_from_state(&self) -> Option<Outcome> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(outcome) => Some(outcome),
            other => {
                *state = other;
                None
            }
        }
    }

    /// As a future does.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.lock();
        if !self.enter_state() {
            drop(state);
            return self.take().map_or(Poll::Pending, Poll::Ready);
        }
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(outcome) => Poll::Ready(outcome),
            State::Woken(waker) if waker.will_wake(context.waker()) => {
                *state = State::Woken(waker);
                Poll::Pending
            }
            _ => {
                *state = State::Woken(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Has a function called when it arrives; returned with the outcome if it is there already.
    #[must_use]
    pub fn call(&self, callback: Callback) -> Option<(Callback, Outcome)> {
        let mut state = self.lock();
        if !self.enter_state() {
            drop(state);
            return self.take().map(|outcome| (callback, outcome));
        }
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(outcome) => Some((callback, outcome)),
            _ => {
                *state = State::Called(callback);
                None
            }
        }
    }

    /// Sleeps until it is there, or it is nudged, or for so long.
    pub fn sleep_for(&self, most: Duration) {
        let mut state = self.lock();
        if self.enter_state() && !self.is_nudged.swap(false, Ordering::Relaxed) && matches!(*state, State::Waiting) {
            *state = State::Asleep;
            // Whatever ends it, the caller looks again.
            let (mut state, _) = self.arrived.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, State::Asleep) {
                *state = State::Waiting;
            }
            self.is_nudged.store(false, Ordering::Relaxed);
        }
    }

    /// Wakes the thread that waits. `false` if it has what it waits for.
    pub fn nudge(&self) -> bool {
        let state = self.lock();
        if !self.enter_state() || !matches!(*state, State::Waiting | State::Asleep) {
            return false;
        }
        self.is_nudged.store(true, Ordering::Relaxed);
        drop(state);
        self.arrived.notify_all();
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    fn answer() -> Outcome {
        Ok(Arrived::Failed("no".to_owned()))
    }

    fn accepted() -> Outcome {
        Ok(Arrived::Accepted { sequence: 7, version: 8, events: 9 })
    }

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn it_arrives_once_whoever_waits() {
        for answer in [answer, accepted] {
            arrives_once(answer);
        }
    }

    fn arrives_once(answer: fn() -> Outcome) {
        let completion = Arc::new(Completion::default());
        assert_eq!(completion.take(), None);
        assert!(completion.arrive(answer()).is_none());
        for other in [Err(BusError::Disconnected), accepted()] {
            assert!(completion.arrive(other).is_none());
        }
        assert_eq!((completion.take(), completion.take()), (Some(answer()), None));
        assert!(completion.arrive(accepted()).is_none() && completion.take().is_none());

        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counts));
        let completion = Arc::new(Completion::default());
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert!(completion.arrive(answer()).is_none());
        assert_eq!(counts.0.load(Ordering::SeqCst), 1);
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Ready(answer()));

        for is_there in [false, true] {
            let called = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&called);
            let completion = Arc::new(Completion::default());
            let callback = Box::new(move |_: Outcome| _ = counts.fetch_add(1, Ordering::SeqCst));
            let (callback, outcome) = if is_there {
                assert!(completion.arrive(answer()).is_none());
                completion.call(callback).unwrap()
            } else {
                assert!(completion.call(callback).is_none());
                completion.arrive(answer()).unwrap()
            };
            callback(outcome);
            assert_eq!(called.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn of_two_that_arrive_at_once_one_counts() {
        for round in 0..2_000 {
            let (completion, others) = (Arc::new(Completion::default()), [answer(), accepted()]);
            let threads = others.clone().map(|outcome| {
                let completion = Arc::clone(&completion);
                std::thread::spawn(move || completion.arrive(outcome).is_none())
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
    fn a_thread_sleeps_until_it_is_there() {
        for round in 0..2_000 {
            let completion = Arc::new(Completion::default());
            let other = Arc::clone(&completion);
            let outcome = if round % 2 == 0 { answer() } else { accepted() };
            let expected = outcome.clone();
            let thread = std::thread::spawn(move || other.arrive(outcome).is_none());
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
        assert!(completion.arrive(answer()).is_none() && !completion.nudge());
    }
}
