//! [`Caller`]: calls, sends and broadcasts of one route.
//!
//! | module | what lives there |
//! |---|---|
//! | `broadcasts` | calls and queries of every instance of the route |
//! | `queries` | queries of one instance |
//! | `discovery` | calls of a caller that has no destination yet |
//! | `encoding` | encoding of requests, decoding of replies |
//! | `relayed` | requests that arrived encoded from another domain |
//! | `destination` | destination of calls: the route in this process, or the table shared with other processes |

mod broadcasts;
mod destination;
mod discovery;
mod encoding;
mod queries;
mod relayed;

pub use broadcasts::{CopyAddress, CopyOutcomes};
pub(crate) use relayed::RelayedBytes;

use super::backlog::Backlog;
use super::call::{Call, CallState, Made};
use super::call_awaiting_route::{CallAwaitingRoute, not_local};
use super::caller_options::{CallerOptions, Reach};
use super::inherited::Inherited;
use super::interceptor::Interceptor;
use super::observed::Observed;
use super::remote_call::{Destination, RemoteCall, RequestBytes, Terms};
use super::routes::{LocalRoutes, RemoteRoutes, RouteKey, SETTLE_MAX, TypeKey};
use crate::error::RpcError;
use crate::local::LocalRoute;
use crate::message::Message;
use crate::options::CallOptions;
use crate::outcome::CallError;
use crate::remote::request_words::FLAG_ONE_WAY;
use crate::remote::table::{CallStatistics, TablelessCounters};
use encoding::decoder;
use gapless_agent::process_mark::ProcessMark;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::Span;

/// Longest time that the first call with a key waits for all instances, once one is known. An instance silent for
/// longer gets no keys.
const KEYED_SETTLE_MAX: Duration = Duration::from_millis(100);

/// Caller of one route. Threads may share it; a clone calls the same route, and one clone per thread shares fewer cache
/// lines.
pub struct Caller<Request, Reply> {
    shared: Arc<Shared>,
    /// Route in this process, with the version of the route table at which it was looked up.
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
    /// Version of the route table at which this process did not serve the route, so that calls to other processes take
    /// no lock to know it.
    not_local: AtomicU64,
    /// `None` if the caller must stay in this process.
    remote_routes: Option<Arc<dyn RemoteRoutes>>,
    destination: OnceLock<Destination>,
    /// Counters of calls that ended before there was a destination.
    tableless: OnceLock<Option<TablelessCounters>>,
    backlog: Option<Backlog>,
    /// Longest time that the first call waits for the existing instances.
    settle_max: Duration,
    /// A call with a key has waited for all instances, or for those that answered in time.
    has_waited_for_all: AtomicBool,
    /// Requests may be offered before there is an instance.
    precedes_copies: bool,
    /// Forwards of the requests before this caller gets them.
    hops: u8,
    /// Keeps the domain open as long as it has callers.
    _keeps: Box<dyn std::any::Any + Send + Sync>,
    /// Process that made the caller; in a forked child it is closed.
    made_by: ProcessMark,
}

impl Shared {
    /// Fails in a forked child of the process that made the caller.
    #[inline]
    fn check_process(&self) -> Result<(), CallError> {
        if self.made_by.is_here() { Ok(()) } else { Err(CallError::Closed) }
    }
}

