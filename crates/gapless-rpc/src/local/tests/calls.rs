//! A call in each of its states: answered, cancelled, expired; blocking, polled, as a future, with a callback.

use super::*;
use crate::local::Deadlines;
use crate::outcome::CallError;
use gapless_agent::monotonic::monotonic_ns;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::wait;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn poll<T: Future + Unpin>(future: &mut T, count: &Arc<WakeCount>) -> Poll<T::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
}

#[test]
fn cancelled_call_never_begins() {
    let route = route();
    let mut worker = route.worker().unwrap();
    drop(call(&route, 1));
    assert!(!call(&route, 2).cancel(), "it had not begun");
    let third = call(&route, 3);
    let incoming = next(&mut worker);
    assert_eq!(incoming.request, 3);
    incoming.answer.reply(33);
    assert_eq!(third.wait(Waiting::Park), Ok(33));
    assert!(worker.try_next().is_none());
}

#[test]
fn handler_sees_cancellation() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let called = call(&route, 1);
    let incoming = next(&mut worker);
    assert!(called.has_begun() && !incoming.context.is_cancelled());
    assert!(called.cancel());
    assert!(incoming.context.is_cancelled());
    incoming.answer.reply(2);
}

#[test]
fn polled_answer_is_given_once() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let mut called = call(&route, 1);
    assert_eq!(called.try_take(), None);
    next(&mut worker).answer.reply(2);
    assert!(called.is_answered());
    assert_eq!(called.try_take(), Some(Ok(2)));
    assert_eq!(called.try_take(), None);
    assert_eq!(called.wait_until(u64::MAX, Waiting::Park), None);
}

#[test]
fn only_the_last_waker_is_woken() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let mut called = call(&route, 1);
    let (first, second) = (Arc::new(WakeCount::default()), Arc::new(WakeCount::default()));
    assert!(poll(&mut called, &first).is_pending());
    assert!(poll(&mut called, &first).is_pending());
    assert!(poll(&mut called, &second).is_pending());
    next(&mut worker).answer.reply(2);
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(Arc::strong_count(&first), 1);
    assert_eq!(poll(&mut called, &first), Poll::Ready(Ok(2)));
}

#[test]
fn dropped_call_drops_its_waker() {
    let route = route();
    let count = Arc::new(WakeCount::default());
    let mut called = route.call(1, LocalOffer::default().with_timeout(Duration::from_secs(3600))).unwrap();
    assert!(poll(&mut called, &count).is_pending());
    assert_eq!(Arc::strong_count(&count), 2);
    drop(called);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn timeout_tells_if_it_began() {
    let route = route();
    let mut worker = route.worker().unwrap();
    for begins in [false, true] {
        let called = route.call(1, LocalOffer::default().with_timeout(Duration::from_millis(20))).unwrap();
        let incoming = begins.then(|| next(&mut worker));
        let outcome = called.wait(Waiting::Park);
        let after = Duration::from_millis(20);
        assert_eq!(
            outcome,
            Err(CallError::TimedOut { route: "test".into(), after, begun: begins, not_taken_by: Vec::new() })
        );
        assert!(incoming.is_none_or(|incoming| incoming.context.is_cancelled()));
    }
    assert!(worker.try_next().is_none(), "what was given up is passed over");
}

#[test]
fn expired_request_never_begins() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let late = LocalOffer::default().with_deadline(monotonic_ns(), Duration::from_millis(1));
    let mut called = route.call(1, late.clone()).unwrap();
    route.send(2, late).unwrap();
    assert!(worker.try_next().is_none());
    assert!(called.is_answered(), "the worker has answered");
    assert!(matches!(called.try_take(), Some(Err(CallError::TimedOut { begun: false, .. }))));
    assert_eq!(route.queued(), (0, 0));
}

#[test]
fn unpolled_future_times_out() {
    let route = route();
    let mut worker = route.worker().unwrap();
    for begins in [false, true] {
        let count = Arc::new(WakeCount::default());
        let mut called = route.call(1, LocalOffer::default().with_timeout(Duration::from_millis(30))).unwrap();
        assert!(poll(&mut called, &count).is_pending());
        let _incoming = begins.then(|| next(&mut worker));
        wait::until("the wake-up", || count.count() > 0);
        let Poll::Ready(Err(CallError::TimedOut { begun, .. })) = poll(&mut called, &count) else {
            panic!("its time is over");
        };
        assert_eq!(begun, begins);
    }
}

