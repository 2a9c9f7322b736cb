use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start, start_as};
use gapless_rpc::domain::KnownRouteState;
use gapless_rpc::message::{Encoding, MessageError};
use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions, Message};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::rounds;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROLE: &str = "reads-for-ever";

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("route_can_be_served_again", route_can_be_served_again)
        .scenario("waiting_task_times_out", waiting_task_times_out)
        .scenario("mixed_versions_read_requests", mixed_versions_read_requests)
        .scenario("flapping_route_loses_no_call", flapping_route_loses_no_call)
        .scenario("removed_domain_is_recreated", removed_domain_is_recreated)
        .scenario("stopped_process_reopens_its_socket", stopped_process_reopens_its_socket)
        .scenario("umask_does_not_affect_a_domain", umask_does_not_affect_a_domain)
        .scenario("untaken_call_ends_with_last_instance", untaken_call_ends_with_last_instance)
        .scenario("taken_and_untaken_ends_differ", taken_and_untaken_ends_differ)
}

fn pair() -> (tempfile::TempDir, Domain, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    (folder, server, client)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn route_can_be_served_again() {
    let (_folder, server, client) = pair();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    // More often than the limit of tables per connection.
    for cycle in 0..rounds(1500, 1100) {
        let route = server.serve("route").handle(move |number: u64, _| Ok(number + cycle)).unwrap();
        // Every third one may be gone before the table has arrived.
        if cycle % 3 != 0 {
            assert_eq!(caller.call_with(1, &patient()), Ok(1 + cycle), "cycle {cycle}");
        }
        drop(route);
    }
}

fn removed_domain_is_recreated() {
    let (folder, server, client) = pair();
    let path = folder.path().join("domain");
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let _route = server.serve("route").handle(|number: u64, _| Ok(number + 1)).unwrap();
    assert_eq!(caller.call_with(1, &patient()), Ok(2));
    for round in 0..2 {
        // Members may just be creating files there.
        until("it is removed", || std::fs::remove_dir_all(&path).is_ok());
        if round > 0 {
            let _there = std::fs::DirBuilder::new().mode(0o700).create(&path);
        }
        until("the server is there again", || path.read_dir().is_ok_and(|mut files| files.next().is_some()));
        assert_eq!(caller.call_with(1, &patient()), Ok(2));
        let later = Domain::open_directory(&path, DomainOptions::default()).unwrap();
        let from_later: Caller<u64, u64> = later.caller("route").unwrap();
        assert_eq!(from_later.call_with(1, &patient()), Ok(2));
        let name = format!("later{round}");
        let _other = later.serve(&name).handle(|number: u64, _| Ok(number + 2)).unwrap();
        let to_later: Caller<u64, u64> = client.caller(&name).unwrap();
        assert_eq!(to_later.call_with(1, &patient()), Ok(3));
    }
}

fn stopped_process_reopens_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let instance = start(&path, 1, &["route"]);
    instance.stop();
    for entry in path.read_dir().unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|ending| ending == "sock") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let caller: Caller<Ask, Told> = client.caller("route").unwrap();
    let silent = instance.pid().as_raw_nonzero().to_string();
    match caller.call_with(Ask::Who, &CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() }) {
        Err(CallError::Unavailable { reason, .. }) => assert!(reason.contains(&silent), "{reason}"),
        other => panic!("{other:?}"),
    }
    let silent = Domain::silent_processes(&path, Duration::from_millis(10)).unwrap();
    assert_eq!(silent, [instance.pid().as_raw_nonzero().get() as u32]);
    instance.signal(Signal::CONT);
    assert!(matches!(caller.call_with(Ask::Who, &patient()), Ok(Told::Number(_))));
}

fn flapping_route_loses_no_call() {
    let (_folder, server, client) = pair();
    let here = Domain::in_process("test");
    // Within a process, queued requests end with a dropped route.
    for (server, client, may_drop) in [(&server, &client, true), (&here, &here, false)] {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let calling = (0..4_u64).map(|thread| {
                let caller: Caller<u64, u64> = client.caller("route").unwrap();
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut number = thread;
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(caller.call_with(number, &patient()), Ok(number + 1));
                        number += 4;
                    }
                    number / 4
                })
            });
            let calling: Vec<_> = calling.collect();
            for cycle in 0..rounds(100, 20) {
                let route = server.serve("route").workers(2).handle(|number: u64, _| Ok(number + 1)).unwrap();
                (0..cycle % 50).for_each(|_| std::thread::yield_now());
                if may_drop && cycle % 2 == 0 { drop(route) } else { route.drain() }
            }
            let _served = server.serve("route").handle(|number: u64, _| Ok(number + 1)).unwrap();
            is_over.store(true, Ordering::Relaxed);
            let calls: u64 = calling.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert!(calls > 0);
        });
    }
}