impl Drop for Shared {
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
                has_waited_for_all: AtomicBool::new(false),
                precedes_copies: false,
                hops: 0,
                _keeps,
                made_by: ProcessMark::current(),
            }),
            local: Mutex::new((u64::MAX, None)),
        })
    }

    /// Allows offers before the only instance is known. For a new caller only.
    pub(crate) fn before_its_copy(mut self) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            (shared.settle_max, shared.precedes_copies) = (Duration::ZERO, true);
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

    /// Statistics of this process's calls of the route to other processes, summed over all its callers.
    ///
    /// Calls inside this process are counted by [`crate::ServedRoute::statistics`] alone: for a route served here all
    /// values are zero. Counting begins with the first caller and ends one second after the last caller and call; the
    /// next caller starts at 0. Other processes read the same values up to a quarter of a second later
    /// ([`crate::domain::read_domain`]). Calls that ended before the route was served are counted for this caller only.
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

    /// Starts a call without blocking. An error that prevents it becomes its outcome. The first calls of a caller are
    /// offered once the existing instances are discovered, or after a second. A process that does not announce its
    /// routes is awaited within the call's timeout, for two seconds at most; then the outcome is
    /// [`CallError::TimedOut`] or [`CallError::Unavailable`], and names the process.
    ///
    /// A call that finds no instance or no room is retried only while it is waited for or polled.
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
        let (mut observed, options) = Observed::begin(&self.shared.interceptors, &self.shared.key.route, options);
        let options = observed.ask(options);
        let made = options.and_then(|options| self.make(request, &options, observed.span()));
        self.call_of(made.unwrap_or_else(CallState::Failed), Some(observed))
    }

    /// `span` is the span of the call, if spans are recorded.
    fn make(&self, request: Request, options: &CallOptions, span: Option<&Span>) -> Made<Reply> {
        self.make_of(request, options, span, true)
    }

    /// With `may_discover`, the call may be made later, after discovery.
    #[inline]
    fn make_of(&self, request: Request, options: &CallOptions, span: Option<&Span>, may_discover: bool) -> Made<Reply> {
        self.shared.check_process()?;
        let request = match self.local()? {
            Some(local) => match local.call(request, Inherited::of(options).local_offer(options, span)) {
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
            Offered::RemoteCall(remote_call) => Ok(CallState::Remote(Box::new(remote_call), Vec::new())),
            Offered::Behind(backlog, terms, bytes) => {
                Ok(CallState::Backlog(backlog.call(to, terms, bytes)?, Arc::clone(&to.key.route)))
            }
        });
        match made? {
            CallState::Remote(remote_call, _) if remote_call.waits_for_copy() && self.may_come_here(options) => {
                await_route(request, Some(remote_call))
            }
            // The reply reuses the buffer of the request.
            CallState::Remote(remote_call, _) => Ok(CallState::Remote(remote_call, request.into_buffer())),
            made => Ok(made),
        }
    }

    /// Reports whether a call without an instance also waits for the route in this process.
    fn may_come_here(&self, options: &CallOptions) -> bool {
        self.shared.options.reach != Reach::OtherProcesses && options.wait_for_route.is_some()
    }

    /// Makes a call that waits for its route, as far as its options allow.
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
        let offer = Inherited::of(options).local_offer(options, span);
        let (route, routes) = (Arc::clone(&self.shared.key.route), Arc::clone(&self.shared.local_routes));
        Ok(CallAwaitingRoute::new((route, routes), (request, offer), elsewhere, time, is_one_way))
    }

    /// Offers a request, or returns it if it must go into the backlog.
    #[inline]
    fn offer(&self, to: &Destination, terms: Terms, bytes: (&[u8], &[u8])) -> Result<Offered<'_>, CallError> {
        let Some(backlog) = &self.shared.backlog else {
            return RemoteCall::start(to, terms, bytes).map(Offered::RemoteCall);
        };
        if backlog.has(terms.class()) {
            return Ok(Offered::Behind(backlog, terms, (bytes.0.to_vec(), bytes.1.to_vec())));
        }
        let mut remote_call = RemoteCall::start(to, terms, bytes)?;
        Ok(match remote_call.take_without_slot() {
            Some((terms, bytes)) => Offered::Behind(backlog, terms, bytes),
            None => Offered::RemoteCall(remote_call),
        })
    }

    /// Sends a one-way request. Blocks this thread if there is no free slot and, on the first request, for discovery;
    /// all within the call's timeout, which counts from here.
    ///
    /// Once the request is taken over, its outcome is dropped. The death of an instance may lose it. The end of this
    /// process loses every request that no instance has taken, for requests lie in their caller's memory.
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

    /// Like [`Caller::send_with`], but fails with [`CallError::Busy`] if there is no room by `until_ns` of the
    /// monotonic clock.
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
        self.shared.check_process()?;
        let request = match self.local()? {
            Some(local) => match local.send(request, Inherited::of(options).local_offer(options, span)) {
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
                Offered::RemoteCall(remote_call) if remote_call.waits_for_copy() && self.may_come_here(options) => {
                    return Ok(Some(Box::new(remote_call)));
                }
                Offered::RemoteCall(remote_call) => remote_call.send(until_ns),
                Offered::Behind(backlog, terms, bytes) => backlog.send(to, terms, bytes),
            }
            .map(|()| None)
        })?;
        match waits {
            Some(remote_call) => self.await_route(request, Some(remote_call), (options, span), true)?.send::<Reply>(),
            None => Ok(()),
        }
    }

    #[inline]
    fn call_of(&self, state: CallState<Reply>, observed: Option<Box<Observed>>) -> Call<Reply> {
        let (waiting, decode) = (self.shared.options.waiting, decoder::<Request, Reply>());
        Call { state, waiting, decode, observed, attempts: 0, made_by: self.shared.made_by }
    }
}

enum Offered<'backlog> {
    RemoteCall(RemoteCall),
    /// The request must go into the backlog.
    Behind(&'backlog Backlog, Terms, RequestBytes),
}
