//! Queries of tasks and threads: they read their own writes, also over restarts, and end with a clear error.

use super::PATIENCE;
use gapless_agent::block_on::block_on;
use gapless_client::polled::{ClientOptions, QUERIES_IN_FLIGHT_MAX};
use gapless_client::shared::CallOptions;
use gapless_client::{Client, QueryError, blocking};
use gapless_engine::{ServiceHost, ServiceHostOptions};
use gapless_message::{Message, State};
use gapless_testkit::wait::until;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::{Future as _, IntoFuture as _};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

#[derive(Default, Serialize, Deserialize, State)]
struct Tally {
    counts: BTreeMap<u64, u64>,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Count {
    name: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = NoName)]
struct Counted {
    name: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct NoName;

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Bug;

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Unknown;

#[gapless_engine::service]
impl Tally {
    #[command]
    fn count(&mut self, Count { name }: Count) -> u64 {
        let count = self.counts.entry(name).or_default();
        *count += 1;
        *count
    }

    #[query]
    fn counted(&self, Counted { name }: Counted) -> Result<u64, NoName> {
        self.counts.get(&name).copied().ok_or(NoName)
    }

    #[query]
    fn bug(&self, _: Bug) {
        panic!("a query with a bug");
    }
}

fn start(directory: &Path) -> ServiceHost {
    ServiceHost::start(Tally::default(), ServiceHostOptions::in_directory(directory)).unwrap()
}

fn in_memory() -> (ServiceHost, Client) {
    let host = ServiceHost::start(Tally::default(), ServiceHostOptions::in_memory()).unwrap();
    let options = CallOptions { within: PATIENCE, ..CallOptions::default() };
    let client = Client::over(host.connect(ClientOptions::default()).unwrap(), options).unwrap();
    (host, client)
}

#[test]
fn tasks_read_their_own_writes() {
    const TASKS: u64 = 500;
    const ROUNDS: u64 = 6;
    let directory = tempfile::tempdir().unwrap();
    let mut host = start(directory.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let connect = Client::connect(directory.path().to_str().unwrap()).sessions(4).within(PATIENCE);
    let client = runtime.block_on(connect.into_future()).unwrap();
    let done = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|name| {
            let (client, done) = (client.clone(), Arc::clone(&done));
            runtime.spawn(async move {
                assert!(matches!(client.query(Counted { name }).await, Err(QueryError::Refused(NoName))));
                for round in 1..=ROUNDS {
                    assert_eq!(client.call(Count { name }).await.unwrap(), round);
                    assert_eq!(client.query(Counted { name }).await.unwrap(), round);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for restart in 1..3 {
        until("some rounds", || done.load(Ordering::Relaxed) >= restart * TASKS * ROUNDS / 4);
        host.stop().unwrap();
        host = start(directory.path());
    }
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    host.stop().unwrap();
}

#[test]
fn queries_end_with_clear_errors() {
    let (host, client) = in_memory();
    let bug = block_on(client.query(Bug)).unwrap_err();
    assert!(matches!(&bug, QueryError::Failed { reason } if reason.contains("a query with a bug")), "{bug}");
    let unknown = block_on(client.query(Unknown)).unwrap_err();
    assert!(matches!(&unknown, QueryError::Mismatch { .. }), "{unknown}");
    let ahead = client.query(Counted { name: 1 }).after(u64::MAX).within(Duration::from_millis(300));
    let behind = block_on(ahead).unwrap_err();
    assert!(matches!(&behind, QueryError::Behind { .. } | QueryError::Unavailable { .. }), "{behind}");
    let blocking = blocking::Client::from(client.clone());
    assert_eq!(blocking.call(Count { name: 1 }).unwrap(), 1);
    assert_eq!(blocking.query(Counted { name: 1 }).unwrap(), 1);
    host.stop().unwrap();
    let gone = block_on(client.query(Counted { name: 1 })).unwrap_err();
    assert!(matches!(&gone, QueryError::Unavailable { .. }), "{gone}");
}

/// The service ends the waits of dropped queries by itself.
#[test]
fn dropped_queries_hold_no_other_back() {
    let (host, client) = in_memory();
    block_on(client.call(Count { name: 1 })).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..QUERIES_IN_FLIGHT_MAX - 1 {
        let query = client.query(Counted { name: 1 }).after(10).within(PATIENCE);
        assert!(pin!(query).poll(&mut context).is_pending(), "it waits for frame 10, and is dropped here");
    }
    let query = client.query(Counted { name: 1 }).after(20);
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| block_on(query));
        for count in 2..=25 {
            assert_eq!(block_on(client.call(Count { name: 1 })).unwrap(), count);
        }
        assert!(answer.join().unwrap().unwrap() >= 18, "sequence 20 is about the 19th count");
    });
    host.stop().unwrap();
}