/// Checks the modes, because root may do anything.
fn umask_does_not_affect_a_domain() {
    for umask in ["0777", "0277", "0077"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("domain");
        let mut with_umask = Command::new("sh");
        with_umask.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\"")).arg(this_program().get_program());
        let _instance = start_as(with_umask, &path, 1, &["route"]);
        let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
        assert_eq!(client.caller("route").unwrap().call_with(Ask::Increment(1), &patient()), Ok(Told::Number(2)));
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&path), 0o700, "umask {umask}");
        let mut endings = Vec::new();
        for file in std::fs::read_dir(&path).unwrap() {
            let file = file.unwrap().path();
            assert_eq!(mode(&file), 0o600, "{} with umask {umask}", file.display());
            endings.push(file.extension().unwrap().to_str().unwrap().to_owned());
        }
        endings.sort_unstable();
        assert_eq!(endings, ["counters", "counters", "lock", "sock"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    std::fs::DirBuilder::new().mode(0o000).create(&path).unwrap();
    Domain::open_directory(&path, DomainOptions::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
}

fn waiting_task_times_out() {
    let (_folder, _server, client) = pair();
    let caller: Caller<u64, u64> = client.caller("nowhere").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let options = CallOptions { wait_for_route: Some(Duration::from_millis(30)), ..patient() };
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, caller.start_with(1, &options)).await });
    assert_eq!(ended.expect("it ends"), Err(CallError::no_route("nowhere")));
    let options = CallOptions { timeout: Some(Duration::from_millis(30)), ..patient() };
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, caller.start_with(1, &options)).await });
    assert_eq!(ended.expect("it ends"), Err(CallError::no_route("nowhere")), "that it is late says less");
}

fn untaken_call_ends_with_last_instance() {
    let (_folder, server, client) = pair();
    let serve = || server.serve("route").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let route = serve();
    assert_eq!(caller.call_with(1, &patient()), Ok(2));
    route.suspend().unwrap();
    let at_once = CallOptions { timeout: None, ..CallOptions::default() };
    let ends = caller.start_with(1, &at_once);
    let goes_on = caller.start_with(2, &patient());
    let of_key = caller.start_with(3, &CallOptions { key: Some(7), ..patient() });
    drop(route);
    assert_eq!(ends.wait(), Err(CallError::no_route("route")));
    let route = serve();
    assert_eq!((goes_on.wait(), of_key.wait()), (Ok(3), Ok(4)));
    route.suspend().unwrap();
    let unended = caller.start_with(1, &at_once);
    drop((caller, client));
    assert_eq!(unended.wait(), Err(CallError::Closed));
}

/// Decoded for ever: taken, but not begun.
struct Unread;

impl Message for Unread {
    const TYPE_NAME: &'static str = "Unread";
    const ENCODING: Encoding = Encoding::Bytes;
    fn fingerprint() -> u64 {
        1
    }
    fn encode(&self, _into: &mut Vec<u8>) -> Result<(), MessageError> {
        Ok(())
    }
    fn decode(_bytes: &[u8]) -> Result<Self, MessageError> {
        println!("reads");
        loop {
            std::thread::park();
        }
    }
}

pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let _route = domain.serve("route").workers(1).handle(|_: Unread, _| Ok(0_u64)).unwrap();
    println!("serves");
    loop {
        std::thread::park();
    }
}

fn taken_and_untaken_ends_differ() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let mut instance = Process::start(this_program().arg(ROLE).arg(&path));
    assert_eq!(instance.line(), "serves");
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let caller: Caller<Unread, u64> = client.caller("route").unwrap();
    let options = CallOptions { timeout: None, ..CallOptions::default() };
    let taken = caller.start_with(Unread, &options);
    assert_eq!(instance.line(), "reads");
    assert_eq!(client.suspend_route("route", None, PATIENCE).unwrap()[0].state, KnownRouteState::Suspended);
    let untaken = caller.start_with(Unread, &options);
    instance.kill();
    let lost = taken.wait();
    assert!(matches!(lost, Err(CallError::NotBegun { attempts: 1, .. })), "{lost:?}");
    assert_eq!(untaken.wait(), Err(CallError::no_route("route")));
}

mod first {
    use super::*;
    #[derive(Clone, Serialize, Deserialize, Message)]
    pub struct Order {
        pub id: u64,
    }
}

mod second {
    use super::*;
    #[derive(Clone, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct Order {
        pub id: u64,
        #[serde(default)]
        #[message(since = 2)]
        pub instances: u32,
    }
}

mod third {
    use super::*;
    #[derive(Clone, Serialize, Deserialize, Message)]
    #[message(version = 3)]
    pub struct Order {
        pub id: u64,
        #[serde(default)]
        #[message(since = 2)]
        pub instances: u32,
        #[serde(default)]
        #[message(since = 3)]
        pub marker: u64,
    }
}

fn mixed_versions_read_requests() {
    let (folder, old, client) = pair();
    let new = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let caller: Caller<third::Order, u64> = client.caller("route").unwrap();
    let order = third::Order { id: 1, instances: 5, marker: 9 };
    let of_old = old.serve("route").handle(|order: first::Order, _| Ok(order.id)).unwrap();
    gapless_testkit::wait::until("the old instance answers", || caller.call(order.clone()) == Ok(1));
    let of_new =
        new.serve("route").handle(|order: second::Order, _| Ok(order.id + u64::from(order.instances))).unwrap();
    gapless_testkit::wait::until("both instances answer", || {
        // A new instance counts before it announces its routes.
        caller.broadcast(&order).unwrap().iter().filter(|(_, outcome)| outcome.is_ok()).count() == 2
    });
    for (_, outcome) in caller.broadcast(&order).unwrap() {
        assert_eq!(outcome, Ok(1));
    }
    drop(of_old);
    gapless_testkit::wait::until("the newer form is spoken again", || {
        caller.call_with(order.clone(), &patient()).unwrap() == 6
    });
    drop(of_new);
}
