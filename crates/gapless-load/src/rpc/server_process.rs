//! The process that serves: increments each byte of what it is asked, and measures a stream where it arrives. Another of
//! the same kind only holds connected callers.

use super::failed;
use super::gapless_caller::waiting_of;
use super::increments::Payloads;
use super::subject::{Endpoint, ServingEnd, Waiting};
use crate::Result;
use crate::child_process::{Parent, WhenGone};
use crate::peers::subject::{Handler, REPLY_TIME_MAX, Server, increment};
use crate::resources::process_cpu_ns;
use gapless_measure::affinity::pin_current_thread;
use gapless_rpc::{Domain, ServedRoute};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Every so many messages of a stream the whole content is compared, not only its begin.
const CHECK_EVERY: u64 = 16;
/// Between two looks whether a stream has come to its end or to a standstill.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The time, ns, by the one clock that all processes of a machine share.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The assignment of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub endpoint: Endpoint,
    pub route: String,
    pub waiting: Waiting,
    pub task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Serve, on this CPU if it is named.
    Serve { cpu: Option<usize> },
    /// Connect so many callers that call nobody.
    HoldCallers { count: usize },
}

/// What the process is asked; each has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Begin to serve. Answer: true.
    Serve,
    /// Cease to serve, until asked again. Answer: true.
    Rest,
    /// Answer: CPU time of this process, ns.
    Cpu,
    /// A stream of so many messages comes. Answer: true.
    Expect { size: usize, count: u64 },
    /// Answer: how many callers are connected, if the server knows.
    Callers,
    /// Answer: [`Received`], when all of the stream is there or nothing more comes.
    Received,
}

/// A stream as its receiver saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// When the last message arrived, by the clock that all processes share ([`now_ns`]); 0 if it did not.
    pub last_at_ns: u64,
    /// Messages that came.
    pub received: u64,
    /// Of those the ones that were not what should have come in their place.
    pub wrong: u64,
}

