//! `Call`: one call under way.

use super::backlog::{BacklogCall, EncodedReply};
use super::call_awaiting_route::{RouteLookup, RouteSearch, RouteTarget};
use super::discovering_call::DiscoveringCall;
use super::observed::ObservedCall;
use super::remote_call::RemoteCall;
use crate::block_on::block_on_until;
use crate::local::LocalCall;
use crate::message::Message;
use crate::options::Waiting;
use crate::outcome::CallError;
use gapless_agent::foreign;
use gapless_agent::process_mark::ProcessMark;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// One call under way: block on it ([`Call::wait`]), poll it ([`Call::try_take`]), await it on any executor, or
/// register a callback ([`Call::on_end`]). Dropping it cancels it: a request that has not begun is withdrawn, and a
/// running handler sees its context cancelled.
#[must_use = "a call that is dropped is cancelled"]
pub struct Call<Reply> {
    pub(super) state: CallState<Reply>,
    pub(super) waiting: Waiting,
    pub(super) decode: fn(&mut Vec<u8>, u32) -> Result<Reply, String>,
    pub(super) observed: Option<Box<ObservedCall>>,
    pub(super) attempts: u32,
    pub(super) made_by: ProcessMark,
}

pub(super) type NewCall<Reply> = Result<CallState<Reply>, CallError>;

pub(super) enum CallState<Reply> {
    Local(LocalCall<Reply>),
    Discovering(DiscoveringCall<NewCall<Reply>>),
    AwaitingRoute(Box<dyn RouteSearch<Reply>>),
    Remote(Box<RemoteCall>, Vec<u8>),
    Backlog(BacklogCall, Arc<str>),
    Failed(CallError),
    Over,
}

impl<Reply: Message> CallState<Reply> {
    fn attempts(&self) -> u32 {
        match self {
            Self::Local(_) => 1,
            Self::Discovering(discovering) => {
                discovering.peek(|made| made.as_ref().map_or(0, Self::attempts)).unwrap_or(0)
            }
            Self::Remote(remote_call, _) => remote_call.attempts(),
            Self::Backlog(call, _) => call.has_begun().into(),
            Self::AwaitingRoute(_) | Self::Failed(_) | Self::Over => 0,
        }
    }
}

fn state_of<Reply>(found: RouteLookup<Reply>) -> CallState<Reply> {
    match found {
        Ok(RouteTarget::Local(call)) => CallState::Local(call),
        Ok(RouteTarget::Remote(remote_call)) => CallState::Remote(remote_call, Vec::new()),
        Ok(RouteTarget::SentLocally) => CallState::Over,
        Err(error) => CallState::Failed(error),
    }
}

impl<Reply> std::fmt::Debug for Call<Reply> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            CallState::Local(_) => "in this process",
            CallState::Discovering(_) | CallState::AwaitingRoute(_) => "waiting for its route",
            CallState::Remote(..) | CallState::Backlog(..) => "in another process",
            CallState::Failed(_) => "failed",
            CallState::Over => "over",
        };
        f.debug_struct("Call").field("state", &state).finish_non_exhaustive()
    }
}

