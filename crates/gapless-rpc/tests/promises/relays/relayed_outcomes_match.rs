use super::{Carrier, Domains};
use gapless_rpc::caller::together;
use gapless_rpc::message::described::TypeDescription;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, Json, Message, Refusal, Rejection, Retry,
    message,
};
use gapless_testkit::wait::{PATIENCE, until};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

const ROUTE: &str = "route";

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() }
}

fn caller<Request: Message, Reply: Message>(domain: &Domain, route: &str) -> Caller<Request, Reply> {
    let call = CallOptions { wait_for_route: Some(PATIENCE), ..patient() };
    domain.caller_with(route, CallerOptions { call, ..CallerOptions::default() }).unwrap()
}

fn handle(number: u64, context: &CallContext) -> Result<u64, Rejection> {
    match number {
        0 => Err(Refusal { code: 3, text: "zero".to_owned(), payload: vec![1, 2] }.into()),
        1 => panic!("one"),
        2 => Err(context.forward("other")),
        3 => Err(context.forward("nowhere")),
        number => Ok(number * 2),
    }
}

#[test]
fn handler_ends_are_relayed() {
    let domains = Domains::open();
    let _served = domains.server.serve(ROUTE).handle(handle).unwrap();
    let other = |number: u64, context: &CallContext| Ok(number + u64::from(context.hops()));
    let _other = domains.server.serve("other").handle(other).unwrap();
    let _carrier = Carrier::start(domains.near.relay(ROUTE).open().unwrap(), &domains.far);
    let (relayed, direct) = (caller::<u64, u64>(&domains.client, ROUTE), caller(&domains.far_member(), ROUTE));
    assert_eq!((relayed.call(4), direct.call(4)), (Ok(8), Ok(8)));
    for number in 0..3 {
        assert_eq!(relayed.call(number), direct.call(number), "{number}");
    }
    let (relayed_end, direct_end) = (relayed.call_with(3, &patient()), direct.call_with(3, &patient()));
    let Err(CallError::Unknown { reason, attempts, .. }) = direct_end else { panic!("{direct_end:?}") };
    assert_eq!(relayed_end, Err(CallError::Unknown { route: ROUTE.to_owned(), attempts, reason }));
    assert_eq!(relayed.call(2), Ok(3));
    let calls = (10..200).map(|number| relayed.start(number)).collect::<Vec<_>>();
    assert!(together::all(calls).into_iter().zip(10..).all(|(outcome, number)| outcome == Ok(number * 2)));
}

#[test]
fn a_send_is_handled_once() {
    let domains = Domains::open();
    let (tell, told) = channel();
    let handle = move |number: u64, _: &CallContext| Ok(tell.send(number).is_ok());
    let _served = domains.server.serve(ROUTE).handle(handle).unwrap();
    let carrier = Carrier::start(domains.near.relay(ROUTE).open().unwrap(), &domains.far);
    let relayed = caller::<u64, bool>(&domains.client, ROUTE);
    (0..100).for_each(|number| relayed.send(number).unwrap());
    let mut numbers: Vec<u64> = (0..100).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    assert_eq!(relayed.call(100), Ok(true), "no slot is kept by what was sent");
    assert_eq!((told.recv(), carrier.carried()), (Ok(100), 101));
}

#[test]
fn cancellation_is_relayed() {
    let domains = Domains::open();
    let ((tell, told), (release, released)) = (channel(), channel::<()>());
    let released = Mutex::new(released);
    let handle = move |(), context: &CallContext| {
        tell.send("begun").unwrap();
        until("it is cancelled", || context.is_cancelled());
        tell.send("cancelled").unwrap();
        let _ = released.lock().unwrap().recv_timeout(PATIENCE);
        Ok(())
    };
    let _served = domains.server.serve(ROUTE).handle(handle).unwrap();
    let _carrier = Carrier::start(domains.near.relay(ROUTE).open().unwrap(), &domains.far);
    let relayed = caller::<(), ()>(&domains.client, ROUTE);
    let call = relayed.start(());
    assert_eq!(told.recv_timeout(PATIENCE), Ok("begun"));
    drop(call);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("cancelled"));
    release.send(()).unwrap();
    let timeout = Some(Duration::from_secs(1));
    let late = relayed.call_with((), &CallOptions { timeout, ..CallOptions::default() });
    assert!(matches!(late, Err(CallError::TimedOut { .. })), "{late:?}");
    let second = told.recv_timeout(PATIENCE);
    assert!(second == Ok("begun") && told.recv_timeout(PATIENCE) == Ok("cancelled"), "{second:?}");
    drop(release);
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(name = "Order")]
struct OldOrder {
    id: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(version = 2)]
