use super::AT_A_TIME;
use super::span_recorder::{Recorded, SpanRecorder, only};
use gapless_rpc::{
    CallContext, CallError, CallOptions, CallScope, Caller, Domain, DomainOptions, Headers, Interceptor, Message,
    Refusal, Rejection, Retry, ServedRoute, TraceBridge, TraceContext, set_trace_bridge,
};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::io::{BufRead, Write as _};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tracing_subscriber::filter::LevelFilter;

const ROLE: &str = "be-a-traced-instance";

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("nested_calls_share_one_trace", nested_calls_share_one_trace)
        .scenario("external_trace_passes_unrecorded", external_trace_passes_unrecorded)
        .scenario("forwards_and_retries_keep_the_trace", forwards_and_retries_keep_the_trace)
        .scenario("trace_follows_tasks_and_threads", trace_follows_tasks_and_threads)
        .scenario("bridge_sets_foreign_ids", bridge_sets_foreign_ids)
        .scenario("local_call_has_span_and_outcome", local_call_has_span_and_outcome)
        .scenario("info_level_records_no_calls", info_level_records_no_calls)
}

type Next = (Caller<String, String>, String);

fn pass_on(domain: &Domain, route: &str) -> Result<Option<Next>, Rejection> {
    let Some((next, rest)) = route.split_once(' ') else { return Ok(None) };
    let caller = domain.caller(next).map_err(|error| error.to_string())?;
    Ok(Some((caller, rest.to_owned())))
}

fn known(context: &CallContext) -> String {
    let headers: Vec<_> = context.headers().iter().map(|(name, _)| name).collect();
    format!("{} {:?} {headers:?}", context.trace(), context.trace().state())
}

/// `async` routes are served by a future that yields once before it calls. On an input line `spans` it prints its
/// recorded spans.
pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let recorder = SpanRecorder::default();
    if arguments[1] != "does not" {
        recorder.record_this_process();
    }
    let bridge = Arc::new(Bridge::default());
    if arguments[1] == "bridges" {
        assert!(
            set_trace_bridge(BridgeHere(Arc::clone(&bridge))) && !set_trace_bridge(BridgeHere(Arc::clone(&bridge)))
        );
    }
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let serve = |route: &String| -> ServedRoute {
        let inner = domain.clone();
        let builder = domain.serve(route).workers(1);
        if route == "dies" {
            return builder
                .handle(|_: String, _: &CallContext| -> Result<String, Rejection> { std::process::abort() })
                .unwrap();
        }
        if route == "forwards" {
            return builder
                .handle(|_: String, context: &CallContext| Err::<String, _>(context.forward("inner")))
                .unwrap();
        }
        if !route.starts_with("async") {
            let handle = move |text: String, context: &CallContext| match pass_on(&inner, &text)? {
                Some((caller, rest)) => caller.call(rest).map_err(|error| error.to_string().into()),
                None => Ok(known(context)),
            };
            return builder.handle(handle).unwrap();
        }
        let handle = move |text: String, context: CallContext| {
            let next = pass_on(&inner, &text);
            async move {
                Later::default().await;
                match next? {
                    Some((caller, rest)) => caller.start(rest).await.map_err(|error| error.to_string().into()),
                    None => Ok(known(&context)),
                }
            }
        };
        builder.handle_async(handle).unwrap()
    };
    let _served: Vec<ServedRoute> = arguments[2..].iter().map(serve).collect();
    println!("serves");
    for _ in std::io::stdin().lock().lines() {
        recorder.spans().iter().for_each(|span| println!("{}", span.to_line()));
        bridge.lock().unwrap().iter().for_each(|parent| println!("bridge\tparent={parent}"));
        println!("end");
    }
    std::process::exit(0);
}

type Bridge = Mutex<Vec<String>>;

struct BridgeHere(Arc<Bridge>);

