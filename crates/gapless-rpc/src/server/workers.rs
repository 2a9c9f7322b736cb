//! `Workers`: the threads and tasks of one instance of a route that pull requests of other processes.

use super::request_processor::{RequestProcessor, WorkerBuffers};
use crate::error::RpcError;
use crate::message::Message;
use crate::options::Waiting;
use crate::server::puller::{ClaimedRequest, Puller, ServedCallers};
use gapless_agent::foreign;
use gapless_agent::process_mark::ProcessMark;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// End when the route has ended.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// `init` runs first on each thread, `done` last.
    pub(crate) fn start_threads<Request: Message, Reply: Message>(
        served: &Arc<ServedCallers>,
        answering: &Arc<RequestProcessor<Request, Reply>>,
        count: usize,
        waiting: Waiting,
        (hooks, worker_count): (&WorkerHooks, &Arc<WorkerCount>),
    ) -> Result<Self, RpcError> {
        let mut workers = Self::default();
        for number in 0..count {
            let (mut puller, answering) = (Puller::new(Arc::clone(served)), Arc::clone(answering));
            let (hooks, guard) = (hooks.clone(), WorkerCount::enter(worker_count));
            let run = move || {
                foreign::own_this_thread();
                let _guard = guard;
                let _done = hooks.begin(number);
                let mut scratch = WorkerBuffers::default();
                while let Some(claimed) = next_request(&mut puller, waiting) {
                    if let Some(ready) = answering.prepare(claimed, &mut scratch) {
                        answering.handle(ready, &mut scratch);
                    }
                    scratch.trim();
                }
            };
            let thread = std::thread::Builder::new().name(format!("gapless-worker-{number}")).spawn(run);
            match thread.map_err(RpcError::system("starting a worker's thread")) {
                Ok(thread) => workers.threads.push(thread),
                Err(error) => {
                    served.end();
                    workers.join();
                    return Err(error);
                }
            }
        }
        Ok(workers)
    }

    pub(crate) fn join(self) {
        for thread in self.threads {
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a worker's thread has panicked outside of its handler");
            }
        }
    }
}

/// Threads may unwind, and executors may drop their tasks.
pub(crate) struct WorkerCount {
    made_by: ProcessMark,
    count: AtomicUsize,
    none_left: Box<dyn Fn() + Send + Sync>,
    waiting: Mutex<Option<Waker>>,
}

pub(crate) struct WorkerGuard(Arc<WorkerCount>);

impl WorkerCount {
    pub(crate) fn new(none_left: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let (made_by, count) = (ProcessMark::current(), AtomicUsize::new(0));
        Arc::new(Self { made_by, count, none_left: Box::new(none_left), waiting: Mutex::default() })
    }

    /// Ready when no worker is left; for one task at a time.
    pub(crate) fn poll_none(&self, task: &Context<'_>) -> Poll<()> {
        // The last worker takes the waker after counting down: a waker stored before the check is found.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.count.load(Ordering::Acquire) == 0 {
            return Poll::Ready(());
        }
        let before = waiting.replace(task.waker().clone());
        drop(waiting);
        // Without the lock: dropping a waker may run arbitrary code.
        drop(before);
        Poll::Pending
    }

    pub(crate) fn enter(worker_count: &Arc<Self>) -> WorkerGuard {
        // Relaxed: another worker lives, or none has begun yet.
        worker_count.count.fetch_add(1, Ordering::Relaxed);
        WorkerGuard(Arc::clone(worker_count))
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        if !self.0.made_by.is_here() {
            return;
        }
        // AcqRel: the last worker sees everything the others did.
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            (self.0.none_left)();
            let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            waiting.into_iter().for_each(foreign::wake);
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct WorkerHooks {
    pub(crate) init: Option<Arc<dyn Fn(usize) + Send + Sync>>,
    pub(crate) done: Option<Arc<dyn Fn(usize) + Send + Sync>>,
}

impl WorkerHooks {
    pub(crate) fn begin(self, number: usize) -> impl Drop {
        struct Done(WorkerHooks, usize);
        impl Drop for Done {
            fn drop(&mut self) {
                if let Some(done) = &self.0.done {
                    foreign::run("the end of a worker", || done(self.1));
                }
            }
        }
        if let Some(init) = &self.init {
            init(number);
        }
        Done(self, number)
    }
}

fn next_request(puller: &mut Puller, waiting: Waiting) -> Option<ClaimedRequest> {
    let mut looks = 0_u32;
    let mut since = None;
    while !puller.served().has_ended() {
        if let Some(claimed) = puller.take() {
            return Some(claimed);
        }
        looks = looks.wrapping_add(1);
        let spins = match waiting {
            Waiting::Spin | Waiting::SpinFor(_) if puller.served().is_suspended() => false,
            Waiting::Spin => true,
            Waiting::Park if looks == 1 => {
                puller.look_before_parking(Waiting::LOOKS_BEFORE_PARKING);
                continue;
            }
            Waiting::Park => false,
            Waiting::SpinFor(time) if looks.is_multiple_of(Waiting::LOOKS_PER_TIME) => {
                since.get_or_insert_with(Instant::now).elapsed() < time
            }
            Waiting::SpinFor(_) => true,
        };
        if spins {
            std::hint::spin_loop();
        } else {
            puller.park(Duration::MAX);
            (looks, since) = (0, None);
        }
    }
    None
}

pub(crate) async fn serve_as_task<Request: Message, Reply: Message>(
    served: Arc<ServedCallers>,
    answering: Arc<RequestProcessor<Request, Reply>>,
    number: usize,
    (hooks, _guard): (WorkerHooks, WorkerGuard),
) {
    let _done = hooks.begin(number);
    let mut puller = Puller::new(Arc::clone(&served));
    let mut scratch = WorkerBuffers::default();
    while !served.has_ended() {
        let Some(claimed) = std::future::poll_fn(|task| puller.poll_take(task)).await else { continue };
        if let Some(ready) = answering.prepare(claimed, &mut scratch) {
            answering.handle_later(ready, &mut scratch).await;
        }
        scratch.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_log::Bell;
    use gapless_testkit::wait::until;

    #[test]
    fn suspended_worker_stops_spinning() {
        for waiting in [Waiting::Spin, Waiting::SpinFor(Duration::MAX)] {
            let eventfd = gapless_agent::wake_fd::create().unwrap();
            let served = Arc::new(ServedCallers::new(Bell::create().unwrap(), eventfd));
            served.suspend();
            let mut puller = Puller::new(Arc::clone(&served));
            let worker = std::thread::spawn(move || next_request(&mut puller, waiting).is_none());
            until("its sleep", || served.is_anyone_idle());
            served.resume();
            until("its waking", || !served.is_anyone_idle());
            served.end();
            assert!(worker.join().unwrap(), "there was nothing to take");
        }
    }
}
