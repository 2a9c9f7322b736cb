//! [`LocalCall`]: a call as its caller holds it: blocking, polled, as a future, or with a callback.
//!
//! It is cancelled when dropped. It looks at the clock itself when it is polled or waited for; as a future or with a
//! callback its deadline stands in [`Deadlines`](super::Deadlines).

use gapless_agent::deadlines::{DeadlineKey, Deadlines};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::idle::Sleeper;
use super::offer::timed_out;
use super::one_shot::{Ended, OneShot};
use super::spin::spin;
use super::sync::{current, park, park_timeout};
use crate::options::Waiting;
use crate::outcome::CallError;
use gapless_agent::foreign;
use gapless_agent::monotonic::monotonic_ns;

/// How a call ends.
pub type Outcome<Reply> = Result<Reply, CallError>;

/// What all calls of one handle of a route need. Each handle has one of its own, so that callers on different cores do not
/// share the line of its reference count.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) route: Arc<str>,
    pub(super) deadlines: Arc<Deadlines>,
}

/// A call under way. Dropping it cancels it.
#[must_use = "a call that is dropped is cancelled"]
pub struct LocalCall<Reply> {
    one_shot: Arc<OneShot<Reply>>,
    origin: Arc<Origin>,
    /// Nanoseconds of the monotonic clock, 0 without one.
    deadline_ns: u64,
    timeout_ns: u64,
    timer: Option<DeadlineKey>,
    /// Whether a sleeper of this call may lie in the one-shot.
    has_slept: bool,
    is_over: bool,
    /// Once it has begun, its worker ends it when its time is over.
    is_timed_by_worker: bool,
}

impl<Reply> fmt::Debug for LocalCall<Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCall").field("route", &self.origin.route).field("state", &self.one_shot).finish()
    }
}

