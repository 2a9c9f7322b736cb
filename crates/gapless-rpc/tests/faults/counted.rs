//! Instances record executed numbers, callers their outcomes. A number is called once only, so both together show
//! wrong, lost and doubled answers.

use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Retry};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs::File;
use std::future::{Future as _, poll_fn};
use std::io::{BufRead, Write};
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

pub const ROUTE: &str = "counted";
/// Fewer than a caller's calls.
pub const SLOTS: u32 = 16;

const INSTANCE: &str = "be-a-counted-instance";
const CALLER: &str = "be-a-counted-caller";
const TASKS: u64 = 24;
const THREADS: u64 = 2;

pub fn reply_to(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ 0x5bd1_e995
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Answered,
    NotBegun,
    Unknown,
    Cancelled,
}

impl Outcome {
    fn allows(self, executions: u32, retry: Retry) -> bool {
        match self {
            Self::Answered if retry == Retry::Always => executions >= 1,
            Self::Answered => executions == 1,
            Self::NotBegun => executions == 0,
            Self::Unknown | Self::Cancelled => executions <= 1 || retry == Retry::Always,
        }
    }

    #[track_caller]
    fn of(number: u64, ended: Result<u64, CallError>) -> Self {
        match ended {
            Ok(reply) => {
                assert_eq!(reply, reply_to(number), "the answer to another call");
                Self::Answered
            }
            Err(CallError::NotBegun { .. }) => Self::NotBegun,
            Err(CallError::Unknown { .. }) => Self::Unknown,
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn open(domain: &Path) -> Domain {
    Domain::open_directory(domain, DomainOptions { slots: SLOTS, ..DomainOptions::default() }).unwrap()
}

pub fn caller(domain: &Domain, retry: Retry) -> Caller<u64, u64> {
    let call = CallOptions { timeout: None, wait_for_route: Some(PATIENCE), retry, ..CallOptions::default() };
    domain.caller_with(ROUTE, CallerOptions { call, ..CallerOptions::default() }).unwrap()
}

/// Appends each executed number to a file before the answer.
pub fn serve(domain: &Domain, record: &Path) -> gapless_rpc::ServedRoute {
    let record = File::options().create(true).append(true).open(record).unwrap();
    let handler = move |number: u64, _: &gapless_rpc::CallContext| {
        // One system call, so it is whole whenever the process dies.
        (&record).write_all(&number.to_le_bytes()).unwrap();
        Ok(reply_to(number))
    };
    domain.serve(ROUTE).workers(2).handle(handler).unwrap()
}

pub fn be_an_instance_if_asked() {
    let Some(arguments) = started_as(INSTANCE) else { return };
    let domain = open(Path::new(&arguments[0]));
    let route = serve(&domain, Path::new(&arguments[1]));
    std::thread::spawn(|| {
        std::io::stdin().lock().lines().for_each(drop);
        std::process::exit(0);
    });
    println!("serves");
    until("a caller has connected", || route.callers() > 0);
    println!("has a caller");
    loop {
        std::thread::park();
    }
}

pub fn start_instance(domain: &Path, record: &Path, crash_point: Option<&str>) -> Process {
    let mut command = this_program();
    command.arg(INSTANCE).arg(domain).arg(record).stdin(Stdio::piped());
    Process::start(command.envs(crash_point.map(|point| ("GAPLESS_CRASH_POINT", point))))
}

pub fn be_a_caller_if_asked() {
    let Some(arguments) = started_as(CALLER) else { return };
    let domain = open(Path::new(&arguments[0]));
    let first = arguments[1].parse::<u64>().unwrap() << 40;
    let traffic = Traffic::begin(&caller(&domain, Retry::NotBegun), first);
    println!("calls");
    match arguments.get(2) {
        Some(count) => traffic.wait_for(count.parse().unwrap()),
        None => loop {
            std::thread::park();
        },
    }
    let ended = traffic.end();
    println!("ended {} calls", ended.len());
    std::process::exit(0);
}

pub fn start_caller(domain: &Path, number: u64, count: Option<u64>, crash_point: Option<&str>) -> Process {
    let mut command = this_program();
    command.arg(CALLER).arg(domain).arg(number.to_string()).args(count.map(|count| count.to_string()));
    Process::start(command.envs(crash_point.map(|point| ("GAPLESS_CRASH_POINT", point))))
}

pub struct Traffic {
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<Vec<(u64, Outcome)>>>,
    tasks: Vec<tokio::task::JoinHandle<Vec<(u64, Outcome)>>>,
    runtime: tokio::runtime::Runtime,
}

impl Traffic {
    pub fn begin(caller: &Caller<u64, u64>, first: u64) -> Self {
        let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let numbers = |of: u64| {
            (first + (of << 32)..).take_while({
                let (is_over, done) = (Arc::clone(&is_over), Arc::clone(&done));
                // Relaxed: they guard no data.
                move |_| !is_over.load(Ordering::Relaxed) && done.fetch_add(1, Ordering::Relaxed) < u64::MAX
            })
        };
        let threads = (0..THREADS).map(|of| {
            let (caller, numbers) = (caller.clone(), numbers(of));
            std::thread::spawn(move || {
                numbers.map(|number| (number, Outcome::of(number, caller.call(number)))).collect()
            })
        });
        let threads = threads.collect();
        let tasks = (THREADS..THREADS + TASKS).map(|of| {
            let (caller, numbers) = (caller.clone(), numbers(of));
            runtime.spawn(async move {
                let mut ended = Vec::new();
                for number in numbers {
                    let mut call = caller.start(number);
                    if number % 64 == 63 {
                        let offered = poll_fn(|task| match Pin::new(&mut call).poll(task) {
                            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                            Poll::Pending if call.attempts() > 0 => Poll::Ready(None),
                            Poll::Pending => Poll::Pending,
                        });
                        let outcome = offered.await;
                        tokio::task::yield_now().await;
                        drop(call);
                        ended
                            .push((number, outcome.map_or(Outcome::Cancelled, |outcome| Outcome::of(number, outcome))));
                    } else {
                        ended.push((number, Outcome::of(number, call.await)));
                    }
                }
                ended
            })
        });
        let tasks = tasks.collect();
        Self { is_over, done, threads, tasks, runtime }
    }

    pub fn calls(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub fn wait_for(&self, more: u64) {
        let wanted = self.calls().saturating_add(more);
        until("calls go on", || self.calls() >= wanted);
    }

    pub fn end(self) -> Vec<(u64, Outcome)> {
        self.is_over.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter().map(|thread| thread.join().unwrap());
        let mut ended: Vec<_> = threads.flatten().collect();
        ended.extend(self.tasks.into_iter().flat_map(|task| self.runtime.block_on(task).unwrap()));
        ended
    }
}

pub fn executions(record: &Path) -> HashMap<u64, u32> {
    let bytes = std::fs::read(record).unwrap_or_default();
    assert!(bytes.len().is_multiple_of(8), "a number is written in part");
    let mut executions = HashMap::new();
    for number in bytes.chunks_exact(8) {
        *executions.entry(u64::from_le_bytes(number.try_into().unwrap())).or_default() += 1;
    }
    executions
}

#[track_caller]
pub fn check(ended: &[(u64, Outcome)], executions: &HashMap<u64, u32>, retry: Retry) {
    for (number, outcome) in ended {
        let times = executions.get(number).copied().unwrap_or(0);
        assert!(outcome.allows(times, retry), "{number:#x} ended as {outcome:?}; it was executed {times} times");
    }
}

/// `instance` must be the only instance.
#[track_caller]
pub fn every_slot_is_free(caller: &Caller<u64, u64>, instance: &Process, first: u64) {
    instance.signal(Signal::STOP);
    let before = caller.statistics().offered;
    let calls: Vec<_> = (first..first + u64::from(SLOTS)).map(|number| (number, caller.start(number))).collect();
    // The stopped instance answers none.
    until("all slots are taken", || caller.statistics().offered == before + u64::from(SLOTS));
    instance.signal(Signal::CONT);
    for (number, call) in calls {
        assert_eq!(call.wait(), Ok(reply_to(number)));
    }
}

pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

pub fn files(domain: &Path) -> usize {
    names(domain).filter(|name| name.starts_with("copy-")).count()
}

/// An instance killed while it made its file leaves a draft, which is removed when it is old.
pub fn counter_files(domain: &Path) -> usize {
    names(domain).filter(|name| name.starts_with("route-") && name.ends_with(".counters")).count()
}

fn names(domain: &Path) -> impl Iterator<Item = String> {
    std::fs::read_dir(domain).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap())
}
