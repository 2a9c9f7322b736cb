use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::relay::Instance;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Retry};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use std::path::Path;

const ROLE: &str = "be-a-relay";

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("a_killed_relay_ends_its_calls", a_killed_relay_ends_its_calls)
        .scenario("instance_takes_over_from_a_relay", instance_takes_over_from_a_relay)
}

pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let instance = Instance { identity: 7, name: "depot/1".to_owned() };
    let mut relay = domain.relay("route").stands_for(vec![instance]).open().unwrap();
    println!("relays");
    let mut first = until_some("it comes", || relay.take());
    assert!(first.begin());
    println!("has one");
    let _second = until_some("it comes", || relay.take());
    println!("has two");
    loop {
        std::thread::park();
    }
}

fn relay_process(domain: &Path) -> Process {
    let mut command = this_program();
    let mut process = Process::start(command.arg(ROLE).arg(domain));
    assert_eq!(process.line(), "relays");
    process
}

fn caller(path: &Path, retry: Retry) -> Caller<Ask, Told> {
    let domain = Domain::open_directory(path, DomainOptions::default()).unwrap();
    let timeout = Some(PATIENCE);
    let call = CallOptions { retry, timeout, wait_for_route: timeout, ..CallOptions::default() };
    domain.caller_with("route", CallerOptions { call, ..CallerOptions::default() }).unwrap()
}

fn a_killed_relay_ends_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let mut relay = relay_process(&path);
    let caller = caller(&path, Retry::Never);
    let begun = caller.start(Ask::Increment(1));
    assert_eq!(relay.line(), "has one");
    let taken = caller.start(Ask::Increment(2));
    assert_eq!(relay.line(), "has two");
    let untaken = caller.start_with(Ask::Increment(3), &CallOptions { wait_for_route: None, ..caller.call_options() });
    relay.kill();
    assert!(matches!(begun.wait(), Err(CallError::Unknown { attempts: 1, .. })));
    assert!(matches!(taken.wait(), Err(CallError::NotBegun { attempts: 1, .. })));
    assert_eq!(untaken.wait(), Err(CallError::no_route("route")));
}

fn instance_takes_over_from_a_relay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let mut relay = relay_process(&path);
    let caller = caller(&path, Retry::NotBegun);
    let begun = caller.start(Ask::Increment(1));
    assert_eq!(relay.line(), "has one");
    let taken = caller.start(Ask::Increment(2));
    assert_eq!(relay.line(), "has two");
    let untaken = caller.start(Ask::Increment(3));
    let _instance = start(&path, 1, &["route"]);
    relay.kill();
    assert!(matches!(begun.wait(), Err(CallError::Unknown { attempts: 1, .. })));
    assert_eq!([taken.wait(), untaken.wait()], [3, 4].map(|number| Ok(Told::Number(number))));
}
