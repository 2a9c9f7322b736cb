use super::{Carrier, Domains};
use gapless_rpc::caller::InstanceAddress;
use gapless_rpc::relay::{Instance, Relay};
use gapless_rpc::{CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, InstanceQuery, ServedRoute};
use gapless_testkit::wait::{PATIENCE, until, until_some};
use std::sync::Arc;
use std::sync::mpsc::channel;

const ROUTE: &str = "route";

fn serve(domain: &Domain, name: &'static str) -> ServedRoute {
    domain.serve(ROUTE).handle(move |(), _: &CallContext| Ok(name.to_owned())).unwrap()
}

fn caller(domain: &Domain) -> Caller<(), String> {
    let call = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    domain.caller_with(ROUTE, CallerOptions { call, ..CallerOptions::default() }).unwrap()
}

fn ask(caller: &Caller<(), String>, key: Option<u64>) -> String {
    caller.call_with((), &CallOptions { key, ..caller.call_options() }).unwrap()
}

fn instances(domain: &Domain, count: usize) -> Vec<Instance> {
    until_some("they are known", || {
        let known = domain.routes(PATIENCE).unwrap().routes;
        let known: Vec<_> =
            known.into_iter().filter(|known| known.route == ROUTE && known.stands_for.is_empty()).collect();
        let instance = |(number, identity)| Instance { identity, name: format!("elsewhere/{number}") };
        (known.len() == count).then(|| (0..).zip(known.iter().map(|known| known.identity)).map(instance).collect())
    })
}

fn relay(from: &Domain, to: &Domain, count: usize) -> Relay {
    from.relay(ROUTE).stands_for(instances(to, count)).open().unwrap()
}

#[test]
fn local_instances_come_first() {
    let domains = Domains::open();
    let _far = serve(&domains.server, "far");
    let carrier = Carrier::start(relay(&domains.near, &domains.far, 1), &domains.far);
    let caller = caller(&domains.client);
    assert_eq!(ask(&caller, None), "far", "there is no other");
    let local = domains.near_member();
    let near = serve(&local, "near");
    until("the instance here is known", || ask(&caller, None) == "near");
    let carried = carrier.carried();
    assert!((0..100).all(|_| ask(&caller, None) == "near") && carrier.carried() == carried);
    near.suspend().unwrap();
    assert_eq!([(); 3].map(|()| ask(&caller, None)), ["far"; 3]);
    near.resume().unwrap();
    until("it is resumed", || ask(&caller, None) == "near");
    drop(near);
    assert_eq!(ask(&caller, None), "far");
}

