//! Handlers that panic, refuse and forget to answer, and executors that are dropped.

use super::*;
use crate::outcome::{CallError, Refusal};
use gapless_testkit::wait;
use std::future::Future;
use std::time::Duration;

#[test]
fn worker_survives_a_panic() {
    let route = route();
    let serving = serve(&route, |request, _| {
        assert!(request % 2 == 0, "{request} is odd");
        Ok(request)
    });
    for request in 0..100 {
        let outcome = call(&route, request).wait(Waiting::Park);
        if request % 2 == 0 {
            assert_eq!(outcome, Ok(request));
        } else {
            assert_eq!(outcome, Err(CallError::Panicked { route: "test".into(), reason: format!("{request} is odd") }));
        }
    }
    route.drain();
    assert_eq!(serving.join().unwrap(), 100);
}

#[test]
fn async_handler_panic_ends_its_call() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let route = route();
    let mut worker = route.worker().unwrap();
    runtime.spawn(async move {
        while let Some(incoming) = worker.next().await {
            incoming
                .handle_later(|request, _| {
                    assert!(request != 0, "at once");
                    async move {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        assert!(request != 1, "later");
                        Ok(request)
                    }
                })
                .await;
        }
    });
    let reason = |request| match call(&route, request).wait(Waiting::Park) {
        Err(CallError::Panicked { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!((reason(0).as_str(), reason(1).as_str()), ("at once", "later"));
    assert_eq!(call(&route, 2).wait(Waiting::Park), Ok(2));
}

#[test]
fn dropped_answer_is_unknown_or_panic() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let called = call(&route, 1);
    drop(next(&mut worker));
    let outcome = called.wait(Waiting::Park).unwrap_err();
    assert!(matches!(outcome, CallError::Unknown { attempts: 1, .. }) && !outcome.has_not_begun());

    let called = call(&route, 2);
    let died = std::thread::spawn(move || {
        let _incoming = next(&mut worker);
        panic!("outside of a handler");
    });
    assert!(died.join().is_err());
    assert!(matches!(called.wait(Waiting::Park), Err(CallError::Panicked { .. })));
    assert!(matches!(route.call(3, LocalOffer::default()).unwrap_err().error, CallError::NoRoute { .. }));
}

#[test]
fn refusal_carries_its_code() {
    let route = route();
    let serving = serve(&route, |request, _| Err(Refusal::new(request as u32, "no").into()));
    let refused = CallError::Refused { route: "test".to_owned(), refusal: Refusal::new(7, "no") };
    assert_eq!(call(&route, 7).wait(Waiting::Park), Err(refused));
    route.withdraw();
    serving.join().unwrap();
}

/// Begun calls end as unknown, queued ones as not begun.
#[test]
fn dropped_executor_ends_calls() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let route = route();
    for _ in 0..10 {
        let mut worker = route.worker().unwrap();
        runtime.spawn(async move {
            while let Some(incoming) = worker.next().await {
                incoming.handle_later(|_, _| std::future::pending()).await;
            }
        });
    }
    let calls: Vec<_> = (0..100).map(|request| call(&route, request)).collect();
    wait::until("ten have begun", || calls.iter().filter(|call| call.has_begun()).count() == 10);
    runtime.shutdown_timeout(Duration::from_secs(10));
    let outcomes: Vec<_> = calls.into_iter().map(|call| call.wait(Waiting::Park).unwrap_err()).collect();
    assert_eq!(outcomes.iter().filter(|error| matches!(error, CallError::Unknown { .. })).count(), 10);
    assert_eq!(outcomes.iter().filter(|error| matches!(error, CallError::NotBegun { .. })).count(), 90);
}

#[test]
fn dropped_task_passes_wake_up_on() {
    for drops_worker in [true, false] {
        let route = route();
        let counts: Vec<_> = (0..2).map(|_| Arc::new(WakeCount::default())).collect();
        let mut workers: Vec<_> = counts
            .iter()
            .map(|count| {
                let mut worker = route.worker().unwrap();
                let waker = Arc::clone(count).into();
                assert!(worker.poll_next(&mut std::task::Context::from_waker(&waker)).is_pending());
                worker
            })
            .collect();
        let _called = call(&route, 1);
        assert_eq!((counts[0].count(), counts[1].count()), (0, 1), "the last that slept is woken");
        if drops_worker {
            workers.pop();
        } else {
            workers[1].stop_waiting();
        }
        assert_eq!(counts[0].count(), 1);
        assert_eq!(next(&mut workers[0]).request, 1);
    }
}

#[test]
fn dropped_wait_is_not_woken_again() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let count = Arc::new(WakeCount::default());
    {
        let waker = Arc::clone(&count).into();
        let mut next = std::pin::pin!(worker.next());
        assert!(next.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        assert_eq!(route.workers(), (1, 1));
    }
    assert_eq!(route.workers(), (1, 0));
    let _called = call(&route, 1);
    assert_eq!(count.count(), 0);
    assert_eq!(Arc::strong_count(&count), 1);
}
