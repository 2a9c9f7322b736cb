//! [`Caller`]: calls, sends and broadcasts of one route.

use super::absent::{Absent, not_local};
use super::backlog::Backlog;
use super::call::{Call, Made, Reaching};
use super::caller_options::{CallerOptions, Reach};
use super::inherited::Inherited;
use super::interceptor::Interceptor;
use super::observed::{Observed, ask};
use super::pursuit::{Destination, Pursuit, RequestBytes, Terms};
use super::routes::{LocalRoutes, RemoteRoutes, RouteKey, TypeKey, UsedTable};
use super::settling::{MakesCall, Settling};
use crate::clock::monotonic_ns;
use crate::context::Headers;
use crate::error::RpcError;
use crate::local::LocalRoute;
use crate::message::{Encoding, Message, version_of};
use crate::options::{CallOptions, Retry};
use crate::outcome::CallError;
use crate::remote::table::{CallStatistics, End, Offer, TablelessCounters, request_length};
use crate::served::answering::{Asked, FLAG_JSON, FLAG_ONE_WAY, FLAG_TRACE_STATE, NOTICES_SHIFT, TRACE_STATE};
use gapless_agent::foreign::caught;
use gapless_log::call_table::RequestHeader;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::Span;

/// How long a caller waits for the copies that are there when it makes its first call.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Of each copy its process id, and how the call of it ended.
pub type CopyOutcomes<Reply> = Vec<(u32, Result<Reply, CallError>)>;

/// Calls one route. Threads may share it; a clone calls the same route, and threads with one each share fewer cache lines.
pub struct Caller<Request, Reply> {
    shared: Arc<Shared>,
    /// The route in this process, with the version of the routes at which that was so.
    local: Mutex<(u64, FoundHere<Request, Reply>)>,
}

type FoundHere<Request, Reply> = Option<Arc<LocalRoute<Request, Reply>>>;

impl<Request, Reply> Clone for Caller<Request, Reply> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), local: Mutex::new((u64::MAX, None)) }
    }
}

