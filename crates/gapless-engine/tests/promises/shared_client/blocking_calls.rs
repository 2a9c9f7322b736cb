//! Threads share the connection without a helper: each takes the replies of all while it waits.

use super::*;
use gapless_agent::block_on::block_on;
use gapless_client::{CallError, blocking};
use std::time::Instant;

const THREADS: u64 = 8;
const CALLS: u64 = 200;

fn call_from_threads(client: &blocking::Client, base: u64) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut last = 0;
                for name in base + thread * CALLS..base + (thread + 1) * CALLS {
                    let place = client.call(Add { name }).unwrap();
                    assert!(place > last, "a thread's commands are in order");
                    last = place;
                }
            });
        }
    });
}

#[test]
fn threads_share_one_connection() {
    let directory = tempfile::tempdir().unwrap();
    let host = in_directory(directory.path(), &Gate::default());
    let client = Client::connect(directory.path().to_str().unwrap()).within(PATIENCE).blocking().unwrap();
    call_from_threads(&client, 0);
    assert_once(block_on(effects(client.shared())), 0..THREADS * CALLS);
    // From here on the helper of tasks takes the replies.
    call_from_threads(&client, THREADS * CALLS);
    assert_once(block_on(effects(client.shared())), 0..2 * THREADS * CALLS);
    host.stop().unwrap();
}

#[test]
fn threads_and_tasks_share_one_connection() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let base = THREADS * CALLS;
    let tasks: Vec<_> = (0..100)
        .map(|task| {
            let client = client.clone();
            runtime.spawn(async move {
                for name in base + task * 10..base + (task + 1) * 10 {
                    add(&client, name).await.unwrap();
                }
            })
        })
        .collect();
    call_from_threads(&client.clone().into(), 0);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert_once(block_on(effects(&client)), 0..base + 1_000);
    host.stop().unwrap();
}

#[test]
fn started_commands_take_one_round_trip() {
    let host = in_memory(&Gate::default());
    let client = blocking::Client::over(host.connect(ClientOptions::default()).unwrap(), options(1)).unwrap();
    let started: Vec<_> = (0..1_000).map(|name| client.start(Add { name })).collect();
    for (place, started) in (1..).zip(started) {
        assert_eq!(started.wait(), Ok(place));
    }
    host.stop().unwrap();
}

#[test]
fn blocked_threads_have_limits() {
    let gate = Gate::default();
    let host = in_memory(&gate);
    let client = blocking::Client::over(host.connect(ClientOptions::default()).unwrap(), options(1)).unwrap();
    client.call(Add { name: 0 }).unwrap();
    let closed = gate.close();
    let patient = std::thread::spawn({
        let client = client.clone();
        move || client.call(Add { name: 1 })
    });
    closed.await_arrival();
    std::thread::scope(|scope| {
        for name in 2..8 {
            let client = &client;
            scope.spawn(move || {
                let begun = Instant::now();
                let limit = Duration::from_millis(1_000 + 20 * name);
                let error = client.call_within(Add { name }, limit).unwrap_err();
                assert!(matches!(error, CallError::Unknown { .. }), "{error}");
                assert!((limit..PATIENCE).contains(&begun.elapsed()));
            });
        }
    });
    closed.open();
    assert_eq!(patient.join().unwrap(), Ok(2));
    assert_once(block_on(effects(client.shared())), 0..8);
    host.stop().unwrap();
}

#[test]
fn threads_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let host = in_directory(directory.path(), &gate);
    let client = Client::connect(directory.path().to_str().unwrap()).within(PATIENCE).blocking().unwrap();
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let client = client.clone();
            std::thread::spawn(move || {
                for name in thread * CALLS..(thread + 1) * CALLS {
                    client.call(Add { name }).unwrap();
                }
            })
        })
        .collect();
    gapless_testkit::wait::until("some calls", || host.handled_sequence() > THREADS * CALLS / 4);
    host.stop().unwrap();
    let host = in_directory(directory.path(), &gate);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_once(block_on(effects(client.shared())), 0..THREADS * CALLS);
    host.stop().unwrap();
}
