//! `RouteBuilder`: describes and offers a route.

use super::forwarding;
use super::membership::DomainShared;
use super::route_control::{LocalControl, RemoteControl};
use super::served_route::{RemoteService, ServedRoute};
use crate::caller::routes::TypeKey;
use crate::context::{CallContext, CallerIdentity};
use crate::error::RpcError;
use crate::local::{EncodedOverflow, LocalOptions, LocalRoute, Overflow};
use crate::message::{Message, version_of};
use crate::options::Waiting;
use crate::outcome::Rejection;
use crate::overflow::{ElasticQueue, ElasticQueueOptions};
use crate::registry::{RouteDescription, RouteState};
use crate::route_counters::{CounterDestination, Side};
use crate::route_name;
use crate::server::attachments::ServedRemote;
use crate::server::counters::InstanceCounters;
use crate::server::interceptor::{ServerInterceptor, around, around_async};
use crate::server::puller::ServedCallers;
use crate::server::request_processor::Handler;
use crate::server::request_processor::RequestProcessor;
use crate::server::workers::{WorkerCount, WorkerGuard, WorkerHooks, Workers, serve_as_task};
use crate::spill::{Refill, Spill};
use gapless_agent::foreign::{self, catch_panic};
use gapless_agent::wake_fd;
use gapless_log::Bell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

const WORKERS_MAX: usize = 4096;

/// Processes that may call a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServeReach {
    /// This process and others.
    #[default]
    Everyone,
    /// This process only: nothing is encoded.
    ThisProcess,
    OtherProcesses,
}

type TaskSpawner = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Describes a route that this process serves; [`RouteBuilder::handle`] offers it.
#[must_use = "a route is offered by its handler"]
pub struct RouteBuilder {
    domain: Arc<DomainShared>,
    route: String,
    workers: usize,
    waiting: Waiting,
    version: String,
    metadata: Vec<(String, String)>,
    reach: ServeReach,
    hooks: WorkerHooks,
    spawn: Option<TaskSpawner>,
    queue_max: Option<usize>,
    overflow: Option<ElasticQueueOptions>,
    forwards: bool,
    interceptors: Vec<Arc<dyn ServerInterceptor>>,
    is_hidden: bool,
}

