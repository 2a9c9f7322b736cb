use super::tasks_serve_processes::pair;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Domain, HandlerOutcome, Headers, Refusal, Rejection, RouteBuilder,
    ServedRoute, ServerInterceptor,
};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Seen = Arc<Mutex<Vec<String>>>;

/// Refuses key 1, panics before key 2, and panics after key 3.
struct Looking(&'static str, Seen);

impl ServerInterceptor for Looking {
    fn before(&self, context: &CallContext) -> Result<(), Refusal> {
        let tenant = context.headers().get("tenant").map(String::from_utf8_lossy);
        self.see(format!("before {} of {}", context.key(), tenant.unwrap_or_default()));
        match (self.0, context.key()) {
            ("first", 1) => Err(Refusal::new(403, "not you")),
            ("first", 2) => panic!("before it"),
            _ => Ok(()),
        }
    }

    fn after(&self, context: &CallContext, outcome: HandlerOutcome<'_>, took: Duration) {
        let outcome = match outcome {
            HandlerOutcome::Refused(refusal) => format!("refused {}", refusal.code),
            outcome => format!("{outcome:?}"),
        };
        self.see(format!("after {}: {outcome}", context.key()));
        assert!(took < Duration::from_secs(60));
        assert_ne!(context.key(), 3, "after it");
    }
}

impl Looking {
    fn see(&self, what: String) {
        self.1.lock().unwrap().push(format!("{} {what}", self.0));
    }
}

fn answer(request: u64, context: &CallContext) -> Result<u64, Rejection> {
    match request {
        4 => Err(Refusal::new(4, "four").into()),
        5 => panic!("five"),
        6 => Err(context.forward("elsewhere")),
        _ => Ok(request),
    }
}

fn check_interceptors(domain: &Domain, client: &Domain, serve: impl Fn(RouteBuilder, Arc<AtomicU64>) -> ServedRoute) {
    let (seen, begun) = (Seen::default(), Arc::new(AtomicU64::new(0)));
    let of = |name| Arc::new(Looking(name, Arc::clone(&seen)));
    let builder = domain.serve("looks").forwards().interceptor(of("first")).interceptor(of("second"));
    let route = serve(builder, Arc::clone(&begun));
    let _elsewhere = domain.serve("elsewhere").handle(|request: u64, _context| Ok(request * 10)).unwrap();
    let caller = client.caller::<u64, u64>("looks").unwrap();
    let options = |key| CallOptions {
        key: Some(key),
        headers: Headers::default().with("tenant", "blue"),
        // A route just offered by this process is discovered a moment later.
        wait_for_route: Some(PATIENCE),
        ..CallOptions::default()
    };
    let call = |key| caller.call_with(key, &options(key));
    let take = || std::mem::take(&mut *seen.lock().unwrap());
    let refused =
        |code, text: &str| CallError::Refused { route: "looks".to_owned(), refusal: Refusal::new(code, text) };
    let panicked = |reason: &str| CallError::Panicked { route: "looks".to_owned(), reason: reason.to_owned() };

    assert_eq!(call(0), Ok(0));
    let whole =
        ["first before 0 of blue", "second before 0 of blue", "second after 0: Replied", "first after 0: Replied"];
    assert_eq!(take(), whole);
    assert_eq!(call(1), Err(refused(403, "not you")));
    assert_eq!(take(), ["first before 1 of blue", "first after 1: refused 403"], "the second was not asked");
    assert_eq!(call(2), Err(panicked("before it")));
    assert_eq!(take(), ["first before 2 of blue", "first after 2: Panicked(\"before it\")"]);
    assert_eq!(begun.load(Ordering::Relaxed), 1, "neither reached the handler");
    assert_eq!(call(3), Ok(3), "a panic afterwards is nobody's");
    assert_eq!(call(4), Err(refused(4, "four")));
    assert_eq!(call(5), Err(panicked("five")));
    assert_eq!(call(6), Ok(60));
    let ends: Vec<_> = take().into_iter().filter(|what| what.starts_with("first after")).collect();
    let expected = ["3: Replied", "4: refused 4", "5: Panicked(\"five\")", "6: Forwarded(\"elsewhere\")"];
    assert_eq!(ends, expected.map(|end| format!("first after {end}")));

    caller.send_with(1, &options(1)).unwrap();
    until("what is sent is refused", || seen.lock().unwrap().len() == 2);
    caller.send_with(7, &options(7)).unwrap();
    until("what is sent is seen", || seen.lock().unwrap().len() == 6);
    assert_eq!(begun.load(Ordering::Relaxed), 6);
    until("all have ended", || route.statistics().in_flight == 0);
    let counted = route.statistics();
    assert_eq!((counted.begun, counted.replied, counted.refused, counted.panicked, counted.forwarded), (9, 3, 3, 2, 1));
}

#[test]
fn interceptors_see_every_call() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let handle = runtime.handle().clone();
    let with_threads = |builder: RouteBuilder, begun: Arc<AtomicU64>| {
        let handler = move |request: u64, context: &CallContext| {
            begun.fetch_add(1, Ordering::Relaxed);
            answer(request, context)
        };
        builder.handle(handler).unwrap()
    };
    let with_tasks = |builder: RouteBuilder, begun: Arc<AtomicU64>| {
        let handle = handle.clone();
        let handler = move |request: u64, context: CallContext| {
            let begun = Arc::clone(&begun);
            async move {
                tokio::task::yield_now().await;
                begun.fetch_add(1, Ordering::Relaxed);
                answer(request, &context)
            }
        };
        builder.tasks(move |task| drop(handle.spawn(task))).handle_async(handler).unwrap()
    };
    let inside = Domain::in_process("test");
    check_interceptors(&inside, &inside, with_threads);
    check_interceptors(&inside, &inside, with_tasks);
    let (_folder, server, client) = pair();
    check_interceptors(&server, &client, with_threads);
    check_interceptors(&server, &client, with_tasks);
}

#[test]
fn dropped_task_is_reported() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (handle, seen) = (runtime.handle().clone(), Seen::default());
    let domain = Domain::in_process("test");
    let _route = domain
        .serve("looks")
        .interceptor(Arc::new(Looking("only", Arc::clone(&seen))))
        .tasks(move |task| drop(handle.spawn(task)))
        .handle_async(|(), _context| std::future::pending::<Result<(), Rejection>>())
        .unwrap();
    let call = domain.caller::<(), ()>("looks").unwrap().start(());
    until("it has begun", || !seen.lock().unwrap().is_empty());
    drop(runtime);
    assert!(matches!(call.wait(), Err(CallError::Unknown { .. })));
    assert_eq!(*seen.lock().unwrap(), ["only before 0 of ", "only after 0: Dropped"]);
}
