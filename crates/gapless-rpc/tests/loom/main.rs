//! Interleavings of calls inside one process, over the shipped code. Run: `RUSTFLAGS="--cfg loom" cargo test -p
//! gapless-rpc --release --test loom`.

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use gapless_rpc::local::{Deadlines, LocalOffer, LocalOptions, LocalRoute};
use gapless_rpc::{CallError, CallerIdentity, Waiting};
use loom::thread;

type Route = LocalRoute<u64, u64>;

/// Bounded, because three threads have too many interleavings. A lost wake-up is a deadlock, which loom reports.
fn check(preemptions: usize, model: fn()) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(preemptions);
    bounded.check(model);
}

fn route() -> Route {
    let options = LocalOptions {
        queue_max: 8,
        caller: CallerIdentity { name: String::new(), process_id: 1, user_id: 1, started_ns: 1 },
        deadlines: Arc::new(Deadlines::new(|| {})),
        forwarding: None,
        overflow: None,
        gauges: None,
    };
    Route::new("model", options).unwrap()
}

fn serve(route: &Route) -> thread::JoinHandle<()> {
    let mut worker = route.worker().unwrap();
    thread::spawn(move || {
        while let Some(incoming) = worker.next_blocking(Waiting::Park) {
            incoming.answer.reply(incoming.request + 1);
        }
    })
}

#[test]
fn caller_and_worker_meet() {
    check(4, || {
        let route = route();
        let serving = serve(&route);
        assert_eq!(route.call(1, LocalOffer::default()).unwrap().wait(Waiting::Park), Ok(2));
        route.drain();
        serving.join().unwrap();
    });
}

#[test]
fn two_workers_serve_two_calls() {
    check(2, || {
        let route = route();
        let serving = [serve(&route), serve(&route)];
        let calls = [1, 2].map(|request| route.call(request, LocalOffer::default()).unwrap());
        let [first, second] = calls.map(|call| call.wait(Waiting::Park));
        assert_eq!((first, second), (Ok(2), Ok(3)));
        route.drain();
        serving.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn leaving_worker_passes_wake_up_on() {
    check(3, || {
        let route = route();
        let mut leaving = route.worker().unwrap();
        let serving = serve(&route);
        let gone = thread::spawn(move || {
            let waker = std::task::Waker::noop();
            if let Poll::Ready(Some(incoming)) = leaving.poll_next(&mut Context::from_waker(waker)) {
                incoming.answer.reply(incoming.request + 1);
            }
        });
        assert_eq!(route.call(1, LocalOffer::default()).unwrap().wait(Waiting::Park), Ok(2));
        gone.join().unwrap();
        route.drain();
        serving.join().unwrap();
    });
}

#[test]
fn cancel_races_with_begin() {
    check(4, || {
        let route = route();
        let mut worker = route.worker().unwrap();
        let call = route.call(1, LocalOffer::default()).unwrap();
        let begun = Arc::new(AtomicBool::new(false));
        let in_worker = Arc::clone(&begun);
        let serving = thread::spawn(move || {
            if let Some(incoming) = worker.try_next() {
                in_worker.store(true, Ordering::SeqCst);
                incoming.answer.reply(2);
            }
        });
        let had_begun = call.cancel();
        serving.join().unwrap();
        assert_eq!(begun.load(Ordering::SeqCst), had_begun);
    });
}

#[test]
fn withdrawal_ends_every_call() {
    check(3, || {
        let route = route();
        let serving = serve(&route);
        let other = route.clone();
        let withdrawing = thread::spawn(move || other.withdraw());
        if let Ok(call) = route.call(1, LocalOffer::default()) {
            assert!(matches!(call.wait(Waiting::Park), Ok(2) | Err(CallError::NotBegun { .. })));
        }
        withdrawing.join().unwrap();
        serving.join().unwrap();
    });
}
