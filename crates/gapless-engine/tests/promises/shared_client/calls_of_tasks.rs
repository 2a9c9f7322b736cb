//! Tasks of any runtime share one connection, and their commands stay in order.

use super::*;
use gapless_agent::block_on::block_on;

const TASKS: u64 = 100;
const CALLS: u64 = 20;

async fn call_from_tasks(client: Client) {
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut last = 0;
                for name in task * CALLS..(task + 1) * CALLS {
                    let place = add(&client, name).await.unwrap();
                    assert!(place > last, "a task's commands are in order");
                    last = place;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_once(effects(&client).await, 0..TASKS * CALLS);
}

#[test]
fn single_threaded_runtime_calls() {
    let host = in_memory(&Gate::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(call_from_tasks(client_of(&host, 1)));
    host.stop().unwrap();
}

#[test]
fn threaded_runtime_calls() {
    let host = in_memory(&Gate::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for sessions in [1, 4] {
        let client = client_of(&host, sessions);
        if sessions == 1 {
            runtime.block_on(call_from_tasks(client));
        } else {
            let tasks: Vec<_> = (0..TASKS).map(|name| runtime.spawn(add(&client, TASKS * CALLS + name))).collect();
            for task in tasks {
                runtime.block_on(task).unwrap().unwrap();
            }
            assert_once(runtime.block_on(effects(&client)), 0..TASKS * CALLS + TASKS);
        }
    }
    host.stop().unwrap();
}

#[test]
fn plain_executor_calls() {
    let directory = tempfile::tempdir().unwrap();
    let host = in_directory(directory.path(), &Gate::default());
    let address = directory.path().to_str().unwrap();
    block_on(async {
        let client = Client::connect(address).sessions(2).within(PATIENCE).await.unwrap();
        for name in 0..50 {
            assert_eq!(add(&client, name).await, Ok(name + 1));
        }
        // A temporary client lives as long as its call.
        let other = Client::connect(format!("{address}/node.socket")).await.unwrap().call(Add { name: 50 });
        assert_eq!(other.await, Ok(51));
        assert_once(effects(&client).await, 0..51);
    });
    host.stop().unwrap();
}

#[test]
fn spinning_task_calls() {
    let host = in_memory(&Gate::default());
    let polled = host.connect(ClientOptions::default()).unwrap();
    let client = Client::over(polled, CallOptions { spin: Duration::from_millis(2), ..options(1) }).unwrap();
    block_on(async {
        for name in 0..500 {
            assert_eq!(add(&client, name).await, Ok(name + 1));
        }
    });
    host.stop().unwrap();
}

/// Far more than the window of 64.
#[test]
fn ten_thousand_calls_stay_in_order() {
    const CALLS: u64 = 10_000;
    let gate = Gate::default();
    let host = in_memory(&gate);
    let client = client_of(&host, 1);
    let closed = gate.close();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tasks: Vec<_> = (0..CALLS)
        .map(|name| {
            let client = client.clone();
            runtime.spawn(async move { add(&client, name).await.unwrap() })
        })
        .collect();
    runtime.block_on(async {
        // Every task has its first poll.
        tokio::task::yield_now().await;
        while client.waiting() < CALLS as usize - 64 {
            tokio::task::yield_now().await;
        }
        closed.open();
        for (name, task) in (0..).zip(tasks) {
            assert_eq!(task.await.unwrap(), name + 1, "effects come in the order of the calls");
        }
        assert_eq!(effects(&client).await, Vec::from_iter(0..CALLS));
    });
    assert_eq!(client.waiting(), 0);
    host.stop().unwrap();
}

#[test]
fn ordered_clients_keep_their_order() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 8);
    let (keys, calls) = (5, 400);
    let started: Vec<_> = (0..keys * calls)
        .map(|number| client.ordered(number % keys).start(Add { name: (number % keys) << 32 | number }))
        .collect();
    let effects = block_on(async {
        for call in started {
            call.await.unwrap();
        }
        effects(&client).await
    });
    assert_eq!(effects.len() as u64, keys * calls);
    for key in 0..keys {
        assert!(effects.iter().filter(|name| **name >> 32 == key).is_sorted(), "key {key}");
    }
    host.stop().unwrap();
}

/// A runtime that ends drops its futures, and the next one goes on with the same client.
#[test]
fn dropped_runtime_hangs_nothing() {
    let gate = Gate::default();
    let host = in_memory(&gate);
    let client = client_of(&host, 1);
    for round in 0..3 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let closed = gate.close();
        for name in 0..200 {
            runtime.spawn(add(&client, round << 32 | name));
        }
        gapless_testkit::wait::until("calls behind a full window", || client.waiting() >= 100);
        closed.await_arrival();
        drop(runtime);
        assert_eq!(client.waiting(), 0, "commands that were not sent are taken back");
        closed.open();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(add(&client, round << 32 | 1_000)).unwrap();
        let effects = runtime.block_on(effects(&client));
        assert!(effects.len() as u64 <= (round + 1) * 65, "{} effects", effects.len());
    }
    host.stop().unwrap();
}

/// The service keeps 1,024 notices for a session.
#[test]
fn notices_are_acknowledged() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    block_on(async {
        for _ in 0..50 {
            client.call(Notify { count: 100 }).await.unwrap();
        }
        add(&client, 0).await.unwrap();
    });
    gapless_testkit::wait::until("all notices", || client.discarded_notices() == 5_000);
    host.stop().unwrap();
}