/// The work of the process.
///
/// # Errors
/// A malformed assignment; a system that is not there; a benchmark that has gone.
pub fn main(assignment: &str) -> Result<()> {
    let Assignment { endpoint, route, waiting, task } = serde_json::from_str(assignment)?;
    let parent = Parent::listen(super::NAME, WhenGone::Exit)?;
    allow_all_files();
    match task {
        Task::HoldCallers { count } => {
            let callers = (0..count).map(|_| endpoint.caller(&route, waiting)).collect::<Result<Vec<_>>>()?;
            parent.send(&callers.len())?;
            while parent.receive::<Order>()?.is_some() {}
            Ok(())
        }
        Task::Serve { cpu } => {
            let stream = Arc::<Stream>::default();
            let mut serving = Serving::new(endpoint.server(&route, waiting)?, (&route, waiting, cpu), &stream)?;
            parent.send(&true)?;
            while let Some(order) = parent.receive()? {
                match order {
                    Order::Serve => serving.begin()?,
                    Order::Rest => serving.end()?,
                    Order::Expect { size, count } => stream.expect(Plan { size, count }),
                    Order::Cpu => {
                        parent.send(&process_cpu_ns())?;
                        continue;
                    }
                    Order::Callers => {
                        parent.send(&serving.callers())?;
                        continue;
                    }
                    Order::Received => {
                        let received = stream.wait(&mut || serving.look())?;
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

/// As many files as the kernel allows: each caller has some.
fn allow_all_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // If it is refused, what lacks a file says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// A server that serves and rests by turns.
enum Serving {
    Peer(DrivenServer),
    Gapless(ServedRoute),
}

impl Serving {
    /// One that rests. `cpu` is its worker's.
    fn new(
        end: ServingEnd,
        (route, waiting, cpu): (&str, Waiting, Option<usize>),
        stream: &Arc<Stream>,
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

    /// An error if it has ended though nobody asked for it.
    fn look(&self) -> Result<()> {
        match self {
            Self::Peer(server) => server.worker.look(),
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

/// Offers a route of Gapless with one worker, and lets it rest.
fn offer(
    domain: &Domain,
    (route, waiting, cpu): (&str, Waiting, Option<usize>),
    stream: &Arc<Stream>,
) -> Result<ServedRoute> {
    let (work, stream) = (Mutex::new(Work::new(Arc::clone(stream))), Arc::clone(stream));
    let pin = move |_| {
        if let Some(cpu) = cpu {
            // Not to be pinned makes it slower, not wrong.
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

/// The worker's thread while there is one; its end lies with the server until it is served again.
enum Worker {
    Resting(Box<dyn Server>),
    Serving(JoinHandle<(Box<dyn Server>, crate::peers::Result<()>)>),
    /// It has failed, which was said.
    Gone,
}

impl Worker {
    /// An error if it has ended though nobody asked for it.
    fn look(&self) -> Result<()> {
        match self {
            Self::Serving(thread) if thread.is_finished() => Err(failed("the server has ended")),
            _ => Ok(()),
        }
    }
}

/// A server of another system and its thread.
struct DrivenServer {
    worker: Worker,
    cpu: Option<usize>,
    stop: Arc<AtomicBool>,
    stream: Arc<Stream>,
}

impl DrivenServer {
    fn new(server: Box<dyn Server>, cpu: Option<usize>, stream: Arc<Stream>) -> Self {
        Self { worker: Worker::Resting(server), cpu, stop: Arc::default(), stream }
    }

    fn begin(&mut self) -> Result<()> {
        self.worker = match std::mem::replace(&mut self.worker, Worker::Gone) {
            Worker::Resting(mut server) => {
                // Relaxed: the flag guards no data, here and in `end` (pairs with the load of the server).
                self.stop.store(false, Ordering::Relaxed);
                let (stop, cpu) = (Arc::clone(&self.stop), self.cpu);
                let mut work = Work::new(Arc::clone(&self.stream));
                Worker::Serving(std::thread::spawn(move || {
                    if let Some(cpu) = cpu {
                        // Not to be pinned makes it slower, not wrong.
                        let _ = pin_current_thread(&[cpu]);
                    }
                    let served = server.serve(&mut work, &stop);
                    (server, served)
                }))
            }
            other => other,
        };
        self.worker.look()
    }

    fn end(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match std::mem::replace(&mut self.worker, Worker::Gone) {
            Worker::Serving(thread) => {
                let (server, served) = thread.join().map_err(|_| failed("the server panicked"))?;
                served.map_err(failed)?;
                self.worker = Worker::Resting(server);
            }
            other => self.worker = other,
        }
        Ok(())
    }
}

/// A stream that is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plan {
    size: usize,
    count: u64,
}

/// What the worker and the thread that answers the benchmark share.
#[derive(Default)]
struct Stream {
    /// Changes with each plan.
    number: AtomicU64,
    /// Between an expectation and its end.
    is_expected: AtomicBool,
    /// How many messages have come, for the one who waits.
    received: AtomicU64,
    state: Mutex<(Plan, Option<Received>)>,
    is_done: Condvar,
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, (Plan, Option<Received>)> {
        // A worker that panicked has ended, which is seen elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, plan: Plan) {
        *self.state() = (plan, None);
        // Relaxed: only whether it changes is looked at.
        self.received.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `Work::receive`; who sees the number finds the plan.
        self.number.fetch_add(1, Ordering::Release);
        // Relaxed: the benchmark sends only when it has the answer to its order (here and where it is cleared).
        self.is_expected.store(true, Ordering::Relaxed);
    }

    /// Whether what comes is a stream's, for a system whose handler is not told.
    fn is_expected(&self) -> bool {
        self.is_expected.load(Ordering::Relaxed)
    }

    /// Waits for the end of the stream; without one, until nothing more comes for [`REPLY_TIME_MAX`] or `look` fails.
    fn wait(&self, look: &mut dyn FnMut() -> Result<()>) -> Result<Received> {
        let received = self.wait_for_end(look);
        self.is_expected.store(false, Ordering::Relaxed);
        received
    }

    fn wait_for_end(&self, look: &mut dyn FnMut() -> Result<()>) -> Result<Received> {
        let (mut seen, mut since) = (0, Instant::now());
        let mut state = self.state();
        loop {
            if let Some(received) = state.1 {
                return Ok(received);
            }
            state = self.is_done.wait_timeout(state, LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            look()?;
            // Relaxed: only whether it changes is looked at.
            let received = self.received.load(Ordering::Relaxed);
            if received != seen {
                (seen, since) = (received, Instant::now());
            } else if since.elapsed() > REPLY_TIME_MAX && state.1.is_none() {
                return Ok(Received { received, ..Received::default() });
            }
        }
    }
}

/// The work of the one worker.
struct Work {
    stream: Arc<Stream>,
    number: u64,
    plan: Plan,
    payloads: Option<Payloads>,
    received: u64,
    wrong: u64,
}

impl Work {
    fn new(stream: Arc<Stream>) -> Self {
        Self { stream, number: 0, plan: Plan::default(), payloads: None, received: 0, wrong: 0 }
    }

    /// A plan is there that is not yet known.
    fn begin_stream(&mut self, number: u64) {
        let plan = self.stream.state().0;
        let payloads = (plan.size > 0).then(|| Payloads::new(plan.size));
        *self = Self { stream: Arc::clone(&self.stream), number, plan, payloads, received: 0, wrong: 0 };
    }
}

impl Handler for Work {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        increment(request, reply);
    }

    fn receive(&mut self, message: &[u8]) {
        // Acquire: pairs with the Release in `Stream::expect`.
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
        // Relaxed: only whether it changes is looked at.
        self.stream.received.store(self.received, Ordering::Relaxed);
        if self.received == self.plan.count {
            self.stream.state().1 = Some(Received { last_at_ns: now_ns(), received: self.received, wrong: self.wrong });
            self.stream.is_done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(messages: impl Iterator<Item = Vec<u8>>) -> (Arc<Stream>, Work) {
        let stream = Arc::<Stream>::default();
        let mut work = Work::new(Arc::clone(&stream));
        stream.expect(Plan { size: 3, count: 100 });
        messages.for_each(|message| work.receive(&message));
        (stream, work)
    }

    #[test]
    fn a_whole_stream_is_timed_and_a_second_one_begins_anew() {
        let payloads = Payloads::new(3);
        let (stream, mut work) = received((0..100).map(|number| payloads.of(number).to_vec()));
        let found = stream.wait(&mut || Ok(())).unwrap();
        assert_eq!((found.received, found.wrong), (100, 0));
        assert!(found.last_at_ns > 0 && found.last_at_ns <= now_ns());
        stream.expect(Plan { size: 1, count: 2 });
        (0..2).for_each(|number| work.receive(Payloads::new(1).of(number)));
        assert_eq!(stream.wait(&mut || Ok(())).unwrap().received, 2);
    }

    #[test]
    fn what_is_lost_overtaken_or_changed_is_counted() {
        let payloads = Payloads::new(3);
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
