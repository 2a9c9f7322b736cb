//! [`OneShot`]: the slot for a call's outcome, and its only allocation.
//!
//! Begun, cancelled and answered are bits of one word, each set once, so exactly one of "it began" and "it never
//! begins" is true, and worker and caller both know which. All accesses are Relaxed: the word is the whole message.
//! Outcome and waker lie under a lock, in which the answered bit is set too. A fourth bit, set under the lock, says
//! that a handler waits for the cancellation; setting it also reads the cancelled bit.

use gapless_agent::deadlines::{DeadlineKey, DeadlineTarget, Deadlines};
use gapless_agent::foreign;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use super::idle::Sleeper;
use super::sync::{AtomicU8, Mutex, MutexGuard};
use crate::context::CancellableCall;
use crate::outcome::CallError;

const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;
const ANSWERED: u8 = 4;
const WATCHED: u8 = 8;

pub(super) enum CallbackOutcome<Reply> {
    Outcome(Result<Reply, CallError>),
    TimedOut { begun: bool },
}

pub(super) type OutcomeCallback<Reply> = Box<dyn FnOnce(CallbackOutcome<Reply>) + Send>;

enum Waiter<Reply> {
    Nobody,
    Sleeper(Sleeper),
    Callback(OutcomeCallback<Reply>),
}

struct OutcomeSlot<Reply> {
    outcome: Option<Result<Reply, CallError>>,
    waiter: Waiter<Reply>,
    timer: Option<(Arc<Deadlines>, DeadlineKey)>,
    watchers: Vec<(u64, Waker)>,
}

pub(super) struct OneShot<Reply> {
    word: AtomicU8,
    place: Mutex<OutcomeSlot<Reply>>,
}

impl<Reply> fmt::Debug for OneShot<Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        let has = |bit| word & bit != 0;
        f.debug_struct("OneShot")
            .field("begun", &has(BEGUN))
            .field("cancelled", &has(CANCELLED))
            .field("answered", &has(ANSWERED))
            .finish()
    }
}

impl<Reply> OneShot<Reply> {
    pub(super) fn new() -> Self {
        let place = OutcomeSlot { outcome: None, waiter: Waiter::Nobody, timer: None, watchers: Vec::new() };
        Self { word: AtomicU8::new(0), place: Mutex::new(place) }
    }

    fn word(&self) -> u8 {
        // Relaxed: see the module documentation.
        self.word.load(Ordering::Relaxed)
    }

