use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::caller::InstanceAddress;
use gapless_rpc::domain::{KnownRouteState, KnownRoutes};
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, InstanceQuery};
use gapless_testkit::process::Process;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("keys_move_away_and_come_back", keys_move_away_and_come_back)
        .scenario("cancelled_calls_move_keys_too", cancelled_calls_move_keys_too)
        .scenario("sends_with_its_keys_go_on", sends_with_its_keys_go_on)
        .scenario("first_calls_elsewhere_do_not_wait", first_calls_elsewhere_do_not_wait)
        .scenario("broadcast_names_the_hung_process", broadcast_names_the_hung_process)
        .scenario("hung_process_is_listed", hung_process_is_listed)
}

const KEYS: u64 = 40;

fn client(path: &Path) -> (Domain, Caller<Ask, Told>) {
    let domain = Domain::open_directory(path, DomainOptions::default()).unwrap();
    let caller = domain.caller("route").unwrap();
    (domain, caller)
}

fn number(process: &Process) -> u64 {
    process.pid().as_raw_nonzero().get() as u64
}

fn with_key(key: u64, timeout: Duration) -> CallOptions {
    CallOptions { key: Some(key), timeout: Some(timeout), ..CallOptions::default() }
}

/// The timeout is far above the time in which a stopped instance loses its keys.
fn instance_of(caller: &Caller<Ask, Told>, key: u64) -> Result<u64, CallError> {
    caller.call_with(Ask::Who, &with_key(key, PATIENCE / 2)).map(|told| match told {
        Told::Number(process_id) => process_id,
        other => panic!("{other:?}"),
    })
}

fn three_instances(path: &Path, caller: &Caller<Ask, Told>) -> (Vec<Process>, Vec<u64>) {
    let instances: Vec<Process> = (0..3).map(|_| start(path, 1, &["route"])).collect();
    until("all of them are known", || caller.broadcast(&Ask::Who).is_ok_and(|ends| ends.len() == 3));
    let before: Vec<u64> = (0..KEYS).map(|key| instance_of(caller, key).unwrap()).collect();
    assert!(instances.iter().all(|instance| before.contains(&number(instance))), "{before:?}");
    (instances, before)
}

fn keys_move_away_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let _ready = start(&path, 1, &["other"]);
    let (_domain, caller) = client(&path);
    let (mut instances, before) = three_instances(&path, &caller);
    let hung = number(&instances[0]);
    instances[0].stop();
    let meanwhile: Vec<u64> = (0..KEYS).map(|key| instance_of(&caller, key).unwrap()).collect();
    for (key, (before, meanwhile)) in before.iter().zip(&meanwhile).enumerate() {
        assert_ne!(*meanwhile, hung, "key {key}");
        assert!(*before == hung || before == meanwhile, "key {key} of an instance that takes has moved");
    }
    instances[0].signal(Signal::CONT);
    let until_all = |expected: &[u64], what| {
        until(what, || (0..KEYS).zip(expected).all(|(key, instance)| instance_of(&caller, key) == Ok(*instance)));
    };
    until_all(&before, "they come back");
    instances[0].kill();
    until_all(&meanwhile, "they go to the same instances when it dies");
}

fn cancelled_calls_move_keys_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let _ready = start(&path, 1, &["other"]);
    let (_domain, caller) = client(&path);
    let (instances, before) = three_instances(&path, &caller);
    let key = before.iter().position(|instance| *instance == number(&instances[0])).unwrap() as u64;
    instances[0].stop();
    let hurried = with_key(key, Duration::from_millis(20));
    let takes = || caller.call_with(Ask::Who, &hurried).is_ok_and(|told| told != Told::Number(number(&instances[0])));
    until("the next instance takes them", takes);
    instances[0].signal(Signal::CONT);
    until("it has its key again", || instance_of(&caller, key) == Ok(number(&instances[0])));
}

fn sends_with_its_keys_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let (_domain, caller) = client(&path);
    let (mut instances, _) = three_instances(&path, &caller);
    let said: Vec<_> = instances[1..].iter_mut().map(Process::lines_in_background).collect();
    instances[0].stop();
    for key in 0..KEYS {
        caller.send_with(Ask::Say(key), &with_key(key, PATIENCE)).unwrap();
    }
    let mut keys = std::collections::BTreeSet::new();
    until("the others have taken all", || {
        keys.extend(said.iter().flat_map(|said| said.try_iter()));
        keys.len() as u64 == KEYS
    });
    instances[0].signal(Signal::CONT);
}

