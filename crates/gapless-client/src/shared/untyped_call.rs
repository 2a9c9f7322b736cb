//! [`UntypedCall`]: a command, a query or a question for an outcome on its way, without the types of its request.

use super::Client;
use super::call_state::{CallKind, CallState, Ending};
use super::channel::Channel;
use crate::polled::MessageType;
use gapless_agent::deadlines::{DeadlineKey, DeadlineTarget, Deadlines};
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Encoded at first, then queued. Its drop abandons it.
pub(super) struct UntypedCall {
    client: Client,
    message: MessageType,
    pub kind: CallKind,
    stage: Stage,
    within: Duration,
}

enum Stage {
    Encoded(Vec<u8>),
    Refused(Refused),
    Queued(QueuedCall),
    Over,
}

/// Ended before it was queued.
pub(super) enum Refused {
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
    /// From the first `Pending` of a future on.
    deadline: Option<(Arc<Deadlines>, Option<DeadlineKey>)>,
}

impl UntypedCall {
    pub fn new(client: &Client, kind: CallKind, message: MessageType, encoded: Result<Vec<u8>, String>) -> Self {
        let stage = match encoded {
            Ok(payload) => Stage::Encoded(payload),
            Err(reason) => Stage::Refused(Refused::NotEncoded(reason)),
        };
        Self { client: client.clone(), message, kind, stage, within: client.channel().options.within }
    }

    /// Replaces the limit of the client's options.
    pub fn within(&mut self, limit: Duration) {
        self.within = limit;
        // The entry was made for the former limit.
        if let Stage::Queued(call) = &mut self.stage {
            call.leave_pending(self.client.channel());
        }
    }

    /// Queues it, and sends it if there is room.
    pub fn start(&mut self) {
        self.queue();
        let channel = self.client.channel();
        if let Stage::Queued(call) = &mut self.stage {
            // The helper goes on sending and receiving while no one awaits it.
            call.count_pending(channel);
            channel.start_helper();
        }
        channel.turn();
    }

    fn queue(&mut self) {
        if let Stage::Encoded(payload) = &mut self.stage {
            let payload = std::mem::take(payload);
            let lane = match self.kind {
                CallKind::Command => self.client.next_lane(),
                CallKind::Query { .. } => self.client.channel().query_lane(),
                CallKind::Outcome(_) => self.client.channel().outcome_lane(),
            };
            let state = Arc::new(CallState::new(self.kind, lane, self.message, payload));
            self.stage = match self.client.channel().queue(&state) {
                Ok(()) => Stage::Queued(QueuedCall { state, begun: Instant::now(), pending: None }),
                Err(full) => Stage::Refused(Refused::Busy { waiting: full.waiting }),
            };
        }
    }

    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Rest of its limit, for a request that was not handled.
    pub const fn left(&self) -> Duration {
        self.within
    }

    /// Blocks until the end.
    pub fn wait(&mut self) -> Result<Ending, Refused> {
        self.queue();
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let mut call = match stage {
            Stage::Queued(call) => call,
            Stage::Refused(refused) => return Err(refused),
            Stage::Encoded(_) | Stage::Over => unreachable!("it was queued"),
        };
        let channel = self.client.channel();
        call.leave_pending(channel);
        let ending = call.spin(channel, self.within).or_else(|| {
            // Centuries are no limit.
            let until = call.begun.checked_add(self.within).unwrap_or_else(|| call.begun + FOREVER);
            channel.wait_for_reply(&call.state, until, self.within)
        });
        let Some(ending) = ending else { unreachable!("only its caller takes its ending") };
        if ending.is_unhandled() {
            self.within = self.within.saturating_sub(call.begun.elapsed());
        }
        Ok(ending)
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Ending, Refused>> {
        self.queue();
        let Stage::Queued(call) = &mut self.stage else {
            return match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Refused(refused) => Poll::Ready(Err(refused)),
                _ => panic!("a call is polled after its end"),
            };
        };
        let channel = self.client.channel();
        let Poll::Ready(ending) = call.poll(channel, self.within, context) else { return Poll::Pending };
        call.leave_pending(channel);
        if ending.is_unhandled() {
            self.within = self.within.saturating_sub(call.begun.elapsed());
        }
        self.stage = Stage::Over;
        Poll::Ready(Ok(ending))
    }
}

const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl QueuedCall {
    /// Takes a turn, or as many as the options say.
    fn spin(&self, channel: &Channel, within: Duration) -> Option<Ending> {
        let spin = channel.options.spin.min(within);
        if spin.is_zero() {
            channel.turn();
            return self.state.take();
        }
        loop {
            channel.turns_until(&self.state);
            let ending = self.state.take();
            if ending.is_some() || self.begun.elapsed() >= spin {
                return ending;
            }
        }
    }

    fn poll(&mut self, channel: &Arc<Channel>, within: Duration, context: &mut Context<'_>) -> Poll<Ending> {
        let ended = self.state.take().or_else(|| {
            if !self.has_deadline() {
                return self.spin(channel, within);
            }
            channel.turn();
            self.state.take()
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
        if !self.has_deadline() {
            self.enter_pending(channel, within);
        }
        if !channel.start_helper() {
            // Without a helper the task polls.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Whether the future has returned `Pending`.
    fn has_deadline(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.deadline.is_some())
    }

    fn count_pending(&mut self, channel: &Channel) {
        if self.pending.is_none() {
            channel.enter_pending();
            self.pending = Some(PendingCall { deadline: None });
        }
    }

    #[inline]
    fn enter_pending(&mut self, channel: &Arc<Channel>, within: Duration) {
        self.count_pending(channel);
        let deadlines = Deadlines::of_process();
        let left = within.saturating_sub(self.begun.elapsed());
        let deadline_ns = monotonic_ns().checked_add(saturating_ns(left));
        let key = deadline_ns.map(|deadline_ns| {
            let state: Arc<CallState> = Arc::clone(&self.state);
            deadlines.enter(deadline_ns, state as Arc<dyn DeadlineTarget>)
        });
        self.pending = Some(PendingCall { deadline: Some((deadlines, key)) });
    }

    fn leave_pending(&mut self, channel: &Channel) {
        if let Some(PendingCall { deadline }) = self.pending.take() {
            channel.leave_pending();
            if let Some((deadlines, Some(key))) = deadline {
                deadlines.leave(key);
            }
        }
    }
}

impl Drop for UntypedCall {
    fn drop(&mut self) {
        if let Stage::Queued(call) = &mut self.stage {
            let channel = self.client.channel();
            call.leave_pending(channel);
            channel.outbox.abandon(&call.state);
        }
    }
}
