//! [`RouteBuilder`]: a route is offered.

use super::counter_files;
use super::forwarding;
use super::membership::Shared;
use super::served_route::{LocalControl, Remote, ServedRoute};
use super::serving::ServedRemote;
use crate::caller::routes::TypeKey;
use crate::context::{CallContext, CallerIdentity};
use crate::error::RpcError;
use crate::local::{EncodedOverflow, LocalOptions, LocalRoute, LocalWorker, Overflow};
use crate::message::{Message, version_of};
use crate::options::Waiting;
use crate::outcome::Rejection;
use crate::overflow::{ElasticQueue, ElasticQueueOptions};
use crate::registry::{IoHandle, RouteDescription, RouteState};
use crate::remote::copy::ServedCallers;
use crate::route_counters::Side;
use crate::route_name;
use crate::served::answering::Answering;
use crate::served::counters::CopyCounters;
use crate::served::handler::Handler;
use crate::served::workers::{Alive, Life, Living, Workers, serve_as_task};
use crate::spill::{Refill, Spill};
use gapless_agent::wake_fd;
use gapless_log::Bell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// Workers of a copy at most.
const WORKERS_MAX: usize = 4096;

/// Who may call a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServeReach {
    /// This process and others.
    #[default]
    Everyone,
    /// This process only: nothing is encoded.
    Process,
    /// Other processes only.
    Machine,
}

/// Starts a task on the application's executor.
type Spawn = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Describes a route that this process serves; [`RouteBuilder::handle`] offers it.
#[must_use = "a route is offered by its handler"]
pub struct RouteBuilder {
    domain: Arc<Shared>,
    route: String,
    workers: usize,
    waiting: Waiting,
    version: String,
    metadata: Vec<(String, String)>,
    reach: ServeReach,
    life: Life,
    spawn: Option<Spawn>,
    queue_max: Option<usize>,
    overflow: Option<ElasticQueueOptions>,
    forwards: bool,
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
    pub(super) fn new(domain: Arc<Shared>, route: &str) -> Self {
        Self {
            domain,
            route: route.to_owned(),
            workers: 1,
            waiting: Waiting::default(),
            version: String::new(),
            metadata: Vec::new(),
            reach: ServeReach::default(),
            life: Life::default(),
            spawn: None,
            queue_max: None,
            overflow: None,
            forwards: false,
            is_hidden: false,
        }
    }

