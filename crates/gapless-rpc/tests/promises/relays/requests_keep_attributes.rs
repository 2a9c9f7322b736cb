use super::{Callers, Domains, call_of};
use gapless_rpc::relay::RelayedRequest;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Caller, Domain, Headers, InstanceQuery, Json, Priority, RpcError, TraceContext,
};
use gapless_testkit::wait::{PATIENCE, until, until_some};
use gapless_testkit::wake_count::WakeCount;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const ROUTE: &str = "route";

fn options() -> CallOptions {
    CallOptions {
        timeout: Some(PATIENCE),
        wait_for_route: Some(PATIENCE),
        priority: Priority::High,
        headers: Headers::default().with("tenant", "blue").with("empty", ""),
        trace: TraceContext::new(5, 6, 1).with_state("vendor=x"),
        ..CallOptions::default()
    }
}

fn seen(context: &CallContext) -> (Headers, TraceContext, u64, u8, u8, bool) {
    let has_time = context.remaining().is_some_and(|left| left <= PATIENCE && left > PATIENCE / 2);
    (context.headers().clone(), context.trace().clone(), context.key(), context.attempt(), context.hops(), has_time)
}

#[test]
fn all_attributes_arrive() {
    let domains = Domains::open();
    let contexts = Arc::<Mutex<Vec<_>>>::default();
    let told = Arc::clone(&contexts);
    let handle = move |number: u64, context: &CallContext| {
        told.lock().unwrap().push(seen(context));
        Ok(number)
    };
    let _served = domains.server.serve(ROUTE).handle(handle).unwrap();
    let forward = |_: u64, context: &CallContext| Err::<u64, _>(context.forward(ROUTE));
    let forwarder = domains.near_member();
    let _forwards = forwarder.serve("forwards").handle(forward).unwrap();
    let mut relay = domains.near.relay(ROUTE).version("1.2").metadata("region", "north").workers(3).open().unwrap();
    let mut callers = Callers::default();
    let mut carry = |asked: &str, options: &CallOptions, expected: &mut dyn FnMut(&RelayedRequest)| {
        let caller: Caller<u64, u64> = domains.client.caller(asked).unwrap();
        let (call, ended) = (caller.start_with(7, options), channel());
        call.on_end(move |outcome| drop(ended.0.send(outcome)));
        let mut request = until_some("it comes", || relay.take());
        expected(&request);
        let caller = callers.of(&domains.far, &request);
        assert!(request.begin() && request.begin() && !request.is_cancelled());
        let reply = caller.start(call_of(&mut request)).wait().unwrap();
        assert!(request.reply(&reply));
        assert_eq!(ended.1.recv_timeout(PATIENCE).unwrap(), Ok(7));
    };
    let options = CallOptions { key: Some(9), ..options() };
    carry(ROUTE, &options, &mut |request| {
        assert_eq!((&**request.route(), request.payload(), request.key()), (ROUTE, &[7][..], Some(9)));
        assert_eq!((request.priority(), request.attempt(), request.hops()), (Priority::High, 1, 0));
        assert_eq!((request.headers(), request.trace()), (&options.headers, &options.trace));
        assert!(!request.is_json() && !request.is_one_way() && request.query().is_none());
        assert_eq!((request.instance(), request.caller().process_id), (None, std::process::id()));
        assert_eq!((&*request.request_type().name, &*request.reply_type().name), ("u64", "u64"));
        assert_ne!(request.request_type().fingerprint, 0);
        assert_eq!(request.reply_length_max(), 16 << 20);
    });
    carry("forwards", &options, &mut |request| assert_eq!(request.hops(), 1));
    let seen = std::mem::take(&mut *contexts.lock().unwrap());
    let expected = |hops| (options.headers.clone(), options.trace.clone(), 9, 1, hops, true);
    assert_eq!(seen, [expected(0), expected(1)]);
    for key in [Some(0), None] {
        carry(ROUTE, &CallOptions { key, ..options.clone() }, &mut |request| assert_eq!(request.key(), key));
    }
    let known = domains.client.routes(PATIENCE).unwrap().routes;
    let known = known.iter().find(|known| known.route == ROUTE).unwrap();
    assert_eq!((&*known.version, known.workers, known.stands_for.len()), ("1.2", 3, 0));
    assert!(relay.callers() >= 1 && relay.statistics().replied == 4);
}

#[test]
fn urgent_requests_come_first() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let caller: Caller<u64, u64> = domains.client.caller(ROUTE).unwrap();
    let start = |priority| caller.start_with(1, &CallOptions { priority, ..options() });
    let first = start(Priority::Normal);
    until_some("it comes", || relay.take()).reply(&[1]);
    assert_eq!(first.wait(), Ok(1));
    let _calls = [Priority::Low, Priority::Normal, Priority::High].map(start);
    let taken: Vec<_> = std::iter::from_fn(|| relay.take()).map(|request| request.priority()).collect();
    assert_eq!(taken, [Priority::High, Priority::Normal, Priority::Low]);
}