impl<Reply: Message> Call<Reply> {
    /// Number of times the request was offered to an instance: 1 in this process; in the backlog 1 once dequeued, else
    /// 0.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        if self.is_over() || !self.made_by.is_here() { self.attempts } else { self.state.attempts() }
    }

    /// Blocks this thread until the call ends.
    ///
    /// # Errors
    /// Any [`CallError`] that ended the call.
    ///
    /// # Panics
    /// If the outcome was taken already.
    pub fn wait(mut self) -> Result<Reply, CallError> {
        self.leave_to_parent();
        let waiting = self.waiting;
        if let CallState::Discovering(discovering) = &mut self.state {
            self.state = discovering.wait().unwrap_or_else(CallState::Failed);
        }
        if let CallState::AwaitingRoute(awaiting) = &mut self.state {
            self.state = state_of(awaiting.wait());
        }
        match &mut self.state {
            CallState::Local(local) => loop {
                if let Some(outcome) = local.wait_until(u64::MAX, waiting) {
                    break self.end(outcome);
                }
            },
            CallState::Remote(remote_call, reply) => {
                let ended = remote_call.wait(waiting, reply);
                let outcome = self.decode_reply(ended);
                self.end(outcome)
            }
            CallState::Backlog(call, _) => {
                let outcome = call.wait(waiting).unwrap_or_else(|| over());
                let outcome = self.decode_backlog(outcome);
                self.end(outcome)
            }
            CallState::Discovering(_) | CallState::AwaitingRoute(_) | CallState::Failed(_) | CallState::Over => {
                self.fail()
            }
        }
    }

    /// Takes the outcome if the call has ended. `None` also after it was taken.
    pub fn try_take(&mut self) -> Option<Result<Reply, CallError>> {
        self.look_for_route(None);
        let outcome = match &mut self.state {
            CallState::Discovering(_) | CallState::AwaitingRoute(_) => return None,
            CallState::Local(local) => local.try_take()?,
            CallState::Remote(remote_call, reply) => {
                let ended = remote_call.try_end(reply)?;
                self.decode_reply(ended)
            }
            CallState::Backlog(call, _) => {
                let outcome = call.try_take()?;
                self.decode_backlog(outcome)
            }
            CallState::Failed(_) => return Some(self.fail()),
            CallState::Over => return None,
        };
        Some(self.end(outcome))
    }

    /// Blocks this thread for `timeout` at most; the call goes on. `None` if there is no outcome by then, and after it
    /// was taken.
    pub fn wait_for(&mut self, timeout: Duration) -> Option<Result<Reply, CallError>> {
        if self.is_over() {
            return None;
        }
        let deadline = Instant::now().checked_add(timeout);
        block_on_until(std::future::poll_fn(|task| self.poll_outcome(task)), deadline)
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, CallState::Over)
    }

    /// Reports whether the call has a slot, or needs none.
    pub(super) fn is_offered(&self) -> bool {
        match &self.state {
            CallState::Remote(remote_call, _) => remote_call.is_offered(),
            CallState::Discovering(_) | CallState::AwaitingRoute(_) => false,
            CallState::Local(_) | CallState::Backlog(..) | CallState::Failed(_) | CallState::Over => true,
        }
    }

    /// Cancels the call, as dropping it does.
    pub fn cancel(self) {
        drop(self);
    }

    pub(super) fn poll_outcome(&mut self, task: &mut Context<'_>) -> Poll<Result<Reply, CallError>> {
        self.look_for_route(Some(task.waker()));
        let outcome = match &mut self.state {
            CallState::Discovering(_) | CallState::AwaitingRoute(_) => return Poll::Pending,
            CallState::Local(local) => match Pin::new(local).poll(task) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => return Poll::Pending,
            },
            CallState::Remote(remote_call, reply) => match remote_call.poll(task, reply) {
                Poll::Ready(ended) => self.decode_reply(ended),
                Poll::Pending => return Poll::Pending,
            },
            CallState::Backlog(call, _) => match call.poll(task) {
                Poll::Ready(outcome) => self.decode_backlog(outcome.unwrap_or_else(|| over())),
                Poll::Pending => return Poll::Pending,
            },
            CallState::Failed(_) | CallState::Over => return Poll::Ready(self.fail()),
        };
        Poll::Ready(self.end(outcome))
    }

    #[inline]
    fn look_for_route(&mut self, task: Option<&Waker>) {
        self.leave_to_parent();
        if let CallState::Discovering(discovering) = &mut self.state
            && let Some(made) = discovering.poll_call(task)
        {
            self.state = made.unwrap_or_else(CallState::Failed);
        }
        if let CallState::AwaitingRoute(awaiting) = &mut self.state
            && let Some(found) = awaiting.poll_route(task)
        {
            self.state = state_of(found);
        }
    }

    fn decode_reply(&mut self, ended: Result<(), CallError>) -> Result<Reply, CallError> {
        ended?;
        let CallState::Remote(remote_call, reply) = &mut self.state else { over() };
        foreign::catch_panic(|| (self.decode)(reply, remote_call.reply_version()))
            .flatten()
            .map_err(|reason| CallError::bad_reply_here(remote_call.route().to_string(), &reason))
    }

    fn decode_backlog(&self, outcome: Result<EncodedReply, CallError>) -> Result<Reply, CallError> {
        let CallState::Backlog(_, route) = &self.state else { over() };
        let (mut reply, version) = outcome?;
        foreign::catch_panic(|| (self.decode)(&mut reply, version))
            .flatten()
            .map_err(|reason| CallError::bad_reply_here(route.to_string(), &reason))
    }

    fn fail(&mut self) -> Result<Reply, CallError> {
        match std::mem::replace(&mut self.state, CallState::Over) {
            CallState::Failed(error) => self.end(Err(error)),
            _ => over(),
        }
    }

    fn end(&mut self, outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
        self.attempts = self.attempts();
        self.state = CallState::Over;
        if let Some(observed) = self.observed.take() {
            observed.end(outcome.as_ref().err(), self.attempts);
        }
        outcome
    }
}

impl<Reply: Message> Future for Call<Reply> {
    type Output = Result<Reply, CallError>;

    /// # Panics
    /// If it is polled after it was ready or after its outcome was taken.
    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_outcome(task)
    }
}

impl<Reply> Call<Reply> {
    /// Closes the call in a forked child, which must not touch the parent's resources.
    #[inline]
    fn leave_to_parent(&mut self) {
        if !self.made_by.is_here() && !matches!(self.state, CallState::Failed(_) | CallState::Over) {
            let before = std::mem::replace(&mut self.state, CallState::Failed(CallError::Closed));
            std::mem::forget((before, self.observed.take()));
        }
    }
}

impl<Reply> Drop for Call<Reply> {
    fn drop(&mut self) {
        self.leave_to_parent();
    }
}

impl<Reply> Unpin for Call<Reply> {}

#[cold]
pub(super) fn over() -> ! {
    panic!("the outcome of a call was taken already")
}
