use gapless_rpc::caller::together;
use gapless_rpc::{CallContext, CallError, CallOptions, Caller, Domain, DomainOptions, ServedRoute};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::Barrier;

pub fn pair() -> (tempfile::TempDir, Domain, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    (folder, server, client)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[test]
fn each_request_wakes_a_task() {
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

#[test]
fn answer_during_drain_is_not_lost() {
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
    until("the instance has left", || client.routes(Duration::ZERO).unwrap().routes.is_empty());
    runtime.block_on(gate.wait());
    runtime.block_on(task.recv().unwrap()).unwrap();
    assert_eq!(call.wait(), Ok(2));
    let counted = caller.statistics();
    assert_eq!((counted.replied, counted.lost, counted.in_flight), (1, 0, 0));
}

#[test]
fn drain_awaits_begun_requests() {
    let (_folder, server, client) = pair();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (handle, begun) = (runtime.handle().clone(), Arc::new(tokio::sync::Semaphore::new(0)));
    let (has_begun, ended) = (Arc::clone(&begun), Arc::new(AtomicUsize::new(0)));
    let has_ended = Arc::clone(&ended);
    let route = server
        .serve("slow")
        .tasks(move |task| drop(handle.spawn(task)))
        .done(move |_| {
            has_ended.fetch_add(1, Ordering::Relaxed);
        })
        .handle_async(move |number: u64, _context| {
            has_begun.add_permits(1);
            async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(number + 1)
            }
        })
        .unwrap();
    let (here, elsewhere): (Caller<u64, u64>, Caller<u64, u64>) =
        (server.caller("slow").unwrap(), client.caller("slow").unwrap());
    runtime.block_on(async {
        let calls = [here.start(1), elsewhere.start(2)];
        begun.acquire_many(2).await.unwrap().forget();
        let waits = here.start(3);
        route.drain_async().await;
        assert_eq!(ended.load(Ordering::Relaxed), 2, "workers are left");
        let [first, second] = calls;
        assert_eq!((first.await, second.await, waits.await), (Ok(2), Ok(3), Ok(4)));
    });
    let gone = Err(CallError::no_route("slow"));
    assert_eq!((here.call(1), elsewhere.call(1)), (gone.clone(), gone));
    let _again = server.serve("slow").handle(|number: u64, _context| Ok(number)).unwrap();
    assert_eq!(here.call(1), Ok(1));
}

#[test]
fn within_awaits_calls_in_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (_folder, server, client) = pair();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let handle = move |number: u64, _: &CallContext| {
        if number == 1 {
            let _ = held.lock().unwrap().recv();
        }
        Ok(number)
    };
    let _served = server.serve("numbers").workers(3).handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("numbers").unwrap();
    let start = |number| caller.start_with(number, &CallOptions { timeout: None, ..CallOptions::default() });
    assert_eq!(start(0).wait(), Ok(0));
    for timeout in [Duration::ZERO, Duration::from_millis(20)] {
        assert_eq!(runtime.block_on(together::within_async([1].map(start), timeout)), [None]);
    }
    drop(release);
    let all = runtime.block_on(together::within_async([0, 1, 2].map(start), Duration::MAX));
    assert_eq!(all, [0, 1, 2].map(|number| Some(Ok(number))));
}
