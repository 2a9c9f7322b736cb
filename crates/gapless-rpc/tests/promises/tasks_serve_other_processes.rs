//! A route whose workers are tasks, called from another domain of the same directory, which is as another process.

use gapless_rpc::{Caller, Domain, DomainOptions, ServedRoute};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;

/// Two domains as two processes have them.
pub fn pair() -> (tempfile::TempDir, Domain, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    (folder, server, client)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

/// Each call waits in its handler until another is there, so the route has to wake both of its tasks.
#[test]
fn each_request_wakes_a_task_that_sleeps() {
    let (runtime, (_folder, server, client)) = (runtime(), pair());
    let (handle, barrier) = (runtime.handle().clone(), Arc::new(Barrier::new(2)));
    let _route: ServedRoute = server
        .serve("pairs")
        .workers(2)
        .tasks(move |task| drop(handle.spawn(task)))
        .handle_async(move |number: u64, _context| {
            let barrier = Arc::clone(&barrier);
            async move {
                let met = tokio::time::timeout(Duration::from_secs(10), barrier.wait()).await;
                Ok(if met.is_ok() { number } else { u64::MAX })
            }
        })
        .unwrap();
    let caller: Caller<u64, u64> = client.caller("pairs").unwrap();
    let options = gapless_rpc::CallOptions { timeout: Some(Duration::from_secs(20)), ..Default::default() };
    for round in 0..50 {
        let calls = [0, 1].map(|each| caller.start_with(round * 2 + each, &options));
        let replies = calls.map(|call| call.wait());
        assert_eq!(replies, [Ok(round * 2), Ok(round * 2 + 1)], "one of the tasks was not woken");
    }
}
