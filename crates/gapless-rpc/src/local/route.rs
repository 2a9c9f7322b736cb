//! `LocalRoute`: a route inside one process, which takes requests and workers.

use gapless_agent::deadlines::Deadlines;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::answer::{ForwardSupport, ForwardedRequest, ReplySender, WorkerContext};
use super::call::{CallerContext, LocalCall};
use super::gauges::QueueGauges;
use super::intake::{Intake, QueueState};
use super::offer::LocalOffer;
use super::one_shot::OneShot;
use super::overflow::Overflow;
use super::queued::QueuedRequest;
use super::worker::LocalWorker;
use crate::context::{CallerIdentity, CallerWithDomain, DomainHandle, default_process_name};
use crate::error::RpcError;
use crate::outcome::CallError;
use crate::route_name;

/// Default limit of requests in memory, for each class.
pub const QUEUE_MAX: usize = 64 << 10;

/// Largest allowed limit.
pub const QUEUE_MAX_MAX: usize = 1 << 24;

/// Options of a route inside one process.
pub struct LocalOptions<Request, Reply> {
    /// Limit of requests in memory for each class, 1 to [`QUEUE_MAX_MAX`]; beyond it they go to the overflow, or the
    /// call ends as `Busy`.
    pub queue_max: usize,
    /// Identity that handlers see as the caller: this process.
    pub caller: CallerIdentity,
    /// Thread that expires tasks and callbacks.
    pub deadlines: Arc<Deadlines>,
    /// Forwarding hook, if handlers may forward.
    pub forwarding: Option<ForwardSupport<Request, Reply>>,
    /// Storage for requests beyond the limit.
    pub overflow: Option<Box<dyn Overflow<Request>>>,
    /// Counters of queue length and expired requests, read by other processes.
    pub gauges: Option<Arc<QueueGauges>>,
}

impl<Request, Reply> fmt::Debug for LocalOptions<Request, Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalOptions").field("queue_max", &self.queue_max).finish_non_exhaustive()
    }
}

impl<Request, Reply> Default for LocalOptions<Request, Reply> {
    fn default() -> Self {
        let (name, process_id, user_id) =
            (default_process_name(), std::process::id(), rustix::process::getuid().as_raw());
        Self {
            queue_max: QUEUE_MAX,
            caller: CallerIdentity { name, process_id, user_id, started_ns: 0 },
            deadlines: Deadlines::of_process(),
            forwarding: None,
            overflow: None,
            gauges: None,
        }
    }
}

/// A rejected request, returned so that it can be offered elsewhere.
#[derive(Debug)]
pub struct UnsentRequest<Request> {
    pub request: Request,
    pub error: CallError,
}

/// A rejected forward, and the reason.
pub type RejectedForward<Request, Reply> = (ForwardedRequest<Request, Reply>, CallError);

/// A route inside one process. Each caller should have its own clone, so that callers on different cores do not share a
/// reference count.
///
/// ```
/// use gapless_rpc::Waiting;
/// use gapless_rpc::local::{LocalOptions, LocalRoute, LocalOffer};
///
/// let route = LocalRoute::<u64, u64>::new("double", LocalOptions::default())?;
/// let mut worker = route.worker().expect("the route is open");
/// let working = std::thread::spawn(move || {
///     while let Some(incoming) = worker.next_blocking(Waiting::Park) {
///         incoming.handle(|number, _context| Ok(number * 2));
///     }
/// });
/// let call = route.call(21, LocalOffer::default()).expect("there is room");
/// assert_eq!(call.wait(Waiting::Park), Ok(42));
/// route.drain();
/// working.join().unwrap();
/// # Ok::<(), gapless_rpc::RpcError>(())
/// ```
pub struct LocalRoute<Request, Reply> {
    intake: Arc<Intake<Request, Reply>>,
    desk: Arc<WorkerContext<Request, Reply>>,
    origin: Arc<CallerContext>,
}

impl<Request, Reply> fmt::Debug for LocalRoute<Request, Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queued, spilled) = self.intake.queued();
        let route = &self.desk.route;
        f.debug_struct("LocalRoute").field("route", route).field("queued", &queued).field("spilled", &spilled).finish()
    }
}

impl<Request, Reply> Clone for LocalRoute<Request, Reply> {
    fn clone(&self) -> Self {
        let origin = CallerContext { route: own(&self.origin.route), deadlines: Arc::clone(&self.origin.deadlines) };
        Self { intake: Arc::clone(&self.intake), desk: Arc::clone(&self.desk), origin: Arc::new(origin) }
    }
}