struct Shared {
    key: Arc<RouteKey>,
    options: CallerOptions,
    interceptors: Arc<[Arc<dyn Interceptor>]>,
    local_routes: Arc<LocalRoutes>,
    /// The version at which it was not served here, so that calls to other processes need no lock to know that.
    not_local: AtomicU64,
    /// `None` also where the caller stays in this process.
    remote_routes: Option<Arc<dyn RemoteRoutes>>,
    destination: OnceLock<Destination>,
    /// What is counted of calls that ended before there was a destination.
    tableless: OnceLock<Option<TablelessCounters>>,
    backlog: Option<Backlog>,
    /// How long a caller waits for the copies that are there when it makes its first call.
    settle_max: Duration,
    /// The domain stays open for as long as it has callers.
    _keeps: Box<dyn std::any::Any + Send + Sync>,
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
        let key = Arc::new(RouteKey { route, request: TypeKey::of::<Request>(), reply: TypeKey::of::<Reply>() });
        let interceptors = options.interceptors.clone().into();
        let destination = OnceLock::new();
        let not_local = AtomicU64::new(u64::MAX);
        let remote_routes = remote_routes.filter(|_| options.reach != Reach::Process);
        let _keeps = Box::new(keeps);
        Ok(Self {
            shared: Arc::new(Shared {
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
                _keeps,
            }),
            local: Mutex::new((u64::MAX, None)),
        })
    }

    /// Where copies do not answer, its first call waits so long for them; of a caller that is new.
    pub(crate) fn settling_within(mut self, settle_max: Duration) -> Self {
        Arc::get_mut(&mut self.shared).into_iter().for_each(|shared| shared.settle_max = settle_max);
        self
    }

    /// The route.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.shared.key.route
    }

    /// What this process has counted of its calls of the route to other processes, of all its callers together, since it has had
    /// one or a call of them: a second after the last of them the count ends, and the next caller begins at 0. Other processes read the
    /// same: [`crate::domain::read_calls`]. Calls that found nobody to serve the route before it was served are those of this caller.
    #[must_use]
    pub fn statistics(&self) -> CallStatistics {
        self.shared.backlog.iter().for_each(Backlog::publish);
        let without_table = self.shared.tableless.get().into_iter().flatten().map(TablelessCounters::values);
        let with_table = self.shared.destination.get().map(|to| to.table.counted());
        CallStatistics::of(&without_table.chain(with_table).flatten().collect::<Vec<_>>())
    }

    /// Calls, and waits for the reply on this thread.
    ///
    /// # Errors
    /// How else the call ended.
    pub fn call(&self, request: Request) -> Result<Reply, CallError> {
        self.start(request).wait()
    }

    /// As [`Caller::call`], with options of its own.
    ///
    /// # Errors
    /// How else the call ended.
    pub fn call_with(&self, request: Request, options: &CallOptions) -> Result<Reply, CallError> {
        self.start_with(request, options).wait()
    }

    /// Begins a call. What prevents it from being made is its outcome. It waits for nothing: the first calls of a caller are offered when
    /// the copies that there are have been heard of, or after a second.
    pub fn start(&self, request: Request) -> Call<Reply> {
        self.begin(request, &self.shared.options.call)
    }

    /// As [`Caller::start`], with options of its own.
    pub fn start_with(&self, request: Request, options: &CallOptions) -> Call<Reply> {
        self.begin(request, options)
    }

    fn begin(&self, request: Request, options: &CallOptions) -> Call<Reply> {
        if self.shared.interceptors.is_empty() && !gapless_trace::are_recorded() {
            let made = self.make(request, options, None);
            return self.call_of(made.unwrap_or_else(Reaching::Failed), None);
        }
        let (observed, options) = Observed::begin(&self.shared.interceptors, &self.shared.key.route, options);
        let options = observed.ask(options);
        let made = options.and_then(|options| self.make(request, &options, observed.span()));
        self.call_of(made.unwrap_or_else(Reaching::Failed), Some(observed))
    }

    /// `span` is that of the call, if somebody records it.
    fn make(&self, request: Request, options: &CallOptions, span: Option<&Span>) -> Made<Reply> {
        let request = match self.local()? {
            Some(local) => match local.call(request, Inherited::of(options).local_offer(options, span)) {
                Ok(call) => return Ok(Reaching::Local(call)),
                Err(unsent) => not_local(*unsent)?,
            },
            None => request,
        };
        let absent = |request, elsewhere| {
            self.absent(request, elsewhere, (options, span), false).map(|absent| Reaching::Absent(Box::new(absent)))
        };
        let Some(routes) = &self.shared.remote_routes else { return absent(request, None) };
        if self.shared.destination.get().is_none() {
            return self.settle(routes, request, options, span);
        }
        let made = self.encoded(&request, options, 0, 0, |to, terms, bytes| match self.offer(to, terms, bytes)? {
            Offered::Pursuit(pursuit) => Ok(Reaching::Remote(Box::new(pursuit), Vec::new())),
            Offered::Behind(backlog, terms, bytes) => {
                Ok(Reaching::Backlog(backlog.call(to, terms, bytes)?, Arc::clone(&to.key.route)))
            }
        });
        match made? {
            Reaching::Remote(pursuit, _) if pursuit.waits_for_copy() && self.may_come_here(options) => {
                absent(request, Some(pursuit))
            }
            // The reply comes to lie where the request lay.
            Reaching::Remote(pursuit, _) => Ok(Reaching::Remote(pursuit, request.into_buffer())),
            made => Ok(made),
        }
    }

    /// Whether a call that finds no copy waits for the route in this process, too.
    fn may_come_here(&self, options: &CallOptions) -> bool {
        self.shared.options.reach != Reach::Machine && options.wait_for_route.is_some()
    }

    /// A call whose route nobody serves yet, as far as its options let it wait.
    #[cold]
    fn absent(
        &self,
        request: Request,
        elsewhere: Option<Box<Pursuit>>,
        (options, span): (&CallOptions, Option<&Span>),
        is_one_way: bool,
    ) -> Result<Absent<Request>, CallError> {
        let Some(time) = options.wait_for_route else {
            return Err(CallError::NoRoute { route: self.route().to_owned() });
        };
        let offer = Inherited::of(options).local_offer(options, span);
        let (route, routes) = (Arc::clone(&self.shared.key.route), Arc::clone(&self.shared.local_routes));
        Ok(Absent::new((route, routes), (request, offer), elsewhere, time, is_one_way))
    }

    /// Offers a request, or gives it back if it is to go into the backlog.
    #[inline]
    fn offer(&self, to: &Destination, terms: Terms, bytes: (&[u8], &[u8])) -> Result<Offered<'_>, CallError> {
        let Some(backlog) = &self.shared.backlog else {
            return Pursuit::start(to, terms, bytes).map(Offered::Pursuit);
        };
        if backlog.has(terms.class()) {
            return Ok(Offered::Behind(backlog, terms, (bytes.0.to_vec(), bytes.1.to_vec())));
        }
        let mut pursuit = Pursuit::start(to, terms, bytes)?;
        Ok(match pursuit.take_without_slot() {
            Some((terms, bytes)) => Offered::Behind(backlog, terms, bytes),
            None => Offered::Pursuit(pursuit),
        })
    }

    /// Sends a request whose reply nobody waits for. Once it is taken over, its outcome is nobody's; a copy's death may lose it, and the
    /// end of this process loses what no copy has taken yet: requests lie in their caller's memory.
    ///
    /// # Errors
    /// What prevented it from being offered.
    pub fn send(&self, request: Request) -> Result<(), CallError> {
        self.send_with(request, &self.shared.options.call)
    }

    /// As [`Caller::send`], with options of its own.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub fn send_with(&self, request: Request, options: &CallOptions) -> Result<(), CallError> {
        self.send_until(request, options, u64::MAX)
    }

    /// As [`Caller::send_with`], but where there is no room by `until_ns` of the monotonic clock it is [`CallError::Busy`].
    pub(crate) fn send_until(&self, request: Request, options: &CallOptions, until_ns: u64) -> Result<(), CallError> {
        if self.shared.interceptors.is_empty() && !gapless_trace::are_recorded() {
            return self.offer_one_way(request, (options, None), until_ns);
        }
        let (mut observed, options) = Observed::begin(&self.shared.interceptors, &self.shared.key.route, options);
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
        let request = match self.local()? {
            Some(local) => match local.send(request, Inherited::of(options).local_offer(options, span)) {
                Ok(()) => return Ok(()),
                Err(unsent) => not_local(*unsent)?,
            },
            None => request,
        };
        if self.shared.remote_routes.is_none() {
            return self.absent(request, None, (options, span), true)?.send::<Reply>();
        }
        let waits = self.encoded(&request, options, FLAG_ONE_WAY, 0, |to, terms, bytes| {
            match self.offer(to, terms, bytes)? {
                Offered::Pursuit(pursuit) if pursuit.waits_for_copy() && self.may_come_here(options) => {
                    return Ok(Some(Box::new(pursuit)));
                }
                Offered::Pursuit(pursuit) => pursuit.send(until_ns),
                Offered::Behind(backlog, terms, bytes) => backlog.send(to, terms, bytes),
            }
            .map(|()| None)
        })?;
        match waits {
            Some(pursuit) => self.absent(request, Some(pursuit), (options, span), true)?.send::<Reply>(),
            None => Ok(()),
        }
    }

    /// As its interceptors change them.
    fn intercepted<'options>(&self, options: &'options CallOptions) -> Result<Cow<'options, CallOptions>, CallError> {
        let mut options = Cow::Borrowed(options);
        if !self.shared.interceptors.is_empty() {
            ask(&self.shared.interceptors, self.route(), options.to_mut())?;
        }
        Ok(options)
    }

    /// Calls every copy of the route in other processes, and the one in this process; an outcome for each, with the process id of
    /// the copy. Interceptors are asked once, before all of them.
    ///
    /// # Errors
    /// [`CallError::NoRoute`] if there is none, and what an interceptor refuses.
    pub fn broadcast(&self, request: &Request) -> Result<CopyOutcomes<Reply>, CallError>
    where
        Request: Clone,
    {
        let options = &self.intercepted(&self.shared.options.call)?;
        let (mut calls, none) = (Vec::new(), Arc::from([]));
        if let Some(local) = self.local()? {
            let (observed, options) = Observed::begin(&none, &self.shared.key.route, options);
            let offer = Inherited::of(&options).local_offer(&options, observed.span());
            let reach = match local.call(request.clone(), offer) {
                Ok(call) => Reaching::Local(call),
                Err(unsent) => Reaching::Failed(unsent.error),
            };
            calls.push((std::process::id(), self.call_of(reach, Some(observed))));
        }
        if let Some(routes) = &self.shared.remote_routes {
            let to = match self.destination(routes, options) {
                Err(CallError::NoRoute { .. }) if !calls.is_empty() => return Ok(Self::ends(calls)),
                found => found?,
            };
            routes.wait_until_settled(&self.shared.key, SETTLE_MAX);
            for copy in to.table.open_copies() {
                // One that has gone meanwhile is no copy any more.
                let Some(process_id) = routes.process_of(copy) else { continue };
                let (observed, options) = Observed::begin(&none, &self.shared.key.route, options);
                let pursuit = self.encoded(request, &options, 0, copy, |to, terms, bytes| {
                    // A copy that has gone does not come back under its number.
                    Pursuit::start(to, Terms { wait_for_route: Duration::ZERO, ..terms }, bytes)
                });
                let reach = match pursuit {
                    Ok(pursuit) => Reaching::Remote(Box::new(pursuit), Vec::new()),
                    Err(error) => Reaching::Failed(error),
                };
                calls.push((process_id, self.call_of(reach, Some(observed))));
            }
        }
        if calls.is_empty() {
            return Err(CallError::NoRoute { route: self.route().to_owned() });
        }
        Ok(Self::ends(calls))
    }

    fn ends(calls: Vec<(u32, Call<Reply>)>) -> CopyOutcomes<Reply> {
        calls.into_iter().map(|(process_id, call)| (process_id, call.wait())).collect()
    }

    /// Asks every copy of the route in other processes for what it says of itself, without its handler: whether it answers, what
    /// it is, what it has counted; JSON, or nothing for a ping.
    ///
    /// # Errors
    /// [`CallError::NoRoute`] if there is none.
    pub fn ask_copies(&self, asked: Asked) -> Result<Vec<Result<String, CallError>>, CallError> {
        let none = || CallError::NoRoute { route: self.route().to_owned() };
        let routes = self.shared.remote_routes.as_ref().ok_or_else(none)?;
        let options = &self.intercepted(&self.shared.options.call)?;
        let to = self.destination(routes, options)?;
        routes.wait_until_settled(&self.shared.key, SETTLE_MAX);
        let inherited = Inherited::of(options);
        let (sent_ns, deadline_ns) = (inherited.sent_ns, inherited.deadline_ns);
        let header = RequestHeader { kind: asked as u8, sent_ns, deadline_ns, ..RequestHeader::default() };
        let ask = |copy: u32| {
            let offer = Offer { header, target: copy, ..Offer::default() };
            let (timeout, wait_for_route) = (inherited.timeout, Duration::ZERO);
            let terms = Terms { offer, retry: Retry::Never, affinity: None, timeout, wait_for_route };
            Pursuit::start(to, terms, (&[], &[]))
        };
        let asked: Vec<_> = to.table.open_copies().into_iter().map(ask).collect();
        if asked.is_empty() {
            return Err(none());
        }
        let mut said = Vec::new();
        let mut answer = |pursuit: Result<Pursuit, CallError>| {
            pursuit?.wait(self.shared.options.waiting, &mut said)?;
            Ok(String::from_utf8_lossy(&said).into_owned())
        };
        Ok(asked.into_iter().map(&mut answer).collect())
    }

    #[inline]
    fn call_of(&self, reach: Reaching<Reply>, observed: Option<Box<Observed>>) -> Call<Reply> {
        let waiting = self.shared.options.waiting;
        Call { reach, waiting, decode: decoder::<Request, Reply>(), observed, attempts: 0 }
    }

    /// The route in this process, if it is served here and this caller may use it.
    fn local(&self) -> Result<FoundHere<Request, Reply>, CallError> {
        if self.shared.options.reach == Reach::Machine {
            return Ok(None);
        }
        let version = self.shared.local_routes.version();
        // Relaxed: it only repeats what was found at that version.
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

    #[inline]
    fn destination(&self, routes: &Arc<dyn RemoteRoutes>, options: &CallOptions) -> Result<&Destination, CallError> {
        match self.shared.destination.get() {
            Some(to) => Ok(to),
            None => self.find_destination(routes, options.wait_for_route.unwrap_or_default()),
        }
    }

    #[cold]
    fn find_destination(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        wait_for_route: Duration,
    ) -> Result<&Destination, CallError> {
        let Shared { key, settle_max, .. } = &*self.shared;
        routes.discover(&key.route)?;
        if wait_for_route.is_zero() {
            routes.wait_until_discovered(*settle_max);
        }
        let table = self.open_table(routes, wait_for_route)?;
        routes.wait_until_settled(key, *settle_max);
        Ok(self.set_destination(routes, table))
    }

    fn open_table(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        wait_for_route: Duration,
    ) -> Result<Arc<UsedTable>, CallError> {
        let key = &self.shared.key;
        if wait_for_route.is_zero() && !routes.may_be_served(key) {
            // Before there is a table: who makes callers of ever new names has none.
            return Err(CallError::NoRoute { route: self.route().to_owned() });
        }
        routes.table(key)
    }

    fn set_destination(&self, routes: &Arc<dyn RemoteRoutes>, table: Arc<UsedTable>) -> &Destination {
        if self.shared.backlog.is_some() {
            table.keep_reserve();
        }
        let to = Destination { routes: Arc::clone(routes), key: Arc::clone(&self.shared.key), table };
        self.shared.destination.get_or_init(|| to)
    }

    /// A call without a destination: it is made once copies have been heard of.
    #[cold]
    fn settle(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        request: Request,
        options: &CallOptions,
        span: Option<&Span>,
    ) -> Made<Reply> {
        routes.discover(self.route()).inspect_err(|error| self.count_tableless(routes, End::of(error)))?;
        let Inherited { sent_ns, deadline_ns, timeout, trace } = Inherited::of(options);
        let (caller, options, span) = (self.clone(), CallOptions { trace, ..options.clone() }, span.cloned());
        let settle_max_ns = u64::try_from(self.shared.settle_max.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = sent_ns.saturating_add(settle_max_ns);
        let until_ns = if deadline_ns == 0 { until_ns } else { until_ns.min(deadline_ns) };
        let (request, table) = (Some(request), None);
        let unmade = Unmade { caller, routes: Arc::clone(routes), table, request, options, deadline_ns, timeout, span };
        let mut settling = Settling::begin(Arc::clone(routes), unmade, until_ns);
        settling.look(None).unwrap_or(Ok(Reaching::Settling(settling)))
    }

    /// Encodes a request to the route, or to one copy of it where that is not 0, for `then`.
    fn encoded<Made>(
        &self,
        request: &Request,
        options: &CallOptions,
        flags: u32,
        copy: u32,
        then: impl FnOnce(&Destination, Terms, (&[u8], &[u8])) -> Result<Made, CallError>,
    ) -> Result<Made, CallError> {
        let Some(routes) = &self.shared.remote_routes else {
            return Err(CallError::NoRoute { route: self.route().to_owned() });
        };
        let to = self.destination(routes, options).inspect_err(|error| self.count_tableless(routes, End::of(error)))?;
        // Taken, and not borrowed: offering may wake tasks, which may call.
        let (mut user_headers, mut payload) = SCRATCH.take();
        let encoded = self.encode(to, (request, options), (flags, copy), (&mut user_headers, &mut payload));
        let made = encoded.and_then(|(terms, payload)| then(to, terms, (&user_headers, payload)));
        payload.clear();
        payload.shrink_to(BYTES_KEPT_MAX);
        SCRATCH.set((user_headers, payload));
        made
    }

    #[cold]
    fn count_tableless(&self, routes: &Arc<dyn RemoteRoutes>, end: End) {
        let counters = self.shared.tableless.get_or_init(|| routes.tableless_counters(&self.shared.key.route));
        counters.iter().for_each(|counters| counters.count(end));
    }

    fn encode<'bytes>(
        &self,
        to: &Destination,
        (request, options): (&'bytes Request, &CallOptions),
        (flags, copy): (u32, u32),
        (user_headers, payload): (&mut Vec<u8>, &'bytes mut Vec<u8>),
    ) -> Result<(Terms, &'bytes [u8]), CallError> {
        let table = &to.table;
        let bad = |reason: String| CallError::BadMessage { route: self.route().to_owned(), reason };
        user_headers.clear();
        payload.clear();
        options.headers.encode(user_headers).map_err(bad)?;
        let inherited = Inherited::of(options);
        let state = inherited.trace.state();
        if let Some(state) = state {
            Headers::default().with(TRACE_STATE, state).encode(user_headers).map_err(bad)?;
        }
        let fingerprint = table.request_fingerprint();
        let version = version_of::<Request>(fingerprint).unwrap_or(Request::VERSION);
        let payload = match request.encoded() {
            Some(bytes) if version == Request::VERSION => bytes,
            _ => {
                request.encode_as(version, payload).map_err(|error| bad(error.to_string()))?;
                payload
            }
        };
        let length = request_length(user_headers.len(), payload.len());
        let length_max = table.table().shape().payload_length_max();
        if length > length_max {
            return Err(bad(format!("a request of {length} bytes; at most {length_max} are allowed")));
        }
        let flags = flags | u32::from(self.shared.local_routes.notices()) << NOTICES_SHIFT;
        let flags = if state.is_some() { flags | FLAG_TRACE_STATE } else { flags };
        let header = RequestHeader {
            class: options.priority as u8,
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
        let terms = Terms {
            offer: Offer { header, target: copy, one_way, ..Offer::default() },
            retry: if copy == 0 { options.retry.unwrap_or(self.shared.options.retry) } else { Retry::Never },
            affinity: options.key.filter(|_| copy == 0),
            timeout: inherited.timeout,
            wait_for_route: options.wait_for_route.unwrap_or_default(),
        };
        Ok((terms, payload))
    }
}

/// A call whose caller has no destination yet.
struct Unmade<Request, Reply> {
    caller: Caller<Request, Reply>,
    routes: Arc<dyn RemoteRoutes>,
    table: Option<Arc<UsedTable>>,
    /// Until the call is made.
    request: Option<Request>,
    options: CallOptions,
    /// ns of the monotonic clock, 0 without one.
    deadline_ns: u64,
    timeout: Duration,
    span: Option<Span>,
}

impl<Request: Message, Reply: Message> Unmade<Request, Reply> {
    /// Whether its time is over.
    fn is_over(&self, now_ns: u64) -> bool {
        self.deadline_ns != 0 && now_ns >= self.deadline_ns
    }

    /// The caller has a destination after this. `None` if copies have not been heard of.
    fn settle(&mut self, is_late: bool) -> Option<Result<(), CallError>> {
        let (Self { caller, routes, .. }, now_ns) = (&*self, monotonic_ns());
        if self.is_over(now_ns) {
            let (route, after) = (caller.route().to_owned(), self.timeout);
            return Some(Err(CallError::TimedOut { route, after, begun: false }));
        }
        if caller.shared.destination.get().is_some() {
            return Some(Ok(()));
        }
        if self.table.is_none() {
            if !is_late && !routes.is_discovered() {
                return None;
            }
            match caller.open_table(routes, self.options.wait_for_route.unwrap_or_default()) {
                Ok(table) => self.table = Some(table),
                Err(error) => return Some(Err(error)),
            }
        }
        let Self { caller, routes, .. } = &*self;
        if !is_late && !routes.is_settled(&caller.shared.key) {
            return None;
        }
        self.table.take().map(|table| {
            self.caller.set_destination(&self.routes, table);
            Ok(())
        })
    }
}

impl<Request: Message, Reply: Message> MakesCall<Made<Reply>> for Unmade<Request, Reply> {
    fn make(&mut self, is_late: bool) -> Option<Made<Reply>> {
        if let Err(error) = self.settle(is_late)? {
            self.caller.count_tableless(&self.routes, End::of(&error));
            self.span = None;
            return Some(Err(error));
        }
        // The span with it: it ends with the call, and not a moment later on this thread.
        let (request, span) = (self.request.take()?, self.span.take());
        let left_ns = self.deadline_ns.saturating_sub(monotonic_ns());
        let timeout = (self.deadline_ns != 0).then(|| Duration::from_nanos(left_ns));
        let options = CallOptions { timeout, ..self.options.clone() };
        // The thread is not its caller's.
        let made = caught(|| self.caller.make(request, &options, span.as_ref())).unwrap_or_else(|reason| {
            let route = self.caller.route().to_owned();
            Err(CallError::BadMessage { route, reason })
        });
        Some(made.map(|reach| match reach {
            Reaching::Remote(mut pursuit, reply) => {
                pursuit.set_timeout(self.timeout);
                Reaching::Remote(pursuit, reply)
            }
            reach => reach,
        }))
    }

    fn give_up(&mut self) {
        let end = if self.is_over(monotonic_ns()) { End::TimedOut } else { End::Cancelled };
        self.caller.count_tableless(&self.routes, end);
    }
}

/// What becomes of a request.
enum Offered<'backlog> {
    Pursuit(Pursuit),
    /// It goes into the backlog.
    Behind(&'backlog Backlog, Terms, RequestBytes),
}

/// What a thread keeps of its buffer between two requests.
const BYTES_KEPT_MAX: usize = 1 << 20;

thread_local! {
    /// User headers and payload of the request that a thread encodes.
    static SCRATCH: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// What reads a reply: who asks in JSON is answered in JSON.
fn decoder<Request: Message, Reply: Message>() -> fn(&mut Vec<u8>, u32) -> Result<Reply, String> {
    if Request::ENCODING == Encoding::Json {
        return |bytes, _| Reply::from_json(bytes).map_err(|error| error.to_string());
    }
    |bytes, version| Reply::decode_owned(version, bytes).map_err(|error| error.to_string())
}
