//! The route as a whole: weights, limits, suspending, draining, withdrawing.

use super::*;
use crate::local::QueueState;
use crate::options::Priority;
use crate::outcome::CallError;
use gapless_testkit::wait;
use std::time::Duration;

const PRIORITIES: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low];

fn limited(queue_max: usize) -> Route {
    Route::new("test", LocalOptions { queue_max, ..LocalOptions::default() }).unwrap()
}

#[test]
fn queue_is_served_by_weight() {
    let route = route();
    let mut worker = route.worker().unwrap();
    for class in PRIORITIES {
        (0..100).for_each(|_| route.send(class as u64, LocalOffer::default().with_priority(class)).unwrap());
    }
    for _ in 0..12 {
        let mut served = [0; 4];
        (0..15).for_each(|_| served[next(&mut worker).request as usize] += 1);
        assert_eq!(served, [8, 4, 2, 1]);
    }
}

#[test]
fn full_class_is_busy() {
    let route = limited(3);
    let kept: Vec<_> = (0..3).map(|request| call(&route, request)).collect();
    let unsent = route.call(3, LocalOffer::default()).unwrap_err();
    assert_eq!(unsent.request, 3);
    assert!(matches!(&unsent.error, CallError::Busy { route, .. } if route == "test"), "{}", unsent.error);
    assert_eq!(route.send(4, LocalOffer::default()).unwrap_err().request, 4);
    assert!(route.send(5, LocalOffer::default().with_priority(Priority::Urgent)).is_ok());
    let mut worker = route.worker().unwrap();
    assert_eq!(next(&mut worker).request, 5);
    assert_eq!(next(&mut worker).request, 0);
    assert!(route.call(6, LocalOffer::default()).is_ok());
    drop(kept);
}

#[test]
fn cancelled_request_frees_room() {
    let route = limited(64);
    for _ in 0..3 {
        let calls: Vec<_> = (0..64).map(|request| call(&route, request)).collect();
        drop(calls);
        assert!(route.send(9, LocalOffer::default()).is_ok());
        assert_eq!(route.queued(), (1, 0));
        // The queue is searched at the first refusal and at every ninth.
        let kept: Vec<_> = (0..63).map(|request| call(&route, request)).collect();
        assert!(route.send(9, LocalOffer::default()).is_err());
        drop(kept);
        let refused = (0..64).take_while(|_| route.send(9, LocalOffer::default()).is_err()).count();
        assert_eq!((refused, route.queued()), (8, (2, 0)));
        let mut worker = route.worker().unwrap();
        (0..2).for_each(|_| assert!(worker.try_next().is_some()));
        std::mem::forget(worker);
    }
}

#[test]
fn invalid_options_are_refused() {
    for queue_max in [0, crate::local::QUEUE_MAX_MAX + 1] {
        let options = LocalOptions::<u64, u64> { queue_max, ..LocalOptions::default() };
        assert!(Route::new("test", options).unwrap_err().to_string().contains(&queue_max.to_string()));
    }
    assert!(Route::new("", LocalOptions::default()).is_err());
}

#[test]
fn resume_serves_the_queue() {
    let route = route();
    let serving: Vec<_> = (0..3).map(|_| serve(&route, plus_one)).collect();
    assert_eq!(call(&route, 1).wait(Waiting::Park), Ok(2));
    assert!(route.suspend());
    let mut calls: Vec<_> = (0..100).map(|request| call(&route, request)).collect();
    std::thread::sleep(Duration::from_millis(20));
    assert!(calls.iter_mut().all(|call| call.try_take().is_none()));
    assert!(route.resume());
    calls.into_iter().zip(0..).for_each(|(call, request)| assert_eq!(call.wait(Waiting::Park), Ok(request + 1)));
    route.drain();
    assert!(!route.suspend() && !route.resume(), "there is no way back");
    assert_eq!(serving.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 101);
}

#[test]
fn drain_serves_the_queue() {
    let route = route();
    // Keeps the route open until all requests are queued.
    let staying = route.worker();
    let calls: Vec<_> = (0..1_000).map(|request| call(&route, request)).collect();
    route.drain();
    assert!(matches!(route.call(1, LocalOffer::default()).unwrap_err().error, CallError::NoRoute { .. }));
    let serving: Vec<_> = (0..3).map(|_| serve(&route, plus_one)).collect();
    drop(staying);
    calls.into_iter().zip(0..).for_each(|(call, request)| assert_eq!(call.wait(Waiting::Park), Ok(request + 1)));
    assert!(route.wait_until_left(Some(wait::PATIENCE)));
    assert_eq!(serving.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 1_000);
    assert_eq!(route.state(), QueueState::Withdrawn);
    assert!(route.worker().is_none());
}