impl std::fmt::Debug for RouteBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteBuilder")
            .field("route", &self.route)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl RouteBuilder {
    pub(super) fn new(domain: Arc<DomainShared>, route: &str) -> Self {
        Self {
            domain,
            route: route.to_owned(),
            workers: 1,
            waiting: Waiting::default(),
            version: String::new(),
            metadata: Vec::new(),
            reach: ServeReach::default(),
            hooks: WorkerHooks::default(),
            spawn: None,
            queue_max: None,
            overflow: None,
            forwards: false,
            interceptors: Vec::new(),
            is_hidden: false,
        }
    }

    /// Marks a route of the library itself: its name begins with a `.`, it has no counter file, and it is listed or
    /// relayed only by name.
    pub const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// Number of requests handled concurrently, 1 to 4,096; default 1. Calls within this process have as many
    /// additional workers, started with the first call.
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Wait strategy of worker threads; default [`Waiting::Park`].
    pub const fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// The application's version of the route, for display.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Adds a name and a value to the route's metadata.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((name.into(), value.into()));
        self
    }

    /// Processes that may call it; default [`ServeReach::Everyone`].
    pub const fn reach(mut self, reach: ServeReach) -> Self {
        self.reach = reach;
        self
    }

    /// Queue limit for requests of this process, for each class: 1 to 16,777,216; default 65,536.
    pub const fn queue_max(mut self, queue_max: usize) -> Self {
        self.queue_max = Some(queue_max);
        self
    }

    /// Overflow for requests of this process beyond [`RouteBuilder::queue_max`]: encoded, spilled to disk, and taken
    /// back in the order of their class. At its limit, or if the disk does not keep up, calls end as
    /// [`crate::CallError::Busy`]. The notice in these options is not used.
    pub fn overflow(mut self, overflow: ElasticQueueOptions) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Lets handlers also forward requests of this process, each of which is then encoded and decoded once.
    pub const fn forwards(mut self) -> Self {
        self.forwards = true;
        self
    }

    /// Adds a hook around each handler, for requests of all processes; it may refuse the call. The first one added runs
    /// first before the handler and last after it.
    pub fn interceptor(mut self, interceptor: Arc<dyn ServerInterceptor>) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    /// Runs first in each worker, with its number from 0.
    pub fn init(mut self, init: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.hooks.init = Some(Arc::new(init));
        self
    }

    /// Runs last in each worker.
    pub fn done(mut self, done: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.hooks.done = Some(Arc::new(done));
        self
    }

    /// Makes the workers tasks of an executor instead of threads. `spawn` starts them, for instance `|task|
    /// drop(runtime.spawn(task))`. If `spawn` panics, the route is not served: [`RpcError::Option`], or, for calls
    /// within this process, first [`crate::CallError::Busy`] and then [`crate::CallError::NoRoute`].
    pub fn tasks(mut self, spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Offers the route.
    ///
    /// # Errors
    /// The name is invalid, this process serves the route already, options are out of range, or the machine has no
    /// threads, memory or descriptors left.
    pub fn handle<Request: Message, Reply: Message>(
        mut self,
        handler: impl Fn(Request, &CallContext) -> Result<Reply, Rejection> + Send + Sync + 'static,
    ) -> Result<ServedRoute, RpcError> {
        let interceptors = std::mem::take(&mut self.interceptors);
        self.offer(Handler::Plain(if interceptors.is_empty() {
            Arc::new(handler)
        } else {
            Arc::new(around(interceptors.into(), handler))
        }))
    }

    /// Offers the route with an asynchronous handler.
    ///
    /// # Errors
    /// Like [`RouteBuilder::handle`].
    pub fn handle_async<Request: Message, Reply: Message, Handling>(
        mut self,
        handler: impl Fn(Request, CallContext) -> Handling + Send + Sync + 'static,
    ) -> Result<ServedRoute, RpcError>
    where
        Handling: Future<Output = Result<Reply, Rejection>> + Send + 'static,
    {
        let interceptors = std::mem::take(&mut self.interceptors);
        self.offer(Handler::Async(if interceptors.is_empty() {
            Arc::new(move |request, context| Box::pin(handler(request, context)))
        } else {
            Arc::new(around_async(interceptors.into(), handler))
        }))
    }

    fn offer<Request: Message, Reply: Message>(
        self,
        handler: Handler<Request, Reply>,
    ) -> Result<ServedRoute, RpcError> {
        self.domain.check_process()?;
        if self.is_hidden { route_name::check(&self.route) } else { route_name::check_own(&self.route) }?;
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            let reason = format!("{} were found; 1 to {WORKERS_MAX} are possible", self.workers);
            return Err(RpcError::Option { option: "workers", reason });
        }
        let machine = self.domain.machine.as_ref();
        let shown = machine
            .map_or_else(CounterDestination::in_memory, |machine| machine.calling.shown(&self.route, Side::Instance));
        let counters = Arc::new(InstanceCounters::create(&self.route, &shown)?);
        let mut served = ServedRoute::new(Arc::clone(&self.domain), self.route.clone(), counters);
        if self.reach != ServeReach::OtherProcesses {
            served.overflow = self.overflow_of(&served.refill)?;
            served.control.set_local(self.offer_here(&handler, &served)?);
        }
        let has_others = match self.reach {
            ServeReach::Everyone => self.domain.machine.is_some(),
            ServeReach::ThisProcess => false,
            ServeReach::OtherProcesses => true,
        };
        if has_others {
            served.remote = Some(self.offer_to_others(handler, &served)?);
        }
        Ok(served)
    }

    fn overflow_of(&self, refill: &Refill) -> Result<Option<Arc<ElasticQueue>>, RpcError> {
        let Some(options) = self.overflow.clone() else { return Ok(None) };
        Ok(Some(Arc::new(refill.queue(options)?)))
    }

    /// The first caller within this process starts the workers.
    fn offer_here<Request: Message, Reply: Message>(
        &self,
        handler: &Handler<Request, Reply>,
        served: &ServedRoute,
    ) -> Result<Arc<dyn LocalControl>, RpcError> {
        let defaults = LocalOptions::<Request, Reply>::default();
        let queue_max = self.queue_max.unwrap_or(defaults.queue_max);
        let spill = |queue| Box::new(EncodedOverflow::new(Spill::new(queue))) as Box<dyn Overflow<Request>>;
        let (overflow, gauges) = (served.overflow.clone().map(spill), Some(Arc::clone(&served.counters.queue)));
        let forwarding = self.forwards.then(|| forwarding::of::<Request, Reply>(&self.domain));
        let caller = CallerIdentity {
            name: self.domain.process_name.clone(),
            started_ns: self.domain.started_ns,
            ..defaults.caller
        };
        let options = LocalOptions { queue_max, caller, overflow, gauges, forwarding, deadlines: defaults.deadlines };
        let domain = Arc::downgrade(&self.domain);
        let local = LocalRoute::<Request, Reply>::new_in(&self.route, options, domain)?;
        if served.overflow.is_some() {
            served.refill.set(local.refiller());
        }
        let start = {
            let (local, handler, hooks, workers) =
                (local.clone(), handler.clone(), self.hooks.clone(), Arc::clone(&served.workers));
            let (counters, worker_count) = (Arc::clone(&served.counters), Arc::clone(&served.living_here));
            let (spawn, count, waiting) = (self.spawn.clone(), self.workers, self.waiting);
            move || {
                for number in 0..count {
                    let started = start_local_worker(
                        &local,
                        (handler.clone(), Arc::clone(&counters)),
                        (hooks.clone(), number, WorkerCount::enter(&worker_count)),
                        waiting,
                        spawn.as_ref(),
                    );
                    match started {
                        Ok(thread) => workers.lock().expect("nobody panics with the lock").extend(thread),
                        Err(error) if number == 0 => return Err(format!("no worker can be started: {error}")),
                        Err(error) => {
                            tracing::error!(%error, "a route has fewer workers than it should");
                            break;
                        }
                    }
                }
                Ok(())
            }
        };
        if !self.domain.local.insert(&self.route, local.clone(), start) {
            return Err(RpcError::Served { route: self.route.clone() });
        }
        Ok(Arc::new(local))
    }

    fn offer_to_others<Request: Message, Reply: Message>(
        &self,
        handler: Handler<Request, Reply>,
        route: &ServedRoute,
    ) -> Result<RemoteService, RpcError> {
        let Some(machine) = &self.domain.machine else {
            return Err(RpcError::Option { option: "reach", reason: "this domain has no other processes".to_owned() });
        };
        let bell = Bell::create()?;
        let system = RpcError::system::<std::io::Error>;
        let passed_bell = bell.region().fd().try_clone_to_owned().map_err(system("passing a bell on"))?;
        let eventfd = wake_fd::create().map_err(RpcError::system("making an eventfd"))?;
        let passed_eventfd = eventfd.try_clone().map_err(system("passing an eventfd on"))?;
        let served = Arc::new(ServedCallers::new(bell, eventfd));
        let (request, reply) = (TypeKey::of::<Request>(), TypeKey::of::<Reply>());
        let description = RouteDescription {
            name: self.route.clone(),
            state: RouteState::Open,
            version: self.version.clone(),
            metadata: self.metadata.clone(),
            request: request.description(),
            reply: reply.description(),
            workers: self.workers as u32,
            stands_for: Vec::new(),
        };
        let answering = Arc::new(RequestProcessor {
            route: self.route.as_str().into(),
            handler,
            counters: Arc::clone(&route.counters),
            info: info_of(&description),
        });
        let remote = ServedRemote {
            served: Arc::clone(&served),
            states: Arc::clone(&route.control) as _,
            request,
            reply,
            reply_version: version_of::<Reply>,
            bell: Arc::new(passed_bell),
            eventfd: Arc::new(passed_eventfd),
        };
        if !machine.serving.insert(&self.route, Arc::new(remote)) {
            return Err(RpcError::Served { route: self.route.clone() });
        }
        let (io, serving) = (machine.io.clone(), Arc::downgrade(&machine.serving));
        route.control.set_remote(RemoteControl { served: Arc::clone(&served), io, serving });
        let control = Arc::downgrade(&route.control);
        let worker_count = WorkerCount::new(move || control.upgrade().iter().for_each(|control| control.none_left()));
        // Held until the announcement, so that a withdrawal comes after it.
        let _guard = WorkerCount::enter(&worker_count);
        let started = self.start_remote_workers(&served, &answering, &worker_count);
        let token = started.and_then(|(workers, token)| {
            machine.io.announce(description).inspect_err(|_| self.unregister(token))?;
            Ok((workers, token))
        });
        match token {
            Ok((workers, token)) => Ok(RemoteService {
                served,
                token,
                workers: Mutex::new(Some(workers)),
                worker_count: Arc::clone(&worker_count),
            }),
            Err(error) => {
                route.control.leave_others();
                Err(error)
            }
        }
    }

    fn start_remote_workers<Request: Message, Reply: Message>(
        &self,
        served: &Arc<ServedCallers>,
        answering: &Arc<RequestProcessor<Request, Reply>>,
        worker_count: &Arc<WorkerCount>,
    ) -> Result<(Workers, Option<u64>), RpcError> {
        let machine = self.domain.machine.as_ref();
        let token = machine.map(|machine| machine.calling.register_served(served)).transpose();
        let token = token.map_err(RpcError::system("watching a route's eventfd"))?;
        let Some(spawn) = &self.spawn else {
            let hooks = (&self.hooks, worker_count);
            let workers = Workers::start_threads(served, answering, self.workers, self.waiting, hooks);
            let is_lost = |_: &RpcError| self.unregister(token);
            return Ok((workers.inspect_err(is_lost)?, token));
        };
        for number in 0..self.workers {
            let hooks = (self.hooks.clone(), WorkerCount::enter(worker_count));
            let task = Box::pin(serve_as_task(Arc::clone(served), Arc::clone(answering), number, hooks));
            if let Err(panic) = catch_panic(|| spawn(task)) {
                self.unregister(token);
                return Err(RpcError::Option { option: "tasks", reason: format!("it panicked: {panic}") });
            }
        }
        Ok((Workers::default(), token))
    }

    fn unregister(&self, token: Option<u64>) {
        let machine = self.domain.machine.as_ref();
        machine.zip(token).into_iter().for_each(|(machine, token)| machine.calling.unregister_served(token));
    }
}

