//! `Caller`: calls, sends and broadcasts of one route.

mod broadcasts;
mod destination;
mod discovery;
mod queries;
mod relayed;

pub use broadcasts::{InstanceAddress, InstanceOutcomes};
pub(crate) use relayed::RelayedBytes;

use super::backlog::Backlog;
use super::call::{Call, CallState, NewCall};
use super::call_awaiting_route::{CallAwaitingRoute, not_local};
use super::caller_options::{CallerOptions, Reach};
use super::interceptor::Interceptor;
use super::observed::ObservedCall;
use super::remote_call::{Destination, RemoteCall, RequestBytes, Terms};
use super::routes::{LocalRoutes, RemoteRoutes, RouteKey, SETTLE_MAX, TypeKey};
use crate::caller::table::{CallEnd, CallStatistics, RemoteOffer, TablelessCounters};
use crate::context::Headers;
use crate::error::RpcError;
use crate::local::{self, LocalRoute};
use crate::message::{Encoding, Message, version_of};
use crate::options::{CallOptions, Retry};
use crate::outcome::CallError;
use crate::protocol::request_flags::{FLAG_JSON, FLAG_KEY, FLAG_ONE_WAY, FLAG_TRACE_STATE, NOTICES_SHIFT, TRACE_STATE};
use gapless_agent::foreign::catch_panic;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_agent::process_mark::ProcessMark;
use gapless_log::call_table::RequestHeader;
use gapless_trace::{InheritedContext, TraceContext};
use std::any::TypeId;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::Span;

/// An instance silent for longer gets no keys.
const KEYED_SETTLE_MAX: Duration = Duration::from_millis(100);

const BYTES_KEPT_MAX: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Caller of one route. Threads may share it; one clone per thread shares fewer cache lines.
pub struct Caller<Request, Reply> {
    shared: Arc<CallerShared>,
    local: Mutex<(u64, LocalLookup<Request, Reply>)>,
}

type LocalLookup<Request, Reply> = Option<Arc<LocalRoute<Request, Reply>>>;

impl<Request, Reply> Clone for Caller<Request, Reply> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), local: Mutex::new((u64::MAX, None)) }
    }
}

struct CallerShared {
    key: Arc<RouteKey>,
    options: CallerOptions,
    interceptors: Arc<[Arc<dyn Interceptor>]>,
    local_routes: Arc<LocalRoutes>,
    /// Version of the route table without this route: spares remote calls the lock.
    not_local: AtomicU64,
    remote_routes: Option<Arc<dyn RemoteRoutes>>,
    destination: OnceLock<Destination>,
    tableless: OnceLock<Option<TablelessCounters>>,
    backlog: Option<Backlog>,
    settle_max: Duration,
    has_waited_for_all: AtomicBool,
    precedes_instances: bool,
    hops: u8,
    _keeps: Box<dyn std::any::Any + Send + Sync>,
    made_by: ProcessMark,
}

impl CallerShared {
    #[inline]
    fn check_process(&self) -> Result<(), CallError> {
        if self.made_by.is_here() { Ok(()) } else { Err(CallError::Closed) }
    }
}

impl Drop for CallerShared {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // Tables and locks belong to the parent.
            let tables = (self.destination.take(), self.tableless.take(), self.backlog.take());
            std::mem::forget((tables, Arc::clone(&self.local_routes)));
        }
    }
}

impl<Request, Reply> std::fmt::Debug for Caller<Request, Reply> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("route", &self.shared.key.route).finish_non_exhaustive()
    }
}

