//! `RelayedRequest`: a request that a relay has taken.

use crate::context::{CallerIdentity, Headers, RemoteCaller as _};
use crate::domain::OfferedRelay;
use crate::message::described::TypeDescription;
use crate::options::Priority;
use crate::outcome::{CallError, Refusal};
use crate::protocol::ended::write_ended;
use crate::protocol::request_flags::{FLAG_JSON, FLAG_ONE_WAY, InstanceQuery, KIND_CALL, key_of};
use crate::protocol::status::{ReplyStatus, write_refusal};
use crate::server::counters::InstanceCounters;
use crate::server::puller::{AttachedCaller, ClaimedRequest};
use crate::server::request_processor::{InFlightGuard, too_long, trace_of};
use gapless_agent::monotonic::monotonic_ns;
use gapless_log::call_table::RequestHeader;
use gapless_trace::TraceContext;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

/// A request taken by a [`Relay`](super::Relay). Dropped without an end, it has not begun and its caller may retry;
/// after [`RelayedRequest::begin`] it ends as [`CallError::Unknown`], after its deadline it has timed out.
#[must_use = "a request that is dropped is not served"]
pub struct RelayedRequest {
    /// `None` once answered.
    claimed: Option<ClaimedRequest>,
    caller: Arc<AttachedCaller>,
    route: Arc<str>,
    counters: Arc<InstanceCounters>,
    in_flight: Option<InFlightGuard>,
    header: RequestHeader,
    /// Set if its version differs from the one that caller and relay have agreed on.
    other_type: Option<Box<TypeDescription>>,
    payload: Vec<u8>,
    headers: Headers,
    trace: TraceContext,
    query: Option<InstanceQuery>,
    watch: Option<u64>,
}

impl RelayedRequest {
    /// A request that must not be relayed is answered here.
    pub(super) fn read(claimed: ClaimedRequest, route: &Arc<str>, offered: &OfferedRelay) -> Option<Self> {
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        let answer = |claimed: ClaimedRequest, status, body: &[u8]| {
            let is_heard = claimed.answer(status, body);
            offered.counters().answered(status, is_heard);
        };
        let Some(header) = claimed.read(&mut user_headers, &mut payload) else {
            answer(claimed, ReplyStatus::BadRequest, b"what stands in the slot is no request");
            return None;
        };
        let query = InstanceQuery::from_value(header.kind);
        if query.is_none() && header.kind != KIND_CALL {
            answer(claimed, ReplyStatus::BadRequest, format!("request of kind {}", header.kind).as_bytes());
            return None;
        }
        if let Some(query) = query.filter(|_| header.instance == 0) {
            answer_about_relay(claimed, query, offered);
            return None;
        }
        if header.deadline_ns != 0 && monotonic_ns() >= header.deadline_ns {
            answer(claimed, ReplyStatus::TooLate, &[]);
            return None;
        }
        let Some(mut headers) = Headers::decode(&user_headers) else {
            answer(claimed, ReplyStatus::BadRequest, b"its headers are none");
            return None;
        };
        let caller = Arc::clone(claimed.caller());
        // Other instances may have come since the agreement.
        let (agreed, fingerprint) = (&caller.types.0, header.fingerprint);
        let other_type =
            (agreed.fingerprint != fingerprint).then(|| Box::new(TypeDescription { fingerprint, ..agreed.clone() }));
        Some(Self {
            claimed: Some(claimed),
            caller,
            route: Arc::clone(route),
            counters: Arc::clone(offered.counters()),
            in_flight: None,
            header,
            other_type,
            payload,
            trace: trace_of(&header, &mut headers),
            headers,
            query,
            watch: None,
        })
    }

    /// Name of the route.
    #[must_use]
    pub const fn route(&self) -> &Arc<str> {
        &self.route
    }

