//! A route whose workers are tasks, called from another domain of the same directory, which is as another process.

use gapless_rpc::{CallOptions, Caller, Domain, DomainOptions, ServedRoute};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, mpsc};
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
    let options = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    for round in 0..50 {
        let calls = [0, 1].map(|each| caller.start_with(round * 2 + each, &options));
        let replies = calls.map(|call| call.wait());
        assert_eq!(replies, [Ok(round * 2), Ok(round * 2 + 1)], "one of the tasks was not woken");
    }
}

/// The copy drains and leaves while its handler is at work, which answers all the same.
#[test]
fn what_a_draining_copy_answers_is_not_lost() {
    let (runtime, (_folder, server, client)) = (runtime(), pair());
    let (handle, gate, (send_task, task)) = (runtime.handle().clone(), Arc::new(Barrier::new(2)), mpsc::channel());
    let at_gate = Arc::clone(&gate);
    let route = server
        .serve("slow")
        .tasks(move |task| send_task.send(handle.spawn(task)).unwrap())
        .handle_async(move |number: u64, _context| {
            let gate = Arc::clone(&at_gate);
            async move {
                gate.wait().await;
                gate.wait().await;
                Ok(number + 1)
            }
        })
        .unwrap();
    let caller: Caller<u64, u64> = client.caller("slow").unwrap();
    let call = caller.start_with(1, &CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() });
    runtime.block_on(gate.wait());
    route.drain();
    drop(server);
    until("the copy has left", || client.routes(Duration::ZERO).unwrap().is_empty());
    runtime.block_on(gate.wait());
    runtime.block_on(task.recv().unwrap()).unwrap();
    assert_eq!(call.wait(), Ok(2));
    let counted = caller.statistics();
    assert_eq!((counted.replied, counted.lost, counted.in_flight), (1, 0, 0));
}
