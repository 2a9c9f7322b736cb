//! One duty cycle: read the clock once, poll each agent, sum the work; idle when it is 0. An agent's error or panic
//! ends the thread and closes its agents; the owner sees it at `join`, and so do all threads that share the failure
//! slot.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use crate::agent::Agent;
use crate::clock::Clock;
use crate::cpu_mask::{CpuMask, PinWarning};
use crate::error::Error;
use crate::failure::{AgentFailure, FailureSlot};
use crate::group::AgentGroup;
use crate::idle::{Idle, IdleAction, IdleStrategy};
use crate::pauses::{PauseTracker, Pauses, SharedPauses};
use crate::wake::Waker;

#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSpec {
    /// The system shows the first 15 bytes.
    pub name: String,
    /// Spins forever, whatever `idle` says: a core at 100 %.
    pub hot: bool,
    pub idle: IdleStrategy,
    pub cpus: Option<CpuMask>,
    /// Longest drain of an orderly stop, ns.
    pub drain_ns_max: u64,
}

impl ThreadSpec {
    /// Not hot, not pinned, default idle strategy, 10 s to drain.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            hot: false,
            idle: IdleStrategy::default(),
            cpus: None,
            drain_ns_max: 10_000_000_000,
        }
    }

    /// [`IdleStrategy::Spin`] for a hot thread.
    #[must_use]
    pub fn effective_idle(&self) -> IdleStrategy {
        if self.hot { IdleStrategy::Spin } else { self.idle }
    }
}

/// Dropping it stops and joins it.
#[derive(Debug)]
pub struct AgentThread {
    spec: ThreadSpec,
    control: Arc<ThreadControl>,
    waker: Waker,
    failures: FailureSlot,
    thread_id: i32,
    pin_warning: Option<PinWarning>,
    handle: Option<JoinHandle<Option<AgentFailure>>>,
}

#[derive(Debug, Default)]
struct ThreadControl {
    stop: AtomicBool,
    final_cpu_ns: AtomicU64,
    pauses: SharedPauses,
}

impl AgentThread {
    /// Starts a thread with its own failure slot; see [`AgentThread::spawn_sharing`].
    ///
    /// # Errors
    /// [`Error::ThreadStart`].
    pub fn spawn(
        spec: ThreadSpec,
        agents: Vec<Box<dyn Agent>>,
        clock: Clock,
        waker: Waker,
    ) -> Result<AgentThread, Error> {
        Self::spawn_sharing(spec, agents, clock, waker, &FailureSlot::new())
    }

    /// Starts a thread that polls `agents` in order, and stops when any thread sharing `failures` fails. Returns once
    /// the thread is pinned or has a [`PinWarning`]; the agents start after that, on their thread. `waker` must belong
    /// to this thread alone; senders of work get clones.
    /// # Errors
    /// [`Error::ThreadStart`] if the system starts no more threads.
    pub fn spawn_sharing(
        spec: ThreadSpec,
        agents: Vec<Box<dyn Agent>>,
        clock: Clock,
        waker: Waker,
        failures: &FailureSlot,
    ) -> Result<AgentThread, Error> {
        let control = Arc::new(ThreadControl::default());
        let idle = spec.effective_idle();
        if !idle.parks() {
            waker.set_never_parks();
        }
        failures.watch(&waker);
        let mut runner = ThreadRunner {
            group: AgentGroup::new(agents),
            idle: Idle::new(idle),
            clock,
            waker: waker.clone(),
            failures: failures.clone(),
            control: control.clone(),
            pauses: PauseTracker::default(),
            name: spec.name.clone(),
            drain_ns_max: spec.drain_ns_max,
        };
        let cpus = spec.cpus;
        let (ready, started) = mpsc::sync_channel(1);
        let handle = std::thread::Builder::new()
            .name(spec.name.replace('\0', "?"))
            .spawn(move || {
                let pinned = cpus.map_or(Ok(()), |cpus| cpus.pin_current_thread());
                let _ = ready.send((gettid().as_raw_nonzero().get(), pinned.err()));
                runner.run()
            })
            .map_err(|source| Error::ThreadStart { thread: spec.name.clone(), source })?;
        let (thread_id, pin_warning) = started.recv().map_err(|_| Error::ThreadStart {
            thread: spec.name.clone(),
            source: io::Error::other("it ended before it reported"),
        })?;
        let failures = failures.clone();
        Ok(AgentThread { spec, control, waker, failures, thread_id, pin_warning, handle: Some(handle) })
    }