    /// It is no application's: it may have such a name, and has no file of counters.
    pub(super) const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// So many requests are handled at one time, 1 to 4,096; 1 without a word. Calls of this process have as many workers of their
    /// own, which are started with the first of them.
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How workers wait for requests.
    pub const fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// The application's version of the route, for people.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Something that the application says of it.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((name.into(), value.into()));
        self
    }

    /// Who may call it.
    pub const fn reach(mut self, reach: ServeReach) -> Self {
        self.reach = reach;
        self
    }

    /// Requests of this process that may wait in memory, for each class.
    pub const fn queue_max(mut self, queue_max: usize) -> Self {
        self.queue_max = Some(queue_max);
        self
    }

    /// Requests of this process beyond [`RouteBuilder::queue_max`] go, encoded, into a queue whose rest lies on disk, and come back in
    /// the order of their class. Its limit, or a disk that does not keep up, is [`crate::CallError::Busy`]. The options' own notice
    /// is not used.
    pub fn overflow(mut self, overflow: ElasticQueueOptions) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Its handlers may forward requests of this process, too, whose values they take: each is encoded and decoded once, to be kept.
    pub const fn forwards(mut self) -> Self {
        self.forwards = true;
        self
    }

    /// Runs first in each worker, with its number from 0.
    pub fn init(mut self, init: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.life.init = Some(Arc::new(init));
        self
    }

    /// Runs last in each worker.
    pub fn done(mut self, done: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.life.done = Some(Arc::new(done));
        self
    }

    /// Its workers are tasks of an executor, which `spawn` starts, for instance `|task| drop(runtime.spawn(task))`; without this
    /// they are threads.
    pub fn tasks(mut self, spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Offers the route.
    ///
    /// # Errors
    /// A name that no route can have, a route that this process serves already, options out of range, a machine without threads,
    /// memory or descriptors.
    pub fn handle<Request: Message, Reply: Message>(
        self,
        handler: impl Fn(Request, &CallContext) -> Result<Reply, Rejection> + Send + Sync + 'static,
    ) -> Result<ServedRoute, RpcError> {
        self.offer(Handler::Plain(Arc::new(handler)))
    }

    /// Offers the route with a handler that gives a future.
    ///
    /// # Errors
    /// As [`RouteBuilder::handle`].
    pub fn handle_async<Request: Message, Reply: Message, Handling>(
        self,
        handler: impl Fn(Request, CallContext) -> Handling + Send + Sync + 'static,
    ) -> Result<ServedRoute, RpcError>
    where
        Handling: Future<Output = Result<Reply, Rejection>> + Send + 'static,
    {
        self.offer(Handler::Async(Arc::new(move |request, context| Box::pin(handler(request, context)))))
    }

    fn offer<Request: Message, Reply: Message>(
        self,
        handler: Handler<Request, Reply>,
    ) -> Result<ServedRoute, RpcError> {
        if self.is_hidden { route_name::check(&self.route) } else { route_name::check_own(&self.route) }?;
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            let reason = format!("{} were found; 1 to {WORKERS_MAX} are possible", self.workers);
            return Err(RpcError::Option { option: "workers", reason });
        }
        let machine = self.domain.machine.as_ref().filter(|_| !self.is_hidden);
        let path = machine.map(|machine| counter_files::new_path(&machine.directory, Side::Copy));
        let counters = Arc::new(CopyCounters::create(&self.route, path.as_deref())?);
        let mut served = ServedRoute::new(Arc::clone(&self.domain), self.route.clone(), counters);
        if self.reach != ServeReach::Machine {
            served.overflow = self.overflow_of(&served.refill)?;
            served.local = Some(self.offer_here(&handler, &served)?);
        }
        let has_others = match self.reach {
            ServeReach::Everyone => self.domain.machine.is_some(),
            ServeReach::Process => false,
            ServeReach::Machine => true,
        };
        if has_others {
            served.remote = Some(self.offer_to_others(handler, &served)?);
        }
        Ok(served)
    }

    /// Where requests of this process go that have no room; `refill` is told when they have come back.
    fn overflow_of(&self, refill: &Refill) -> Result<Option<Arc<ElasticQueue>>, RpcError> {
        let Some(options) = self.overflow.clone() else { return Ok(None) };
        Ok(Some(Arc::new(refill.queue(options)?)))
    }

    /// For callers of this process. Its workers are started with the first caller.
    fn offer_here<Request: Message, Reply: Message>(
        &self,
        handler: &Handler<Request, Reply>,
        served: &ServedRoute,
    ) -> Result<Box<dyn LocalControl>, RpcError> {
        let defaults = LocalOptions::<Request, Reply>::default();
        let queue_max = self.queue_max.unwrap_or(defaults.queue_max);
        let spill = |queue| Box::new(EncodedOverflow::new(Spill::new(queue))) as Box<dyn Overflow<Request>>;
        let (overflow, gauges) = (served.overflow.clone().map(spill), Some(Arc::clone(&served.counters.queue)));
        let forwarding = self.forwards.then(|| forwarding::of::<Request, Reply>(&self.domain));
        let caller = CallerIdentity { started_ns: self.domain.started_ns, ..defaults.caller };
        let options = LocalOptions { queue_max, caller, overflow, gauges, forwarding, deadlines: defaults.deadlines };
        let domain = Arc::downgrade(&self.domain);
        let local = LocalRoute::<Request, Reply>::new_in(&self.route, options, domain)?;
        if served.overflow.is_some() {
            served.refill.set(local.refiller());
        }
        let start = {
            let (local, handler, life, workers) =
                (local.clone(), handler.clone(), self.life.clone(), Arc::clone(&served.workers));
            let (counters, living) = (Arc::clone(&served.counters), Arc::clone(&served.living_here));
            let (spawn, count, waiting) = (self.spawn.clone(), self.workers, self.waiting);
            move || {
                for number in 0..count {
                    let (Some(worker), handler, life) = (local.worker(), handler.clone(), life.clone()) else { return };
                    let started = start_local_worker(
                        worker,
                        (handler, Arc::clone(&counters)),
                        (life, number, Living::enter(&living)),
                        waiting,
                        spawn.as_ref(),
                    );
                    match started {
                        Ok(thread) => workers.lock().expect("nobody panics with the lock").extend(thread),
                        Err(error) => return tracing::error!(%error, "a route has fewer workers than it should"),
                    }
                }
            }
        };
        if !self.domain.local.insert(&self.route, local.clone(), start) {
            return Err(RpcError::Served { route: self.route.clone() });
        }
        Ok(Box::new(local))
    }

    fn offer_to_others<Request: Message, Reply: Message>(
        &self,
        handler: Handler<Request, Reply>,
        route: &ServedRoute,
    ) -> Result<Remote, RpcError> {
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
        };
        let answering = Arc::new(Answering {
            route: self.route.as_str().into(),
            handler,
            counters: Arc::clone(&route.counters),
            info: info_of(&description),
        });
        let remote = ServedRemote {
            served: Arc::clone(&served),
            request,
            reply,
            reply_version: version_of::<Reply>,
            bell: Arc::new(passed_bell),
            eventfd: Arc::new(passed_eventfd),
        };
        if !machine.serving.insert(&self.route, Arc::new(remote)) {
            return Err(RpcError::Served { route: self.route.clone() });
        }
        let living = {
            let (served, io, route) = (Arc::downgrade(&served), machine.io.clone(), self.route.clone());
            Living::new(move || served.upgrade().iter().for_each(|served| none_left(served, &io, &route)))
        };
        // Until it is announced, so that it is withdrawn after that.
        let _alive = Living::enter(&living);
        let started = self.start_remote_workers(&served, &answering, &living);
        let token = started.and_then(|(workers, token)| {
            machine.io.announce(description).inspect_err(|_| self.unregister(token))?;
            Ok((workers, token))
        });
        match token {
            Ok((workers, token)) => {
                Ok(Remote { served, token, workers: Mutex::new(Some(workers)), living: Arc::clone(&living) })
            }
            Err(error) => {
                machine.serving.remove(&self.route);
                served.end();
                Err(error)
            }
        }
    }

    fn start_remote_workers<Request: Message, Reply: Message>(
        &self,
        served: &Arc<ServedCallers>,
        answering: &Arc<Answering<Request, Reply>>,
        living: &Arc<Living>,
    ) -> Result<(Workers, Option<u64>), RpcError> {
        let machine = self.domain.machine.as_ref();
        let token = machine.map(|machine| machine.calling.register_served(served)).transpose();
        let token = token.map_err(RpcError::system("watching a route's eventfd"))?;
        let Some(spawn) = &self.spawn else {
            let life = (&self.life, living);
            let workers = Workers::start_threads(served, answering, self.workers, self.waiting, life);
            let is_lost = |_: &RpcError| self.unregister(token);
            return Ok((workers.inspect_err(is_lost)?, token));
        };
        for number in 0..self.workers {
            let life = (self.life.clone(), Living::enter(living));
            spawn(Box::pin(serve_as_task(Arc::clone(served), Arc::clone(answering), number, life)));
        }
        Ok((Workers::default(), token))
    }

    fn unregister(&self, token: Option<u64>) {
        let machine = self.domain.machine.as_ref();
        machine.zip(token).into_iter().for_each(|(machine, token)| machine.calling.unregister_served(token));
    }
}