fn bridged(number: u64) -> TraceContext {
    TraceContext::new(0xb7_1d9e, 0x1000 + number, 1)
}

impl TraceBridge for BridgeHere {
    fn context_of(&self, span: &tracing::Span) -> Option<TraceContext> {
        span.id().map(|id| bridged(id.into_u64()))
    }

    fn set_parent(&self, _span: &tracing::Span, parent: &TraceContext) {
        self.0.lock().unwrap().push(parent.to_string());
    }
}

#[derive(Default)]
struct Later(bool);

impl Future for Later {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

struct Instances {
    folder: tempfile::TempDir,
    domain: Domain,
}

impl Instances {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
        Self { folder, domain }
    }

    fn start(&self, records: &str, routes: &[&str]) -> Process {
        let mut command = this_program();
        command.arg(ROLE).arg(self.folder.path().join("domain")).arg(records).args(routes).stdin(Stdio::piped());
        let mut process = Process::start(command.stderr(Stdio::null()));
        assert_eq!(process.line(), "serves");
        process
    }

    fn caller(&self, route: &str) -> Caller<String, String> {
        self.domain.caller(route).unwrap()
    }
}

fn spans_of(process: &mut Process) -> Vec<Recorded> {
    let mut input = process.input();
    input.write_all(b"spans\n").unwrap();
    let lines = std::iter::from_fn(|| process.next_line().filter(|line| line != "end"));
    lines.map(|line| Recorded::of_line(&line)).collect()
}

#[track_caller]
fn assert_below(span: &Recorded, parent: &Recorded) {
    assert_eq!(span.field("trace_id"), parent.field("trace_id"), "{span:?} below {parent:?}");
    assert_eq!(span.field("parent_span_id"), parent.field("span_id"), "{span:?} below {parent:?}");
    assert!(span.field("span_id").len() == 16 && span.field("span_id") != parent.field("span_id"), "{span:?}");
}

fn nested_calls_share_one_trace() {
    let instances = Instances::open();
    let mut first = instances.start("records", &["shop/outer", "inner"]);
    let mut second = instances.start("records", &["async/middle"]);
    let recorder = SpanRecorder::default();
    let recording = recorder.here();
    let told = instances.caller("shop/outer").call("async/middle inner told".to_owned()).unwrap();
    drop(recording);
    let (first, second) = (spans_of(&mut first), spans_of(&mut second));
    assert_eq!((recorder.spans().len(), first.len(), second.len()), (1, 3, 2));
    let begun = recorder.only("call", "shop/outer");
    assert!(begun.field("trace_id").len() == 32 && begun.field("parent_span_id").is_empty(), "{begun:?}");
    let chain = [
        begun.clone(),
        only(&first, "serve", "shop/outer"),
        only(&first, "call", "async/middle"),
        only(&second, "serve", "async/middle"),
        only(&second, "call", "inner"),
        only(&first, "serve", "inner"),
    ];
    chain.windows(2).for_each(|pair| assert_below(&pair[1], &pair[0]));
    for span in &chain {
        let (kind, attempts) = if span.name == "call" { ("client", "attempts") } else { ("server", "attempt") };
        assert_eq!((span.field("otel.kind"), span.field(attempts)), (kind, "1"), "{span:?}");
        assert_eq!((span.field("outcome"), span.field("sampled")), ("replied", "true"), "{span:?}");
        assert_eq!((span.field("rpc.system"), span.field("otel.name")), ("gapless", span.field("route")));
    }
    assert_eq!((begun.field("rpc.service"), begun.field("rpc.method")), ("shop", "outer"));
    assert_eq!(chain[1].field("caller.process_id"), std::process::id().to_string());
    let (trace_id, span_id) = (chain[4].field("trace_id"), chain[4].field("span_id"));
    assert_eq!(told, format!("00-{trace_id}-{span_id}-01 None []"));
}