    /// Requests an orderly stop: agents are closed and drained in order. Does not wait.
    pub fn stop(&self) {
        // Release: pairs with the load in the duty cycle.
        self.control.stop.store(true, Ordering::Release);
        self.waker.interrupt();
    }

    /// Waits for the end, after [`AgentThread::stop`] or a failure.
    ///
    /// # Errors
    /// The failure that ended this thread. A failure on another thread is reported by that thread.
    pub fn join(mut self) -> Result<(), AgentFailure> {
        self.join_in_place()
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// First failure among the threads that share this thread's slot.
    #[must_use]
    pub fn failure(&self) -> Option<AgentFailure> {
        self.failures.failure()
    }

    #[must_use]
    pub fn spec(&self) -> &ThreadSpec {
        &self.spec
    }

    /// Why the thread is not pinned despite a mask.
    #[must_use]
    pub fn pin_warning(&self) -> Option<&PinWarning> {
        self.pin_warning.as_ref()
    }

    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// CPU time of the thread so far, ns: exact once it has ended, up to a tick of the scheduler (4 ms) late while it
    /// spins; `None` if the system does not provide it.
    #[must_use]
    pub fn cpu_time_ns(&self) -> Option<u64> {
        // Acquire: pairs with the store at the thread's end.
        match self.control.final_cpu_ns.load(Ordering::Acquire) {
            0 => thread_cpu_time_ns(self.thread_id).or_else(|| {
                // The thread may have ended between the two reads.
                Some(self.control.final_cpu_ns.load(Ordering::Acquire)).filter(|&ns| ns > 0)
            }),
            ns => Some(ns),
        }
    }

    #[must_use]
    pub fn pauses(&self) -> Pauses {
        self.control.pauses.read()
    }

    fn join_in_place(&mut self) -> Result<(), AgentFailure> {
        let Some(handle) = self.handle.take() else { return Ok(()) };
        match handle.join() {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(payload) => {
                let mut failure = AgentGroup::new(Vec::new()).blame_panic(&*payload);
                failure.thread.clone_from(&self.spec.name);
                self.failures.report(failure.clone());
                Err(failure)
            }
        }
    }
}

impl Drop for AgentThread {
    fn drop(&mut self) {
        self.stop();
        let _ = self.join_in_place();
    }
}

/// Starts an unpinned thread for blocking work, such as fdatasync.
///
/// # Errors
/// [`Error::ThreadStart`] if the system starts no more threads.
pub fn spawn_helper<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    std::thread::Builder::new()
        .name(name.replace('\0', "?"))
        .spawn(|| {
            CpuMask::unpin_current_thread();
            body()
        })
        .map_err(|source| Error::ThreadStart { thread: name.to_owned(), source })
}

#[must_use]
pub fn current_thread_cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

