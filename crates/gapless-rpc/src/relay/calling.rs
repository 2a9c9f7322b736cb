//! [`RelayedCaller`]: a route of this domain is called as bytes.

use crate::caller::{Call, Caller, RelayedBytes};
use crate::context::Headers;
use crate::domain::Domain;
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::options::{CallOptions, Priority, Retry};
use crate::remote::request_words::CopyQuery;
use gapless_trace::TraceContext;
use std::time::Duration;

/// Calls one route of other processes with bytes that a caller elsewhere has written, of types that only it and the copies know. Threads
/// may share it, and clones are the same. Relays that stand for instances elsewhere do not get its calls, so that none goes in a circle.
///
/// Each route with its types has memory of its own: keep one of these for each, and few. A process has room for 1,024.
#[derive(Clone)]
pub struct RelayedCaller {
    caller: Caller<RelayedBytes, Vec<u8>>,
}

/// A call that comes from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct RelayedCall {
    /// The request, as its caller has written it; JSON if that is the encoding of the request's type.
    pub payload: Vec<u8>,
    /// The caller's headers.
    pub headers: Headers,
    /// Calls of one key go to one copy. It does not count where there is an `instance`.
    pub key: Option<u64>,
    /// Class of the request.
    pub priority: Priority,
    /// Time of the call, from now on; `None`: no end.
    pub timeout: Option<Duration>,
    /// True: its caller waits for no reply. The end is told all the same: no bytes, or an error.
    pub is_one_way: bool,
    /// Number of times that it was forwarded.
    pub hops: u8,
    /// Number of the caller's attempt, from 1; 0 is 1. Attempts that are made here count on from it.
    pub attempt: u8,
    /// The trace that it belongs to, and the span that makes it.
    pub trace: TraceContext,
    /// Policy of repetitions, for a call that is not for one `instance`.
    pub retry: Retry,
    /// Time to wait for a copy where there is none; `None`: no time.
    pub wait_for_route: Option<Duration>,
    /// The only copy that it is for: its [`KnownRoute::identity`](crate::domain::KnownRoute::identity). Where there is no such copy, the call
    /// ends with [`CallError::NoRoute`](crate::CallError::NoRoute) and the reason; one whose copy goes meanwhile ends as any call does.
    pub instance: Option<u64>,
    /// Question to that copy about itself, without its handler; the payload is empty then. The answer is JSON, or empty for a ping.
    pub query: Option<CopyQuery>,
}

impl Domain {
    /// A caller of a route of other processes, as bytes of these types, as a [`RelayedRequest`](super::RelayedRequest) elsewhere tells them.
    /// A copy that reads no such request, or writes no such reply, refuses its calls with
    /// [`CallError::Mismatch`](crate::CallError::Mismatch). Where the request is [`Json`](crate::Encoding::Json), so is the reply.
    ///
    /// # Errors
    /// A name that no route can have; names of types of more than 1,024 bytes.
    pub fn relayed_caller(
        &self,
        route: &str,
        request: TypeDescription,
        reply: TypeDescription,
    ) -> Result<RelayedCaller, RpcError> {
        Ok(RelayedCaller { caller: self.caller_of_described(route, request, reply)? })
    }
}

impl RelayedCaller {
    /// The route.
    #[must_use]
    pub fn route(&self) -> &str {
        self.caller.route()
    }

    /// Begins a call, as [`Caller::start`](crate::Caller::start); it waits for nothing. The reply comes as bytes, in the version of the
    /// reply's type that this caller was made with.
    pub fn start(&self, call: RelayedCall) -> Call<Vec<u8>> {
        let RelayedCall { payload, headers, key, priority, timeout, is_one_way, hops, attempt, .. } = call;
        let RelayedCall { trace, retry, wait_for_route, instance, query, .. } = call;
        let options = CallOptions { timeout, priority, key, headers, wait_for_route, retry, trace };
        let request = RelayedBytes { payload, hops, attempt, is_one_way, instance, query };
        self.caller.start_with(request, &options)
    }
}

impl std::fmt::Debug for RelayedCaller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayedCaller").field("route", &self.route()).finish_non_exhaustive()
    }
}