#[test]
fn a_relay_answers_for_itself() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).version("1.2").open().unwrap();
    let caller: Caller<Vec<u8>, Vec<u8>> = domains.client.caller(ROUTE).unwrap();
    let said = std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            until("it is known", || caller.query_instances(InstanceQuery::Ping).is_ok_and(|said| said.len() == 1));
            [InstanceQuery::Ping, InstanceQuery::Info].map(|query| caller.query_instances(query).unwrap())
        });
        while !asks.is_finished() {
            assert!(relay.take().is_none(), "nothing of it is to be carried");
            std::thread::yield_now();
        }
        asks.join().unwrap()
    });
    assert_eq!(said[0], [Ok(String::new())]);
    assert!(said[1][0].as_ref().is_ok_and(|info| info.contains(r#""version":"1.2""#)), "{said:?}");
    let late = caller.start_with(vec![1], &CallOptions { timeout: Some(Duration::from_millis(1)), ..options() });
    until("it is late", || relay.statistics().too_late == 1 || relay.take().is_some() || is_taken_back(&caller));
    assert!(matches!(late.wait(), Err(CallError::TimedOut { begun: false, .. })));
}

fn is_taken_back(caller: &Caller<Vec<u8>, Vec<u8>>) -> bool {
    caller.statistics().timed_out > 0
}

#[test]
fn task_wakes_for_requests_and_ends() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let caller: Caller<u64, u64> = domains.client.caller(ROUTE).unwrap();
    let wakes = Arc::<WakeCount>::default();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut task = Context::from_waker(&waker);
    assert!(relay.poll_take(&mut task).is_pending());
    let call = caller.start_with(1, &options());
    let mut request = until_some("it comes", || match relay.poll_take(&mut task) {
        Poll::Ready(request) => request,
        Poll::Pending => {
            std::thread::sleep(Duration::from_millis(1));
            None
        }
    });
    assert!(wakes.count() > 0, "it was woken");
    assert!(request.begin() && !request.is_cancelled());
    assert!(request.watch(&waker));
    let before = wakes.count();
    drop(call);
    until("it is woken", || wakes.count() > before && request.is_cancelled());
    assert!(!request.reply(&[1]), "nobody waits for it");
    let call = caller.start_with(1, &options());
    let mut request = until_some("it comes", || relay.take());
    drop(call);
    assert!(!request.begin(), "nobody wants it any more");
    relay.drain();
    assert!(matches!(relay.poll_take(&mut task), Poll::Ready(None)));
}

#[test]
fn dropped_after_deadline_times_out() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let caller: Caller<u64, u64> = domains.client.caller(ROUTE).unwrap();
    let time = Duration::from_millis(500);
    for begins in [true, false] {
        let first = caller.start_with(1, &options());
        assert!(until_some("it is known", || relay.take()).reply(&[1]));
        assert_eq!(first.wait(), Ok(1));
        let call = caller.start_with(1, &CallOptions { timeout: Some(time), ..options() });
        let mut request = until_some("it comes", || relay.take());
        assert!(!begins || request.begin());
        until("its time is over", || request.is_cancelled());
        drop(request);
        let Err(CallError::TimedOut { after, begun, .. }) = call.wait() else { panic!("it is late") };
        assert_eq!((after, begun), (time, begins));
    }
    assert_eq!(relay.statistics().too_late, 1);
}

#[test]
fn json_stays_json() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let caller: Caller<Json, Json> = domains.client.caller(ROUTE).unwrap();
    let call = caller.start_with(Json::new("[1]").unwrap(), &options());
    let request = until_some("it comes", || relay.take());
    assert!(request.is_json() && request.payload() == b"[1]");
    assert!(request.reply(b"{}"));
    assert_eq!(call.wait().unwrap().text(), b"{}");
}

#[test]
fn relay_refusal_has_a_reason() {
    let domains = Domains::open();
    let relay = |domain: &Domain, route: &str| domain.relay(route).open().map(drop);
    assert!(matches!(relay(&domains.near, "no name"), Err(RpcError::RouteName(_))));
    let here = relay(&Domain::in_process("here"), ROUTE).unwrap_err().to_string();
    assert!(here.contains("no other processes"), "{here}");
    let first = domains.near.relay(ROUTE).open().unwrap();
    assert!(matches!(relay(&domains.near, ROUTE), Err(RpcError::Served { .. })));
    let many = vec![gapless_rpc::relay::Instance { identity: 1, name: String::new() }; 257];
    let many = first.set_stands_for(many).unwrap_err().to_string();
    assert!(many.contains("at most 256 are allowed"), "{many}");
    let long = gapless_rpc::message::described::TypeDescription { name: "x".repeat(2000), ..Default::default() };
    let long = domains.far.relayed_caller(ROUTE, long, Default::default()).unwrap_err().to_string();
    assert!(long.contains("at most 1024 are allowed"), "{long}");
}