#[test]
fn last_instance_leaves_no_request() {
    let domains = Domains::open();
    let (tell, told) = channel();
    let handle = move |number: u64, _: &CallContext| Ok(tell.send(number).is_ok());
    let _far = domains.server.serve(ROUTE).handle(handle).unwrap();
    let _carrier = Carrier::start(relay(&domains.near, &domains.far, 1), &domains.far);
    let local = domains.near_member();
    let (begun, has_begun) = channel();
    let (release, is_released) = channel::<()>();
    let is_released = std::sync::Mutex::new(is_released);
    let blocks = move |_: u64, _: &CallContext| {
        begun.send(()).unwrap();
        let _ = is_released.lock().unwrap().recv();
        Ok(false)
    };
    let near = local.serve(ROUTE).handle(blocks).unwrap();
    let call = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let caller: Caller<u64, bool> =
        domains.client.caller_with(ROUTE, CallerOptions { call, ..CallerOptions::default() }).unwrap();
    let stuck = until_some("the instance here has one", || {
        let call = caller.start(100);
        let is_here = until_some("somebody has it", || {
            has_begun.try_recv().map(|()| true).or_else(|_| told.try_recv().map(|_| false)).ok()
        });
        is_here.then_some(call)
    });
    let (end, ended) = channel();
    for number in 0..10 {
        let end = end.clone();
        caller.start(number).on_end(move |outcome| drop(end.send(outcome)));
    }
    (10..20).for_each(|number| caller.send(number).unwrap());
    near.suspend().unwrap();
    let mut numbers: Vec<_> = until_some("all are handled", || {
        let mut numbers = Vec::new();
        while numbers.len() < 20 {
            numbers.extend(told.recv_timeout(PATIENCE).ok().filter(|number| *number < 100));
        }
        Some(numbers)
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    assert!((0..10).all(|_| ended.recv_timeout(PATIENCE) == Ok(Ok(true))));
    drop(release);
    let _ = stuck.wait();
    drop(near);
}

#[test]
fn domains_agree_on_key_ownership() {
    let domains = Domains::open();
    let (near, far) = (domains.near_member(), domains.far_member());
    let names = [(&domains.server, "far 1"), (&far, "far 2"), (&near, "near")];
    let _instances = names.map(|(domain, name)| serve(domain, name));
    let outwards = Carrier::start(relay(&domains.near, &domains.far, 2), &domains.far);
    let inwards = Carrier::start(relay(&domains.far, &domains.near, 1), &domains.near);
    let (here, there) = (caller(&domains.client), caller(&domains.far_member()));
    until("all are known", || here.broadcast(&()).is_ok_and(|told| told.len() == 3));
    until("all are known", || there.broadcast(&()).is_ok_and(|told| told.len() == 3));
    let of_key = |key| (ask(&here, Some(key)), ask(&there, Some(key)));
    let answers: Vec<_> = (1..60).map(of_key).collect();
    assert!(answers.iter().all(|(here, there)| here == there), "{answers:?}");
    for (_, name) in names {
        assert!(answers.iter().any(|(here, _)| here == name), "no key of {name}: {answers:?}");
    }
    assert!(outwards.carried() > 10 && inwards.carried() > 5);
}

#[test]
fn broadcast_reaches_all() {
    let domains = Domains::open();
    let (far, near) = (domains.far_member(), domains.near_member());
    let served = [serve(&domains.server, "one"), serve(&far, "two")];
    let _near = serve(&near, "near");
    let relay = relay(&domains.near, &domains.far, 2);
    let all = instances(&domains.far, 2);
    let carrier = Carrier::start(relay, &domains.far);
    let caller = caller(&domains.client);
    until("all are known", || caller.broadcast(&()).is_ok_and(|told| told.len() == 3));
    let outcomes = caller.broadcast(&()).unwrap();
    let mut replies: Vec<_> = outcomes.iter().map(|(_, outcome)| outcome.clone().unwrap()).collect();
    replies.sort();
    assert_eq!(replies, ["near", "one", "two"]);
    let elsewhere = |instance: &Instance| InstanceAddress::Elsewhere(instance.clone());
    let expected: Vec<_> = all.iter().map(elsewhere).chain([InstanceAddress::Process(std::process::id())]).collect();
    let mut reached: Vec<_> = outcomes.into_iter().map(|(address, _)| address).collect();
    reached.sort();
    let mut expected = expected;
    expected.sort();
    assert_eq!(reached, expected);
    let asked = caller.query_instances(InstanceQuery::Info).unwrap();
    assert!(asked.len() == 3 && asked.iter().all(|info| info.as_ref().is_ok_and(|info| info.contains("route"))));
    drop(served);
    let is_gone = |(address, outcome): &(InstanceAddress, Result<String, CallError>)| match outcome {
        Err(CallError::NoRoute { reason, .. }) => address.process_id().is_none() && !reason.is_empty(),
        _ => false,
    };
    let outcomes = until_some("they have gone", || {
        let outcomes = caller.broadcast(&()).unwrap();
        (outcomes.iter().filter(|outcome| is_gone(outcome)).count() == 2).then_some(outcomes)
    });
    assert!(outcomes.len() == 3 && outcomes.iter().any(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
    drop(carrier);
}

#[test]
fn instances_come_and_go() {
    let domains = Domains::open();
    let mut relay = domains.near.relay(ROUTE).open().unwrap();
    let caller = caller(&domains.client);
    let instance = |identity| Instance { identity, name: format!("depot/{identity}") };
    for instances in [vec![], vec![instance(1)], vec![instance(1), instance(2)], vec![]] {
        relay.set_stands_for(instances.clone()).unwrap();
        for _ in 0..20 {
            let (tell, ended) = channel();
            caller.start(()).on_end(move |outcome| drop(tell.send(outcome)));
            let request = until_some("it comes", || relay.take());
            assert!(request.instance().is_none() && request.reply(b"\x04here"));
            assert_eq!(ended.recv_timeout(PATIENCE), Ok(Ok("here".to_owned())));
        }
        let told =
            || domains.client.offered_routes().into_iter().find(|known| known.route == ROUTE).unwrap().stands_for;
        until("callers are told", || told() == instances);
    }
    let relay = Arc::new(relay);
    assert!(relay.statistics().replied == 80 && relay.is_served());
}