fn external_trace_passes_unrecorded() {
    let instances = Instances::open();
    let _first = instances.start("does not", &["outer", "inner"]);
    let _second = instances.start("does not", &["async/middle"]);
    let outer = instances.caller("outer");
    for flags in ["00", "01"] {
        let trace = TraceContext::from_headers(Some(&format!("{PARENT}{flags}")), Some("a=1, b=2"));
        let headers = Headers::default().with("tracestate", "the caller's own");
        let options = CallOptions { trace, headers, ..CallOptions::default() };
        let told = outer.call_with("async/middle inner told".to_owned(), &options).unwrap();
        assert_eq!(told, format!("{PARENT}{flags} Some(\"a=1,b=2\") []"));
        let told = outer.call_with("told".to_owned(), &options).unwrap();
        assert_eq!(
            told,
            format!("{PARENT}{flags} Some(\"a=1,b=2\") [\"tracestate\"]"),
            "the caller's own header is left"
        );
    }
    let none = "00-00000000000000000000000000000000-0000000000000000-00 None []";
    for trace in [TraceContext::new(0, 1, 1), TraceContext::new(1, 0, 1), TraceContext::default()] {
        let options = CallOptions { trace: trace.with_state("a=1"), ..CallOptions::default() };
        assert_eq!(outer.call_with("async/middle inner told".to_owned(), &options), Ok(none.to_owned()));
    }
}

fn forwards_and_retries_keep_the_trace() {
    let instances = Instances::open();
    let mut first = instances.start("records", &["forwards", "inner"]);
    let recorder = SpanRecorder::default();
    let _recording = recorder.here();
    let options = CallOptions { trace: format!("{PARENT}00").parse().unwrap(), ..CallOptions::default() };
    instances.caller("forwards").call_with("told".to_owned(), &options).unwrap();
    let call = recorder.only("call", "forwards");
    assert_eq!(format!("00-{}-{}-", call.field("trace_id"), call.field("parent_span_id")), PARENT);
    assert_eq!((call.field("attempts"), call.field("outcome"), call.field("sampled")), ("2", "replied", "false"));
    let served = spans_of(&mut first);
    for (route, outcome, hops) in [("forwards", "forwarded", "0"), ("inner", "replied", "1")] {
        let span = only(&served, "serve", route);
        assert_below(&span, &call);
        assert_eq!((span.field("outcome"), span.field("hops")), (outcome, hops));
    }
    let retry = Retry::Always;
    let options = CallOptions { retry, wait_for_route: Some(PATIENCE), timeout: Some(PATIENCE), ..options };
    let mut dying = instances.start("records", &["dies"]);
    let _input = dying.input();
    let (again, on_thread) = (instances.caller("dies"), recorder.clone());
    let call = std::thread::spawn(move || {
        let _recording = on_thread.here();
        again.call_with("told".to_owned(), &options)
    });
    dying.wait_end("the death of the instance");
    let (tell, told) = std::sync::mpsc::channel();
    let survivor = SpanRecorder::default();
    let _served = {
        let survivor = survivor.clone();
        let other = Domain::open_directory(instances.folder.path().join("domain"), DomainOptions::default()).unwrap();
        let handle = move |_: String, context: &CallContext| {
            tell.send(context.attempt()).unwrap();
            Ok("survived".to_owned())
        };
        other.serve("dies").init(move |_| survivor.record_this_thread()).handle(handle).unwrap()
    };
    assert_eq!((call.join().unwrap(), told.recv()), (Ok("survived".to_owned()), Ok(2)));
    let call = recorder.only("call", "dies");
    assert_eq!((call.field("attempts"), call.field("outcome")), ("2", "replied"));
    let served = survivor.only("serve", "dies");
    assert_below(&served, &call);
    assert_eq!(served.field("attempt"), "2");
}

