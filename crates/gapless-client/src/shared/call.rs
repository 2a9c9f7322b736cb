//! [`Call`]: the future of one command.

use super::answer::{encode, result_of};
use super::call_error::CallError;
use super::call_state::{CallState, Ending};
use super::{Client, channel::Channel};
use crate::polled::MessageType;
use gapless_agent::deadlines::{DeadlineKey, DeadlineTarget, Deadlines};
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_message::Request;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Future of one command: its reply, or what became of it. Not bound to a runtime.
///
/// Dropped before the command was sent, it takes the command back: no effect, and no gap in the numbers of its session.
/// Dropped after that, the command takes its effect, and the reply is discarded.
///
/// # Panics
/// If polled after it has returned.
#[must_use = "a call is sent at its first poll"]
pub struct Call<R: Request> {
    client: Client,
    stage: Stage,
    within: Duration,
    request: PhantomData<fn(R) -> R>,
}

enum Stage {
    Encoded(Vec<u8>),
    Refused(Refused),
    Queued(QueuedCall),
    Over,
}

/// Ended before it was queued.
enum Refused {
    NotEncoded(String),
    Busy { waiting: usize },
}

struct QueuedCall {
    state: Arc<CallState>,
    begun: Instant,
    /// Entry among the pending calls, from the first `Pending` on.
    pending: Option<PendingCall>,
}

struct PendingCall {
    deadlines: Arc<Deadlines>,
    key: Option<DeadlineKey>,
}

impl<R: Request> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &R::TYPE_NAME).finish_non_exhaustive()
    }
}

impl<R: Request> Call<R> {
    pub(super) fn new(client: &Client, request: &R) -> Self {
        let stage = match encode(request) {
            Ok(payload) => Stage::Encoded(payload),
            Err(reason) => Stage::Refused(Refused::NotEncoded(reason)),
        };
        Self { client: client.clone(), stage, within: client.channel().options.within, request: PhantomData }
    }

    /// Replaces the limit of the client's options for this call. It counts from the sending or queueing on.
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = limit;
        // The entry was made for the former limit.
        if let Stage::Queued(call) = &mut self.stage {
            call.leave_pending(self.client.channel());
        }
        self
    }

    /// Queues the command, and sends it if there is room.
    pub(super) fn start(&mut self) {
        self.queue();
        self.client.channel().turn();
    }

    fn queue(&mut self) {
        if let Stage::Encoded(payload) = &mut self.stage {
            let payload = std::mem::take(payload);
            let state = Arc::new(CallState::new(self.client.next_lane(), MessageType::typed::<R>(), payload));
            self.stage = match self.client.channel().queue(&state) {
                Ok(()) => Stage::Queued(QueuedCall { state, begun: Instant::now(), pending: None }),
                Err(full) => Stage::Refused(Refused::Busy { waiting: full.waiting }),
            };
        }
    }

    /// Blocks until the end of the call.
    pub(super) fn wait(mut self) -> Result<R::Reply, CallError<R::Refusal>> {
        self.queue();
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let mut call = match stage {
            Stage::Queued(call) => call,
            Stage::Refused(refused) => return Err(refused.error()),
            Stage::Encoded(_) | Stage::Over => unreachable!("it was queued"),
        };
        let channel = self.client.channel();
        call.leave_pending(channel);
        channel.turn();
        let ending = call.spin(channel, self.within).or_else(|| {
            // Centuries are no limit.
            let until = call.begun.checked_add(self.within).unwrap_or_else(|| call.begun + FOREVER);
            channel.wait_for_reply(&call.state, until, self.within)
        });
        match ending {
            Some(ending) => result_of::<R>(ending),
            None => unreachable!("only its caller takes its ending"),
        }
    }
}

const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Refused {
    fn error<Refusal>(self) -> CallError<Refusal> {
        match self {
            Self::NotEncoded(reason) => CallError::NotSent { reason },
            Self::Busy { waiting } => CallError::Busy { waiting },
        }
    }
}

impl QueuedCall {
    /// Polls for the ending while the options say so.
    fn spin(&self, channel: &Channel, within: Duration) -> Option<Ending> {
        let ending = self.state.take();
        let spin = channel.options.spin.min(within);
        if ending.is_some() || spin.is_zero() {
            return ending;
        }
        let begun = Instant::now();
        loop {
            channel.turn();
            let ending = self.state.take();
            if ending.is_some() || begun.elapsed() >= spin {
                return ending;
            }
            std::hint::spin_loop();
        }
    }

    fn poll(&mut self, channel: &Arc<Channel>, within: Duration, context: &mut Context<'_>) -> Poll<Ending> {
        let ended = self.state.take().or_else(|| {
            channel.turn();
            if self.pending.is_none() { self.spin(channel, within) } else { self.state.take() }
        });
        if let Some(ending) = ended.or_else(|| self.state.take_or_register(context.waker())) {
            return Poll::Ready(ending);
        }
        if self.begun.elapsed() >= within {
            return match channel.outbox.give_up(&self.state, within) {
                Some(ending) => Poll::Ready(ending),
                None => unreachable!("only its caller takes its ending"),
            };
        }
        if self.pending.is_none() {
            self.enter_pending(channel, within, context);
        }
        Poll::Pending
    }

    #[inline]
    fn enter_pending(&mut self, channel: &Arc<Channel>, within: Duration, context: &Context<'_>) {
        channel.enter_pending();
        if !channel.start_helper() {
            // Without a helper the task polls.
            context.waker().wake_by_ref();
        }
        let deadlines = Deadlines::of_process();
        let left = within.saturating_sub(self.begun.elapsed());
        let deadline_ns = monotonic_ns().checked_add(saturating_ns(left));
        let key = deadline_ns.map(|deadline_ns| {
            let state: Arc<CallState> = Arc::clone(&self.state);
            deadlines.enter(deadline_ns, state as Arc<dyn DeadlineTarget>)
        });
        self.pending = Some(PendingCall { deadlines, key });
    }

    fn leave_pending(&mut self, channel: &Channel) {
        if let Some(PendingCall { deadlines, key }) = self.pending.take() {
            channel.leave_pending();
            if let Some(key) = key {
                deadlines.leave(key);
            }
        }
    }
}

impl<R: Request> Future for Call<R> {
    type Output = Result<R::Reply, CallError<R::Refusal>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.queue();
        let Stage::Queued(call) = &mut this.stage else {
            return match std::mem::replace(&mut this.stage, Stage::Over) {
                Stage::Refused(refused) => Poll::Ready(Err(refused.error())),
                _ => panic!("a call is polled after its end"),
            };
        };
        let channel = this.client.channel();
        let Poll::Ready(ending) = call.poll(channel, this.within, context) else { return Poll::Pending };
        call.leave_pending(channel);
        this.stage = Stage::Over;
        Poll::Ready(result_of::<R>(ending))
    }
}

impl<R: Request> Drop for Call<R> {
    fn drop(&mut self) {
        if let Stage::Queued(call) = &mut self.stage {
            let channel = self.client.channel();
            call.leave_pending(channel);
            channel.outbox.abandon(&call.state);
        }
    }
}