impl<Request: Message, Reply: Message> Caller<Request, Reply> {
    pub(crate) fn new(
        route: Arc<str>,
        options: CallerOptions,
        local_routes: Arc<LocalRoutes>,
        remote_routes: Option<Arc<dyn RemoteRoutes>>,
        keeps: impl Send + Sync + 'static,
    ) -> Result<Self, RpcError> {
        let backlog = options.overflow.clone().map(|overflow| Backlog::new(&route, overflow)).transpose()?;
        let (request, reply, is_relayed) = (TypeKey::of::<Request>(), TypeKey::of::<Reply>(), false);
        let key = Arc::new(RouteKey { route, request, reply, is_relayed });
        let interceptors = options.interceptors.clone().into();
        let destination = OnceLock::new();
        let not_local = AtomicU64::new(u64::MAX);
        let remote_routes = remote_routes.filter(|_| options.reach != Reach::ThisProcess);
        let _keeps = Box::new(keeps);
        Ok(Self {
            shared: Arc::new(CallerShared {
                key,
                options,
                interceptors,
                local_routes,
                not_local,
                remote_routes,
                destination,
                tableless: OnceLock::new(),
                backlog,
                settle_max: SETTLE_MAX,
                has_waited_for_all: AtomicBool::new(false),
                precedes_instances: false,
                hops: 0,
                _keeps,
                made_by: ProcessMark::current(),
            }),
            local: Mutex::new((u64::MAX, None)),
        })
    }

