//! Increments each byte of a request, and measures a stream at its arrival. In another role it only holds idle callers.

use super::failed;
use super::gapless_caller::waiting_of;
use super::increments::IncrementPayloads;
use super::subject::{ServingEnd, SystemEndpoint, WaitMode};
use crate::Result;
use crate::child_process::{OrphanPolicy, Parent};
use crate::peers::subject::{PeerHandler, PeerServer, REPLY_TIME_MAX, increment};
use crate::resources::process_cpu_ns;
use gapless_measure::affinity::pin_current_thread;
use gapless_rpc::{Domain, ServedRoute};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One in this many messages is compared whole, the others at their beginning.
const CHECK_EVERY: u64 = 16;
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Monotonic, ns: the same in all processes.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAssignment {
    pub endpoint: SystemEndpoint,
    pub route: String,
    pub waiting: WaitMode,
    pub task: ServerTask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTask {
    Serve { cpu: Option<usize> },
    HoldCallers { count: usize },
}

/// Each request has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerRequest {
    /// Answer: true.
    Serve,
    /// Answer: true.
    Rest,
    /// Answer: CPU time of this process, ns.
    Cpu,
    /// Expect a stream. Answer: true.
    Expect { size: usize, count: u64 },
    /// Answer: number of connected callers, if known.
    Callers,
    /// Answer: [`StreamReceipt`], once the stream is complete or stalls.
    Received,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamReceipt {
    /// Arrival of the last message by [`now_ns`]; 0 if it did not arrive.
    pub last_at_ns: u64,
    pub received: u64,
    /// Differing messages.
    pub wrong: u64,
}

pub fn main(assignment: &str) -> Result<()> {
    let ServerAssignment { endpoint, route, waiting, task } = serde_json::from_str(assignment)?;
    let parent = Parent::listen(super::NAME, OrphanPolicy::Exit)?;
    allow_all_files();
    match task {
        ServerTask::HoldCallers { count } => {
            let callers = (0..count).map(|_| endpoint.caller(&route, waiting)).collect::<Result<Vec<_>>>()?;
            parent.send(&callers.len())?;
            while parent.receive::<ServerRequest>()?.is_some() {}
            Ok(())
        }
        ServerTask::Serve { cpu } => {
            let stream = Arc::<StreamProgress>::default();
            let mut serving = ServedSystem::new(endpoint.server(&route, waiting)?, (&route, waiting, cpu), &stream)?;
            parent.send(&true)?;
            while let Some(order) = parent.receive()? {
                match order {
                    ServerRequest::Serve => serving.begin()?,
                    ServerRequest::Rest => serving.end()?,
                    ServerRequest::Expect { size, count } => stream.expect(StreamPlan { size, count }),
                    ServerRequest::Cpu => {
                        parent.send(&process_cpu_ns())?;
                        continue;
                    }
                    ServerRequest::Callers => {
                        parent.send(&serving.callers())?;
                        continue;
                    }
                    ServerRequest::Received => {
                        let received = stream.wait(&mut || serving.check_running())?;
                        parent.send(&received)?;
                        continue;
                    }
                }
                parent.send(&true)?;
            }
            serving.end()
        }
    }
}

fn allow_all_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Opening a file reports a failure.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

enum ServedSystem {
    Peer(DrivenServer),
    Gapless(ServedRoute),
}

impl ServedSystem {
    /// Starts stopped; `cpu` is for its worker.
    fn new(
        end: ServingEnd,
        (route, waiting, cpu): (&str, WaitMode, Option<usize>),
        stream: &Arc<StreamProgress>,
    ) -> Result<Self> {
        Ok(match end {
            ServingEnd::Peer(server) => Self::Peer(DrivenServer::new(server, cpu, Arc::clone(stream))),
            ServingEnd::Gapless(domain) => Self::Gapless(offer(&domain, (route, waiting, cpu), stream)?),
        })
    }

    fn begin(&mut self) -> Result<()> {
        match self {
            Self::Peer(server) => server.begin(),
            Self::Gapless(route) => route.resume().map_err(failed),
        }
    }

    fn end(&mut self) -> Result<()> {
        match self {
            Self::Peer(server) => server.end(),
            Self::Gapless(route) => route.suspend().map_err(failed),
        }
    }

    fn check_running(&self) -> Result<()> {
        match self {
            Self::Peer(server) => server.worker.check_running(),
            Self::Gapless(_) => Ok(()),
        }
    }

    fn callers(&self) -> Option<usize> {
        match self {
            Self::Peer(_) => None,
            Self::Gapless(route) => Some(route.callers()),
        }
    }
}

/// Registers a stopped route with one worker.
fn offer(
    domain: &Domain,
    (route, waiting, cpu): (&str, WaitMode, Option<usize>),
    stream: &Arc<StreamProgress>,
) -> Result<ServedRoute> {
    let (work, stream) = (Mutex::new(StreamWork::new(Arc::clone(stream))), Arc::clone(stream));
    let pin = move |_| {
        if let Some(cpu) = cpu {
            let _ = pin_current_thread(&[cpu]);
        }
    };
    let served =
        domain.serve(route).waiting(waiting_of(waiting)).init(pin).handle(move |mut bytes: Vec<u8>, _context| {
            if stream.is_expected() {
                work.lock().unwrap_or_else(PoisonError::into_inner).receive(&bytes);
                return Ok(Vec::new());
            }
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            Ok(bytes)
        });
    let served = served.map_err(failed)?;
    served.suspend().map_err(failed)?;
    Ok(served)
}

/// The thread while it serves; else the server itself.
enum ServerWorker {
    Resting(Box<dyn PeerServer>),
    Serving(JoinHandle<(Box<dyn PeerServer>, crate::peers::Result<()>)>),
    /// The worker has failed, which was reported.
    Gone,
}

impl ServerWorker {
    fn check_running(&self) -> Result<()> {
        match self {
            Self::Serving(thread) if thread.is_finished() => Err(failed("the server has ended")),
            _ => Ok(()),
        }
    }
}

struct DrivenServer {
    worker: ServerWorker,
    cpu: Option<usize>,
    stop: Arc<AtomicBool>,
    stream: Arc<StreamProgress>,
}

impl DrivenServer {
    fn new(server: Box<dyn PeerServer>, cpu: Option<usize>, stream: Arc<StreamProgress>) -> Self {
        Self { worker: ServerWorker::Resting(server), cpu, stop: Arc::default(), stream }
    }

    fn begin(&mut self) -> Result<()> {
        self.worker = match std::mem::replace(&mut self.worker, ServerWorker::Gone) {
            ServerWorker::Resting(mut server) => {
                self.stop.store(false, Ordering::Relaxed);
                let (stop, cpu) = (Arc::clone(&self.stop), self.cpu);
                let mut work = StreamWork::new(Arc::clone(&self.stream));
                ServerWorker::Serving(std::thread::spawn(move || {
                    if let Some(cpu) = cpu {
                        // A thread that cannot be pinned is slower, not wrong.
                        let _ = pin_current_thread(&[cpu]);
                    }
                    let served = server.serve(&mut work, &stop);
                    (server, served)
                }))
            }
            other => other,
        };
        self.worker.check_running()
    }

    fn end(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match std::mem::replace(&mut self.worker, ServerWorker::Gone) {
            ServerWorker::Serving(thread) => {
                let (server, served) = thread.join().map_err(|_| failed("the server panicked"))?;
                served.map_err(failed)?;
                self.worker = ServerWorker::Resting(server);
            }
            other => self.worker = other,
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StreamPlan {
    size: usize,
    count: u64,
}

#[derive(Default)]
struct StreamProgress {
    /// Changes with each plan.
    number: AtomicU64,
    is_expected: AtomicBool,
    received: AtomicU64,
    state: Mutex<(StreamPlan, Option<StreamReceipt>)>,
    is_done: Condvar,
}

impl StreamProgress {
    fn state(&self) -> MutexGuard<'_, (StreamPlan, Option<StreamReceipt>)> {
        // A panicked worker is noticed elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, plan: StreamPlan) {
        *self.state() = (plan, None);
        self.received.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `StreamWork::receive`, which then finds the plan.
        self.number.fetch_add(1, Ordering::Release);
        // Relaxed: the benchmark sends only after the answer to its order.
        self.is_expected.store(true, Ordering::Relaxed);
    }

    fn is_expected(&self) -> bool {
        self.is_expected.load(Ordering::Relaxed)
    }

    /// Waits until the stream ends, stalls for [`REPLY_TIME_MAX`], or `look` fails.
    fn wait(&self, look: &mut dyn FnMut() -> Result<()>) -> Result<StreamReceipt> {
        let received = self.wait_for_end(look);
        self.is_expected.store(false, Ordering::Relaxed);
        received
    }

    fn wait_for_end(&self, look: &mut dyn FnMut() -> Result<()>) -> Result<StreamReceipt> {
        let (mut seen, mut since) = (0, Instant::now());
        let mut state = self.state();
        loop {
            if let Some(received) = state.1 {
                return Ok(received);
            }
            state = self.is_done.wait_timeout(state, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            look()?;
            let received = self.received.load(Ordering::Relaxed);
            if received != seen {
                (seen, since) = (received, Instant::now());
            } else if since.elapsed() > REPLY_TIME_MAX && state.1.is_none() {
                return Ok(StreamReceipt { received, ..StreamReceipt::default() });
            }
        }
    }
}

struct StreamWork {
    stream: Arc<StreamProgress>,
    number: u64,
    plan: StreamPlan,
    payloads: Option<IncrementPayloads>,
    received: u64,
    wrong: u64,
}

impl StreamWork {
    fn new(stream: Arc<StreamProgress>) -> Self {
        Self { stream, number: 0, plan: StreamPlan::default(), payloads: None, received: 0, wrong: 0 }
    }

    fn begin_stream(&mut self, number: u64) {
        let plan = self.stream.state().0;
        let payloads = (plan.size > 0).then(|| IncrementPayloads::new(plan.size));
        *self = Self { stream: Arc::clone(&self.stream), number, plan, payloads, received: 0, wrong: 0 };
    }
}

impl PeerHandler for StreamWork {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        increment(request, reply);
    }

    fn receive(&mut self, message: &[u8]) {
        // Acquire: pairs with the Release in `StreamProgress::expect`.
        let number = self.stream.number.load(Ordering::Acquire);
        if number != self.number {
            self.begin_stream(number);
        }
        let Some(payloads) = &self.payloads else { return };
        let is_right = if self.received.is_multiple_of(CHECK_EVERY) {
            message == payloads.of(self.received)
        } else {
            payloads.begins(self.received, message)
        };
        self.wrong += u64::from(!is_right);
        self.received += 1;
        self.stream.received.store(self.received, Ordering::Relaxed);
        if self.received == self.plan.count {
            self.stream.state().1 =
                Some(StreamReceipt { last_at_ns: now_ns(), received: self.received, wrong: self.wrong });
            self.stream.is_done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(messages: impl Iterator<Item = Vec<u8>>) -> (Arc<StreamProgress>, StreamWork) {
        let stream = Arc::<StreamProgress>::default();
        let mut work = StreamWork::new(Arc::clone(&stream));
        stream.expect(StreamPlan { size: 3, count: 100 });
        messages.for_each(|message| work.receive(&message));
        (stream, work)
    }

    #[test]
    fn streams_are_timed_one_by_one() {
        let payloads = IncrementPayloads::new(3);
        let (stream, mut work) = received((0..100).map(|number| payloads.of(number).to_vec()));
        let found = stream.wait(&mut || Ok(())).unwrap();
        assert_eq!((found.received, found.wrong), (100, 0));
        assert!(found.last_at_ns > 0 && found.last_at_ns <= now_ns());
        stream.expect(StreamPlan { size: 1, count: 2 });
        (0..2).for_each(|number| work.receive(IncrementPayloads::new(1).of(number)));
        assert_eq!(stream.wait(&mut || Ok(())).unwrap().received, 2);
    }

    #[test]
    fn stream_faults_are_counted() {
        let payloads = IncrementPayloads::new(3);
        let all = || (0..100).map(|number| payloads.of(number).to_vec());
        let mut swapped: Vec<_> = all().collect();
        swapped.swap(40, 41);
        let mut changed: Vec<_> = all().collect();
        changed[48][2] ^= 1;
        for (messages, wrong) in [(swapped, 2), (changed, 1)] {
            let (stream, _) = received(messages.into_iter());
            assert_eq!(stream.wait(&mut || Ok(())).unwrap().wrong, wrong);
        }
        let (stream, _) = received(all().take(99));
        let error = stream.wait(&mut || Err(failed("the server has ended"))).unwrap_err().to_string();
        assert!(error.contains("has ended"), "{error}");
    }
}
