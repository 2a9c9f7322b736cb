//! `RelayedCaller`: calls a route of this domain with encoded requests.

use crate::caller::{Call, Caller, RelayedBytes};
use crate::context::Headers;
use crate::domain::Domain;
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::options::{CallOptions, Priority, Retry};
use crate::protocol::request_flags::InstanceQuery;
use gapless_trace::TraceContext;
use std::time::Duration;

/// Calls one route of other processes with bytes encoded elsewhere, of types unknown to this program. Clones share it.
/// Relays never get its calls, so that no call goes in a circle. Each route and pair of types has its own memory; a
/// process has room for 1,024.
#[derive(Clone)]
pub struct RelayedCaller {
    caller: Caller<RelayedBytes, Vec<u8>>,
}

/// A call that comes from another domain.
#[derive(Clone, Debug, Default)]
pub struct RelayedCall {
    /// Encoded request; JSON if that is the encoding of its type.
    pub payload: Vec<u8>,
    pub headers: Headers,
    /// Affinity key, ignored if there is an `instance`.
    pub key: Option<u64>,
    pub priority: Priority,
    /// Timeout from now on; `None` for none.
    pub timeout: Option<Duration>,
    /// The caller awaits no reply; the end is reported all the same.
    pub is_one_way: bool,
    pub hops: u8,
    /// Number of the caller's attempt, from 1; 0 means 1. Attempts made here continue the count.
    pub attempt: u8,
    /// Trace and parent span of the call.
    pub trace: TraceContext,
    /// Retry policy, for a call without an `instance`.
    pub retry: Retry,
    /// Longest wait without any instance; `None` for none.
    pub wait_for_route: Option<Duration>,
    /// Only instance that may serve it, by [`KnownRoute::identity`](crate::domain::KnownRoute::identity). Without that
    /// instance the call ends as [`CallError::NoRoute`](crate::CallError::NoRoute).
    pub instance: Option<u64>,
    /// Query of that instance, without its handler and with an empty payload. The answer is JSON, or empty for a ping.
    pub query: Option<InstanceQuery>,
}

impl Domain {
    /// Makes a caller of a route in other processes, with bytes of these types, as a
    /// [`RelayedRequest`](super::RelayedRequest) reports them. An instance that cannot read such a request or write
    /// such a reply refuses with [`CallError::Mismatch`](crate::CallError::Mismatch). A [`Json`](crate::Encoding::Json)
    /// request gets a JSON reply.
    ///
    /// # Errors
    /// The route name is invalid, or a type name has more than 1,024 bytes.
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
    /// Name of the route.
    #[must_use]
    pub fn route(&self) -> &str {
        self.caller.route()
    }

    /// Starts a call, as [`Caller::start`](crate::Caller::start); never blocks. The reply has the version of this
    /// caller's reply type.
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
