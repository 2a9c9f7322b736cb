//! The service restarts, or another member leads: each command has one effect, and limits hold.

use super::*;
use crate::replicas::Cluster;
use gapless_agent::block_on::block_on;
use gapless_client::CallError;
use gapless_testkit::ports::free_address;
use gapless_testkit::wait::until;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const TASKS: u64 = 1_000;
const CALLS: u64 = 4;

/// Starts the tasks; the counter has their finished calls.
fn start_tasks(
    runtime: &tokio::runtime::Runtime,
    client: &Client,
) -> (Vec<tokio::task::JoinHandle<()>>, Arc<AtomicU64>) {
    let done = Arc::new(AtomicU64::new(0));
    let tasks = (0..TASKS).map(|task| {
        let (client, done) = (client.clone(), Arc::clone(&done));
        runtime.spawn(async move {
            for name in task * CALLS..(task + 1) * CALLS {
                add(&client, name).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    (tasks.collect(), done)
}

#[test]
fn restarts_take_effect_once() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let mut host = in_directory(directory.path(), &gate);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let connect = Client::connect(directory.path().to_str().unwrap()).sessions(4).within(PATIENCE);
    let client = runtime.block_on(connect.into_future()).unwrap();
    let (tasks, done) = start_tasks(&runtime, &client);
    for round in 1..4 {
        until("some calls", || done.load(Ordering::Relaxed) >= round * TASKS * CALLS / 5);
        host.stop().unwrap();
        host = in_directory(directory.path(), &gate);
    }
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert_once(runtime.block_on(effects(&client)), 0..TASKS * CALLS);
    host.stop().unwrap();
}

/// Ends the leader while the tasks call.
fn survives_failover(cluster: &mut Cluster, address: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let leader = cluster.leader();
    let connect = Client::connect(address).sessions(2).within(PATIENCE);
    let client = runtime.block_on(connect.into_future()).unwrap();
    let (tasks, done) = start_tasks(&runtime, &client);
    until("some calls", || done.load(Ordering::Relaxed) >= TASKS);
    cluster.members[leader - 1] = None;
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert_once(runtime.block_on(effects(&client)), 0..TASKS * CALLS);
}

#[test]
fn failover_takes_effect_once() {
    let mut cluster = Cluster::new(3, "");
    let sockets = cluster.sockets();
    for member in 1..=3 {
        cluster.start(member, Effects::default()).unwrap();
    }
    let directories: Vec<_> = sockets.iter().map(|socket| socket.parent().unwrap().to_str().unwrap()).collect();
    survives_failover(&mut cluster, &directories.join(","));
}

#[test]
fn failover_over_tcp_takes_effect_once() {
    let mut cluster = Cluster::new(3, "");
    let ports: Vec<_> = (0..3).map(|_| free_address().to_string()).collect();
    for (member, port) in (1..).zip(&ports) {
        let text = std::fs::read_to_string(cluster.file(member)).unwrap();
        std::fs::write(cluster.file(member), format!("{text}[clients]\naddress = \"{port}\"\n")).unwrap();
        cluster.start(member, Effects::default()).unwrap();
    }
    survives_failover(&mut cluster, &format!("tcp://{}", ports.join(",")));
}

#[test]
fn limits_hold_while_the_service_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let host = in_directory(directory.path(), &gate);
    let client = block_on(Client::connect(directory.path().to_str().unwrap()).into_future()).unwrap();
    block_on(add(&client, 0)).unwrap();
    host.stop().unwrap();
    let limit = Duration::from_millis(200);
    block_on(async {
        // A call with a long limit keeps the helper busy looking for the service.
        let patient = client.start(Add { name: 1 }).within(PATIENCE);
        let begun = Instant::now();
        let mut ends = Vec::new();
        for name in 2..8 {
            ends.push(add(&client, name).within(limit).await.unwrap_err());
        }
        let took = begun.elapsed();
        assert!((6 * limit..PATIENCE).contains(&took), "{took:?}");
        let last = ends.pop().unwrap();
        let CallError::NotSent { reason } = &last else { panic!("{last}") };
        assert!(reason.contains("within 200 ms: ") && reason.contains("node.socket"), "{reason}");
        let host = in_directory(directory.path(), &gate);
        patient.await.unwrap();
        let effects = effects(&client).await;
        assert!(effects.starts_with(&[0, 1]), "{effects:?}");
        for (name, end) in (2..).zip(ends) {
            let count = effects.iter().filter(|each| **each == name).count();
            assert!(count <= usize::from(end.took_effect().is_none()), "{name}: {end}");
        }
        host.stop().unwrap();
    });
}

/// Sent commands may be lost with their session; those that wait go on in a new one.
#[test]
fn lost_session_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let options = || ServiceHostOptions {
        session_expiry: Duration::from_millis(50),
        ..ServiceHostOptions::in_directory(directory.path())
    };
    let host = ServiceHost::start(Effects::behind(&gate), options()).unwrap();
    let client = Client::connect(directory.path().to_str().unwrap()).within(PATIENCE).blocking().unwrap();
    for round in 0..8 {
        // Long after the expiry of an idle session.
        std::thread::sleep(Duration::from_millis(200));
        let started: Vec<_> = (0..20).map(|call| client.start(Add { name: round * 20 + call })).collect();
        for (place, call) in (round * 20 + 1..).zip(started) {
            assert_eq!(call.wait(), Ok(place), "a refused command is sent again, in its order");
        }
    }
    assert_once(block_on(effects(client.shared())), 0..160);
    host.stop().unwrap();
}

/// Nothing but the call wakes the client.
#[test]
fn waiting_call_reaches_another_stream() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let gate = Gate::default();
    std::fs::create_dir(&place).unwrap();
    let host = in_directory(&place, &gate);
    let client = block_on(Client::connect(place.to_str().unwrap()).within(PATIENCE).into_future()).unwrap();
    block_on(add(&client, 0)).unwrap();
    host.stop().unwrap();
    // From here on the connection is checked before the next command.
    std::thread::sleep(Duration::from_millis(200));
    let waiting = client.start(Add { name: 1 });
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    let host = in_directory(&place, &gate);
    let begun = Instant::now();
    assert_eq!(block_on(waiting), Ok(1));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    host.stop().unwrap();
}

#[test]
fn another_stream_replaces_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let gate = Gate::default();
    std::fs::create_dir(&place).unwrap();
    let host = in_directory(&place, &gate);
    let client = block_on(Client::connect(place.to_str().unwrap()).within(PATIENCE).into_future()).unwrap();
    let closed = gate.close();
    let sent: Vec<_> = (0..64).map(|name| client.start(Add { name })).collect();
    closed.await_arrival();
    let waiting: Vec<_> = (64..100).map(|name| client.start(Add { name })).collect();
    closed.open();
    // The host stops after the commands that it has.
    host.stop().unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    let host = in_directory(&place, &gate);
    block_on(async {
        let mut ends = [0, 0];
        for call in sent.into_iter().chain(waiting) {
            match call.await {
                Ok(_) => ends[0] += 1,
                Err(CallError::Unknown { .. }) => ends[1] += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(ends[0] + ends[1], 100);
        add(&client, 100).await.unwrap();
        let effects = effects(&client).await;
        assert_eq!(effects.last(), Some(&100));
        assert!(effects.is_sorted(), "{effects:?}");
    });
    host.stop().unwrap();
}