fn bridge_sets_foreign_ids() {
    let instances = Instances::open();
    let mut first = instances.start("bridges", &["outer"]);
    let _second = instances.start("does not", &["inner"]);
    let parent = format!("{PARENT}01");
    let options = CallOptions { trace: parent.parse().unwrap(), ..CallOptions::default() };
    let told = instances.caller("outer").call_with("inner told".to_owned(), &options).unwrap();
    let spans = spans_of(&mut first);
    let (served, called) = (only(&spans, "serve", "outer"), only(&spans, "call", "inner"));
    assert_below(&called, &served);
    assert_eq!(told, format!("00-{}-{}-01 None []", called.field("trace_id"), called.field("span_id")));
    assert_eq!(called.field("trace_id"), format!("{:032x}", bridged(0).trace_id));
    let parents: Vec<_> = spans.iter().filter(|span| span.name == "bridge").map(|span| span.field("parent")).collect();
    assert_eq!(parents, [&parent]);
    assert_eq!(served.field("parent_span_id"), &parent[36..52]);
}

#[derive(Serialize, Deserialize, Message)]
struct Told(Vec<String>);

fn trace_follows_tasks_and_threads() {
    let instances = Instances::open();
    let _inner = instances.start("does not", &["inner"]);
    let recorder = SpanRecorder::default();
    let on_thread = recorder.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(move || on_thread.record_this_thread())
        .build()
        .unwrap();
    let (spawn, handle) = (runtime.handle().clone(), runtime.handle().clone());
    let (inner, on_thread) = (instances.caller("inner"), recorder.clone());
    let serve = move |_: String, _context: CallContext| {
        let (inner, handle, on_thread) = (inner.clone(), handle.clone(), on_thread.clone());
        async move {
            tokio::task::yield_now().await;
            let mut told = vec![TraceContext::current().to_string(), inner.start("told".to_owned()).await.unwrap()];
            let (scope, in_task, in_thread) = (CallScope::current(), inner.clone(), inner.clone());
            let task = scope.clone().run_async(async move {
                tokio::task::yield_now().await;
                in_task.start("told".to_owned()).await.unwrap()
            });
            told.push(handle.spawn(task).await.unwrap());
            let thread = std::thread::spawn(move || {
                on_thread.record_this_thread();
                let inside = scope.run(|| in_thread.call("told".to_owned()).unwrap());
                (inside, TraceContext::current())
            });
            let (inside, outside) = thread.join().unwrap();
            assert_eq!(outside, TraceContext::default(), "the scope was left");
            told.push(inside);
            Ok(Told(told))
        }
    };
    let _served =
        instances.domain.serve("outer").tasks(move |task| drop(spawn.spawn(task))).handle_async(serve).unwrap();
    let caller: Caller<String, Told> = instances.domain.caller("outer").unwrap();
    let options = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    let recording = recorder.here();
    let told = caller.call_with(String::new(), &options).unwrap();
    drop(recording);
    let served = recorder.only("serve", "outer");
    assert_eq!(served.parent, Some(recorder.only("call", "outer").id), "here it is below the call for `tracing`, too");
    let own = |span: &Recorded| format!("00-{}-{}-01", span.field("trace_id"), span.field("span_id"));
    let Told(told) = told;
    assert_eq!(told[0], own(&served));
    let nested: Vec<_> = recorder.spans().into_iter().filter(|span| span.field("route") == "inner").collect();
    assert_eq!(nested.len(), 3);
    for (span, told) in nested.iter().zip(&told[1..]) {
        assert_below(span, &served);
        assert_eq!((span.parent, told), (Some(served.id), &format!("{} None []", own(span))));
    }
    runtime.shutdown_background();
}

struct Refuses;

impl Interceptor for Refuses {
    fn before(&self, _route: &str, options: &mut CallOptions) -> Result<(), Refusal> {
        assert!(!options.trace.is_none(), "it sees the call's own trace");
        Err(Refusal::new(3, "not today"))
    }
}

