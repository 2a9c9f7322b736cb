//! `LocalCall`: a call on the caller's side: blocking, polled, as a future, or with a callback.

use gapless_agent::deadlines::{DeadlineKey, Deadlines};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::idle::Sleeper;
use super::offer::timed_out;
use super::one_shot::{CallbackOutcome, OneShot};
use super::spin::spin;
use super::sync::{current, park, park_timeout};
use crate::options::Waiting;
use crate::outcome::CallError;
use gapless_agent::foreign;
use gapless_agent::monotonic::monotonic_ns;

pub type CallResult<Reply> = Result<Reply, CallError>;

/// One per handle, so that cores do not share the cache line of its reference count.
#[derive(Debug)]
pub(super) struct CallerContext {
    pub(super) route: Arc<str>,
    pub(super) deadlines: Arc<Deadlines>,
}

/// A call under way. Dropping it cancels it.
#[must_use = "a call that is dropped is cancelled"]
pub struct LocalCall<Reply> {
    one_shot: Arc<OneShot<Reply>>,
    origin: Arc<CallerContext>,
    deadline_ns: u64,
    timeout_ns: u64,
    timer: Option<DeadlineKey>,
    has_slept: bool,
    is_over: bool,
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
        origin: Arc<CallerContext>,
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

    /// Leaves the deadline to the worker once the call has begun, which then reports whether a handler had begun.
    pub const fn timed_by_worker(mut self) -> Self {
        self.is_timed_by_worker = true;
        self
    }

    /// Takes the outcome if it is there; `None` also after it was taken. One load while there is none, and a clock read
    /// if the call has a deadline.
    pub fn try_take(&mut self) -> Option<CallResult<Reply>> {
        if self.is_over {
            return None;
        }
        if self.one_shot.is_answered() {
            return Some(self.take());
        }
        if self.deadline_ns != 0 && monotonic_ns() >= self.deadline_ns { self.time_out() } else { None }
    }

    /// Reports whether [`LocalCall::try_take`] would return an outcome other than a timeout.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.one_shot.is_answered()
    }

    /// Reports whether a handler has begun; it may begin right afterwards.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.one_shot.has_begun()
    }

    /// Blocks this thread until the call ends.
    ///
    /// # Errors
    /// Any error that ended the call.
    ///
    /// # Panics
    /// If the outcome was taken already.
    pub fn wait(mut self, waiting: Waiting) -> CallResult<Reply> {
        self.check();
        loop {
            if let Some(outcome) = self.wait_until(u64::MAX, waiting) {
                return outcome;
            }
        }
    }

    /// Like [`LocalCall::wait`], but returns `None` at `until_ns` of the monotonic clock, without cancelling. `None`
    /// also after the outcome was taken.
    pub fn wait_until(&mut self, until_ns: u64, waiting: Waiting) -> Option<CallResult<Reply>> {
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
            // Drops the replaced sleeper, perhaps a task's waker, without the lock.
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

    /// Passes the outcome to `callback`, once: on the answering thread, on that of the deadlines, or here if it is
    /// there already. Dropping no longer cancels the call.
    ///
    /// # Panics
    /// If the outcome was taken already.
    pub fn on_outcome(mut self, callback: impl FnOnce(CallResult<Reply>) + Send + 'static) {
        self.check();
        self.is_over = true;
        self.leave_deadlines();
        let (origin, timeout_ns) = (Arc::clone(&self.origin), self.timeout_ns);
        let ended = move |end| match end {
            CallbackOutcome::Outcome(outcome) => outcome,
            CallbackOutcome::TimedOut { begun } => Err(timed_out(&origin.route, timeout_ns, begun)),
        };
        let ended = move |end| foreign::run("a function that is told of an end", || callback(ended(end)));
        if self.one_shot.call_back(Box::new(ended)) && self.deadline_ns != 0 {
            // Entered after the callback is registered, so that an expiry finds it.
            let timed = Arc::clone(&self.one_shot);
            let key = self.origin.deadlines.enter(self.deadline_ns, timed);
            self.one_shot.keep_timer(&self.origin.deadlines, key);
        }
    }

    /// Cancels the call: the handler's context reports it, and a request that has not begun never begins. Returns
    /// whether it had begun.
    #[must_use = "an effect may have happened"]
    pub fn cancel(self) -> bool {
        self.one_shot.has_begun_before_cancelled()
    }

    fn check(&self) {
        assert!(!self.is_over, "the outcome of a call of {} was taken already", self.origin.route);
    }

    fn take(&mut self) -> CallResult<Reply> {
        self.is_over = true;
        self.leave_deadlines();
        let Some(outcome) = self.one_shot.take() else {
            unreachable!("the call of {} was answered, and its outcome was taken already", self.origin.route)
        };
        outcome
    }

    /// `None` if that is up to the worker.
    fn time_out(&mut self) -> Option<CallResult<Reply>> {
        if self.is_timed_by_worker && self.one_shot.has_begun() && !self.one_shot.is_answered() {
            return None;
        }
        Some(match self.one_shot.cancel() {
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

impl<Reply> Unpin for LocalCall<Reply> {}

impl<Reply: Send + 'static> Future for LocalCall<Reply> {
    type Output = CallResult<Reply>;

    /// # Panics
    /// If it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallResult<Reply>> {
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
            // Entered after the waker is registered, so that an expiry finds it; a deadline in the past expires at
            // once.
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