fn thread_cpu_time_ns(thread_id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

struct ThreadRunner {
    group: AgentGroup,
    idle: Idle,
    clock: Clock,
    waker: Waker,
    failures: FailureSlot,
    control: Arc<ThreadControl>,
    pauses: PauseTracker,
    name: String,
    drain_ns_max: u64,
}

impl ThreadRunner {
    fn run(&mut self) -> Option<AgentFailure> {
        let mut failure = self.run_phase(Self::start_and_cycle);
        if failure.is_none() && !self.failures.has_failed() {
            failure = self.run_phase(Self::close_orderly);
        }
        self.waker.withdraw();
        if let Some(failure) = &failure {
            // At once: the other threads must not wait for agents that close slowly.
            self.failures.report(failure.clone());
        }
        let problems = self.abandon();
        if let Some(failure) = &mut failure {
            failure.while_closing = problems;
        } else if !problems.is_empty() {
            let error = problems.join("; ").into();
            let late = AgentFailure { thread: self.name.clone(), ..AgentFailure::new(&self.name, error) };
            self.failures.report(late.clone());
            failure = Some(late);
        }
        // Release: pairs with the load in `cpu_time_ns`.
        self.control.final_cpu_ns.store(current_thread_cpu_time_ns().max(1), Ordering::Release);
        failure
    }

    fn run_phase(&mut self, phase: fn(&mut Self) -> Result<(), AgentFailure>) -> Option<AgentFailure> {
        let failure = match catch_unwind(AssertUnwindSafe(|| phase(self))) {
            Ok(Ok(())) => return None,
            Ok(Err(failure)) => failure,
            Err(payload) => self.group.blame_panic(&*payload),
        };
        Some(AgentFailure { thread: self.name.clone(), ..failure })
    }

    fn start_and_cycle(&mut self) -> Result<(), AgentFailure> {
        self.group.start(self.clock.now())?;
        while !self.must_end() {
            let now = self.clock.now();
            if self.pauses.begin(now.monotonic_ns).is_some() {
                self.control.pauses.publish(self.pauses.pauses());
            }
            let work = self.group.poll_once(now)?;
            let action = self.idle.step(now.monotonic_ns, work);
            self.pauses.end(work == 0 && matches!(action, IdleAction::Poll | IdleAction::Spin));
            match action {
                IdleAction::Poll => {}
                IdleAction::Spin => std::hint::spin_loop(),
                IdleAction::Yield => std::thread::yield_now(),
                IdleAction::Park { ns_max } => self.park(ns_max)?,
                IdleAction::Sleep { ns } => {
                    let ns = self.until_deadline_ns(ns);
                    self.waker.wait(ns);
                }
            }
        }
        Ok(())
    }

    /// Announces, polls once more, and only then waits: see [`crate::park_flag`]. Repeats until there is work: a
    /// spurious wake-up costs only the poll before the next wait.
    fn park(&mut self, ns_max: u64) -> Result<(), AgentFailure> {
        loop {
            self.waker.announce();
            self.group.arm();
            // Announcements of the agents are ordered before the poll; pairs with the fence of the thread that reads
            // them in shared memory after publishing.
            fence(Ordering::SeqCst);
            let work = self.group.poll_once(self.clock.now())?;
            let ns = if work > 0 || self.must_end() { 0 } else { self.until_deadline_ns(ns_max) };
            if ns > 0 {
                let mut descriptors = Vec::new();
                self.group.watch(&mut descriptors);
                self.waker.wait_watching(ns, &descriptors);
            }
            self.waker.withdraw();
            self.group.disarm();
            if work > 0 {
                self.idle.reset();
            }
            if ns == 0 {
                return Ok(());
            }
        }
    }

    fn until_deadline_ns(&mut self, ns_max: u64) -> u64 {
        match self.group.next_deadline_ns() {
            None => ns_max,
            Some(deadline_ns) => deadline_ns.saturating_sub(self.clock.now().monotonic_ns).min(ns_max),
        }
    }

    fn close_orderly(&mut self) -> Result<(), AgentFailure> {
        let begun_ns = self.clock.now().monotonic_ns;
        loop {
            let now = self.clock.now();
            if self.group.close_step(now)? {
                return Ok(());
            }
            if self.failures.has_failed() {
                return Ok(());
            }
            if now.monotonic_ns.saturating_sub(begun_ns) >= self.drain_ns_max {
                let agent = self.group.draining().unwrap_or_default().to_owned();
                return Err(AgentFailure::new(&agent, Box::new(Error::NotDrained { limit_ns: self.drain_ns_max })));
            }
            std::thread::yield_now();
        }
    }

    /// Closes the open agents and drops all, even if one panics.
    fn abandon(&mut self) -> Vec<String> {
        let now = self.clock.now();
        let mut problems = Vec::new();
        loop {
            let phase = AssertUnwindSafe(|| {
                self.group.abandon(now, &mut problems);
                self.group.release();
            });
            match catch_unwind(phase) {
                Ok(()) => return problems,
                Err(payload) => problems.push(self.group.blame_panic(&*payload).to_string()),
            }
        }
    }

    #[inline]
    fn must_end(&self) -> bool {
        // Acquire: pairs with the Release in `stop`.
        self.control.stop.load(Ordering::Acquire) || self.failures.has_failed()
    }
}
