//! [`Query`]: the future of one query.

use super::Client;
use super::answer::{encode, query_result_of};
use super::call_state::CallKind;
use super::untyped_call::{Refused, UntypedCall};
use crate::ClientError;
use crate::error::QueryError;
use crate::polled::MessageType;
use gapless_message::Request;
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
        Self { call, query: PhantomData }
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
    pub fn wait(self) -> Result<Q::Reply, QueryError<Q::Refusal>> {
        query_result_of::<Q>(self.call.wait().map_err(refused)?)
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
        self.get_mut().call.poll(context).map(|ended| query_result_of::<Q>(ended.map_err(refused)?))
    }
}