impl<Request, Reply: Send + 'static> LocalRoute<Request, Reply> {
    /// An open route without workers: requests wait for them.
    ///
    /// # Errors
    /// The name is invalid, or a limit out of range.
    pub fn new(name: &str, options: LocalOptions<Request, Reply>) -> Result<Self, RpcError> {
        Self::new_in(name, options, Weak::<()>::new())
    }

    pub(crate) fn new_in(
        name: &str,
        options: LocalOptions<Request, Reply>,
        domain: DomainHandle,
    ) -> Result<Self, RpcError> {
        route_name::check(name)?;
        let LocalOptions { queue_max, caller: identity, deadlines, forwarding, overflow, gauges } = options;
        let caller = CallerWithDomain { identity, domain };
        if !(1..=QUEUE_MAX_MAX).contains(&queue_max) {
            let reason = format!("1 to {QUEUE_MAX_MAX} are allowed, not {queue_max}");
            return Err(RpcError::Option { option: "queue_max", reason });
        }
        Ok(Self {
            intake: Arc::new(Intake::new(name.into(), queue_max, overflow, gauges.clone())),
            desk: Arc::new(WorkerContext { route: name.into(), caller: Arc::new(caller), forwarding, gauges }),
            origin: Arc::new(CallerContext { route: name.into(), deadlines }),
        })
    }

    /// Name of the route.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.origin.route
    }

    /// Offers a request whose reply is awaited. Costs one allocation.
    ///
    /// # Errors
    /// `Busy` and `NoRoute`, with the request.
    #[inline]
    pub fn call(&self, request: Request, offer: LocalOffer) -> Result<LocalCall<Reply>, Box<UnsentRequest<Request>>> {
        let one_shot = Arc::new(OneShot::new());
        let (deadline_ns, timeout_ns) = (offer.deadline_ns, offer.timeout_ns);
        self.intake.push(QueuedRequest { request, one_shot: Some(Arc::clone(&one_shot)), offer }).map_err(
            |not_taken| {
                let (queued, error) = *not_taken;
                Box::new(UnsentRequest { request: queued.request, error })
            },
        )?;
        Ok(LocalCall::new(one_shot, Arc::clone(&self.origin), deadline_ns, timeout_ns))
    }

    /// Offers a one-way request, without allocation. It is dropped if its deadline passes before it begins, or if the
    /// route ends.
    ///
    /// # Errors
    /// Like [`LocalRoute::call`].
    #[inline]
    pub fn send(&self, request: Request, offer: LocalOffer) -> Result<(), Box<UnsentRequest<Request>>> {
        self.intake.push(QueuedRequest { request, one_shot: None, offer }).map_err(|not_taken| {
            let (queued, error) = *not_taken;
            Box::new(UnsentRequest { request: queued.request, error })
        })
    }

    /// Takes a request that another route forwards.
    ///
    /// # Errors
    /// Like [`LocalRoute::call`]: the request comes back with its answer.
    pub fn adopt(
        &self,
        forwarded: ForwardedRequest<Request, Reply>,
    ) -> Result<(), Box<RejectedForward<Request, Reply>>> {
        let ForwardedRequest { route, request, answer } = forwarded;
        self.intake.push(answer.queue(request)).map_err(|not_taken| {
            let (queued, error) = *not_taken;
            let answer = ReplySender::of(queued.one_shot, &self.desk, queued.offer);
            Box::new((ForwardedRequest { route, request: queued.request, answer }, error))
        })
    }

    /// Adds a worker; `None` if the route is withdrawn. When the last worker leaves, the route is withdrawn.
    #[must_use]
    pub fn worker(&self) -> Option<LocalWorker<Request, Reply>> {
        let number = self.intake.enter()?;
        let desk = WorkerContext {
            route: own(&self.desk.route),
            caller: Arc::new((*self.desk.caller).clone()),
            forwarding: self.desk.forwarding.clone(),
            gauges: self.desk.gauges.clone(),
        };
        Some(LocalWorker::new(Arc::clone(&self.intake), Arc::new(desk), number))
    }
}

impl<Request, Reply> LocalRoute<Request, Reply> {
    /// State of the queue.
    #[must_use]
    pub fn state(&self) -> QueueState {
        self.intake.state()
    }

    /// Number of requests in memory and in the overflow.
    #[must_use]
    pub fn queued(&self) -> (usize, usize) {
        self.intake.queued()
    }

    /// Number of workers, and of idle ones.
    #[must_use]
    pub fn workers(&self) -> (usize, usize) {
        self.intake.workers()
    }

    /// Requests still enter, but wait; handlers that have begun go on. False if the route is ending.
    pub fn suspend(&self) -> bool {
        self.intake.change(QueueState::Suspended)
    }

    /// Serves queued requests again. False if the route is ending.
    pub fn resume(&self) -> bool {
        self.intake.change(QueueState::Open)
    }

    /// Refuses new requests and serves queued ones; then the workers get `None`.
    pub fn drain(&self) {
        self.intake.change(QueueState::Draining);
    }

    /// Refuses new requests and ends queued ones as `NotBegun`; the workers get `None` after the requests that they
    /// have begun.
    pub fn withdraw(&self) {
        self.intake.withdraw("its route was withdrawn");
    }

    /// Blocks until all workers have left; false after `timeout`.
    pub fn wait_until_left(&self, timeout: Option<Duration>) -> bool {
        self.intake.wait_until_left(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Takes requests back from the overflow while there is room. Workers do so when the memory is half empty; after
    /// [`PoppedRequest::NotYet`](super::PoppedRequest::NotYet) the overflow calls it.
    pub fn refill(&self) {
        self.intake.refill();
    }

    #[cfg(not(loom))]
    /// [`LocalRoute::refill`] as a closure for the overflow, which the route owns; holds only a weak reference.
    pub(crate) fn refiller(&self) -> impl Fn() + Send + Sync + 'static
    where
        Request: Send + 'static,
        Reply: Send + 'static,
    {
        let intake = Arc::downgrade(&self.intake);
        move || intake.upgrade().iter().for_each(|intake| intake.refill())
    }
}

fn own(text: &Arc<str>) -> Arc<str> {
    Arc::from(&**text)
}