fn start_local_worker<Request: Message, Reply: Message>(
    local: &LocalRoute<Request, Reply>,
    (handler, counters): (Handler<Request, Reply>, Arc<InstanceCounters>),
    (hooks, number, alive): (WorkerHooks, usize, WorkerGuard),
    waiting: Waiting,
    spawn: Option<&TaskSpawner>,
) -> std::io::Result<Option<std::thread::JoinHandle<()>>> {
    if let Some(spawn) = spawn {
        let Some(mut worker) = local.worker() else { return Ok(None) };
        let task = Box::pin(async move {
            let _guard = alive;
            let _done = hooks.begin(number);
            while let Some(incoming) = std::future::poll_fn(|task| worker.poll_next(task)).await {
                handler.answer_later(incoming, &counters).await;
            }
        });
        // A panic must not reach the first caller, on whose thread this runs.
        let spawned = catch_panic(|| spawn(task));
        return spawned.map(|()| None).map_err(|panic| std::io::Error::other(format!("`tasks` panicked: {panic}")));
    }
    let local = local.clone();
    let run = move || {
        foreign::own_this_thread();
        // On the thread: dropping the last worker because a thread failed to start would end the route.
        let mut worker = local.worker();
        let _guard = alive;
        let _done = hooks.begin(number);
        while let Some(incoming) = worker.as_mut().and_then(|worker| worker.next_blocking(waiting)) {
            handler.answer(incoming, &counters);
        }
    };
    std::thread::Builder::new().name(format!("gapless-local-{number}")).spawn(run).map(Some)
}

pub(super) fn info_of(route: &RouteDescription) -> String {
    let metadata: serde_json::Map<String, serde_json::Value> =
        route.metadata.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    serde_json::json!({
        "route": route.name,
        "version": route.version,
        "metadata": metadata,
        "request": route.request.name,
        "reply": route.reply.name,
        "workers": route.workers,
        "process_id": std::process::id(),
    })
    .to_string()
}