fn local_call_has_span_and_outcome() {
    let domain = Domain::in_process("traced");
    let recorder = SpanRecorder::default();
    let on_thread = recorder.clone();
    let served = domain.serve("here").init(move |_| on_thread.record_this_thread());
    let may_end = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&may_end);
    let handle = move |text: String, context: &CallContext| match text.as_str() {
        "panic" => panic!("as it was asked to"),
        "refuse" => Err(Refusal::new(1, "no").into()),
        "sent" => {
            until("that it may end", || held.load(Ordering::Acquire));
            Ok(text)
        }
        "wait" => {
            until("that it is cancelled", || context.is_cancelled());
            Ok(text)
        }
        _ => Ok(text),
    };
    let _served = served.handle(handle).unwrap();
    let _recording = recorder.here();
    let caller: Caller<String, String> = domain.caller("here").unwrap();
    let last = |name: &str| recorder.spans().into_iter().rfind(|span| span.name == name).unwrap();
    let ask = |text: &str| caller.call(text.to_owned()).is_ok();
    for (text, is_ok, call, serve) in [
        ("reply", true, ["replied", "", ""], ["replied", ""]),
        ("refuse", false, ["refused", "ERROR", "refused"], ["refused", ""]),
        ("panic", false, ["panicked", "ERROR", "panicked"], ["panicked", "ERROR"]),
    ] {
        assert_eq!(ask(text), is_ok, "{text}");
        let [called, ran] = [last("call"), last("serve")];
        assert_eq!(["outcome", "otel.status_code", "error.type"].map(|name| called.field(name)), call);
        assert_eq!(["outcome", "otel.status_code"].map(|name| ran.field(name)), serve);
        assert_below(&ran, &called);
        assert_eq!(ran.parent, Some(called.id));
    }
    drop(caller.start("wait".to_owned()));
    assert_eq!(last("call").field("outcome"), "cancelled");
    caller.send("sent".to_owned()).unwrap();
    let sent = last("call");
    assert_eq!((sent.field("outcome"), sent.has_closed), ("sent", false), "its handler's span is below it");
    may_end.store(true, Ordering::Release);
    until("the end of its handler", || last("call").has_closed);
    assert_below(&last("serve"), &sent);
    assert_eq!(domain.caller::<String, String>("nobody").unwrap().call(String::new()).unwrap_err().kind(), "no_route");
    assert_eq!((last("call").field("outcome"), last("call").field("attempts")), ("no_route", "0"));
    let options = gapless_rpc::CallerOptions { interceptors: vec![Arc::new(Refuses)], ..Default::default() };
    let refusing: Caller<String, String> = domain.caller_with("here", options).unwrap();
    assert!(matches!(refusing.call(String::new()), Err(CallError::Refused { .. })));
    assert_eq!((last("call").field("outcome"), last("call").field("attempts")), ("refused", "0"));
    let reached = caller.broadcast(&"reply".to_owned()).unwrap();
    assert!(reached.len() == 1 && reached[0].1 == Ok("reply".to_owned()));
    assert_below(&last("serve"), &last("call"));
    until("all ends", || recorder.spans().iter().all(|span| span.has_closed));
}

fn info_level_records_no_calls() {
    for (level, names) in [(LevelFilter::INFO, &[][..]), (LevelFilter::DEBUG, &["call", "serve"])] {
        let recorder = SpanRecorder::up_to(level);
        let domain = Domain::in_process("test");
        let theirs = recorder.clone();
        let route = domain.serve("here").init(move |_| theirs.record_this_thread());
        let _served = route.handle(|text: String, _: &CallContext| Ok(text)).unwrap();
        let _recording = recorder.here();
        let caller: Caller<String, String> = domain.caller("here").unwrap();
        assert_eq!(caller.call("a".to_owned()), Ok("a".to_owned()));
        assert!(recorder.spans().iter().map(|span| span.name.as_str()).eq(names.iter().copied()), "{level}");
    }
}
