//! [`Query`]: the future of one query.

use super::Client;
use super::answer::{encode, query_result_of};
use super::call_state::CallKind;
use super::mismatch::{Explained, Explaining};
use super::untyped_call::{Refused, UntypedCall};
use crate::ClientError;
use crate::error::QueryError;
use crate::polled::MessageType;
use gapless_message::Request;
use gapless_message::request_description::RequestKind;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Future of one query: its answer. Not bound to a runtime. A query changes nothing, so it may be dropped and repeated.
///
/// # Panics
/// If polled after it has returned.
#[must_use = "a query is sent at its first poll"]
pub struct Query<Q: Request> {
    call: UntypedCall,
    explaining: Option<Box<Explaining>>,
    query: PhantomData<fn(Q) -> Q>,
}

impl<Q: Request> fmt::Debug for Query<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("query", &Q::TYPE_NAME).finish_non_exhaustive()
    }
}

impl<Q: Request> Query<Q> {
    pub(super) fn new(client: &Client, query: &Q) -> Self {
        let wait_max = client.channel().options.within;
        let kind = CallKind::Query { after: 0, wait_max };
        let call = UntypedCall::new(client, kind, MessageType::typed::<Q>(), encode(query));
        Self { call, explaining: None, query: PhantomData }
    }

    /// Reads a state that contains at least the frame `sequence`, which the service waits for.
    pub fn after(mut self, sequence: u64) -> Self {
        if let CallKind::Query { after, .. } = &mut self.call.kind {
            *after = sequence;
        }
        self
    }

    /// Replaces the limit of the client's options for this query.
    pub fn within(mut self, limit: Duration) -> Self {
        if let CallKind::Query { wait_max, .. } = &mut self.call.kind {
            *wait_max = limit;
        }
        self.call.within(limit);
        self
    }

    /// Asks, and blocks this thread until the answer. A task awaits the future instead.
    ///
    /// # Errors
    /// [`QueryError`] says why there is no answer.
    pub fn wait(mut self) -> Result<Q::Reply, QueryError<Q::Refusal>> {
        if let Some(explaining) = self.explaining {
            return result::<Q>(explaining.wait::<Q>());
        }
        let ending = self.call.wait().map_err(refused)?;
        match ending.is_unhandled() {
            true => result::<Q>(Explaining::new::<Q>(RequestKind::Query, &self.call, ending).wait::<Q>()),
            false => query_result_of::<Q>(ending),
        }
    }
}

fn result<Q: Request>(explained: Explained) -> Result<Q::Reply, QueryError<Q::Refusal>> {
    match explained {
        Explained { difference: Some(difference), .. } => Err(QueryError::Mismatch { name: Q::TYPE_NAME, difference }),
        Explained { ending, difference: None } => query_result_of::<Q>(ending),
    }
}

fn refused<Refusal>(refused: Refused) -> QueryError<Refusal> {
    match refused {
        Refused::NotEncoded(reason) => QueryError::Client(ClientError::Encode(reason)),
        Refused::Busy { .. } => QueryError::Busy,
    }
}

impl<Q: Request> Future for Query<Q> {
    type Output = Result<Q::Reply, QueryError<Q::Refusal>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { call, explaining, .. } = self.get_mut();
        if explaining.is_none() {
            let Poll::Ready(ended) = call.poll(context) else { return Poll::Pending };
            let ending = ended.map_err(refused)?;
            if !ending.is_unhandled() {
                return Poll::Ready(query_result_of::<Q>(ending));
            }
            *explaining = Some(Box::new(Explaining::new::<Q>(RequestKind::Query, call, ending)));
        }
        let Some(explaining) = explaining else { unreachable!("it is there") };
        explaining.poll::<Q>(context).map(result::<Q>)
    }
}
