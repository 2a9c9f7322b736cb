//! [`LocalRoute`]: a route inside one process: where requests are offered, and workers enter.

use gapless_agent::deadlines::Deadlines;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::answer::{Answer, Desk, Forwarded, Forwarding};
use super::call::{LocalCall, Origin};
use super::gauges::QueueGauges;
use super::intake::{Intake, QueueState};
use super::offer::Offer;
use super::one_shot::OneShot;
use super::overflow::Overflow;
use super::queued::Queued;
use super::worker::LocalWorker;
use crate::context::{CallerIdentity, CallerOf, ServedIn, default_process_name};
use crate::error::RpcError;
use crate::outcome::CallError;
use crate::route_name;

/// Requests of each class that wait in memory, unless another limit is given.
pub const QUEUE_MAX: usize = 64 << 10;

/// The greatest such limit.
pub const QUEUE_MAX_MAX: usize = 1 << 24;

/// Options of a route inside one process.
pub struct LocalOptions<Request, Reply> {
    /// Requests of each class that wait in memory; beyond it the overflow takes them, else the call is `Busy`. For each class,
    /// so that a flood of what can wait does not keep out what is urgent. 1 to [`QUEUE_MAX_MAX`].
    pub queue_max: usize,
    /// What handlers learn of the caller: this process.
    pub caller: CallerIdentity,
    /// The thread that tells tasks and callbacks that their time is over.
    pub deadlines: Arc<Deadlines>,
    /// Whether handlers may forward, and how.
    pub forwarding: Option<Forwarding<Request, Reply>>,
    /// Where requests wait that have no room.
    pub overflow: Option<Box<dyn Overflow<Request>>>,
    /// Where other processes read how full the queue is, and how many requests were late.
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

/// A request that was not taken: it comes back, so that it can be offered elsewhere.
#[derive(Debug)]
pub struct Unsent<Request> {
    /// The request.
    pub request: Request,
    /// Why.
    pub error: CallError,
}

/// A forwarded request that was not taken, and why.
pub type NotAdopted<Request, Reply> = (Forwarded<Request, Reply>, CallError);

/// A route inside one process. Clones are the same route; a caller should have its own, so that callers on different cores do
/// not share a reference count.
///
/// ```
/// use gapless_rpc::Waiting;
/// use gapless_rpc::local::{LocalOptions, LocalRoute, Offer};
///
/// let route = LocalRoute::<u64, u64>::new("double", LocalOptions::default())?;
/// let mut worker = route.worker().expect("the route is open");
/// let working = std::thread::spawn(move || {
///     while let Some(incoming) = worker.next_blocking(Waiting::Park) {
///         incoming.handle(|number, _context| Ok(number * 2));
///     }
/// });
/// let call = route.call(21, Offer::default()).expect("there is room");
/// assert_eq!(call.wait(Waiting::Park), Ok(42));
/// route.drain();
/// working.join().unwrap();
/// # Ok::<(), gapless_rpc::RpcError>(())
/// ```
pub struct LocalRoute<Request, Reply> {
    intake: Arc<Intake<Request, Reply>>,
    desk: Arc<Desk<Request, Reply>>,
    origin: Arc<Origin>,
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
        let origin = Origin { route: own(&self.origin.route), deadlines: Arc::clone(&self.origin.deadlines) };
        Self { intake: Arc::clone(&self.intake), desk: Arc::clone(&self.desk), origin: Arc::new(origin) }
    }
}