/// Shorter than the wait for an unresponsive process; retried on a busy machine, each time by a process without any
/// discovery.
fn first_calls_elsewhere_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let (_healthy, hung) = (start(&path, 1, &["route"]), start(&path, 1, &["other"]));
    hung.stop();
    for key in [None, Some(7)] {
        let hurried = CallOptions { key, ..with_key(0, Duration::from_millis(700)) };
        until("a first call is answered", || {
            let (_domain, caller) = client(&path);
            caller.call_with(Ask::Increment(1), &hurried) == Ok(Told::Number(2))
        });
    }
    until("a first send goes out", || {
        let (_domain, caller) = client(&path);
        caller.send_with(Ask::Increment(1), &with_key(7, Duration::from_millis(700))).is_ok()
    });
    hung.signal(Signal::CONT);
}

fn broadcast_names_the_hung_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let (healthy, hung) = (start(&path, 1, &["route"]), start(&path, 1, &["route"]));
    let _other = start(&path, 1, &["other"]);
    until("both count", || {
        let reading = gapless_rpc::domain::read_domain(&path).unwrap();
        reading.instances.iter().filter(|instance| instance.route == "route").count() == 2
    });
    hung.stop();
    let second = Duration::from_secs(1);
    let broadcast = |timeout: Duration, is_awaited: bool| {
        let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
        let call = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
        let options = CallerOptions { call, ..CallerOptions::default() };
        let caller: Caller<Ask, Told> = domain.caller_with("route", options).unwrap();
        let ends = if is_awaited { awaited(caller.broadcast_async(Ask::Who)) } else { caller.broadcast(&Ask::Who) };
        let ends = ends.unwrap();
        let is_of =
            |address: &InstanceAddress, process: &Process| address.process_id().map(u64::from) == Some(number(process));
        let of = |process: &Process| ends.iter().find(|(address, _)| is_of(address, process)).map(|(_, end)| end);
        assert_eq!((ends.len(), of(&healthy)), (2, Some(&Ok(Told::Number(number(&healthy))))), "{ends:?}");
        let Some(Err(CallError::TimedOut { begun: false, not_taken_by, .. })) = of(&hung) else { panic!("{ends:?}") };
        assert_eq!(not_taken_by, &[number(&hung) as u32]);
        let pings = caller.query_instances(InstanceQuery::Ping).unwrap();
        assert_eq!(pings.iter().filter(|ping| ping.is_ok()).count(), 1, "{pings:?}");
        assert_eq!(pings.len(), 2, "{pings:?}");
    };
    std::thread::scope(|threads| {
        for (timeout, is_awaited) in [(PATIENCE, false), (second, false), (PATIENCE, true), (second, true)] {
            threads.spawn(move || broadcast(timeout, is_awaited));
        }
    });
    hung.signal(Signal::CONT);
}

fn awaited<T>(future: impl Future<Output = T> + Send) -> T {
    let mut future = pin!(future);
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it waits for a process that does not answer");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn hung_process_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let (old, _caller) = client(&path);
    let (healthy, hung) = (start(&path, 1, &["route"]), start(&path, 1, &["route"]));
    let states = |domain: &Domain| {
        let KnownRoutes { routes: known, silent_processes } = domain.routes(PATIENCE).unwrap();
        assert!(known.iter().all(|route| route.route == "route"), "{known:?}");
        let of = |process: &Process| {
            let of = known.iter().find(|route| u64::from(route.process_id) == number(process));
            let is_silent = silent_processes.iter().any(|silent| u64::from(*silent) == number(process));
            of.map(|route| (route.state, is_silent))
        };
        (of(&healthy), of(&hung))
    };
    let open = Some((KnownRouteState::Open, false));
    until("both are known", || states(&old) == (open, open));
    hung.stop();
    let expected = (open, Some((KnownRouteState::NotAnswering, true)));
    until("the old process sees it", || states(&old) == expected);
    until("a new process sees it", || states(&client(&path).0) == expected);
    assert_eq!(u64::from(Domain::silent_processes(&path, PATIENCE / 60).unwrap()[0]), number(&hung));
    hung.signal(Signal::CONT);
    until("the old process sees that it answers", || states(&old) == (open, open));
    until("a new process sees that it answers", || states(&client(&path).0) == (open, open));
}
