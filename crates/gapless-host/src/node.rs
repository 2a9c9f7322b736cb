//! [`NodeHost`]: a service on a stream of others, and the thread that polls it. Queries of other threads are answered
//! between frames.

use crate::HostError;
use crate::status::NodeStatus;
use gapless_agent::AgentFailure;
use gapless_client::QueryError;
use gapless_client::node::NodeLink;
use gapless_client::polled::MessageType;
use gapless_engine::recovery::RecoverySummary;
use gapless_engine::{EngineError, Service, StreamService};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FRAMES_PER_POLL: usize = 256;
/// Queries answered before the next poll, so that they do not keep the service from its stream.
const QUERIES_PER_POLL: usize = 64;
/// Longest sleep, and so the longest wait of a query and of a stop.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Empty polls until the thread yields, and until it sleeps.
const SPINS: u32 = 2_000;
const YIELDS: u32 = 2_200;
/// Polls of a busy node between two updates of its status.
const POLLS_PER_STATUS: u32 = 64;
/// Most waits are over by then.
const REPORTED_WAIT_MIN: Duration = Duration::from_secs(1);

/// A service of any type on its node.
pub(crate) trait NodeService: Send {
    fn poll(&mut self) -> Result<usize, EngineError>;
    fn wait(&mut self) -> Result<(), EngineError>;
    fn query(&self, query: &NodeQuery) -> Result<Vec<u8>, QueryError>;
    fn last_sequence(&self) -> u64;
    fn snapshot_sequence(&self) -> u64;
    fn dead_letter_count(&self) -> u64;
    fn released_sequence(&self) -> u64;
    fn status(&self) -> NodeStatus;
    fn stop(self: Box<Self>) -> Result<(), EngineError>;
}

impl<S: Service, L: NodeLink> NodeService for StreamService<S, L> {
    fn poll(&mut self) -> Result<usize, EngineError> {
        Self::poll(self, FRAMES_PER_POLL)
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        Self::wait(self, SLEEP_MAX)
    }

    fn query(&self, query: &NodeQuery) -> Result<Vec<u8>, QueryError> {
        let mut answer = Vec::new();
        Self::query(self, query.message, &query.payload, &mut answer)?;
        Ok(answer)
    }

    fn last_sequence(&self) -> u64 {
        Self::last_sequence(self)
    }

    fn snapshot_sequence(&self) -> u64 {
        Self::snapshot_sequence(self)
    }

    fn dead_letter_count(&self) -> u64 {
        Self::dead_letter_count(self)
    }

    fn released_sequence(&self) -> u64 {
        self.node().released_sequence()
    }

    fn status(&self) -> NodeStatus {
        let node = self.node();
        NodeStatus { state: node.state(), in_flight: node.in_flight(), waits_for: node.waits_for() }
    }

    fn stop(self: Box<Self>) -> Result<(), EngineError> {
        Self::stop(*self)
    }
}

pub(crate) struct NodeQuery {
    pub message: MessageType,
    pub payload: Vec<u8>,
}

struct WaitingQuery {
    query: NodeQuery,
    answer: Sender<Result<Vec<u8>, QueryError>>,
}

struct NodeProgress {
    is_stopped: AtomicBool,
    released: AtomicU64,
    status: Mutex<NodeStatus>,
    handled: AtomicU64,
    dead_letters: AtomicU64,
    failure: Mutex<Option<AgentFailure>>,
}

impl NodeProgress {
    fn of(service: &dyn NodeService) -> Self {
        let progress = Self {
            is_stopped: AtomicBool::new(false),
            released: AtomicU64::new(0),
            status: Mutex::new(NodeStatus { waits_for: None, ..service.status() }),
            handled: AtomicU64::new(0),
            dead_letters: AtomicU64::new(0),
            failure: Mutex::new(None),
        };
        progress.update(service);
        progress
    }

    /// `waits_since`: begin of the present wait.
    fn update_status(&self, service: &dyn NodeService, waits_since: &mut Option<Instant>) {
        let mut status = service.status();
        match status.waits_for {
            None => *waits_since = None,
            Some(_) if waits_since.get_or_insert_with(Instant::now).elapsed() >= REPORTED_WAIT_MIN => {}
            Some(_) => status.waits_for = None,
        }
        // Relaxed: a number for reports.
        self.released.store(service.released_sequence(), Ordering::Relaxed);
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    fn update(&self, service: &dyn NodeService) {
        // Relaxed: numbers for reports.
        self.handled.store(service.last_sequence(), Ordering::Relaxed);
        self.dead_letters.store(service.dead_letter_count(), Ordering::Relaxed);
    }

    fn failure(&self) -> Option<EngineError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone().map(EngineError::Stopped)
    }
}