    /// Allows offers before the only instance is known. For a new caller only.
    pub(crate) fn before_its_instance(mut self) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            (shared.settle_max, shared.precedes_instances) = (Duration::ZERO, true);
        }
        self
    }

    /// Sets the number of earlier forwards of its requests. For a new caller only.
    pub(crate) fn forwarding(mut self, hops: u8) -> Self {
        Arc::get_mut(&mut self.shared).into_iter().for_each(|shared| shared.hops = hops);
        self
    }

    /// Name of the route.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.shared.key.route
    }

    /// The default options of its calls, as a base for the options of one call: options given with a call replace them
    /// as a whole.
    ///
    /// ```
    /// # use gapless_rpc::{CallOptions, CallerOptions, Domain, Headers};
    /// # let domain = Domain::in_process("shop");
    /// # let _served = domain.serve("tenant").handle(|(), context: &gapless_rpc::CallContext| {
    /// #     Ok(context.headers().get("tenant") == Some(b"blue") && context.key() == 7)
    /// # })?;
    /// let call = CallOptions { headers: Headers::default().with("tenant", "blue"), ..CallOptions::default() };
    /// let caller = domain.caller_with::<(), bool>("tenant", CallerOptions { call, ..CallerOptions::default() })?;
    /// // With the header, and with the caller's time.
    /// let options = CallOptions { key: Some(7), ..caller.call_options() };
    /// assert_eq!(caller.call_with((), &options), Ok(true));
    /// # Ok::<(), gapless_rpc::RpcError>(())
    /// ```
    #[must_use]
    pub fn call_options(&self) -> CallOptions {
        self.shared.options.call.clone()
    }

    /// Statistics of this process's calls to other processes, over all callers of the route. Counting starts at 0 with
    /// the first caller and ends one second after the last. Other processes read the values up to a quarter of a second
    /// later ([`crate::domain::read_domain`]). Calls that ended before the route was served are counted for this caller
    /// only.
    #[must_use]
    pub fn statistics(&self) -> CallStatistics {
        if self.shared.check_process().is_err() {
            return CallStatistics::of(&[]);
        }
        self.shared.backlog.iter().for_each(Backlog::publish);
        let without_table = self.shared.tableless.get().into_iter().flatten().map(TablelessCounters::values);
        let with_table = self.shared.destination.get().map(|to| to.table.counted());
        CallStatistics::of(&without_table.chain(with_table).flatten().collect::<Vec<_>>())
    }

    /// Calls, and blocks this thread until the reply.
    ///
    /// # Errors
    /// Any [`CallError`] that ended the call.
    pub fn call(&self, request: Request) -> Result<Reply, CallError> {
        self.start(request).wait()
    }

    /// Like [`Caller::call`], with options that replace the caller's ([`Caller::call_options`]).
    ///
    /// # Errors
    /// Any [`CallError`] that ended the call.
    pub fn call_with(&self, request: Request, options: &CallOptions) -> Result<Reply, CallError> {
        self.start_with(request, options).wait()
    }

    /// Starts a call without blocking; an error becomes its outcome. The first calls of a caller are offered once the
    /// existing instances are discovered, or after a second. A process that does not announce its routes is awaited for
    /// two seconds at most; then the outcome is [`CallError::TimedOut`] or [`CallError::Unavailable`]. A call without
    /// an instance or room is retried only while it is waited for or polled.
    pub fn start(&self, request: Request) -> Call<Reply> {
        self.begin(request, &self.shared.options.call)
    }

    /// Like [`Caller::start`], with options that replace the caller's ([`Caller::call_options`]).
    pub fn start_with(&self, request: Request, options: &CallOptions) -> Call<Reply> {
        self.begin(request, options)
    }

    fn begin(&self, request: Request, options: &CallOptions) -> Call<Reply> {
        if self.shared.interceptors.is_empty() && !gapless_trace::are_recorded() {
            let made = self.make(request, options, None);
            return self.call_of(made.unwrap_or_else(CallState::Failed), None);
        }
        let (mut observed, options) = ObservedCall::begin(&self.shared.interceptors, &self.shared.key.route, options);
        let options = observed.ask(options);
        let made = options.and_then(|options| self.make(request, &options, observed.span()));
        self.call_of(made.unwrap_or_else(CallState::Failed), Some(observed))
    }

    fn make(&self, request: Request, options: &CallOptions, span: Option<&Span>) -> NewCall<Reply> {
        self.make_of(request, options, span, true)
    }

    #[inline]
    fn make_of(
        &self,
        request: Request,
        options: &CallOptions,
        span: Option<&Span>,
        may_discover: bool,
    ) -> NewCall<Reply> {
        self.shared.check_process()?;
        let request = match self.local()? {
            Some(local) => match local.call(request, InheritedTerms::of(options).local_offer(options, span)) {
                Ok(call) => return Ok(CallState::Local(call)),
                Err(unsent) => not_local(*unsent)?,
            },
            None => request,
        };
        let await_route = |request, elsewhere| {
            self.await_route(request, elsewhere, (options, span), false)
                .map(|call| CallState::AwaitingRoute(Box::new(call)))
        };
        let Some(routes) = &self.shared.remote_routes else { return await_route(request, None) };
        if may_discover && self.is_to_discover(&request, options) {
            return self.discover(routes, request, options, span);
        }
        let made = self.encoded(&request, options, 0, 0, |to, terms, bytes| match self.offer(to, terms, bytes)? {
            OfferOutcome::RemoteCall(remote_call) => Ok(CallState::Remote(Box::new(remote_call), Vec::new())),
            OfferOutcome::Backlogged(backlog, terms, bytes) => {
                Ok(CallState::Backlog(backlog.call(to, terms, bytes)?, Arc::clone(&to.key.route)))
            }
        });
        match made? {
            CallState::Remote(remote_call, _)
                if remote_call.waits_for_instance() && self.may_be_served_locally(options) =>
            {
                await_route(request, Some(remote_call))
            }
            CallState::Remote(remote_call, _) => Ok(CallState::Remote(remote_call, request.into_buffer())),
            made => Ok(made),
        }
    }

    fn may_be_served_locally(&self, options: &CallOptions) -> bool {
        self.shared.options.reach != Reach::OtherProcesses && options.wait_for_route.is_some()
    }

    #[cold]
    fn await_route(
        &self,
        request: Request,
        elsewhere: Option<Box<RemoteCall>>,
        (options, span): (&CallOptions, Option<&Span>),
        is_one_way: bool,
    ) -> Result<CallAwaitingRoute<Request>, CallError> {
        let Some(time) = options.wait_for_route else {
            return Err(CallError::no_route(self.route()));
        };
        let offer = InheritedTerms::of(options).local_offer(options, span);
        let (route, routes) = (Arc::clone(&self.shared.key.route), Arc::clone(&self.shared.local_routes));
        Ok(CallAwaitingRoute::new((route, routes), (request, offer), elsewhere, time, is_one_way))
    }

    #[inline]
    fn offer(&self, to: &Destination, terms: Terms, bytes: (&[u8], &[u8])) -> Result<OfferOutcome<'_>, CallError> {
        let Some(backlog) = &self.shared.backlog else {
            return RemoteCall::start(to, terms, bytes).map(OfferOutcome::RemoteCall);
        };
        if backlog.has(terms.class()) {
            return Ok(OfferOutcome::Backlogged(backlog, terms, (bytes.0.to_vec(), bytes.1.to_vec())));
        }
        let mut remote_call = RemoteCall::start(to, terms, bytes)?;
        Ok(match remote_call.take_without_slot() {
            Some((terms, bytes)) => OfferOutcome::Backlogged(backlog, terms, bytes),
            None => OfferOutcome::RemoteCall(remote_call),
        })
    }

    /// Sends a one-way request. Blocks this thread for a free slot and, on the first request, for discovery, within the
    /// call's timeout. The outcome is dropped. The death of an instance may lose the request; the end of this process
    /// loses all that no instance has taken, for they lie in its memory.
    ///
    /// # Errors
    /// The reason why it could not be offered.
    pub fn send(&self, request: Request) -> Result<(), CallError> {
        self.send_with(request, &self.shared.options.call)
    }

    /// Like [`Caller::send`], with options that replace the caller's ([`Caller::call_options`]).
    ///
    /// # Errors
    /// Like [`Caller::send`].
    pub fn send_with(&self, request: Request, options: &CallOptions) -> Result<(), CallError> {
        self.send_until(request, options, u64::MAX)
    }

    /// Fails with [`CallError::Busy`] if there is no room by `until_ns` of the monotonic clock.
    pub(crate) fn send_until(&self, request: Request, options: &CallOptions, until_ns: u64) -> Result<(), CallError> {
        if self.shared.interceptors.is_empty() && !gapless_trace::are_recorded() {
            return self.offer_one_way(request, (options, None), until_ns);
        }
        let (mut observed, options) = ObservedCall::begin(&self.shared.interceptors, &self.shared.key.route, options);
        let options = observed.ask(options);
        let sent = options.and_then(|options| self.offer_one_way(request, (&options, observed.span()), until_ns));
        observed.sent(sent.as_ref().err());
        sent
    }

    fn offer_one_way(
        &self,
        request: Request,
        (options, span): (&CallOptions, Option<&Span>),
        until_ns: u64,
    ) -> Result<(), CallError> {
        self.shared.check_process()?;
        let request = match self.local()? {
            Some(local) => match local.send(request, InheritedTerms::of(options).local_offer(options, span)) {
                Ok(()) => return Ok(()),
                Err(unsent) => not_local(*unsent)?,
            },
            None => request,
        };
        if self.shared.remote_routes.is_none() {
            return self.await_route(request, None, (options, span), true)?.send::<Reply>();
        }
        let waits = self.encoded(&request, options, FLAG_ONE_WAY, 0, |to, terms, bytes| {
            match self.offer(to, terms, bytes)? {
                OfferOutcome::RemoteCall(remote_call)
                    if remote_call.waits_for_instance() && self.may_be_served_locally(options) =>
                {
                    return Ok(Some(Box::new(remote_call)));
                }
                OfferOutcome::RemoteCall(remote_call) => remote_call.send(until_ns),
                OfferOutcome::Backlogged(backlog, terms, bytes) => backlog.send(to, terms, bytes),
            }
            .map(|()| None)
        })?;
        match waits {
            Some(remote_call) => self.await_route(request, Some(remote_call), (options, span), true)?.send::<Reply>(),
            None => Ok(()),
        }
    }

    fn local(&self) -> Result<LocalLookup<Request, Reply>, CallError> {
        if self.shared.options.reach == Reach::OtherProcesses {
            return Ok(None);
        }
        let version = self.shared.local_routes.version();
        // Relaxed: caches the result of a lookup at that version, and guards nothing.
        if self.shared.not_local.load(Ordering::Relaxed) == version {
            return Ok(None);
        }
        let mut local = self.local.lock().expect("nobody panics with the lock");
        if local.0 != version {
            *local = (version, self.shared.local_routes.get(&self.shared.key.route)?.map(Arc::new));
        }
        match &local.1 {
            None => {
                self.shared.not_local.store(version, Ordering::Relaxed);
                Ok(None)
            }
            found => Ok(found.clone()),
        }
    }

    /// The first thread waits for discovery, within the timeout of its call.
    #[inline]
    pub(super) fn destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        options: &CallOptions,
        inherited: &InheritedTerms,
    ) -> Result<&Destination, CallError> {
        match self.shared.destination.get() {
            Some(to) if !self.waits_for_all(options) => Ok(to),
            _ => self.wait_for_destination(routes, options, inherited),
        }
    }

    #[inline]
    fn is_to_discover(&self, request: &Request, options: &CallOptions) -> bool {
        let Some(to) = self.shared.destination.get() else { return true };
        let is_unknown = |instance| to.table.number_of_identity(instance).is_none();
        let instance = RelayedBytes::of(request).and_then(|relayed| relayed.instance);
        self.waits_for_all(options) || instance.is_some_and(is_unknown)
    }

    /// Reports whether the key may belong to an undiscovered instance.
    #[inline]
    pub(super) fn waits_for_all(&self, options: &CallOptions) -> bool {
        // Relaxed: guards nothing.
        options.key.is_some() && !self.shared.has_waited_for_all.load(Ordering::Relaxed)
    }

    fn encoded<Made>(
        &self,
        request: &Request,
        options: &CallOptions,
        flags: u32,
        instance: u32,
        then: impl FnOnce(&Destination, Terms, (&[u8], &[u8])) -> Result<Made, CallError>,
    ) -> Result<Made, CallError> {
        let Some(routes) = &self.shared.remote_routes else {
            return Err(CallError::no_route(self.route()));
        };
        let inherited = InheritedTerms::of(options);
        let to = self.destination(routes, options, &inherited);
        let to = to.inspect_err(|error| self.count_tableless(routes, CallEnd::of(error)))?;
        // Taken rather than borrowed: offering may wake tasks, which may call. An ending thread may have no buffer any
        // more.
        let (mut user_headers, mut payload) = SCRATCH.try_with(Cell::take).unwrap_or_default();
        let asked = (request, options, inherited);
        let encoded = self.encode(to, asked, (flags, instance), (&mut user_headers, &mut payload));
        let made = encoded.and_then(|(terms, payload)| then(to, terms, (&user_headers, payload)));
        payload.clear();
        payload.shrink_to(BYTES_KEPT_MAX);
        let _ = SCRATCH.try_with(|scratch| scratch.set((user_headers, payload)));
        made
    }

    fn encode<'bytes>(
        &self,
        to: &Destination,
        (request, options, inherited): (&'bytes Request, &CallOptions, InheritedTerms),
        (flags, instance): (u32, u32),
        (user_headers, payload): (&mut Vec<u8>, &'bytes mut Vec<u8>),
    ) -> Result<(Terms, &'bytes [u8]), CallError> {
        let table = &to.table;
        let bad = |reason: String| CallError::bad_request_here(self.route().to_owned(), &reason);
        user_headers.clear();
        payload.clear();
        options.headers.encode(user_headers).map_err(bad)?;
        let state = inherited.trace.state();
        if let Some(state) = state {
            Headers::default().with(TRACE_STATE, state).encode(user_headers).map_err(bad)?;
        }
        let fingerprint = table.request_fingerprint();
        let version = version_of::<Request>(fingerprint).unwrap_or(Request::VERSION);
        // Application code: a panic fails only this call.
        let encoded = catch_panic(|| match request.encoded() {
            Some(bytes) if version == Request::VERSION => Ok(Some(bytes)),
            _ => request.encode_as(version, payload).map(|()| None),
        });
        let encoded = encoded.map_err(bad)?.map_err(|error| bad(error.to_string()))?;
        let payload = encoded.unwrap_or(payload);
        table.check_request(user_headers.len(), payload.len()).map_err(bad)?;
        let flags = flags | u32::from(self.shared.local_routes.notices()) << NOTICES_SHIFT;
        let flags = if state.is_some() { flags | FLAG_TRACE_STATE } else { flags };
        let flags = if options.key.is_some() { flags | FLAG_KEY } else { flags };
        let header = RequestHeader {
            class: options.priority as u8,
            hops: self.shared.hops,
            flags: if Request::ENCODING == Encoding::Json { flags | FLAG_JSON } else { flags },
            encoding: Request::ENCODING as u32,
            call: inherited.sent_ns,
            sent_ns: inherited.sent_ns,
            key: options.key.unwrap_or(0),
            deadline_ns: inherited.deadline_ns,
            fingerprint,
            trace_id: inherited.trace.trace_id,
            span_id: inherited.trace.span_id,
            trace_flags: inherited.trace.flags,
            ..RequestHeader::default()
        };
        let one_way = flags & FLAG_ONE_WAY != 0;
        let mut terms = Terms {
            offer: RemoteOffer {
                header,
                target: instance,
                one_way,
                precedes_instance: self.shared.precedes_instances,
                ..RemoteOffer::default()
            },
            retry: if instance == 0 { options.retry } else { Retry::Never },
            affinity: options.key.filter(|_| instance == 0),
            timeout: inherited.timeout,
            wait_for_route: options.wait_for_route.unwrap_or_default(),
        };
        if let Some(relayed) = RelayedBytes::of(request) {
            relayed.put_terms(&to.key, table, &mut terms)?;
        }
        Ok((terms, payload))
    }

    #[inline]
    fn call_of(&self, state: CallState<Reply>, observed: Option<Box<ObservedCall>>) -> Call<Reply> {
        let (waiting, decode) = (self.shared.options.waiting, decoder::<Request, Reply>());
        Call { state, waiting, decode, observed, attempts: 0, made_by: self.shared.made_by }
    }
}

