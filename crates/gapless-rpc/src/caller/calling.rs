//! [`Caller`]: calls, sends and broadcasts of one route.
//!
//! | module | what lives there |
//! |---|---|
//! | `broadcasts` | every copy of the route is called, or asked |
//! | `queries` | one copy is asked |
//! | `discovery` | a call of a caller that has no destination yet |
//! | `encoding` | from a request to its bytes and terms |
//! | `relayed` | requests that have come as bytes from elsewhere |
//! | `destination` | where calls go to: the route in this process, or the table of others |

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

/// How long the first call with a key waits for all copies that are there, once one is known: one that says nothing for so long takes
/// no keys.
const KEYED_SETTLE_MAX: Duration = Duration::from_millis(100);

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
    /// All copies that were there were known at a call with a key, or had not answered for a while.
    has_waited_for_all: AtomicBool,
    /// What it sends may be offered before there is a copy.
    precedes_copies: bool,
    /// How often what it calls with was forwarded before.
    hops: u8,
    /// The domain stays open for as long as it has callers.
    _keeps: Box<dyn std::any::Any + Send + Sync>,
    /// The process that made it: in a child of that process it is closed.
    made_by: ProcessMark,
}

impl Shared {
    /// An error in a child of the process that has made the caller.
    #[inline]
    fn check_process(&self) -> Result<(), CallError> {
        if self.made_by.is_here() { Ok(()) } else { Err(CallError::Closed) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // Tables and locks are its parent's.
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

    /// What it sends is offered at once, before its only copy is known; of a caller that is new.
    pub(crate) fn before_its_copy(mut self) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            (shared.settle_max, shared.precedes_copies) = (Duration::ZERO, true);
        }
        self
    }

    /// What it calls with was forwarded so often before; of a caller that is new.
    pub(crate) fn forwarding(mut self, hops: u8) -> Self {
        Arc::get_mut(&mut self.shared).into_iter().for_each(|shared| shared.hops = hops);
        self
    }

    /// The route.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.shared.key.route
    }

    /// The options of its calls that have none of their own, to be changed for one: options that are given with a call replace these as
    /// a whole.
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

    /// The counts of this process's calls of the route to other processes, of all its callers together. Calls inside this process are counted
    /// by [`crate::ServedRoute::statistics`] alone: of a route that is served here this is all zeros. The count begins with the first caller and
    /// ends a second after the last caller and call; the next caller begins at 0. Other processes read the same, up to a quarter of a second
    /// later: [`crate::domain::read_domain`]. Calls that ended before the route was served are counted for this caller only.
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

    /// Calls, and waits for the reply on this thread.
    ///
    /// # Errors
    /// How else the call ended.
    pub fn call(&self, request: Request) -> Result<Reply, CallError> {
        self.start(request).wait()
    }

    /// As [`Caller::call`], with options of its own instead of the caller's ([`Caller::call_options`]).
    ///
    /// # Errors
    /// How else the call ended.
    pub fn call_with(&self, request: Request, options: &CallOptions) -> Result<Reply, CallError> {
        self.start_with(request, options).wait()
    }

    /// Begins a call. An error that prevents it is its outcome. The function waits for nothing: the first calls of a caller are offered when
    /// the copies that there are have been heard of, or after a second. A process that does not say what it serves is waited for within the
    /// call's time, for two seconds at most: then it is [`CallError::TimedOut`], or [`CallError::Unavailable`], and names it.
    ///
    /// A call that finds no copy, or no room, is offered again while it is waited for or polled, and not otherwise.
    pub fn start(&self, request: Request) -> Call<Reply> {
        self.begin(request, &self.shared.options.call)
    }

    /// As [`Caller::start`], with options of its own instead of the caller's ([`Caller::call_options`]).
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

    /// `span` is that of the call, if somebody records it.
    fn make(&self, request: Request, options: &CallOptions, span: Option<&Span>) -> Made<Reply> {
        self.make_of(request, options, span, true)
    }

    /// `may_discover`: it may be made later, once copies have been heard of.
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
            // The reply comes to lie where the request lay.
            CallState::Remote(remote_call, _) => Ok(CallState::Remote(remote_call, request.into_buffer())),
            made => Ok(made),
        }
    }

    /// Whether a call that finds no copy waits for the route in this process, too.
    fn may_come_here(&self, options: &CallOptions) -> bool {
        self.shared.options.reach != Reach::OtherProcesses && options.wait_for_route.is_some()
    }

    /// A call whose route nobody serves yet, as far as its options let it wait.
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

    /// Offers a request, or gives it back if it is to go into the backlog.
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

    /// Sends a request whose reply nobody waits for. It waits on this thread where it finds no slot and, the first time, for copies to be
    /// heard of; within the call's time, which is counted from here. Once it is taken over, its outcome is nobody's; a copy's death may lose it, and the
    /// end of this process loses what no copy has taken yet: requests lie in their caller's memory.
    ///
    /// # Errors
    /// The reason for which it could not be offered.
    pub fn send(&self, request: Request) -> Result<(), CallError> {
        self.send_with(request, &self.shared.options.call)
    }

    /// As [`Caller::send`], with options of its own instead of the caller's ([`Caller::call_options`]).
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

/// Where a request went.
enum Offered<'backlog> {
    RemoteCall(RemoteCall),
    /// It goes into the backlog.
    Behind(&'backlog Backlog, Terms, RequestBytes),
}