    /// Encoded request: JSON, or the version of [`RelayedRequest::request_type`].
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Takes the encoded request as a buffer and leaves an empty one.
    #[must_use]
    pub fn take_payload(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.payload)
    }

    /// Headers of the request.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Trace of the caller, with the span of its call.
    #[must_use]
    pub const fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// Affinity key of the call.
    #[must_use]
    pub fn key(&self) -> Option<u64> {
        key_of(&self.header)
    }

    /// Class of the request.
    #[must_use]
    pub fn priority(&self) -> Priority {
        Priority::ALL.get(usize::from(self.header.class)).copied().unwrap_or_default()
    }

    /// Remaining time; `None` without a deadline, zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let deadline_ns = self.header.deadline_ns;
        (deadline_ns != 0).then(|| Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns())))
    }

    /// Number of the caller's attempt, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u8 {
        self.header.attempt
    }

    /// Number of forwards so far.
    #[must_use]
    pub const fn hops(&self) -> u8 {
        self.header.hops
    }

    /// Reports whether payload and reply are JSON.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.header.flags & FLAG_JSON != 0
    }

    /// Reports whether the caller awaits no reply; an end must still be given.
    #[must_use]
    pub const fn is_one_way(&self) -> bool {
        self.header.flags & FLAG_ONE_WAY != 0
    }

    /// Request type of the caller, with the fingerprint of the payload's version.
    #[must_use]
    pub fn request_type(&self) -> &TypeDescription {
        self.other_type.as_deref().unwrap_or(&self.caller.types.0)
    }

    /// Reply type of the caller, with the fingerprint of the expected version.
    #[must_use]
    pub fn reply_type(&self) -> &TypeDescription {
        &self.caller.types.1
    }

    /// Identity of the calling process.
    #[must_use]
    pub fn caller(&self) -> &CallerIdentity {
        &self.caller.identity
    }

    /// Target among the instances that the relay stands for, of a broadcast or query.
    #[must_use]
    pub fn instance(&self) -> Option<u64> {
        Some(self.header.instance).filter(|instance| *instance != 0)
    }

    /// Query of that instance; `None` for a call of its handler.
    #[must_use]
    pub const fn query(&self) -> Option<InstanceQuery> {
        self.query
    }

    /// Longest reply, bytes; a longer one ends the call as [`CallError::BadMessage`].
    #[must_use]
    pub fn reply_length_max(&self) -> usize {
        self.caller.table.shape().payload_length_max()
    }

    /// Marks the request as begun, right before it leaves this machine: its outcome is then unknown until there is an
    /// end. False if the caller has cancelled: drop it then. May be called more than once.
    pub fn begin(&mut self) -> bool {
        let Some(claimed) = &mut self.claimed else { return false };
        if self.in_flight.is_some() {
            return !claimed.is_over();
        }
        let is_wanted = self.caller.table.is_mapped_here() && claimed.begin();
        if is_wanted {
            self.in_flight = Some(InFlightGuard::begin(&self.counters, monotonic_ns()));
        }
        is_wanted
    }

    /// Reports whether the caller cancelled, timed out or died.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let is_over = |claimed: &ClaimedRequest| claimed.is_over();
        self.claimed.as_ref().is_none_or(is_over) || self.remaining().is_some_and(|left| left.is_zero())
    }

    /// Wakes a task when the caller cancels; only the last task passed here, and not at the deadline. False if the
    /// route is withdrawn and there is no signal: poll [`RelayedRequest::is_cancelled`] then.
    #[must_use]
    pub fn watch(&mut self, task: &Waker) -> bool {
        // Relaxed: only unique numbers.
        static LAST: AtomicU64 = AtomicU64::new(1 << 63);
        let number = *self.watch.get_or_insert_with(|| LAST.fetch_add(1, Ordering::Relaxed));
        let Some(claimed) = &self.claimed else { return false };
        let is_told = self.caller.watch(claimed.taken(), number, task.clone());
        if claimed.is_over() {
            task.wake_by_ref();
        }
        is_told
    }

    /// Replies in the version of [`RelayedRequest::reply_type`] or in JSON. True if the caller will see it.
    pub fn reply(mut self, reply: &[u8]) -> bool {
        let length_max = self.reply_length_max();
        if self.is_one_way() {
            return self.answer(ReplyStatus::Reply, &[]);
        }
        if reply.len() > length_max {
            return self.answer(ReplyStatus::BadReply, too_long(reply.len(), length_max).as_bytes());
        }
        self.answer(ReplyStatus::Reply, reply)
    }

    /// Refuses as the handler did. True if the caller will see it.
    pub fn refuse(mut self, refusal: &Refusal) -> bool {
        let mut body = Vec::new();
        write_refusal(refusal, self.reply_length_max(), &mut body);
        self.answer(ReplyStatus::Refused, &body)
    }

    /// Ends the request with the error of the call elsewhere. [`CallError::NotBegun`] and [`CallError::Unknown`] are a
    /// lost attempt, which the caller retries by its [`Retry`](crate::Retry). True if the caller will see it.
    pub fn end(mut self, error: &CallError) -> bool {
        self.put_error(error)
    }

    fn put_error(&mut self, error: &CallError) -> bool {
        let mut body = Vec::new();
        write_ended(error, self.reply_length_max(), &mut body);
        self.answer(ReplyStatus::Ended, &body)
    }

    fn given_up(&self, is_late: bool) -> CallError {
        let route = self.route.to_string();
        if is_late {
            let after = Duration::from_nanos(self.header.deadline_ns.saturating_sub(self.header.sent_ns));
            return CallError::TimedOut { route, after, begun: true, not_taken_by: Vec::new() };
        }
        let reason = "the relay that had it has given it up".to_owned();
        CallError::Unknown { route, attempts: self.header.attempt.into(), reason }
    }

    fn answer(&mut self, status: ReplyStatus, body: &[u8]) -> bool {
        self.watch.take().into_iter().for_each(|number| self.caller.unwatch(number));
        let Some(claimed) = self.claimed.take() else { return false };
        let is_heard = claimed.answer(status, body);
        if self.query.is_none() {
            self.counters.answered(status, is_heard);
        }
        self.in_flight = None;
        is_heard
    }
}

fn answer_about_relay(claimed: ClaimedRequest, query: InstanceQuery, offered: &OfferedRelay) {
    let body = match query {
        InstanceQuery::Ping => String::new(),
        InstanceQuery::Info => offered.info(),
        InstanceQuery::Statistics => offered.counters().statistics().to_json(),
    };
    let length_max = claimed.reply_length_max();
    if body.len() <= length_max {
        claimed.answer(ReplyStatus::Reply, body.as_bytes());
    } else {
        claimed.answer(ReplyStatus::BadReply, too_long(body.len(), length_max).as_bytes());
    }
}

impl Drop for RelayedRequest {
    fn drop(&mut self) {
        if self.claimed.is_none() {
            return;
        }
        let (is_late, has_begun) = (self.remaining().is_some_and(|left| left.is_zero()), self.in_flight.is_some());
        match (has_begun, is_late) {
            (false, false) => self.answer(ReplyStatus::NotServed, &[]),
            (false, true) => self.answer(ReplyStatus::TooLate, &[]),
            (true, is_late) => self.put_error(&self.given_up(is_late)),
        };
    }
}

impl std::fmt::Debug for RelayedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayedRequest").field("route", &self.route).finish_non_exhaustive()
    }
}
