//! Calls a second inside one process: 72 bytes there, each incremented, 72 bytes back.
//!
//! `cargo run --release -p gapless-rpc --example local_speed [SECONDS] [SCENARIO]`. Each scenario is named callers → workers.
//! With tasks both sides run on one runtime of two threads; the one caller is a thread of its own with up to 64 calls in flight.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gapless_rpc::local::{LocalCall, LocalOptions, LocalRoute, Offer};
use gapless_rpc::{CallContext, Rejection, Waiting};

const WORKERS: usize = 50;
const IN_FLIGHT: usize = 64;

type Payload = [u8; 72];
type Route = LocalRoute<Payload, Payload>;

/// Runs for so long.
type Scenario = fn(&Route, Duration) -> Result<Run, Box<dyn Error>>;

/// Callers → workers.
const SCENARIOS: [(&str, Scenario); 6] = [
    ("1 thread → 50 tasks, 64 in flight", |route, time| with_tasks(route, |_| from_one_thread(route, time))),
    ("50 tasks → 50 tasks", |route, time| with_tasks(route, |runtime| from_tasks(route, runtime, time, false))),
    ("50 tasks → 50 tasks, deadline 5 s", |route, time| {
        with_tasks(route, |runtime| from_tasks(route, runtime, time, true))
    }),
    ("1 thread → 50 threads, 64 in flight", |route, time| with_threads(route, || from_one_thread(route, time))),
    ("1 thread → 1 thread, one by one", |route, time| with_one_thread(route, || one_by_one(route, time))),
    ("1 thread sends → 50 tasks, one way", |route, time| with_tasks(route, |_| sends(route, time))),
];

/// Calls, and how long they took.
type Run = (u64, Duration);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let time = Duration::from_secs_f64(arguments.next().map_or(Ok(2.0), |seconds| seconds.parse())?);
    let only = arguments.next().map(|number| number.parse::<usize>()).transpose()?;
    for (number, (name, scenario)) in SCENARIOS.iter().enumerate() {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let route = Route::new("increment", LocalOptions::default())?;
        let (calls, took) = scenario(&route, time)?;
        println!(
            "{name:42} {:>12.0} calls/s  {:>8.0} ns",
            calls as f64 / took.as_secs_f64(),
            took.as_nanos() as f64 / calls as f64
        );
    }
    Ok(())
}

fn increment(mut bytes: Payload, _context: CallContext) -> Result<Payload, Rejection> {
    bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    Ok(bytes)
}

fn with_tasks(route: &Route, run: impl FnOnce(&tokio::runtime::Runtime) -> Run) -> Result<Run, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for _ in 0..WORKERS {
        let mut worker = route.worker().ok_or("the route is closed")?;
        runtime.spawn(async move {
            while let Some(incoming) = worker.next().await {
                incoming.handle_later(|bytes, context| async move { increment(bytes, context) }).await;
            }
        });
    }
    let run = run(&runtime);
    route.drain();
    route.wait_until_left(None);
    Ok(run)
}

fn with_threads(route: &Route, run: impl FnOnce() -> Run) -> Result<Run, Box<dyn Error>> {
    threads(route, WORKERS, run)
}

fn with_one_thread(route: &Route, run: impl FnOnce() -> Run) -> Result<Run, Box<dyn Error>> {
    threads(route, 1, run)
}

fn threads(route: &Route, count: usize, run: impl FnOnce() -> Run) -> Result<Run, Box<dyn Error>> {
    for _ in 0..count {
        let mut worker = route.worker().ok_or("the route is closed")?;
        std::thread::spawn(move || {
            while let Some(incoming) = worker.next_blocking(Waiting::Park) {
                incoming.handle(increment);
            }
        });
    }
    let run = run();
    route.drain();
    route.wait_until_left(None);
    Ok(run)
}

fn call(route: &Route, number: u64, offer: Offer) -> LocalCall<Payload> {
    route.call([number as u8; 72], offer).unwrap_or_else(|unsent| panic!("{}", unsent.error))
}

fn check(number: u64, reply: Result<Payload, gapless_rpc::CallError>) {
    assert_eq!(reply.expect("a reply")[71], (number as u8).wrapping_add(1));
}

fn from_one_thread(route: &Route, time: Duration) -> Run {
    let begun = Instant::now();
    let mut flying = std::collections::VecDeque::with_capacity(IN_FLIGHT);
    let mut calls = 0;
    let mut number = 0;
    while begun.elapsed() < time {
        for _ in 0..IN_FLIGHT {
            if flying.len() == IN_FLIGHT
                && let Some((number, flown)) = flying.pop_front()
            {
                check(number, LocalCall::wait(flown, Waiting::Park));
                calls += 1;
            }
            flying.push_back((number, call(route, number, Offer::default())));
            number += 1;
        }
    }
    for (number, flown) in flying {
        check(number, flown.wait(Waiting::Park));
        calls += 1;
    }
    (calls, begun.elapsed())
}

fn one_by_one(route: &Route, time: Duration) -> Run {
    let begun = Instant::now();
    let mut calls = 0;
    while begun.elapsed() < time {
        for _ in 0..16 {
            check(calls, call(route, calls, Offer::default()).wait(Waiting::Park));
            calls += 1;
        }
    }
    (calls, begun.elapsed())
}

fn from_tasks(route: &Route, runtime: &tokio::runtime::Runtime, time: Duration, with_deadline: bool) -> Run {
    let stop = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (route, stop) = (route.clone(), Arc::clone(&stop));
            runtime.spawn(async move {
                let mut calls = 0;
                // Relaxed: a flag, nothing is published by it.
                while !stop.load(Ordering::Relaxed) {
                    let offer = Offer::default();
                    let offer = if with_deadline { offer.with_timeout(Duration::from_secs(5)) } else { offer };
                    check(calls, call(&route, calls, offer).await);
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    std::thread::sleep(time);
    stop.store(true, Ordering::Relaxed);
    let calls = callers.into_iter().map(|caller| runtime.block_on(caller).expect("a caller ends")).sum();
    (calls, begun.elapsed())
}

fn sends(route: &Route, time: Duration) -> Run {
    let begun = Instant::now();
    let mut number = 0_u64;
    while begun.elapsed() < time {
        for _ in 0..64 {
            number += 1;
            while route.send([number as u8; 72], Offer::default()).is_err() {
                std::thread::yield_now();
            }
        }
    }
    // All of it was taken when the queue is empty.
    while route.queued().0 > 0 {
        std::thread::yield_now();
    }
    (number, begun.elapsed())
}