impl<Request, Reply: Send + 'static> LocalRoute<Request, Reply> {
    /// A route that is open and has no workers yet: requests wait for them.
    ///
    /// # Errors
    /// What is no name, and a limit out of range.
    pub fn new(name: &str, options: LocalOptions<Request, Reply>) -> Result<Self, RpcError> {
        Self::new_in(name, options, Weak::<()>::new())
    }

    /// As [`LocalRoute::new`], of a domain.
    pub(crate) fn new_in(
        name: &str,
        options: LocalOptions<Request, Reply>,
        domain: ServedIn,
    ) -> Result<Self, RpcError> {
        route_name::check(name)?;
        let LocalOptions { queue_max, caller: identity, deadlines, forwarding, overflow, gauges } = options;
        let caller = CallerOf { identity, domain };
        if !(1..=QUEUE_MAX_MAX).contains(&queue_max) {
            let reason = format!("1 to {QUEUE_MAX_MAX} are allowed, not {queue_max}");
            return Err(RpcError::Option { option: "queue_max", reason });
        }
        Ok(Self {
            intake: Arc::new(Intake::new(name.into(), queue_max, overflow, gauges.clone())),
            desk: Arc::new(Desk { route: name.into(), caller: Arc::new(caller), forwarding, gauges }),
            origin: Arc::new(Origin { route: name.into(), deadlines }),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.origin.route
    }

    /// Offers a request whose reply is awaited. One allocation.
    ///
    /// # Errors
    /// `Busy` and `NoRoute`, with the request.
    #[inline]
    pub fn call(&self, request: Request, offer: Offer) -> Result<LocalCall<Reply>, Box<Unsent<Request>>> {
        let one_shot = Arc::new(OneShot::new());
        let (deadline_ns, timeout_ns) = (offer.deadline_ns, offer.timeout_ns);
        self.intake.push(Queued { request, one_shot: Some(Arc::clone(&one_shot)), offer }).map_err(|not_taken| {
            let (queued, error) = *not_taken;
            Box::new(Unsent { request: queued.request, error })
        })?;
        Ok(LocalCall::new(one_shot, Arc::clone(&self.origin), deadline_ns, timeout_ns))
    }

    /// Offers a request that nobody waits for. It is dropped if its time is over before it begins, or if its route ends.
    /// No allocation, apart from the queue's growth.
    ///
    /// # Errors
    /// As [`LocalRoute::call`].
    #[inline]
    pub fn send(&self, request: Request, offer: Offer) -> Result<(), Box<Unsent<Request>>> {
        self.intake.push(Queued { request, one_shot: None, offer }).map_err(|not_taken| {
            let (queued, error) = *not_taken;
            Box::new(Unsent { request: queued.request, error })
        })
    }

    /// Takes in what another route forwards; whose worker answers the caller.
    ///
    /// # Errors
    /// As [`LocalRoute::call`]: the request comes back with what is owed for it.
    pub fn adopt(&self, forwarded: Forwarded<Request, Reply>) -> Result<(), Box<NotAdopted<Request, Reply>>> {
        let Forwarded { route, request, answer } = forwarded;
        self.intake.push(answer.queue(request)).map_err(|not_taken| {
            let (queued, error) = *not_taken;
            let answer = Answer::of(queued.one_shot, &self.desk, queued.offer);
            Box::new((Forwarded { route, request: queued.request, answer }, error))
        })
    }

    /// A new worker; `None` if the route is withdrawn. When the last worker leaves, the route is withdrawn, too.
    #[must_use]
    pub fn worker(&self) -> Option<LocalWorker<Request, Reply>> {
        let number = self.intake.enter()?;
        let desk = Desk {
            route: own(&self.desk.route),
            caller: Arc::new((*self.desk.caller).clone()),
            forwarding: self.desk.forwarding.clone(),
            gauges: self.desk.gauges.clone(),
        };
        Some(LocalWorker::new(Arc::clone(&self.intake), Arc::new(desk), number))
    }
}

impl<Request, Reply> LocalRoute<Request, Reply> {
    /// What it does with requests.
    #[must_use]
    pub fn state(&self) -> QueueState {
        self.intake.state()
    }

    /// Requests that wait in memory and in the overflow.
    #[must_use]
    pub fn queued(&self) -> (usize, usize) {
        self.intake.queued()
    }

    /// Workers, and how many of them are idle.
    #[must_use]
    pub fn workers(&self) -> (usize, usize) {
        self.intake.workers()
    }

    /// Requests still come, but they wait. Handlers that have begun go on. False if the route is ending.
    pub fn suspend(&self) -> bool {
        self.intake.change(QueueState::Suspended)
    }

    /// Those that wait are served again. False if the route is ending.
    pub fn resume(&self) -> bool {
        self.intake.change(QueueState::Open)
    }

    /// No more requests come; those that wait are served, then the workers get `None`. [`LocalRoute::wait_until_left`] waits
    /// for that.
    pub fn drain(&self) {
        self.intake.change(QueueState::Draining);
    }

    /// No more requests come; those that wait end as `NotBegun`, and the workers get `None` after what they have begun.
    pub fn withdraw(&self) {
        self.intake.withdraw("its route was withdrawn");
    }

    /// Blocks until all workers have left; false after `timeout`.
    pub fn wait_until_left(&self, timeout: Option<Duration>) -> bool {
        self.intake.wait_until_left(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Brings back from the overflow what has room. Workers do so when the memory is half empty; an overflow that said
    /// [`PoppedRequest::NotYet`](super::PoppedRequest::NotYet) has it called when it is ready.
    pub fn refill(&self) {
        self.intake.refill();
    }

    #[cfg(not(loom))]
    /// [`LocalRoute::refill`] for the overflow itself, which the route holds: it does not hold the route.
    pub(crate) fn refiller(&self) -> impl Fn() + Send + Sync + 'static
    where
        Request: Send + 'static,
        Reply: Send + 'static,
    {
        let intake = Arc::downgrade(&self.intake);
        move || intake.upgrade().iter().for_each(|intake| intake.refill())
    }
}

/// The same text in memory of its own.
fn own(text: &Arc<str>) -> Arc<str> {
    Arc::from(&**text)
}