/// The last worker has gone. If its route goes on, nobody serves it any more, and its callers are told.
fn none_left(served: &ServedCallers, io: &IoHandle, route: &str) {
    if served.has_ended() {
        return;
    }
    tracing::error!(route, "a route is withdrawn, because its last worker has panicked or was dropped");
    served.end();
    if let Err(error) = io.change_state(route, RouteState::Gone) {
        tracing::debug!(%error, "callers are not told that a route is gone");
    }
}

/// Starts one worker for the calls of this process.
fn start_local_worker<Request: Message, Reply: Message>(
    mut worker: LocalWorker<Request, Reply>,
    (handler, counters): (Handler<Request, Reply>, Arc<CopyCounters>),
    (life, number, alive): (Life, usize, Alive),
    waiting: Waiting,
    spawn: Option<&Spawn>,
) -> std::io::Result<Option<std::thread::JoinHandle<()>>> {
    if let Some(spawn) = spawn {
        spawn(Box::pin(async move {
            let _alive = alive;
            let _done = life.begin(number);
            while let Some(incoming) = std::future::poll_fn(|task| worker.poll_next(task)).await {
                handler.answer_later(incoming, &counters).await;
            }
        }));
        return Ok(None);
    }
    let run = move || {
        let _alive = alive;
        let _done = life.begin(number);
        while let Some(incoming) = worker.next_blocking(waiting) {
            handler.answer(incoming, &counters);
        }
    };
    std::thread::Builder::new().name(format!("gapless-local-{number}")).spawn(run).map(Some)
}

/// What a copy says of itself.
fn info_of(route: &RouteDescription) -> String {
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