    fn set(&self, bit: u8) -> u8 {
        // Relaxed: see the module documentation.
        self.word.fetch_or(bit, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, OutcomeSlot<Reply>> {
        // The only foreign code is the clone of a waker, before anything has changed.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_answered(&self) -> bool {
        self.word() & ANSWERED != 0
    }

    pub(super) fn has_begun(&self) -> bool {
        self.word() & BEGUN != 0
    }

    pub(super) fn was_cancelled(&self) -> bool {
        self.word() & CANCELLED != 0
    }

    /// Worker. False if the caller has given up; then the handler must not run.
    pub(super) fn begin(&self) -> bool {
        self.set(BEGUN) & CANCELLED == 0
    }

    /// Worker. The outcome of a cancelled call is dropped.
    pub(super) fn answer(&self, outcome: Result<Reply, CallError>) {
        let mut place = self.lock();
        let waiter = std::mem::replace(&mut place.waiter, Waiter::Nobody);
        let timer = place.timer.take();
        let mut left_over = None;
        match waiter {
            Waiter::Callback(callback) => {
                self.set(ANSWERED);
                let watchers = std::mem::take(&mut place.watchers);
                drop(place);
                wake_all(watchers);
                if let Some((deadlines, key)) = timer {
                    deadlines.leave(key);
                }
                callback(CallbackOutcome::Outcome(outcome));
                return;
            }
            Waiter::Nobody | Waiter::Sleeper(_) if self.word() & (CANCELLED | ANSWERED) != 0 => {
                left_over = Some(outcome);
            }
            Waiter::Nobody | Waiter::Sleeper(_) => {
                place.outcome = Some(outcome);
                self.set(ANSWERED);
            }
        }
        let watchers = std::mem::take(&mut place.watchers);
        drop(place);
        drop(left_over);
        wake_all(watchers);
        if let Waiter::Sleeper(sleeper) = waiter {
            sleeper.wake();
        }
    }

    pub(super) fn take(&self) -> Option<Result<Reply, CallError>> {
        self.lock().outcome.take()
    }

    /// Caller: the closure sees the current sleeper and may keep it. Returns the replaced one, or an error if the
    /// outcome is there.
    pub(super) fn sleep(
        &self,
        sleeper: impl FnOnce(Option<&Sleeper>) -> Option<Sleeper>,
    ) -> Result<Option<Sleeper>, ()> {
        let mut place = self.lock();
        if self.is_answered() {
            return Err(());
        }
        let lying = if let Waiter::Sleeper(lying) = &place.waiter { Some(lying) } else { None };
        let Some(sleeper) = sleeper(lying) else { return Ok(None) };
        match std::mem::replace(&mut place.waiter, Waiter::Sleeper(sleeper)) {
            Waiter::Sleeper(replaced) => Ok(Some(replaced)),
            Waiter::Nobody | Waiter::Callback(_) => Ok(None),
        }
    }

    /// Caller: runs the callback now if the outcome is there; true if it is still to come.
    pub(super) fn call_back(&self, callback: OutcomeCallback<Reply>) -> bool {
        let mut place = self.lock();
        let Some(outcome) = place.outcome.take() else {
            let replaced = std::mem::replace(&mut place.waiter, Waiter::Callback(callback));
            drop(place);
            drop(replaced);
            return true;
        };
        drop(place);
        callback(CallbackOutcome::Outcome(outcome));
        false
    }

    pub(super) fn keep_timer(&self, deadlines: &Arc<Deadlines>, key: DeadlineKey) {
        let mut place = self.lock();
        if matches!(place.waiter, Waiter::Callback(_)) {
            place.timer = Some((Arc::clone(deadlines), key));
            return;
        }
        drop(place);
        // The outcome has come meanwhile.
        deadlines.leave(key);
    }

    /// Caller: gives up. Returns whether the handler had begun; `None` if it has answered.
    pub(super) fn cancel(&self) -> Option<bool> {
        let before = self.set(CANCELLED);
        self.wake_watchers(before);
        (before & ANSWERED == 0).then_some(before & BEGUN != 0)
    }

    fn wake_watchers(&self, before: u8) {
        if before & (WATCHED | CANCELLED) == WATCHED {
            wake_all(std::mem::take(&mut self.lock().watchers));
        }
    }

    pub(super) fn has_begun_before_cancelled(&self) -> bool {
        let before = self.set(CANCELLED);
        self.wake_watchers(before);
        before & BEGUN != 0
    }

    pub(super) fn abandon(&self, has_slept: bool) {
        if self.cancel().is_none() || !has_slept {
            return;
        }
        let waiter = std::mem::replace(&mut self.lock().waiter, Waiter::Nobody);
        drop(waiter);
    }
}

fn wake_all(watchers: Vec<(u64, Waker)>) {
    watchers.into_iter().for_each(|(_, task)| foreign::wake(task));
}

impl<Reply: Send> CancellableCall for OneShot<Reply> {
    fn is_over(&self) -> bool {
        self.word() & (CANCELLED | ANSWERED) != 0
    }

    #[cfg(not(loom))]
    fn watch(&self, number: u64, task: Waker) {
        let mut place = self.lock();
        let replaced = match place.watchers.iter_mut().find(|(own, _)| *own == number) {
            Some((_, own)) => Some(std::mem::replace(own, task)),
            None => {
                place.watchers.push((number, task));
                None
            }
        };
        self.set(WATCHED);
        drop(place);
        drop(replaced);
    }

    #[cfg(not(loom))]
    fn unwatch(&self, number: u64) {
        let mut place = self.lock();
        let gone = place.watchers.iter().position(|(own, _)| *own == number).map(|at| place.watchers.swap_remove(at));
        drop(place);
        drop(gone);
    }
}

impl<Reply: Send> DeadlineTarget for OneShot<Reply> {
    /// Tells a callback that it has timed out; only wakes a task, which checks for itself.
    fn expire(&self) {
        let mut place = self.lock();
        let waiter = std::mem::replace(&mut place.waiter, Waiter::Nobody);
        let timer = place.timer.take();
        // Under the lock, so that an answer comes wholly before or after.
        let is_over = matches!(waiter, Waiter::Callback(_));
        let before = if is_over { self.set(CANCELLED) } else { ANSWERED };
        drop(place);
        drop(timer);
        if is_over {
            self.wake_watchers(before);
        }
        let begun = (before & ANSWERED == 0).then_some(before & BEGUN != 0);
        match waiter {
            Waiter::Nobody => {}
            Waiter::Sleeper(sleeper) => sleeper.wake(),
            Waiter::Callback(callback) => callback(CallbackOutcome::TimedOut { begun: begun == Some(true) }),
        }
    }
}
