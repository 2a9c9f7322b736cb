//! A dropped call has no effect unless it was sent, leaves no gap, and blocks no one.

use super::*;
use gapless_agent::block_on::block_on;
use gapless_client::CallError;
use gapless_testkit::random::Random;
use gapless_testkit::wait::until;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls `future` up to `polls` times, each after a wake-up or at once, then drops it.
async fn cancelled_after<F: Future>(future: F, polls: u64, waits: bool) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                if !waits {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}

/// A gap in the numbers of a session would stop it: later commands would have no reply.
#[test]
fn calls_cancelled_anywhere_leave_no_gap() {
    let mut random = Random::seeded();
    let host = in_memory(&Gate::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for sessions in [1, 3] {
        let client = client_of(&host, sessions);
        let tasks: Vec<_> = (0..300)
            .map(|number| {
                let (client, mut random) = (client.clone(), Random::new(random.number()));
                runtime.spawn(async move {
                    let (mut replied, mut cancelled) = (Vec::new(), Vec::new());
                    for call in 0..10 {
                        let name = (sessions as u64) << 40 | number << 20 | call;
                        let polls = random.below(5);
                        let call = if random.happens(500) { add(&client, name) } else { client.start(Add { name }) };
                        match cancelled_after(call, polls, false).await {
                            Some(result) => replied.push((name, result.unwrap())),
                            None => cancelled.push((name, polls)),
                        }
                    }
                    (replied, cancelled)
                })
            })
            .collect();
        let mut replied = Vec::new();
        let mut cancelled = BTreeSet::new();
        for task in tasks {
            let (of_task, dropped) = runtime.block_on(task).unwrap();
            replied.extend(of_task);
            cancelled.extend(dropped.into_iter().map(|(name, _)| name));
        }
        let effects = runtime.block_on(effects(&client));
        for (name, place) in &replied {
            assert_eq!(effects[*place as usize - 1], *name, "a reply names the place of its effect");
        }
        let mut of_round: Vec<u64> = effects.into_iter().filter(|name| name >> 40 == sessions as u64).collect();
        let count = of_round.len();
        of_round.sort_unstable();
        of_round.dedup();
        assert_eq!(of_round.len(), count, "each has one effect at most");
        let names: BTreeSet<u64> = replied.iter().map(|(name, _)| *name).collect();
        assert!(of_round.iter().all(|name| names.contains(name) || cancelled.contains(name)));
        assert_eq!(names.iter().filter(|name| of_round.binary_search(name).is_err()).count(), 0);
    }
    host.stop().unwrap();
}

#[test]
fn unsent_calls_have_no_effect() {
    let gate = Gate::default();
    let host = in_memory(&gate);
    let client = client_of(&host, 1);
    block_on(add(&client, 0)).unwrap();
    let closed = gate.close();
    let mut sent: Vec<_> = (1..=64).map(|name| client.start(Add { name })).collect();
    closed.await_arrival();
    let mut context = Context::from_waker(Waker::noop());
    let mut kept = Vec::new();
    for name in 65..1_065 {
        let mut call = Box::pin(add(&client, name));
        match name % 4 {
            // Not even polled.
            0 => {}
            1 => assert!(call.as_mut().poll(&mut context).is_pending()),
            2 => (0..3).for_each(|_| assert!(call.as_mut().poll(&mut context).is_pending())),
            _ => {
                assert!(call.as_mut().poll(&mut context).is_pending());
                kept.push((name, call));
                continue;
            }
        }
        drop(call);
    }
    until("others take no room", || client.waiting() == 250);
    // Replies to these are discarded.
    let (dropped, awaited): (Vec<_>, Vec<_>) = (1..).zip(sent.drain(..)).partition(|(name, _)| name % 2 == 0);
    drop(dropped);
    closed.open();
    block_on(async {
        for (name, call) in awaited {
            assert_eq!(call.await, Ok(name + 1));
        }
        let mut place = 65;
        for (_, call) in &mut kept {
            place += 1;
            assert_eq!(call.as_mut().await, Ok(place));
        }
        let expected: Vec<u64> = (0..65).chain((65..1_065).filter(|name| name % 4 == 3)).collect();
        assert_eq!(effects(&client).await, expected);
    });
    host.stop().unwrap();
}

#[test]
fn commands_beyond_the_bound_are_refused() {
    let gate = Gate::default();
    let host = in_memory(&gate);
    let polled = host.connect(ClientOptions::default()).unwrap();
    let client = Client::over(polled, CallOptions { waiting_max: 10, ..options(1) }).unwrap();
    block_on(add(&client, 0)).unwrap();
    let closed = gate.close();
    let mut started: Vec<_> = (1..=64)
        .map(|name| {
            let call = client.start(Add { name });
            until("room", || client.waiting() < 10);
            call
        })
        .collect();
    until("a full window", || client.waiting() == 0);
    started.extend((65..=74).map(|name| client.start(Add { name })));
    assert_eq!(client.waiting(), 10);
    for _ in 0..3 {
        let busy = block_on(add(&client, 1_000)).unwrap_err();
        assert!(matches!(busy, CallError::Busy { waiting: 10 }), "{busy}");
        assert_eq!(busy.took_effect(), Some(false));
    }
    // Room by a command that is taken back.
    drop(started.pop());
    started.push(client.start(Add { name: 74 }));
    closed.open();
    block_on(async {
        for call in started {
            call.await.unwrap();
        }
        assert_eq!(effects(&client).await, Vec::from_iter(0..75));
    });
    host.stop().unwrap();
}

/// A future that is never polled again does not lose the wake-up of another.
#[test]
fn idle_future_blocks_no_other() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    let mut context = Context::from_waker(Waker::noop());
    let mut idle: Vec<_> = (0..500).map(|name| Box::pin(add(&client, name))).collect();
    for call in &mut idle {
        let _ = call.as_mut().poll(&mut context);
    }
    block_on(add(&client, 500)).unwrap();
    assert_once(block_on(effects(&client)), 0..501);
    drop(idle);
    host.stop().unwrap();
}