#[test]
fn callback_runs_once() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |called: crate::local::LocalCall<u64>| {
        let told = Arc::clone(&told);
        called.on_outcome(move |outcome| told.lock().unwrap().push(outcome));
    };
    tell(call(&route, 1));
    next(&mut worker).answer.reply(11);
    let called = call(&route, 2);
    next(&mut worker).answer.reply(22);
    tell(called);
    assert_eq!(*told.lock().unwrap(), [Ok(11), Ok(22)]);
    tell(route.call(3, LocalOffer::default().with_timeout(Duration::from_millis(20))).unwrap());
    let incoming = next(&mut worker);
    wait::until("the end of its time", || told.lock().unwrap().len() == 3);
    assert!(matches!(told.lock().unwrap()[2], Err(CallError::TimedOut { begun: true, .. })));
    incoming.answer.reply(33);
    tell(call(&route, 4));
    drop(next(&mut worker));
    assert!(matches!(told.lock().unwrap()[3], Err(CallError::Unknown { .. })));
    assert_eq!(told.lock().unwrap().len(), 4);
}

#[test]
fn ended_call_keeps_no_deadline() {
    let deadlines = Arc::new(Deadlines::new(|| {}));
    let options = LocalOptions { deadlines: Arc::clone(&deadlines), ..LocalOptions::default() };
    let route = Route::new("test", options).unwrap();
    let mut worker = route.worker().unwrap();
    let count = Arc::new(WakeCount::default());
    let offer = || LocalOffer::default().with_timeout(Duration::from_secs(3600));
    for _ in 0..100 {
        let mut polled = route.call(1, offer()).unwrap();
        assert!(poll(&mut polled, &count).is_pending());
        let mut dropped = route.call(2, offer()).unwrap();
        assert!(poll(&mut dropped, &count).is_pending());
        route.call(3, offer()).unwrap().on_outcome(drop);
        assert_eq!(deadlines.len(), 3);
        drop(dropped);
        next(&mut worker).answer.reply(1);
        next(&mut worker).answer.reply(3);
        assert_eq!(poll(&mut polled, &count), Poll::Ready(Ok(1)));
        assert!(deadlines.is_empty());
    }
}

#[test]
fn context_has_the_attributes() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let options = crate::options::CallOptions {
        key: Some(77),
        headers: crate::context::Headers::default().with("tenant", "blue"),
        trace: crate::TraceContext::new(1 << 100, 5, 1).with_state("a=1"),
        ..Default::default()
    };
    let _called = route.call(1, LocalOffer::new(&options).with_attempt(3)).unwrap();
    let context = next(&mut worker).context;
    assert_eq!((context.key(), context.attempt(), context.hops()), (77, 3, 0));
    assert_eq!(context.headers().get("tenant"), Some(&b"blue"[..]));
    assert_eq!(context.trace(), &options.trace);
    assert_eq!(context.caller().process_id, std::process::id());
    assert!(context.remaining().unwrap() <= Duration::from_secs(5));
}

#[test]
fn cancel_races_with_begin() {
    let mut random = Random::seeded();
    let route = route();
    let begun = Arc::new(AtomicUsize::new(0));
    let serving: Vec<_> = (0..2)
        .map(|_| {
            let (mut worker, begun) = (route.worker().unwrap(), Arc::clone(&begun));
            std::thread::spawn(move || {
                while let Some(incoming) = worker.next_blocking(Waiting::SpinFor(Duration::from_micros(50))) {
                    begun.fetch_add(1, Ordering::SeqCst);
                    incoming.answer.reply(incoming.request);
                }
            })
        })
        .collect();
    let mut known = 0;
    for request in 0..rounds(100_000, 10_000) {
        let mut called = call(&route, request);
        (0..random.below(300)).for_each(|_| std::hint::spin_loop());
        known += usize::from(match random.below(3) {
            0 => called.cancel(),
            1 => called.wait(Waiting::Park).is_ok(),
            _ => match called.try_take() {
                Some(outcome) => outcome == Ok(request),
                None => called.cancel(),
            },
        });
    }
    route.drain();
    serving.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(begun.load(Ordering::SeqCst), known);
}

#[test]
fn answer_races_with_timeout() {
    let mut random = Random::seeded();
    let route = route();
    let serving: Vec<_> = (0..2).map(|_| serve(&route, plus_one)).collect();
    let outcomes = Arc::new(AtomicUsize::new(0));
    let calls = rounds(20_000, 2_000);
    for request in 0..calls {
        let timeout = Duration::from_nanos(random.below(60_000));
        let called = route.call(request, LocalOffer::default().with_timeout(timeout)).unwrap();
        let is_right = move |outcome: Result<u64, CallError>| match outcome {
            Ok(reply) => reply == request + 1,
            Err(error) => matches!(error, CallError::TimedOut { .. }),
        };
        if random.happens(500) {
            assert!(is_right(called.wait(Waiting::Park)));
            outcomes.fetch_add(1, Ordering::SeqCst);
        } else {
            let outcomes = Arc::clone(&outcomes);
            called.on_outcome(move |outcome| {
                assert!(is_right(outcome));
                outcomes.fetch_add(1, Ordering::SeqCst);
            });
        }
    }
    wait::until("all outcomes", || outcomes.load(Ordering::SeqCst) == calls as usize);
    route.drain();
    serving.into_iter().for_each(|thread| assert!(thread.join().is_ok()));
    assert_eq!(outcomes.load(Ordering::SeqCst), calls as usize);
}