struct Order {
    id: u64,
    #[serde(default)]
    #[message(since = 2)]
    note: String,
}

fn described<M: Message>() -> TypeDescription {
    message::described::TypeKey::of::<M>().description()
}

#[test]
fn versions_are_converted() {
    let domains = Domains::open();
    let echo = |order: Order, _: &CallContext| Ok(order);
    let _new = domains.server.serve("new").handle(echo).unwrap();
    let echo = |order: OldOrder, _: &CallContext| Ok(order);
    let _old = domains.server.serve("old").handle(echo).unwrap();
    let relay = |route, described: TypeDescription| {
        let relay = domains.near.relay(route).describe(described.clone(), described).open().unwrap();
        Carrier::start(relay, &domains.far)
    };
    let _carriers = [relay("new", described::<Order>()), relay("old", described::<OldOrder>())];
    let order = |note: &str| Order { id: 7, note: note.to_owned() };
    let new = |route| caller::<Order, Order>(&domains.client, route).call(order("note"));
    let old = |route| caller::<OldOrder, OldOrder>(&domains.client, route).call(OldOrder { id: 7 });
    assert_eq!((new("new"), new("old")), (Ok(order("note")), Ok(order(""))), "an old instance does not know the note");
    assert_eq!((old("new"), old("old")), (Ok(OldOrder { id: 7 }), Ok(OldOrder { id: 7 })));
    let json = caller::<Json, Json>(&domains.client, "new").call(Json::new(r#"{"id":7}"#).unwrap());
    assert_eq!(json.unwrap().text(), br#"{"id":7,"note":""}"#);
}

#[test]
fn instance_refuses_other_types() {
    let domains = Domains::open();
    let _served = domains.server.serve(ROUTE).handle(handle).unwrap();
    let _carrier = Carrier::start(domains.near.relay(ROUTE).open().unwrap(), &domains.far);
    let wrong = caller::<String, u64>(&domains.client, ROUTE).call(String::new()).unwrap_err();
    let text = wrong.to_string();
    assert!(
        text.starts_with("the route route is called with String → u64, and served with u64 → u64 (process "),
        "{text}"
    );
    assert!(
        text.contains("the request has the fingerprint 0x") && text.ends_with("at the instance, where it is u64"),
        "{text}"
    );
    let json = Json::new("\"no number\"").unwrap();
    let wrong = caller::<Json, Json>(&domains.client, ROUTE).call(json).unwrap_err();
    assert!(matches!(&wrong, CallError::BadMessage { .. }) && wrong.to_string().contains("as JSON"), "{wrong}");
}

#[test]
fn payload_of_16_mib_is_relayed() {
    const LENGTH_MAX: usize = 16 << 20;
    let domains = Domains::open();
    let echo = |mut bytes: Vec<u8>, _: &CallContext| {
        bytes.resize(bytes.len() + usize::from(bytes[0]), 0);
        Ok(bytes)
    };
    let _served = domains.server.serve(ROUTE).handle(echo).unwrap();
    let _carrier = Carrier::start(domains.near.relay(ROUTE).open().unwrap(), &domains.far);
    let relayed = caller::<Vec<u8>, Vec<u8>>(&domains.client, ROUTE);
    assert_eq!(relayed.call(vec![0; LENGTH_MAX]).map(|reply| reply.len()), Ok(LENGTH_MAX));
    let too_long = relayed.call(vec![1; LENGTH_MAX]).unwrap_err();
    assert!(
        matches!(&too_long, CallError::BadMessage { reason, .. } if reason.contains("16777217 bytes")),
        "{too_long}"
    );
}

#[test]
fn route_gone_far_is_no_route() {
    let domains = Domains::open();
    let _carrier = Carrier::start(domains.near.relay(ROUTE).open().unwrap(), &domains.far);
    let relayed = caller::<u64, u64>(&domains.client, ROUTE);
    assert_eq!(relayed.call(1), Err(CallError::no_route(ROUTE)));
    let served = domains.server.serve(ROUTE).handle(handle).unwrap();
    until("it is found", || relayed.call(7) == Ok(14));
    drop(served);
    until("it is gone", || relayed.call(7) == Err(CallError::no_route(ROUTE)));
}

/// Except for the two that are lost attempts.
fn errors() -> Vec<CallError> {
    let (route, reason) = (|| ROUTE.to_owned(), || "why".to_owned());
    let refusal = Refusal { code: 7, text: "no".to_owned(), payload: vec![1, 2, 3] };
    vec![
        CallError::NoRoute { route: route(), reason: "the broker cannot be reached since 12:30".to_owned() },
        CallError::Busy { route: route(), reason: reason() },
        CallError::Refused { route: route(), refusal },
        CallError::TimedOut { route: route(), after: Duration::from_secs(1), begun: true, not_taken_by: vec![] },
        CallError::Mismatch { route: route(), caller: reason(), instance: reason(), difference: reason() },
        CallError::BadMessage { route: route(), reason: reason() },
        CallError::Panicked { route: route(), reason: reason() },
        CallError::CannotForward { route: route(), reason: reason() },
        CallError::OtherProtocol { route: route(), process_id: 1, own: 2, found: 3 },
        CallError::Unavailable { route: route(), reason: reason() },
        CallError::Closed,
    ]
}

#[test]
fn relay_errors_reach_the_caller() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let relayed = caller::<u64, u64>(&domains.client, ROUTE);
    for error in errors() {
        let call = relayed.start(1);
        let request = gapless_testkit::wait::until_some("it comes", || relay.take());
        assert!(request.end(&error), "it is waited for");
        assert_eq!(call.wait(), Err(error));
    }
    let refusal = Refusal { code: 7, text: "no".to_owned(), payload: vec![1] };
    let call = relayed.start(1);
    assert!(gapless_testkit::wait::until_some("it comes", || relay.take()).refuse(&refusal));
    assert_eq!(call.wait(), Err(CallError::Refused { route: ROUTE.to_owned(), refusal }));
    assert_eq!(relay.statistics().ended_elsewhere, 11);
}

/// Outcome of a call that a relay loses once, and then answers.
fn lost(relay_loses: impl Fn(gapless_rpc::relay::RelayedRequest), retry: Retry) -> Result<u64, CallError> {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let relayed = caller::<u64, u64>(&domains.client, ROUTE);
    let mut call = relayed.start_with(1, &CallOptions { retry, ..patient() });
    let mut has_lost = false;
    gapless_testkit::wait::until_some("it ends", || {
        match relay.take() {
            Some(request) if has_lost => {
                assert_eq!(request.attempt(), 2);
                request.reply(&[42]);
            }
            Some(request) => {
                relay_loses(request);
                has_lost = true;
            }
            None => {}
        }
        call.try_take()
    })
}

#[test]
fn lost_request_is_retried() {
    let (route, attempts) = (|| ROUTE.to_owned(), 1);
    let begun = |mut request: gapless_rpc::relay::RelayedRequest| assert!(request.begin());
    let gone = "the relay that had it has given it up".to_owned();
    let unknown = Err(CallError::Unknown { route: route(), attempts, reason: gone });
    let not_begun = Err(CallError::NotBegun { route: route(), attempts, reason: "its instance has ended".to_owned() });
    for (retry, of_begun, of_not_begun) in
        [(Retry::Never, &unknown, &not_begun), (Retry::NotBegun, &unknown, &Ok(42)), (Retry::Always, &Ok(42), &Ok(42))]
    {
        assert_eq!(&lost(begun, retry), of_begun, "{retry:?}");
        assert_eq!(&lost(drop, retry), of_not_begun, "{retry:?}");
    }
    let reason = || "the record was not persisted".to_owned();
    let ends = |error: CallError| move |request: gapless_rpc::relay::RelayedRequest| assert!(request.end(&error));
    let discarded = CallError::NotBegun { route: route(), attempts: 9, reason: reason() };
    assert_eq!(lost(ends(discarded.clone()), Retry::NotBegun), Ok(42));
    let expected = CallError::NotBegun { route: route(), attempts, reason: reason() };
    assert_eq!(lost(ends(discarded), Retry::Never), Err(expected));
}

#[test]
fn gone_relay_ends_calls_as_typed() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let relayed = caller::<u64, u64>(&domains.client, ROUTE);
    let never = CallOptions { retry: Retry::Never, ..patient() };
    let calls = [1, 2].map(|number| relayed.start_with(number, &never));
    let mut take = || gapless_testkit::wait::until_some("it comes", || relay.take());
    let (mut answered, mut given_up) = (take(), take());
    assert!(answered.begin() && given_up.begin());
    relay.drain();
    assert!(!relay.is_served() && relay.take().is_none());
    drop(relay);
    until("it is gone", || relayed.call_with(3, &CallOptions { wait_for_route: None, ..patient() }).is_err());
    assert!(answered.reply(&[7]), "what was taken can be answered still");
    drop(given_up);
    let [first, second] = calls;
    assert_eq!(first.wait(), Ok(7));
    assert!(matches!(second.wait(), Err(CallError::Unknown { .. })));
    assert!(domains.near.relay(ROUTE).open().is_ok(), "it can be relayed again");
}
