use gapless_rpc::{
    CallContext, CallError, CallOptions, CallerOptions, Domain, DomainOptions, Interceptor, Refusal, Rejection,
    ServedRoute, caller::together, domain::ServeReach,
};
use gapless_testkit::wait::{PATIENCE, until};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

fn serve(number: u64, context: &CallContext) -> Result<u64, Rejection> {
    match number {
        0 => Err(Refusal::new(3, "zero").into()),
        1 => panic!("one"),
        2 => Ok(context.remaining().map_or(0, |left| left.as_millis() as u64)),
        number => Ok(number * 2),
    }
}

fn refused(route: &str, code: u32, text: &str) -> CallError {
    CallError::Refused { route: route.to_owned(), refusal: Refusal::new(code, text) }
}

#[test]
fn threads_and_tasks_answer_alike() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let handle = runtime.handle().clone();
    let domain = Domain::in_process("test");
    let _threads = domain.serve("threads").workers(2).handle(serve).unwrap();
    let _tasks = domain
        .serve("tasks")
        .workers(20)
        .tasks(move |task| drop(handle.spawn(task)))
        .handle_async(|number: u64, context| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            serve(number, &context)
        })
        .unwrap();
    for route in ["threads", "tasks"] {
        let caller = domain.caller::<u64, u64>(route).unwrap();
        assert_eq!(caller.call(0), Err(refused(route, 3, "zero")), "{route}");
        assert_eq!(caller.call(1), Err(CallError::Panicked { route: route.to_owned(), reason: "one".to_owned() }));
        let left = caller.call(2).unwrap();
        assert!((1..=5_000).contains(&left), "{left} ms of the default's five seconds");
        let calls: Vec<_> = (3..1_000).map(|number| caller.start(number)).collect();
        let outcomes = runtime.block_on(together::all_async(calls));
        assert!(outcomes.into_iter().zip(3..).all(|(outcome, number)| outcome == Ok(number * 2)), "{route}");
        caller.send(9).unwrap();
    }
}

#[derive(Default)]
struct Counting {
    before: AtomicU64,
    after: AtomicU64,
}

impl Interceptor for Counting {
    fn before(&self, _route: &str, options: &mut CallOptions) -> Result<(), Refusal> {
        self.before.fetch_add(1, Ordering::Relaxed);
        if options.key == Some(13) { Err(Refusal::new(13, "not this one")) } else { Ok(()) }
    }

    fn after(&self, route: &str, options: &CallOptions, error: Option<&CallError>, _took: Duration) {
        assert_eq!((route, options.key == Some(13)), ("route", error.is_some()), "the options say which call it was");
        self.after.fetch_add(if error.is_some() { 1_000 } else { 1 }, Ordering::Relaxed);
    }
}

#[test]
fn interceptor_may_refuse() {
    let domain = Domain::in_process("test");
    let _route = domain.serve("route").handle(serve).unwrap();
    let counting = Arc::new(Counting::default());
    let interceptors = vec![Arc::<Counting>::clone(&counting) as Arc<dyn Interceptor>];
    let caller =
        domain.caller_with::<u64, u64>("route", CallerOptions { interceptors, ..CallerOptions::default() }).unwrap();
    assert_eq!(caller.call(7), Ok(14));
    let options = CallOptions { key: Some(13), ..CallOptions::default() };
    assert_eq!(caller.call_with(7, &options), Err(refused("route", 13, "not this one")));
    assert_eq!((counting.before.load(Ordering::Relaxed), counting.after.load(Ordering::Relaxed)), (2, 1_001));
}

#[test]
fn withdrawn_name_is_reusable() {
    let domain = Domain::in_process("test");
    let (begun, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (init, done) = (Arc::clone(&begun), Arc::clone(&ended));
    let route = domain
        .serve("route")
        .workers(3)
        .init(move |_| {
            init.fetch_add(1, Ordering::Relaxed);
        })
        .done(move |_| {
            done.fetch_add(1, Ordering::Relaxed);
        })
        .handle(serve)
        .unwrap();
    assert!(domain.serve("route").handle(serve).is_err(), "twice at once");
    assert!(domain.serve("no name").handle(serve).is_err());
    assert!(domain.serve("other").workers(0).handle(serve).is_err());
    let for_others = domain.serve("others").reach(ServeReach::OtherProcesses).handle(serve).unwrap_err();
    assert!(for_others.to_string().contains("no other processes"), "{for_others}");
    let caller = domain.caller::<u64, u64>("route").unwrap();
    assert_eq!(caller.call(7), Ok(14));
    let wrong = domain.caller::<String, u64>("route").unwrap().call(String::new()).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "the route route is called with String → u64, and served with u64 → u64 (in this process): in the request, the type is String at \
         the caller and u64 at the instance"
    );
    route.drain();
    assert_eq!((begun.load(Ordering::Relaxed), ended.load(Ordering::Relaxed)), (3, 3));
    assert_eq!(caller.call(7), Err(CallError::no_route("route")));
    let _again = domain.serve("route").handle(|number: u64, _context| Ok(number + 1)).unwrap();
    assert_eq!(caller.call(7), Ok(8));
}

