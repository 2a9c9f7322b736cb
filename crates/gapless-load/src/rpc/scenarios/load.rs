//! Callers and workers of one route of this process, without a pause. Every reply is checked.

use crate::rpc::failed;
use gapless_measure::Result;
use gapless_measure::affinity::pin_current_thread;
use gapless_rpc::domain::ServeReach;
use gapless_rpc::overflow::{ElasticQueueOptions, OverflowCounters};
use gapless_rpc::{Call, CallError, Caller, Domain, Message, ServedRoute};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const EXECUTOR_THREADS: usize = 2;

/// The shortest payload of published results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub struct Payload([u64; 9]);

impl Payload {
    pub fn new(number: u64) -> Self {
        Self([number; 9])
    }

    pub fn answered(self) -> Self {
        Self(self.0.map(|word| word.wrapping_add(1)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    Tasks,
    /// One each, which sleeps when idle.
    Threads,
    /// Workers are tasks; the end of each call makes the next one.
    Callbacks,
}

#[derive(Clone, Copy, Debug)]
pub struct LoadShape {
    pub kind: LoadKind,
    pub callers: usize,
    pub in_flight: usize,
    pub workers: usize,
    /// Requests in memory; more overflow to disk.
    pub queue_max: Option<usize>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct CallCounts {
    calls: AtomicU64,
    wrong: AtomicU64,
    failed: AtomicU64,
}

pub struct ScenarioLoad {
    counts: Arc<[CallCounts]>,
    stop: Arc<AtomicBool>,
    /// Callers and chains of callbacks.
    running: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
    route: Option<ServedRoute>,
    // Last: its tasks end with the route.
    runtime: Runtime,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LoadTotals {
    pub calls: u64,
    pub wrong: u64,
    pub failed: u64,
    pub overflow: Option<OverflowCounters>,
}

impl ScenarioLoad {
    pub fn begin(
        domain: &Domain,
        shape: LoadShape,
        cpus: Option<&[usize]>,
        overflow: Option<ElasticQueueOptions>,
    ) -> Result<Self> {
        let pin = {
            let cpus = cpus.map(<[usize]>::to_vec);
            // An unpinned thread changes the load, but not its correctness.
            move || drop(cpus.as_deref().map(pin_current_thread))
        };
        let threads = cpus.map_or(EXECUTOR_THREADS, <[usize]>::len);
        let mut executor = tokio::runtime::Builder::new_multi_thread();
        let runtime = executor.worker_threads(threads).on_thread_start(pin.clone()).build().map_err(failed)?;
        let mut route = domain.serve("scenarios/load").reach(ServeReach::ThisProcess).workers(shape.workers);
        if shape.kind != LoadKind::Threads {
            let handle = runtime.handle().clone();
            route = route.tasks(move |task| drop(handle.spawn(task)));
        }
        if let Some(queue_max) = shape.queue_max {
            route = route.queue_max(queue_max);
        }
        if let Some(overflow) = overflow {
            route = route.overflow(overflow);
        }
        let route = route.init(move |_| pin()).handle(|payload: Payload, _context| Ok(payload.answered()));
        let mut load = Self {
            counts: (0..shape.callers).map(|_| CallCounts::default()).collect(),
            stop: Arc::default(),
            running: Arc::default(),
            threads: Vec::new(),
            route: Some(route.map_err(failed)?),
            runtime,
        };
        let caller = domain.caller::<Payload, Payload>("scenarios/load").map_err(failed)?;
        (0..shape.callers).for_each(|number| load.start(shape, LoadCaller::new(&caller, &load, number)));
        Ok(load)
    }

    fn start(&mut self, shape: LoadShape, mut calling: LoadCaller) {
        match shape.kind {
            LoadKind::Tasks => drop(self.runtime.spawn(async move {
                while let Some((number, call)) = calling.next(shape.in_flight) {
                    calling.check(number, call.await);
                }
            })),
            LoadKind::Threads => self.threads.push(std::thread::spawn(move || {
                while let Some((number, call)) = calling.next(shape.in_flight) {
                    calling.check(number, call.wait());
                }
            })),
            LoadKind::Callbacks => (0..shape.in_flight).for_each(|number| call_back(calling.another(), number as u64)),
        }
    }

    pub fn rates(&self, turns: usize, turn: Duration, check: &dyn Fn() -> Result<()>) -> Result<Vec<f64>> {
        std::thread::sleep(turn / 2);
        (0..turns)
            .map(|_| {
                check()?;
                let (begin, before) = (Instant::now(), self.calls());
                std::thread::sleep(turn);
                Ok((self.calls() - before) as f64 / begin.elapsed().as_secs_f64())
            })
            .collect()
    }

    pub fn calls(&self) -> u64 {
        // Relaxed: figures order nothing, here and where they are counted.
        self.counts.iter().map(|count| count.calls.load(Ordering::Relaxed)).sum()
    }

    /// Waits for calls in flight.
    fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Acquire: pairs with the Release of the last caller to end, so its counts are visible.
        while self.running.load(Ordering::Acquire) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }

    pub fn end(mut self) -> LoadTotals {
        self.finish();
        let sum =
            |of: fn(&CallCounts) -> &AtomicU64| self.counts.iter().map(|count| of(count).load(Ordering::Relaxed)).sum();
        let overflow = self.route.as_ref().and_then(ServedRoute::overflow_counters);
        if let Some(route) = self.route.take() {
            route.drain();
        }
        let (wrong, failed) = (sum(|count| &count.wrong), sum(|count| &count.failed));
        LoadTotals { calls: self.calls(), wrong, failed, overflow }
    }
}

impl Drop for ScenarioLoad {
    fn drop(&mut self) {
        // After an interrupt: without the route, callers would call for ever.
        self.finish();
    }
}

struct LoadCaller {
    caller: Caller<Payload, Payload>,
    window: VecDeque<(u64, Call<Payload>)>,
    next_number: u64,
    counts: Arc<[CallCounts]>,
    own: usize,
    stop: Arc<AtomicBool>,
    running: Arc<AtomicUsize>,
}

impl LoadCaller {
    fn new(caller: &Caller<Payload, Payload>, load: &ScenarioLoad, own: usize) -> Self {
        // Relaxed: further ones are started only by one that is counted already.
        load.running.fetch_add(1, Ordering::Relaxed);
        Self {
            caller: caller.clone(),
            window: VecDeque::new(),
            next_number: own as u64 * 1_000_003,
            counts: Arc::clone(&load.counts),
            own,
            stop: Arc::clone(&load.stop),
            running: Arc::clone(&load.running),
        }
    }

    fn another(&self) -> Self {
        self.running.fetch_add(1, Ordering::Relaxed);
        Self {
            caller: self.caller.clone(),
            window: VecDeque::new(),
            next_number: self.next_number,
            counts: Arc::clone(&self.counts),
            own: self.own,
            stop: Arc::clone(&self.stop),
            running: Arc::clone(&self.running),
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The oldest call in flight, once `in_flight` are; `None` when the load is over.
    fn next(&mut self, in_flight: usize) -> Option<(u64, Call<Payload>)> {
        while self.window.len() < in_flight && !self.is_over() {
            let number = self.next_number;
            self.next_number += 1;
            self.window.push_back((number, self.caller.start(Payload::new(number))));
        }
        self.window.pop_front()
    }

    fn check(&self, number: u64, outcome: std::result::Result<Payload, CallError>) {
        let count = &self.counts[self.own];
        match outcome {
            Ok(reply) if reply == Payload::new(number).answered() => count.calls.fetch_add(1, Ordering::Relaxed),
            Ok(_) => count.wrong.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                // The other failures are alike.
                if count.failed.load(Ordering::Relaxed) == 0 {
                    eprintln!("a call failed: {error}");
                }
                count.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

impl Drop for LoadCaller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Replies to calls in flight were not checked.
            self.counts[self.own].failed.fetch_add(1, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `ScenarioLoad::finish`.
        self.running.fetch_sub(1, Ordering::Release);
    }
}

fn call_back(calling: LoadCaller, number: u64) {
    if calling.is_over() {
        return;
    }
    let call = calling.caller.start(Payload::new(number));
    call.on_end(move |outcome| {
        calling.check(number, outcome);
        call_back(calling, number + 1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kind: LoadKind) -> LoadShape {
        LoadShape { kind, callers: 3, in_flight: 4, workers: 2, queue_max: None }
    }

    #[test]
    fn loads_have_no_wrong_reply() {
        for kind in [LoadKind::Tasks, LoadKind::Threads, LoadKind::Callbacks] {
            let load = ScenarioLoad::begin(&Domain::in_process("load"), shape(kind), None, None).unwrap();
            gapless_testkit::wait::until("calls of every caller", || {
                load.counts.iter().all(|count| count.calls.load(Ordering::Relaxed) > 100)
            });
            let ended = load.end();
            assert!(ended.calls > 300 && ended.overflow.is_none(), "{kind:?}");
            assert_eq!((ended.wrong, ended.failed), (0, 0), "{kind:?}");
        }
    }

    #[test]
    fn dropped_load_ends() {
        for kind in [LoadKind::Tasks, LoadKind::Threads, LoadKind::Callbacks] {
            let load = ScenarioLoad::begin(&Domain::in_process("load"), shape(kind), None, None).unwrap();
            let interrupted = || Err(failed("interrupted"));
            assert!(load.rates(1, Duration::from_millis(2), &interrupted).is_err());
            let running = Arc::clone(&load.running);
            drop(load);
            assert_eq!(running.load(Ordering::Acquire), 0, "{kind:?}");
        }
    }

    #[test]
    fn overflow_goes_through_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let mut overflow = ElasticQueueOptions::new("load", directory.path());
        overflow.memory_bytes_max = 4096;
        let shape = LoadShape { in_flight: 200, queue_max: Some(8), ..shape(LoadKind::Tasks) };
        let load = ScenarioLoad::begin(&Domain::in_process("load"), shape, None, Some(overflow)).unwrap();
        gapless_testkit::wait::until("calls", || load.calls() > 5_000);
        let ended = load.end();
        assert_eq!((ended.wrong, ended.failed), (0, 0));
        assert!(ended.overflow.unwrap().spilled_records > 0);
    }

    #[test]
    fn panicked_caller_is_a_failure() {
        let domain = Domain::in_process("load");
        let mut load = ScenarioLoad::begin(&domain, shape(LoadKind::Threads), None, None).unwrap();
        let calling = LoadCaller::new(&domain.caller("scenarios/load").unwrap(), &load, 0);
        load.threads.push(std::thread::spawn(move || {
            let _calling = calling;
            panic!("as a caller does here");
        }));
        assert_eq!(load.end().failed, 1);
    }

    #[test]
    fn failed_call_is_counted() {
        let domain = Domain::in_process("load");
        let load = ScenarioLoad::begin(&domain, shape(LoadKind::Tasks), None, None).unwrap();
        let calling = LoadCaller::new(&domain.caller("scenarios/load").unwrap(), &load, 0);
        let failed_before = calling.counts[0].failed.load(Ordering::Relaxed);
        calling.check(7, Err(CallError::Closed));
        calling.check(7, Ok(Payload::new(7)));
        drop(calling);
        let ended = load.end();
        assert_eq!((failed_before, ended.failed, ended.wrong), (0, 1, 1));
    }
}
