//! [`Completion`]: where one command's outcome arrives, for whoever waits for it: a thread, a task, a function, or nobody.

use crate::envelope::Answer;
use crate::error::BusError;
use gapless_message::headers::Headers;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What the writer has said, or why there is nothing.
pub(crate) type Outcome = Result<Arrived, BusError>;

/// What the writer has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Answer(Answer<Vec<u8>>),
    /// It has failed, and why.
    Failed(String),
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
#[derive(Default)]
pub(crate) struct Completion {
    observer: Option<Box<dyn Observer>>,
    state: Mutex<State>,
    /// Whoever waits is to look for answers itself. Set and taken with `state` locked.
    is_nudged: AtomicBool,
    arrived: Condvar,
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
    pub fn settle(&self, outcome: Outcome) -> Option<(Callback, Outcome)> {
        let mut state = self.lock();
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
            // Only the first one counts.
            other => *state = other,
        }
        None
    }

    /// What has arrived, once.
    pub fn take(&self) -> Option<Outcome> {
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
        if !self.is_nudged.swap(false, Ordering::Relaxed) && matches!(*state, State::Waiting) {
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
        if !matches!(*state, State::Waiting | State::Asleep) {
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

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn it_arrives_once_whoever_waits() {
        let completion = Arc::new(Completion::default());
        assert_eq!(completion.take(), None);
        assert!(completion.arrive(answer()).is_none());
        assert!(completion.arrive(Err(BusError::Disconnected)).is_none());
        assert_eq!((completion.take(), completion.take()), (Some(answer()), None));

        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counts));
        let completion = Arc::new(Completion::default());
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert!(completion.arrive(answer()).is_none());
        assert_eq!(counts.0.load(Ordering::SeqCst), 1);
        assert_eq!(completion.poll(&mut Context::from_waker(&waker)), Poll::Ready(answer()));

        let called = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&called);
        let completion = Arc::new(Completion::default());
        let callback = Box::new(move |_: Outcome| _ = counts.fetch_add(1, Ordering::SeqCst));
        assert!(completion.call(callback).is_none());
        let (callback, outcome) = completion.arrive(answer()).unwrap();
        callback(outcome);
        assert_eq!(called.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_thread_sleeps_until_it_is_there() {
        let completion = Arc::new(Completion::default());
        let other = Arc::clone(&completion);
        let thread = std::thread::spawn(move || other.arrive(answer()).is_none());
        while completion.take().is_none() {
            completion.sleep_for(Duration::from_secs(100));
        }
        assert!(thread.join().unwrap());
        let completion = Arc::new(Completion::default());
        assert!(completion.nudge());
        completion.sleep_for(Duration::from_secs(100));
        completion.sleep_for(Duration::ZERO);
        assert!(completion.arrive(answer()).is_none() && !completion.nudge());
    }
}
