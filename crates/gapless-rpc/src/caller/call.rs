//! [`Call`]: one call under way.

use super::absent::{Found, LooksForRoute, Reached};
use super::backlog::{BacklogCall, EncodedReply};
use super::observed::Observed;
use super::pursuit::Pursuit;
use super::settling::Settling;
use crate::block_on::block_on_until;
use crate::local::LocalCall;
use crate::message::Message;
use crate::options::Waiting;
use crate::outcome::CallError;
use gapless_agent::foreign;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// One call under way. It is waited for ([`Call::wait`]), polled ([`Call::try_take`]), awaited by any executor, or tells a
/// function ([`Call::on_end`]). Dropping it cancels it: a request that has not begun is taken back, and a handler that has sees its
/// context cancelled.
#[must_use = "a call that is dropped is cancelled"]
pub struct Call<Reply> {
    pub(super) reach: Reaching<Reply>,
    pub(super) waiting: Waiting,
    /// Reads a reply of a version.
    pub(super) decode: fn(&mut Vec<u8>, u32) -> Result<Reply, String>,
    pub(super) observed: Option<Box<Observed>>,
    /// Once it is over.
    pub(super) attempts: u32,
}

/// Where a call is, or why it could not be made.
pub(super) type Made<Reply> = Result<Reaching<Reply>, CallError>;

/// Where a call is.
pub(super) enum Reaching<Reply> {
    Local(LocalCall<Reply>),
    /// Copies have not been heard of yet.
    Settling(Settling<Made<Reply>>),
    /// Nobody serves its route yet.
    Absent(Box<dyn LooksForRoute<Reply>>),
    Remote(Box<Pursuit>, Vec<u8>),
    /// It went into its caller's backlog; with its route.
    Backlog(BacklogCall, Arc<str>),
    /// It could not be made.
    Failed(CallError),
    Over,
}

impl<Reply: Message> Reaching<Reply> {
    fn attempts(&self) -> u32 {
        match self {
            Self::Local(_) => 1,
            Self::Settling(settling) => settling.peek(|made| made.as_ref().map_or(0, Self::attempts)).unwrap_or(0),
            Self::Remote(pursuit, _) => pursuit.attempts(),
            Self::Backlog(call, _) => call.has_begun().into(),
            Self::Absent(_) | Self::Failed(_) | Self::Over => 0,
        }
    }
}

fn reaching<Reply>(found: Found<Reply>) -> Reaching<Reply> {
    match found {
        Ok(Reached::Here(call)) => Reaching::Local(call),
        Ok(Reached::Elsewhere(pursuit)) => Reaching::Remote(pursuit, Vec::new()),
        Ok(Reached::SentHere) => Reaching::Over,
        Err(error) => Reaching::Failed(error),
    }
}

impl<Reply> std::fmt::Debug for Call<Reply> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reach = match &self.reach {
            Reaching::Local(_) => "in this process",
            Reaching::Settling(_) | Reaching::Absent(_) => "waiting for its route",
            Reaching::Remote(..) | Reaching::Backlog(..) => "in another process",
            Reaching::Failed(_) => "failed",
            Reaching::Over => "over",
        };
        f.debug_struct("Call").field("reach", &reach).finish_non_exhaustive()
    }
}

