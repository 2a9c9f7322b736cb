//! [`Call`]: one call under way.

use super::backlog::BacklogCall;
use super::interceptor::Interceptor;
use super::pursuit::Pursuit;
use crate::local::LocalCall;
use crate::message::Message;
use crate::options::Waiting;
use crate::outcome::CallError;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// One call under way. It is waited for ([`Call::wait`]), polled ([`Call::try_take`]), awaited by any executor, or tells a
/// function ([`Call::on_end`]). Dropping it cancels it: a request that has not begun is taken back, and a handler that has sees its
/// context cancelled.
#[must_use = "a call that is dropped is cancelled"]
pub struct Call<Reply> {
    pub(super) reach: Reaching<Reply>,
    pub(super) waiting: Waiting,
    pub(super) decode: fn(&mut Vec<u8>, u64) -> Result<Reply, String>,
    pub(super) reply_fingerprint: u64,
    pub(super) observed: Option<Box<Observed>>,
}

/// Where a call is.
pub(super) enum Reaching<Reply> {
    Local(LocalCall<Reply>),
    Remote(Box<Pursuit>, Vec<u8>),
    /// It went into its caller's backlog; with its route.
    Backlog(BacklogCall, Arc<str>),
    /// It could not be made.
    Failed(CallError),
    Over,
}

/// What interceptors are told at the end.
pub(super) struct Observed {
    pub(super) interceptors: Arc<[Arc<dyn Interceptor>]>,
    pub(super) route: Arc<str>,
    pub(super) began: Instant,
}

impl<Reply> std::fmt::Debug for Call<Reply> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reach = match &self.reach {
            Reaching::Local(_) => "in this process",
            Reaching::Remote(..) | Reaching::Backlog(..) => "in another process",
            Reaching::Failed(_) => "failed",
            Reaching::Over => "over",
        };
        f.debug_struct("Call").field("reach", &reach).finish_non_exhaustive()
    }
}

impl<Reply: Message> Call<Reply> {
    /// How often the request was offered to a copy; 1 in this process; of a call that waited in the backlog, whether it was taken
    /// out.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        match &self.reach {
            Reaching::Local(_) => 1,
            Reaching::Remote(pursuit, _) => pursuit.attempts(),
            Reaching::Backlog(call, _) => call.has_begun().into(),
            Reaching::Failed(_) | Reaching::Over => 0,
        }
    }

    /// Waits on this thread.
    ///
    /// # Errors
    /// How else it ended.
    pub fn wait(mut self) -> Result<Reply, CallError> {
        let waiting = self.waiting;
        match &mut self.reach {
            Reaching::Local(_) => {
                let Reaching::Local(local) = std::mem::replace(&mut self.reach, Reaching::Over) else {
                    return Err(over());
                };
                let outcome = local.wait(waiting);
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
            Reaching::Failed(_) | Reaching::Over => self.fail(),
        }
    }

    /// The outcome if it is there; for hot loops. `None`, too, after it was taken.
    pub fn try_take(&mut self) -> Option<Result<Reply, CallError>> {
        let outcome = match &mut self.reach {
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
        let unpark = Arc::new(Unpark(std::thread::current()));
        let waker = Waker::from(unpark);
        let mut task = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(outcome) = self.poll_outcome(&mut task) {
                return Some(outcome);
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return None,
                Some(left) => std::thread::park_timeout(left),
                None => std::thread::park(),
            }
        }
    }

    /// Calls `function` with the outcome, on a thread of the domain or of a worker, or here if it is there already: it must not
    /// sleep. The call is no longer cancelled by anybody.
    pub fn on_end(self, function: impl FnOnce(Result<Reply, CallError>) + Send + 'static) {
        let state = Mutex::new(Some((self, Box::new(function) as Callback<Reply>)));
        Arc::new(Told { state, is_woken: AtomicBool::new(false) }).wake();
    }

    /// Ends it: nobody waits for it any more. The same as dropping it.
    pub fn cancel(self) {
        drop(self);
    }

    fn poll_outcome(&mut self, task: &mut Context<'_>) -> Poll<Result<Reply, CallError>> {
        let outcome = match &mut self.reach {
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

    fn decode_reply(&mut self, ended: Result<(), CallError>) -> Result<Reply, CallError> {
        ended?;
        let Reaching::Remote(pursuit, reply) = &mut self.reach else { return Err(over()) };
        (self.decode)(reply, self.reply_fingerprint)
            .map_err(|reason| CallError::BadMessage { route: pursuit.route().to_string(), reason })
    }

    fn decode_backlog(&self, outcome: Result<Vec<u8>, CallError>) -> Result<Reply, CallError> {
        let Reaching::Backlog(_, route) = &self.reach else { return Err(over()) };
        (self.decode)(&mut outcome?, self.reply_fingerprint)
            .map_err(|reason| CallError::BadMessage { route: route.to_string(), reason })
    }

    fn fail(&mut self) -> Result<Reply, CallError> {
        match std::mem::replace(&mut self.reach, Reaching::Over) {
            Reaching::Failed(error) => self.end(Err(error)),
            _ => Err(over()),
        }
    }

    fn end(&mut self, outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
        self.reach = Reaching::Over;
        if let Some(observed) = self.observed.take() {
            let took = observed.began.elapsed();
            for interceptor in observed.interceptors.iter().rev() {
                interceptor.after(&observed.route, outcome.as_ref().err(), took);
            }
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

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

type Callback<Reply> = Box<dyn FnOnce(Result<Reply, CallError>) + Send>;

/// A call whose outcome a function is told.
struct Told<Reply> {
    state: Mutex<Option<(Call<Reply>, Callback<Reply>)>>,
    /// It was woken and has not been polled since.
    is_woken: AtomicBool,
}

impl<Reply: Message> Wake for Told<Reply> {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut task = Context::from_waker(&waker);
        self.is_woken.store(true, Ordering::SeqCst);
        // Whoever polls it looks at the flag again after letting it go; so one of the two polls it after this.
        while self.is_woken.load(Ordering::SeqCst) {
            let Ok(mut state) = self.state.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            let Some((call, _)) = &mut *state else { return };
            if let Poll::Ready(outcome) = call.poll_outcome(&mut task)
                && let Some((_, function)) = state.take()
            {
                drop(state);
                function(outcome);
                return;
            }
        }
    }
}