/// Drop stops it, as [`NodeHost::stop`] does.
pub(crate) struct NodeHost {
    progress: Arc<NodeProgress>,
    queries: Sender<WaitingQuery>,
    snapshot_sequence: u64,
    thread: Option<JoinHandle<()>>,
}

impl NodeHost {
    /// # Errors
    /// No thread can be started.
    pub fn start(service: Box<dyn NodeService>) -> Result<Self, HostError> {
        let progress = Arc::new(NodeProgress::of(&*service));
        let snapshot_sequence = service.snapshot_sequence();
        let (queries, waiting) = channel();
        let of_thread = Arc::clone(&progress);
        let thread = std::thread::Builder::new().name("gapless-node".to_owned());
        let thread = thread.spawn(move || {
            let ended = match caught(|| poll_until_stopped(service, &of_thread, &waiting)) {
                Ok(service) => {
                    // A stop may take long, and answers no queries.
                    drop(waiting);
                    caught(|| service.stop())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = ended {
                let failure = AgentFailure::new("service", error);
                tracing::error!(%failure, "the service on a stream has stopped");
                *of_thread.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            }
        });
        Ok(Self { progress, queries, snapshot_sequence, thread: Some(thread.map_err(HostError::Thread)?) })
    }

    pub fn failure(&self) -> Option<EngineError> {
        self.progress.failure()
    }

    pub fn handled(&self) -> u64 {
        self.progress.handled.load(Ordering::Relaxed)
    }

    pub fn released(&self) -> u64 {
        self.progress.released.load(Ordering::Relaxed)
    }

    pub fn status(&self) -> NodeStatus {
        self.progress.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn dead_letter_count(&self) -> u64 {
        self.progress.dead_letters.load(Ordering::Relaxed)
    }

    pub fn recovered(&self) -> RecoverySummary {
        let sequence = self.snapshot_sequence;
        RecoverySummary { snapshot_sequence: sequence, last_sequence: sequence, ..RecoverySummary::default() }
    }

    /// # Errors
    /// The service refuses or fails the query, or has ended.
    pub fn query(&self, query: NodeQuery) -> Result<Vec<u8>, QueryError> {
        let (answer, answered) = channel();
        // The thread drops the sender when it stops, or after it has kept its failure.
        let gone = || {
            let reason = self.failure().map_or_else(|| "the service has stopped".to_owned(), |error| error.to_string());
            QueryError::Unavailable { reason }
        };
        self.queries.send(WaitingQuery { query, answer }).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }

    /// Returns the last handled sequence.
    ///
    /// # Errors
    /// The service failed, before or during the stop.
    pub fn stop(mut self) -> Result<u64, HostError> {
        self.join();
        self.failure().map_or_else(|| Ok(self.handled()), |failure| Err(failure.into()))
    }

    fn join(&mut self) {
        // Pairs with the Acquire load of the thread.
        self.progress.is_stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Panics are caught there.
            let _ = thread.join();
        }
    }
}

impl Drop for NodeHost {
    fn drop(&mut self) {
        self.join();
    }
}

fn caught<T>(run: impl FnOnce() -> Result<T, EngineError>) -> Result<T, Box<dyn Error + Send + Sync>> {
    catch_unwind(AssertUnwindSafe(run)).map_or_else(|_| Err("it panicked".into()), |ended| ended.map_err(Into::into))
}

fn poll_until_stopped(
    mut service: Box<dyn NodeService>,
    progress: &NodeProgress,
    queries: &Receiver<WaitingQuery>,
) -> Result<Box<dyn NodeService>, EngineError> {
    let (mut empty, mut busy, mut waits_since) = (0u32, 0u32, None);
    // Pairs with the Release store of the stopping thread.
    while !progress.is_stopped.load(Ordering::Acquire) {
        let mut answered = 0;
        for WaitingQuery { query, answer } in queries.try_iter().take(QUERIES_PER_POLL) {
            // The asking thread may be gone.
            let _ = answer.send(service.query(&query));
            answered += 1;
        }
        if service.poll()? > 0 {
            progress.update(&*service);
            empty = 0;
            busy = busy.wrapping_add(1);
            if busy.is_multiple_of(POLLS_PER_STATUS) {
                progress.update_status(&*service, &mut waits_since);
            }
            continue;
        }
        // More queries may wait.
        empty = if answered == QUERIES_PER_POLL { 0 } else { empty.saturating_add(1) };
        match empty {
            0..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => {
                progress.update_status(&*service, &mut waits_since);
                service.wait()?;
            }
        }
    }
    Ok(service)
}
