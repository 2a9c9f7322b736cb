//! Thousands of callers and workers.

use super::*;
use crate::outcome::CallError;
use gapless_testkit::random::Random;
use std::time::Duration;

#[test]
fn thousands_of_tasks_call() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let route = route();
    for _ in 0..3_000 {
        let mut worker = route.worker().unwrap();
        runtime.spawn(async move {
            while let Some(incoming) = worker.next().await {
                incoming
                    .handle_later(|request, _| async move {
                        if request % 7 == 0 {
                            tokio::task::yield_now().await;
                        }
                        Ok(request + 1)
                    })
                    .await;
            }
        });
    }
    let callers: Vec<_> = (0..3_000)
        .map(|caller| {
            let route = route.clone();
            runtime.spawn(async move {
                for number in 0..50 {
                    let request = caller * 1_000 + number;
                    let offer = LocalOffer::default().with_timeout(Duration::from_secs(100));
                    assert_eq!(route.call(request, offer).unwrap().await, Ok(request + 1));
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| runtime.block_on(caller).unwrap());
    route.drain();
    assert!(route.wait_until_left(Some(gapless_testkit::wait::PATIENCE)));
}

#[test]
fn hundreds_of_threads_call() {
    let route = route();
    let serving: Vec<_> = (0..200).map(|_| serve(&route, plus_one)).collect();
    let callers: Vec<_> = (0..200_u64)
        .map(|caller| {
            let route = route.clone();
            std::thread::spawn(move || {
                for request in caller * 100..caller * 100 + 100 {
                    assert_eq!(call(&route, request).wait(Waiting::Park), Ok(request + 1));
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    route.drain();
    assert_eq!(serving.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 20_000);
}

/// Threads and tasks come, go, cancel, panic and expire: each call has one outcome.
#[test]
fn calls_end_once_as_workers_churn() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let route = route();
    let seed = gapless_testkit::random::printed_seed();
    // Keeps the route open.
    let staying = serve(&route, plus_one);
    for number in 0..40 {
        let route = route.clone();
        runtime.spawn(async move {
            let mut random = Random::new(seed ^ number);
            while let Some(mut worker) = route.worker() {
                for _ in 0..random.below(50) {
                    let next = tokio::time::timeout(Duration::from_micros(random.below(2_000)), worker.next()).await;
                    match next {
                        Ok(Some(incoming)) if random.happens(50) => drop(incoming),
                        Ok(Some(incoming)) => {
                            incoming.handle_later(|request, _| std::future::ready(Ok(request + 1))).await;
                        }
                        Ok(None) => return,
                        Err(_) => {}
                    }
                }
            }
        });
    }
    let callers: Vec<_> = (100..116)
        .map(|caller| {
            let route = route.clone();
            std::thread::spawn(move || {
                let mut random = Random::new(seed ^ caller);
                let mut answered = 0;
                for request in 0..2_000 {
                    let offer = LocalOffer::default();
                    let offer = if random.happens(300) {
                        offer.with_timeout(Duration::from_micros(random.below(500)))
                    } else {
                        offer
                    };
                    let call = route.call(request, offer).unwrap();
                    match random.below(4) {
                        0 => drop(call),
                        _ => match call.wait(Waiting::Park) {
                            Ok(reply) => {
                                assert_eq!(reply, request + 1);
                                answered += 1;
                            }
                            Err(CallError::TimedOut { .. } | CallError::Unknown { .. }) => {}
                            Err(other) => panic!("{other}"),
                        },
                    }
                }
                answered
            })
        })
        .collect();
    let answered: u64 = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    assert!(answered > 0);
    route.drain();
    assert!(route.wait_until_left(Some(gapless_testkit::wait::PATIENCE)));
    assert!(staying.join().is_ok());
}
