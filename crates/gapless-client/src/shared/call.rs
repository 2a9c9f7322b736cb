//! [`Call`]: the future of one command.

use super::Client;
use super::answer::{encode, result_of};
use super::call_error::CallError;
use super::call_state::CallKind;
use super::mismatch::{Explained, Explaining};
use super::untyped_call::{Refused, UntypedCall};
use crate::CommandNumber;
use crate::polled::MessageType;
use gapless_message::Request;
use gapless_message::request_description::RequestKind;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Future of one command: its reply, or what became of it. Not bound to a runtime.
///
/// Dropped before the command was sent, it takes the command back: no effect, and no gap in the numbers of its session.
/// Dropped after that, the command takes its effect, and the reply is discarded.
///
/// # Panics
/// If polled after it has returned.
#[must_use = "a call is sent at its first poll"]
pub struct Call<R: Request> {
    call: UntypedCall,
    explaining: Option<Box<Explaining>>,
    request: PhantomData<fn(R) -> R>,
}

impl<R: Request> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &R::TYPE_NAME).finish_non_exhaustive()
    }
}

impl<R: Request> Call<R> {
    pub(super) fn new(client: &Client, request: &R) -> Self {
        let call = UntypedCall::new(client, CallKind::Command, MessageType::typed::<R>(), encode(request));
        Self { call, explaining: None, request: PhantomData }
    }

    /// Asks for the outcome of a command that was sent earlier.
    pub(super) fn of_outcome(client: &Client, number: CommandNumber) -> Self {
        let call = UntypedCall::new(client, CallKind::Outcome(number), MessageType::typed::<R>(), Ok(Vec::new()));
        Self { call, explaining: None, request: PhantomData }
    }

    /// Replaces the limit of the client's options for this call. It counts from the sending or queueing on.
    pub fn within(mut self, limit: Duration) -> Self {
        self.call.within(limit);
        self
    }

    /// Queues the command, and sends it if there is room.
    pub(super) fn start(&mut self) {
        self.call.start();
    }

    /// Sends the command, if that has not happened, and blocks this thread until the end of the call. A task awaits the
    /// future instead.
    ///
    /// # Errors
    /// [`CallError`]: the fate of the command.
    pub fn wait(mut self) -> Result<R::Reply, CallError<R::Refusal>> {
        if let Some(explaining) = self.explaining {
            return result::<R>(explaining.wait::<R>());
        }
        let ending = self.call.wait().map_err(refused)?;
        match ending.is_unhandled() {
            true => result::<R>(Explaining::new::<R>(RequestKind::Command, &self.call, ending).wait::<R>()),
            false => result_of::<R>(ending),
        }
    }
}

fn result<R: Request>(explained: Explained) -> Result<R::Reply, CallError<R::Refusal>> {
    match explained {
        Explained { difference: Some(difference), .. } => Err(CallError::Mismatch { name: R::TYPE_NAME, difference }),
        Explained { ending, difference: None } => result_of::<R>(ending),
    }
}

fn refused<Refusal>(refused: Refused) -> CallError<Refusal> {
    match refused {
        Refused::NotEncoded(reason) => CallError::Invalid { reason },
        Refused::Busy { waiting } => CallError::Busy { waiting },
    }
}

impl<R: Request> Future for Call<R> {
    type Output = Result<R::Reply, CallError<R::Refusal>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { call, explaining, .. } = self.get_mut();
        if explaining.is_none() {
            let Poll::Ready(ended) = call.poll(context) else { return Poll::Pending };
            let ending = ended.map_err(refused)?;
            if !ending.is_unhandled() {
                return Poll::Ready(result_of::<R>(ending));
            }
            *explaining = Some(Box::new(Explaining::new::<R>(RequestKind::Command, call, ending)));
        }
        let Some(explaining) = explaining else { unreachable!("it is there") };
        explaining.poll::<R>(context).map(result::<R>)
    }
}
