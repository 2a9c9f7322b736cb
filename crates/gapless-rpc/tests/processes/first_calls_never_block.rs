use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::caller::InstanceAddress;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, InstanceQuery};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType};
use rustix::process::Signal;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("stopped_process_blocks_no_thread", stopped_process_blocks_no_thread)
        .scenario("stopped_process_is_named_in_time", stopped_process_is_named_in_time)
        .scenario("later_stopped_process_is_named", later_stopped_process_is_named)
        .scenario("other_protocol_version_is_named", other_protocol_version_is_named)
        .scenario("call_begins_without_a_poll", call_begins_without_a_poll)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn stopped_process_blocks_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let instance = start(&path, 1, &["route"]);
    instance.stop();
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let began = Instant::now();
    let begin = |route: &str| {
        let caller: Caller<Ask, Told> = client.caller(route).unwrap();
        let mut call = caller.start_with(Ask::Increment(1), &patient());
        assert_eq!(call.wait_for(Duration::ZERO), None);
        (caller, call)
    };
    let others: Vec<_> = (0..120).map(|number| begin(&format!("route/{number}"))).collect();
    let (caller, call) = begin("route");
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
    let hurried = CallOptions { timeout: Some(Duration::from_nanos(1)), ..patient() };
    let late = caller.call_with(Ask::Increment(1), &hurried);
    let is_late = |after: &Duration| *after == Duration::from_nanos(1);
    assert!(matches!(&late, Err(CallError::TimedOut { after, begun: false, .. }) if is_late(after)), "{late:?}");
    drop(caller.start_with(Ask::Increment(1), &patient()));
    instance.signal(Signal::CONT);
    assert_eq!(call.wait(), Ok(Told::Number(2)));
    let counted = caller.statistics();
    assert_eq!((counted.replied, counted.cancelled, counted.timed_out, counted.in_flight), (1, 1, 1, 0));
    drop(others);
}

/// Far below the one and two seconds that discovery waits.
const SHORT: Duration = Duration::from_millis(900);

fn caller_within(client: &Domain, route: &str, timeout: Duration) -> Caller<Ask, Told> {
    let call = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
    client.caller_with(route, CallerOptions { call, ..CallerOptions::default() }).unwrap()
}

fn stopped_process_is_named_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let instance = start(&path, 1, &["route"]);
    let process_id = instance.pid().as_raw_nonzero().get() as u32;
    instance.stop();
    let ask = Ask::Increment(1);
    type Asks = fn(&Caller<Ask, Told>, Ask) -> Result<(), CallError>;
    let all: [Asks; 4] = [
        |caller, ask| caller.call(ask).map(drop),
        |caller, ask| caller.send(ask),
        |caller, ask| caller.broadcast(&ask).map(drop),
        |caller, _| caller.query_instances(InstanceQuery::Ping).map(drop),
    ];
    for (number, asks) in all.into_iter().enumerate() {
        let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
        let error = asks(&caller_within(&client, "route", SHORT), ask.clone()).unwrap_err();
        let (route, not_taken_by) = ("route".to_owned(), vec![process_id]);
        assert_eq!(error, CallError::TimedOut { route, after: SHORT, begun: false, not_taken_by }, "{number}");
        let said =
            format!("no reply from route within 900 ms; the instance of process {process_id} did not take the call");
        assert_eq!(error.to_string(), said);
    }
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let error = caller_within(&client, "route", PATIENCE).call(ask).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, CallError::Unavailable { .. }), "{said}");
    assert!(said.contains("route") && said.contains(&format!("process {process_id} does not say")), "{said}");
    instance.signal(Signal::CONT);
}

fn later_stopped_process_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let instance = start(&path, 1, &["route", "other"]);
    let process_id = instance.pid().as_raw_nonzero().get() as u32;
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let caller = caller_within(&client, "route", PATIENCE);
    assert_eq!(caller.call(Ask::Increment(1)), Ok(Told::Number(2)));
    instance.stop();
    let late = |route: &str| CallError::TimedOut {
        route: route.to_owned(),
        after: SHORT,
        begun: false,
        not_taken_by: vec![process_id],
    };
    let short = CallOptions { timeout: Some(SHORT), ..CallOptions::default() };
    assert_eq!(caller.call_with(Ask::Increment(1), &short), Err(late("route")));
    let other = caller_within(&client, "other", SHORT);
    assert_eq!(other.call(Ask::Increment(1)), Err(late("other")));
    assert_eq!(
        other.broadcast(&Ask::Increment(1)).unwrap(),
        [(InstanceAddress::Process(process_id), Err(late("other")))]
    );
    assert_eq!(other.query_instances(InstanceQuery::Ping).unwrap(), [Err(late("other"))]);
    instance.signal(Signal::CONT);
    assert_eq!(caller.call(Ask::Increment(1)), Ok(Told::Number(2)));
}

fn other_protocol_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let name = "copy-0123456789abcdef0123456789abcdef";
    let lock = std::fs::File::create(path.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    let address = SocketAddrUnix::new(path.join(format!("{name}.sock"))).unwrap();
    rustix::net::bind(&socket, &address).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    std::thread::spawn(move || {
        while let Ok(connection) = rustix::net::accept(&socket) {
            let _ = rustix::net::send(&connection, b"GAPR\x63\x00\x01\x00what version 99 says", SendFlags::NOSIGNAL);
            let mut buffer = [0; 1 << 10];
            while rustix::net::recv(&connection, &mut buffer, RecvFlags::empty()).is_ok_and(|(length, _)| length > 0) {}
        }
    });
    let (route, process_id) = ("route".to_owned(), std::process::id());
    let expected = CallError::OtherProtocol { route, process_id, own: 4, found: 99 };
    let caller = caller_within(&client, "route", PATIENCE);
    for _ in 0..3 {
        assert_eq!(caller.call(Ask::Increment(1)), Err(expected.clone()));
    }
    assert_eq!(caller.send(Ask::Increment(1)), Err(expected.clone()));
    assert_eq!(caller.broadcast(&Ask::Increment(1)), Err(expected.clone()));
    let said = expected.to_string();
    assert!(said.contains("speaks version 99") && said.ends_with("this process speaks version 4"), "{said}");
    let _instance = start(&path, 1, &["route"]);
    assert_eq!(caller.call_with(Ask::Increment(1), &patient()), Ok(Told::Number(2)));
}

fn call_begins_without_a_poll() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    let (begun, begins) = mpsc::channel();
    let handle = move |number: u64, _: &_| {
        begun.send(number).unwrap();
        Ok(number)
    };
    let _served = server.serve("route").handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let calls: Vec<_> = (0..3).map(|number| caller.start_with(number, &patient())).collect();
    for number in 0..3 {
        assert_eq!(begins.recv_timeout(PATIENCE), Ok(number), "in their order");
    }
    assert!(calls.into_iter().map(gapless_rpc::Call::wait).eq((0..3).map(Ok)));
}