impl<Reply: Send + 'static> LocalCall<Reply> {
    pub(super) const fn new(
        one_shot: Arc<OneShot<Reply>>,
        origin: Arc<Origin>,
        deadline_ns: u64,
        timeout_ns: u64,
    ) -> Self {
        Self {
            one_shot,
            origin,
            deadline_ns,
            timeout_ns,
            timer: None,
            has_slept: false,
            is_over: false,
            is_timed_by_worker: false,
        }
    }

    /// From when it has begun, its deadline is its worker's affair: the worker ends it then, and says whether a handler had begun.
    pub const fn timed_by_worker(mut self) -> Self {
        self.is_timed_by_worker = true;
        self
    }

    /// The outcome if it is there, else `None`; `None`, too, after it has been taken. For hot loops: one load as long as there
    /// is none, and a reading of the clock if the call has a deadline.
    pub fn try_take(&mut self) -> Option<Outcome<Reply>> {
        if self.is_over {
            return None;
        }
        if self.one_shot.is_answered() {
            return Some(self.take());
        }
        if self.deadline_ns != 0 && monotonic_ns() >= self.deadline_ns { self.time_out() } else { None }
    }

    /// Whether [`LocalCall::try_take`] would give an outcome other than for time.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.one_shot.is_answered()
    }

    /// Whether a handler has begun. It may begin directly after.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.one_shot.has_begun()
    }

    /// Blocks this thread until the outcome is there.
    ///
    /// # Errors
    /// How else the call ended.
    ///
    /// # Panics
    /// If its outcome was taken already.
    pub fn wait(mut self, waiting: Waiting) -> Outcome<Reply> {
        self.check();
        loop {
            if let Some(outcome) = self.wait_until(u64::MAX, waiting) {
                return outcome;
            }
        }
    }

    /// As [`LocalCall::wait`], but gives up at `until_ns` of the monotonic clock, without cancelling: `None`. `None`, too, after
    /// the outcome has been taken.
    pub fn wait_until(&mut self, until_ns: u64, waiting: Waiting) -> Option<Outcome<Reply>> {
        if self.is_over {
            return None;
        }
        let mut end_ns = if self.deadline_ns == 0 { until_ns } else { until_ns.min(self.deadline_ns) };
        spin(waiting, end_ns, || self.one_shot.is_answered());
        loop {
            if self.one_shot.is_answered() {
                return Some(self.take());
            }
            let now_ns = if end_ns == u64::MAX { 0 } else { monotonic_ns() };
            if now_ns >= end_ns {
                let is_late = self.deadline_ns != 0 && now_ns >= self.deadline_ns;
                if is_late && let Some(outcome) = self.time_out() {
                    return Some(outcome);
                }
                if now_ns >= until_ns {
                    return None;
                }
                end_ns = until_ns;
                continue;
            }
            self.has_slept = true;
            // What lay there, a task's waker maybe, is dropped here, without the lock.
            if self.one_shot.sleep(|_| Some(Sleeper::Thread(current()))).is_err() {
                continue;
            }
            if end_ns == u64::MAX {
                park();
            } else {
                park_timeout(Duration::from_nanos(end_ns - now_ns));
            }
        }
    }

    /// `callback` gets the outcome, once: in the thread that answers, in the one of the deadlines, or here if the outcome is
    /// there already. It should be short. The call is no longer cancelled by being dropped. One allocation more.
    ///
    /// # Panics
    /// If its outcome was taken already.
    pub fn on_outcome(mut self, callback: impl FnOnce(Outcome<Reply>) + Send + 'static) {
        self.check();
        self.is_over = true;
        self.leave_deadlines();
        let (origin, timeout_ns) = (Arc::clone(&self.origin), self.timeout_ns);
        let ended = move |end| match end {
            Ended::Outcome(outcome) => outcome,
            Ended::TimedOut { begun } => Err(timed_out(&origin.route, timeout_ns, begun)),
        };
        let ended = move |end| foreign::run("a function that is told of an end", || callback(ended(end)));
        if self.one_shot.call_back(Box::new(ended)) && self.deadline_ns != 0 {
            // After the callback is in its place, so that an expiry finds it.
            let timed = Arc::clone(&self.one_shot);
            let key = self.origin.deadlines.enter(self.deadline_ns, timed);
            self.one_shot.keep_timer(&self.origin.deadlines, key);
        }
    }

    /// Cancels: the handler's context reads cancelled, and a request that has not begun never begins. Whether it had begun.
    #[must_use = "an effect may have happened"]
    pub fn cancel(self) -> bool {
        self.one_shot.has_begun_before_cancelled()
    }

    fn check(&self) {
        assert!(!self.is_over, "the outcome of a call of {} was taken already", self.origin.route);
    }

    fn take(&mut self) -> Outcome<Reply> {
        self.is_over = true;
        self.leave_deadlines();
        let Some(outcome) = self.one_shot.take() else {
            unreachable!("the call of {} was answered, and its outcome was taken already", self.origin.route)
        };
        outcome
    }

    /// `None` if its worker ends it.
    fn time_out(&mut self) -> Option<Outcome<Reply>> {
        if self.is_timed_by_worker && self.one_shot.has_begun() && !self.one_shot.is_answered() {
            return None;
        }
        Some(match self.one_shot.cancel() {
            // The answer came between the look and now.
            None => self.take(),
            Some(begun) => {
                self.is_over = true;
                self.leave_deadlines();
                Err(timed_out(&self.origin.route, self.timeout_ns, begun))
            }
        })
    }
}

impl<Reply> LocalCall<Reply> {
    fn leave_deadlines(&mut self) {
        if let Some(key) = self.timer.take() {
            self.origin.deadlines.leave(key);
        }
    }
}

// Nothing in it is pinned.
impl<Reply> Unpin for LocalCall<Reply> {}

impl<Reply: Send + 'static> Future for LocalCall<Reply> {
    type Output = Outcome<Reply>;

    /// # Panics
    /// When it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<Reply>> {
        self.check();
        if self.one_shot.is_answered() {
            return Poll::Ready(self.take());
        }
        self.has_slept = true;
        let waker = context.waker();
        let slept = self.one_shot.sleep(|lying| match lying {
            Some(Sleeper::Task(same)) if same.will_wake(waker) => None,
            _ => Some(Sleeper::Task(waker.clone())),
        });
        if slept.is_err() {
            return Poll::Ready(self.take());
        }
        if self.deadline_ns == 0 {
            return Poll::Pending;
        }
        if self.timer.is_none() {
            // After the waker is in its place, so that an expiry finds it; if the deadline is over already, it comes at once.
            let timed = Arc::clone(&self.one_shot);
            self.timer = Some(self.origin.deadlines.enter(self.deadline_ns, timed));
        } else if monotonic_ns() >= self.deadline_ns
            && let Some(outcome) = self.time_out()
        {
            return Poll::Ready(outcome);
        }
        Poll::Pending
    }
}

impl<Reply> Drop for LocalCall<Reply> {
    fn drop(&mut self) {
        self.leave_deadlines();
        if !self.is_over {
            self.one_shot.abandon(self.has_slept);
        }
    }
}