#[test]
fn draining_under_load_loses_nothing() {
    for _ in 0..20 {
        let route = route();
        let serving: Vec<_> = (0..3).map(|_| serve(&route, plus_one)).collect();
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let route = route.clone();
                std::thread::spawn(move || {
                    let mut answered = 0;
                    loop {
                        match route.call(answered, LocalOffer::default()) {
                            Ok(called) => assert_eq!(called.wait(Waiting::Park), Ok(answered + 1)),
                            Err(unsent) => {
                                assert!(matches!(unsent.error, CallError::NoRoute { .. }));
                                return answered;
                            }
                        }
                        answered += 1;
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(5));
        route.drain();
        let answered: u64 = callers.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(serving.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), answered);
    }
}

#[test]
fn withdrawal_ends_the_queue() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let begun = call(&route, 1);
    let incoming = next(&mut worker);
    let waits = call(&route, 2);
    route.withdraw();
    let error = waits.wait(Waiting::Park).unwrap_err();
    assert!(matches!(error, CallError::NotBegun { attempts: 1, .. }) && error.has_not_begun());
    incoming.answer.reply(11);
    assert_eq!(begun.wait(Waiting::Park), Ok(11));
    assert!(worker.next_blocking(Waiting::Park).is_none());
    assert!(!route.wait_until_left(Some(Duration::from_millis(5))));
    drop(worker);
    assert!(route.wait_until_left(None));
}

#[test]
fn drop_ends_the_queue() {
    let route = route();
    let called = call(&route, 1);
    drop(route);
    assert!(matches!(called.wait(Waiting::Park), Err(CallError::NotBegun { .. })));
}

#[test]
fn sleeping_workers_end_with_the_route() {
    for waiting in [Waiting::Park, Waiting::Spin, Waiting::SpinFor(Duration::from_millis(1))] {
        for withdraws in [true, false] {
            let route = route();
            let mut worker = route.worker().unwrap();
            let ended = std::thread::spawn(move || worker.next_blocking(waiting).is_none());
            std::thread::sleep(Duration::from_millis(5));
            if withdraws {
                route.withdraw()
            } else {
                route.drain()
            }
            assert!(ended.join().unwrap());
        }
    }
}

/// Of two idle workers one is woken for the first request and does not come. The second request wakes the other, which
/// takes both.
#[test]
fn absent_worker_holds_up_no_request() {
    let route = route();
    let count = Arc::new(WakeCount::default());
    let waker = Arc::clone(&count).into();
    let mut workers = [route.worker().unwrap(), route.worker().unwrap()];
    for worker in &mut workers {
        assert!(worker.poll_next(&mut std::task::Context::from_waker(&waker)).is_pending());
    }
    let _calls = [call(&route, 1), call(&route, 2), call(&route, 3)];
    assert_eq!(count.count(), 2, "one wake-up for each, and no more than there are workers");
    assert_eq!(next(&mut workers[0]).request, 1);
    assert_eq!(next(&mut workers[0]).request, 2);
}

#[test]
fn task_lingers_before_sleep() {
    let route = route();
    let mut worker = route.worker().unwrap();
    let count = Arc::new(WakeCount::default());
    let waker = Arc::clone(&count).into();
    let mut task = std::task::Context::from_waker(&waker);
    route.send(1, LocalOffer::default()).unwrap();
    assert!(worker.poll_next(&mut task).is_ready());
    assert!(worker.poll_next(&mut task).is_pending());
    assert_eq!((count.count(), route.workers()), (1, (1, 0)), "it has woken itself");
    route.send(2, LocalOffer::default()).unwrap();
    assert_eq!(count.count(), 1, "it comes anyway");
    assert!(worker.poll_next(&mut task).is_ready());
    assert!(worker.poll_next(&mut task).is_pending());
    assert!(worker.poll_next(&mut task).is_pending());
    assert_eq!((count.count(), route.workers()), (2, (1, 1)), "now it sleeps");
    route.send(3, LocalOffer::default()).unwrap();
    assert_eq!(count.count(), 3);
}

#[test]
fn leaving_lingerer_wakes_another() {
    let route = route();
    let (mut first, mut second) = (route.worker().unwrap(), route.worker().unwrap());
    let waker = std::task::Waker::noop();
    let mut task = std::task::Context::from_waker(waker);
    route.send(1, LocalOffer::default()).unwrap();
    assert!(first.poll_next(&mut task).is_ready());
    assert!(first.poll_next(&mut task).is_pending());
    let count = Arc::new(WakeCount::default());
    let counted = Arc::clone(&count).into();
    assert!(second.poll_next(&mut std::task::Context::from_waker(&counted)).is_pending());
    route.send(2, LocalOffer::default()).unwrap();
    assert_eq!(count.count(), 0, "the first is on its way");
    drop(first);
    assert_eq!(count.count(), 1);
    assert_eq!(next(&mut second).request, 2);
}
