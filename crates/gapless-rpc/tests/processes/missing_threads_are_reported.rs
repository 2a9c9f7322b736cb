use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions};
use gapless_testkit::process::{started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const ROLE: &str = "be-without-threads";

pub fn module() -> Module {
    Module::new(module_path!()).scenario("error_names_the_missing_thread", error_names_the_missing_thread)
}

/// Less than the stack of a thread.
const LEFT_BYTES: u64 = 1 << 20;

pub fn be_one_if_asked() {
    if started_as(ROLE).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |slots| {
        let options = DomainOptions { slots, payload_length_max: 64, ..DomainOptions::default() };
        Domain::open_directory(folder.path().join("domain"), options).unwrap()
    };
    // One slot is reserved for the backlog.
    let (server, client) = (open(2), open(2));
    let route = server.serve("route").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let call = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    let overflow = Some(ElasticQueueOptions::new("backlog", folder.path()));
    let options = CallerOptions { overflow, call, ..CallerOptions::default() };
    let (elsewhere, here): (Caller<u64, u64>, Caller<u64, u64>) =
        (client.caller_with("route", options).unwrap(), server.caller("route").unwrap());
    assert_eq!(elsewhere.call(0), Ok(1));
    route.suspend().unwrap();
    let first = elsewhere.start(1);

    let limit = getrlimit(Resource::As);
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let current = Some(pages * rustix::param::page_size() as u64 + LEFT_BYTES);
    setrlimit(Resource::As, Rlimit { current, ..limit }).unwrap();
    let without = (elsewhere.call(2), here.call(3));
    setrlimit(Resource::As, limit).unwrap();
    let (Err(CallError::Busy { reason, .. }), Err(CallError::Busy { reason: here_reason, .. })) = without else {
        panic!("{without:?}");
    };
    assert!(reason.contains("no thread") && here_reason.contains("no worker"), "{reason}; {here_reason}");

    let behind = elsewhere.start(2);
    route.resume().unwrap();
    assert_eq!((first.wait(), behind.wait(), here.call(3)), (Ok(2), Ok(3), Ok(4)));
    // Exits without joining threads.
    drop(folder);
    std::process::exit(0);
}

fn error_names_the_missing_thread() {
    let output = this_program().arg(ROLE).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