#[test]
fn drain_does_not_deadlock_on_itself() {
    let domain = Domain::in_process("test");
    let caller = domain.caller::<u64, u64>("route").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let handle = runtime.handle().clone();
    let route = domain.serve("route").tasks(move |task| drop(handle.spawn(task))).handle(serve).unwrap();
    runtime.block_on(async {
        let call = caller.start(7);
        route.drain();
        assert_eq!(call.await, Ok(14));
    });
    let itself = Arc::new(Mutex::new(None::<ServedRoute>));
    let own = Arc::clone(&itself);
    let route = domain.serve("route").handle(move |number: u64, _context| {
        own.lock().unwrap().take().into_iter().for_each(ServedRoute::drain);
        Ok(number + 1)
    });
    *itself.lock().unwrap() = Some(route.unwrap());
    assert_eq!(caller.call(7), Ok(8));
    assert_eq!(caller.call(7), Err(CallError::no_route("route")));
}

#[test]
fn an_outcome_is_taken_once() {
    let (folder, elsewhere, domain) = super::tasks_serve_processes::pair();
    let handle = |number: u64, _: &CallContext| Ok(number + 1);
    let _routes = (domain.serve("here").handle(handle).unwrap(), elsewhere.serve("elsewhere").handle(handle).unwrap());
    let served = elsewhere.serve("suspended").handle(handle).unwrap();
    let overflow = Some(gapless_rpc::overflow::ElasticQueueOptions::new("line", folder.path()));
    let options = CallerOptions { overflow, ..CallerOptions::default() };
    let behind = domain.caller_with::<u64, u64>("suspended", options).unwrap();
    // A quarter of 64 slots is reserved for the queue.
    assert_eq!(behind.call(7), Ok(8));
    served.suspend().unwrap();
    let mut calls: Vec<_> = (0..50).map(|number| behind.start(number)).collect();
    assert!(behind.statistics().overflowed > 0);
    calls.extend(["here", "elsewhere", "nowhere"].map(|route| domain.caller::<u64, u64>(route).unwrap().start(7)));
    served.resume().unwrap();
    for mut call in calls {
        assert!(call.wait_for(PATIENCE).is_some());
        assert_eq!((call.try_take(), call.wait_for(PATIENCE)), (None, None), "{call:?}");
        let polled = catch_unwind(AssertUnwindSafe(|| pin!(&mut call).poll(&mut Context::from_waker(Waker::noop()))));
        assert!(polled.is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| call.wait())).is_err());
    }
}

#[test]
fn forwards_work_here_and_elsewhere() {
    let (_folder, elsewhere, domain) = super::tasks_serve_processes::pair();
    let forward = |number: u64, context: &CallContext| -> Result<u64, Rejection> {
        Err(context.forward(["here", "elsewhere", "nowhere", "front"][number as usize]))
    };
    let _front = domain.serve("front").forwards().handle(forward).unwrap();
    let _here = domain.serve("here").handle(|number: u64, _context| Ok(number + 10)).unwrap();
    let _elsewhere = elsewhere.serve("elsewhere").handle(|number: u64, _context| Ok(number + 20)).unwrap();
    let caller = domain.caller::<u64, u64>("front").unwrap();
    assert_eq!([0, 1].map(|number| caller.call(number)), [Ok(10), Ok(21)]);
    assert!(matches!(caller.call(2), Err(CallError::Unknown { route, .. }) if route == "nowhere"));
    let in_a_circle = caller.call(3).unwrap_err().to_string();
    assert!(in_a_circle.contains("forwarded 16 times"), "{in_a_circle}");
}

/// One slot, whose handler is running, and one thread, whose tasks must not block.
#[test]
fn forwarded_send_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let options = DomainOptions { slots: 1, ..DomainOptions::default() };
        Domain::open_directory(folder.path().join("domain"), options).unwrap()
    };
    let (elsewhere, domain) = (open(), open());
    let (release, released) = std::sync::mpsc::channel();
    let released = Mutex::new(released);
    let slow =
        move |(): (), _context: &CallContext| released.lock().unwrap().recv().map_err(|error| error.to_string().into());
    let slow = elsewhere.serve("slow").handle(slow).unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (handle, stop) = (runtime.handle().clone(), Arc::new(tokio::sync::Notify::new()));
    let stopped = Arc::clone(&stop);
    let running = std::thread::spawn(move || runtime.block_on(stopped.notified()));
    let tasks = handle.clone();
    let forward = |(): (), context: CallContext| async move { Err::<(), _>(context.forward("slow")) };
    let front = domain.serve("front").forwards().tasks(move |task| drop(tasks.spawn(task)));
    let front = front.handle_async(forward).unwrap();
    let other = domain.serve("other").tasks(move |task| drop(handle.spawn(task)));
    let _other = other.handle_async(|(): (), _context| async { Ok(()) }).unwrap();

    let options = CallOptions { timeout: None, ..CallOptions::default() };
    let caller = domain.caller::<(), ()>("front").unwrap();
    (0..3).for_each(|_| caller.send_with((), &options).unwrap());
    until("all go on", || front.statistics().forwarded == 3);
    let patient = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    assert_eq!(domain.caller::<(), ()>("other").unwrap().call_with((), &patient), Ok(()));
    (0..3).for_each(|_| release.send(()).unwrap());
    until("all have come", || slow.statistics().replied == 3);
    stop.notify_one();
    running.join().unwrap();
}