enum OfferOutcome<'backlog> {
    RemoteCall(RemoteCall),
    Backlogged(&'backlog Backlog, Terms, RequestBytes),
}

pub(super) struct InheritedTerms {
    pub(super) sent_ns: u64,
    pub(super) deadline_ns: u64,
    pub(super) timeout: Duration,
    pub(super) trace: TraceContext,
}

impl InheritedTerms {
    pub(super) fn of(options: &CallOptions) -> Self {
        let sent_ns = monotonic_ns();
        let own_ns = options.timeout.map_or(0, |timeout| sent_ns.saturating_add(saturating_ns(timeout)));
        let (outer_ns, trace) = InheritedContext::with(|current| {
            let trace = if options.trace.is_none() { &current.trace } else { &options.trace };
            (current.deadline_ns, trace.clone())
        });
        let deadline_ns = match (own_ns, outer_ns) {
            (0, outer_ns) => outer_ns,
            (own_ns, 0) => own_ns,
            (own_ns, outer_ns) => own_ns.min(outer_ns),
        };
        let timeout = Duration::from_nanos(deadline_ns.saturating_sub(sent_ns));
        Self { sent_ns, deadline_ns, timeout, trace }
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline_ns != 0 && monotonic_ns() >= self.deadline_ns
    }

    pub(super) fn left(&self, most: Duration) -> Duration {
        if self.deadline_ns == 0 {
            return most;
        }
        most.min(Duration::from_nanos(self.deadline_ns.saturating_sub(monotonic_ns())))
    }

    pub(super) fn local_offer(&self, options: &CallOptions, span: Option<&Span>) -> local::LocalOffer {
        let plain = CallOptions { timeout: None, trace: self.trace.clone(), ..options.clone() };
        let offer = local::LocalOffer::new(&plain).with_span(span.cloned());
        if self.deadline_ns == 0 { offer } else { offer.with_deadline(self.deadline_ns, self.timeout) }
    }
}

fn decoder<Request: Message, Reply: Message>() -> fn(&mut Vec<u8>, u32) -> Result<Reply, String> {
    if Request::ENCODING == Encoding::Json {
        return |bytes, _| Reply::from_json(bytes).map_err(|error| error.to_string());
    }
    if TypeId::of::<Request>() == TypeId::of::<RelayedBytes>() {
        return |bytes, _| Reply::decode_owned(Reply::VERSION, bytes).map_err(|error| error.to_string());
    }
    |bytes, version| Reply::decode_owned(version, bytes).map_err(|error| error.to_string())
}