impl<Reply: Message> Call<Reply> {
    /// How often the request was offered to a copy; 1 in this process; of a call that waited in the backlog, whether it was taken
    /// out. The same after its outcome was taken.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        if matches!(self.reach, Reaching::Over) { self.attempts } else { self.reach.attempts() }
    }

    /// Waits on this thread.
    ///
    /// # Errors
    /// How else it ended.
    pub fn wait(mut self) -> Result<Reply, CallError> {
        let waiting = self.waiting;
        if let Reaching::Settling(settling) = &mut self.reach {
            self.reach = settling.wait().unwrap_or_else(Reaching::Failed);
        }
        if let Reaching::Absent(absent) = &mut self.reach {
            self.reach = reaching(absent.wait());
        }
        match &mut self.reach {
            Reaching::Local(_) => {
                let Reaching::Local(local) = std::mem::replace(&mut self.reach, Reaching::Over) else {
                    return Err(over());
                };
                let outcome = local.wait(waiting);
                self.attempts = 1;
                self.end(outcome)
            }
            Reaching::Remote(pursuit, reply) => {
                let ended = pursuit.wait(waiting, reply);
                let outcome = self.decode_reply(ended);
                self.end(outcome)
            }
            Reaching::Backlog(call, _) => {
                let outcome = call.wait(waiting).unwrap_or_else(|| Err(over()));
                let outcome = self.decode_backlog(outcome);
                self.end(outcome)
            }
            Reaching::Settling(_) | Reaching::Absent(_) | Reaching::Failed(_) | Reaching::Over => self.fail(),
        }
    }

    /// The outcome if it is there; for hot loops. `None`, too, after it was taken.
    pub fn try_take(&mut self) -> Option<Result<Reply, CallError>> {
        self.look_for_route(None);
        let outcome = match &mut self.reach {
            Reaching::Settling(_) | Reaching::Absent(_) => return None,
            Reaching::Local(local) => local.try_take()?,
            Reaching::Remote(pursuit, reply) => {
                let ended = pursuit.try_end(reply)?;
                self.decode_reply(ended)
            }
            Reaching::Backlog(call, _) => {
                let outcome = call.try_take()?;
                self.decode_backlog(outcome)
            }
            Reaching::Failed(_) => return Some(self.fail()),
            Reaching::Over => return None,
        };
        Some(self.end(outcome))
    }

    /// Waits on this thread for `timeout` at most, without ending the call: `None` if there is no outcome by then.
    pub fn wait_for(&mut self, timeout: Duration) -> Option<Result<Reply, CallError>> {
        let deadline = Instant::now().checked_add(timeout);
        block_on_until(std::future::poll_fn(|task| self.poll_outcome(task)), deadline)
    }

    /// Whether it has a slot, or needs none.
    pub(super) fn is_offered(&self) -> bool {
        match &self.reach {
            Reaching::Remote(pursuit, _) => pursuit.is_offered(),
            Reaching::Settling(_) | Reaching::Absent(_) => false,
            Reaching::Local(_) | Reaching::Backlog(..) | Reaching::Failed(_) | Reaching::Over => true,
        }
    }

    /// Ends it: nobody waits for it any more. The same as dropping it.
    pub fn cancel(self) {
        drop(self);
    }

    pub(super) fn poll_outcome(&mut self, task: &mut Context<'_>) -> Poll<Result<Reply, CallError>> {
        self.look_for_route(Some(task.waker()));
        let outcome = match &mut self.reach {
            Reaching::Settling(_) | Reaching::Absent(_) => return Poll::Pending,
            Reaching::Local(local) => match Pin::new(local).poll(task) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => return Poll::Pending,
            },
            Reaching::Remote(pursuit, reply) => match pursuit.poll(task, reply) {
                Poll::Ready(ended) => self.decode_reply(ended),
                Poll::Pending => return Poll::Pending,
            },
            Reaching::Backlog(call, _) => match call.poll(task) {
                Poll::Ready(outcome) => self.decode_backlog(outcome.unwrap_or_else(|| Err(over()))),
                Poll::Pending => return Poll::Pending,
            },
            Reaching::Failed(_) | Reaching::Over => return Poll::Ready(self.fail()),
        };
        Poll::Ready(self.end(outcome))
    }

    /// It is where its route is, if somebody serves that meanwhile.
    #[inline]
    fn look_for_route(&mut self, task: Option<&Waker>) {
        if let Reaching::Settling(settling) = &mut self.reach
            && let Some(made) = settling.look(task)
        {
            self.reach = made.unwrap_or_else(Reaching::Failed);
        }
        if let Reaching::Absent(absent) = &mut self.reach
            && let Some(found) = absent.look(task)
        {
            self.reach = reaching(found);
        }
    }

    fn decode_reply(&mut self, ended: Result<(), CallError>) -> Result<Reply, CallError> {
        ended?;
        let Reaching::Remote(pursuit, reply) = &mut self.reach else { return Err(over()) };
        foreign::caught(|| (self.decode)(reply, pursuit.reply_version()))
            .flatten()
            .map_err(|reason| CallError::BadMessage { route: pursuit.route().to_string(), reason })
    }

    fn decode_backlog(&self, outcome: Result<EncodedReply, CallError>) -> Result<Reply, CallError> {
        let Reaching::Backlog(_, route) = &self.reach else { return Err(over()) };
        let (mut reply, version) = outcome?;
        foreign::caught(|| (self.decode)(&mut reply, version))
            .flatten()
            .map_err(|reason| CallError::BadMessage { route: route.to_string(), reason })
    }

    fn fail(&mut self) -> Result<Reply, CallError> {
        match std::mem::replace(&mut self.reach, Reaching::Over) {
            Reaching::Failed(error) => self.end(Err(error)),
            _ => Err(over()),
        }
    }

    fn end(&mut self, outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
        self.attempts = self.attempts();
        self.reach = Reaching::Over;
        if let Some(observed) = self.observed.take() {
            observed.end(outcome.as_ref().err(), self.attempts);
        }
        outcome
    }
}

impl<Reply: Message> Future for Call<Reply> {
    type Output = Result<Reply, CallError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_outcome(task)
    }
}

impl<Reply> Unpin for Call<Reply> {}

fn over() -> CallError {
    CallError::BadMessage { route: String::new(), reason: "the outcome of this call was taken already".to_owned() }
}
