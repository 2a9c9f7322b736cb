//! [`Kept`]: a command that a durable client keeps, in this life of the program or in an earlier one.

use super::DurableClient;
use super::command::{KeptCommand, KeptProgress};
use crate::ClientError;
use crate::shared::answer::result_of;
use crate::shared::call_error::CallError;
use crate::shared::call_state::Ending;
use crate::shared::mismatch::{Explained, Explaining};
use gapless_agent::block_on::block_on;
use gapless_agent::deadlines::Alarm;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_message::request_description::RequestKind;
use gapless_message::{Request, contract};
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A kept command. Dropping this changes nothing: [`DurableClient::kept`] finds it again, also in the next life.
pub struct Kept<R: Request> {
    client: DurableClient,
    command: Arc<KeptCommand>,
    request: PhantomData<fn(R) -> R>,
}

impl<R: Request> fmt::Debug for Kept<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Kept");
        debug.field("request", &R::TYPE_NAME).field("is_settled", &self.is_settled()).finish_non_exhaustive()
    }
}

impl<R: Request> Kept<R> {
    pub(super) const fn new(client: DurableClient, command: Arc<KeptCommand>) -> Self {
        Self { client, command, request: PhantomData }
    }

    /// Waits for the outcome, at most for the client's limit, as often as you like.
    ///
    /// # Errors
    /// [`CallError`]: the fate of the command. [`CallError::Pending`]: it is kept, and has no outcome yet.
    /// [`CallError::Unknown`] is final: ask the service by other means, and forget the command.
    pub fn outcome(&self) -> impl Future<Output = Result<R::Reply, CallError<R::Refusal>>> + Send + use<R> {
        let (client, command) = (self.client.clone(), Arc::clone(&self.command));
        async move {
            let (begun, within) = (Instant::now(), client.within());
            let ending = EndingOf { client: client.clone(), command, begun, waiter: None, alarm: None }.await;
            let ending = ending.map_err(|reason| CallError::Pending { reason })?;
            if !ending.is_unhandled() {
                return result_of::<R>(Ending::clone(&ending));
            }
            let left = within.saturating_sub(begun.elapsed());
            let ending = Ending::clone(&ending);
            let mut explaining = Explaining::of_client::<R>(RequestKind::Command, client.client(), left, ending);
            match poll_fn(|context| explaining.poll::<R>(context)).await {
                Explained { difference: Some(difference), .. } => {
                    Err(CallError::Mismatch { name: R::TYPE_NAME, difference })
                }
                Explained { ending, difference: None } => result_of::<R>(ending),
            }
        }
    }

    /// Blocks this thread until the end of [`Kept::outcome`].
    ///
    /// # Errors
    /// As for [`Kept::outcome`].
    pub fn wait(&self) -> Result<R::Reply, CallError<R::Refusal>> {
        block_on(self.outcome())
    }

    /// The command itself.
    ///
    /// # Errors
    /// [`ClientError::Decode`]: a program with another version of the type has kept it.
    pub fn request(&self) -> Result<R, ClientError> {
        let refuse = |reason| ClientError::Decode { expected: R::TYPE_NAME, reason };
        let split = contract::split_request(&self.command.payload);
        let (hash, request) = split.ok_or_else(|| refuse("it has no contract".to_owned()))?;
        let known = contract::contracts_of::<R>().into_iter().find(|known| known.hash == hash);
        let known = known.ok_or_else(|| refuse(format!("contract {hash:08x} is unknown to this program")))?;
        R::decode_as(known.request_version, request).map_err(|error| refuse(error.to_string()))
    }

    /// Whether the outcome is there, so that a wait returns at once.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.command.is_settled()
    }

    /// Ends the keeping, once you have heard the outcome and made use of it. A command without an outcome is taken back
    /// if it was not sent yet; otherwise it takes effect, and no one hears of that.
    ///
    /// # Errors
    /// [`ClientError::Outbox`]: the disk refuses it, and the command stays kept.
    pub fn forget(self) -> Result<(), ClientError> {
        self.client.forget(&self.command)
    }
}

/// Future of an ending, or the reason for none.
struct EndingOf {
    client: DurableClient,
    command: Arc<KeptCommand>,
    begun: Instant,
    waiter: Option<u64>,
    alarm: Option<Alarm>,
}

impl Future for EndingOf {
    type Output = Result<Arc<Ending>, String>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { client, command, begun, waiter, alarm } = self.get_mut();
        match command.progress_or_register(waiter, context.waker()) {
            KeptProgress::Settled(ending) => return Poll::Ready(Ok(ending)),
            KeptProgress::Stopped(reason) => return Poll::Ready(Err(reason)),
            KeptProgress::Waiting => {}
        }
        let (within, waited) = (client.within(), begun.elapsed());
        if waited >= within {
            return Poll::Ready(Err(client.late_reason(within)));
        }
        let time_ns = monotonic_ns().checked_add(saturating_ns(within.saturating_sub(waited)));
        *alarm = time_ns.map(|time_ns| Alarm::set(time_ns, context.waker().clone()));
        if !client.has_helper() {
            // Without a helper the task polls.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for EndingOf {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            self.command.leave(waiter);
        }
    }
}
