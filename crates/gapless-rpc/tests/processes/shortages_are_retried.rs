use super::AT_A_TIME;
use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::BufRead;
use std::os::fd::AsRawFd;
use std::process::Stdio;

const ROLE: &str = "be-short";
/// Less than a table.
const LEFT_BYTES: u64 = 1 << 20;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("lack_of_memory_is_survived", lack_of_memory_is_survived)
        .scenario("instance_recovers_from_lack_of_files", instance_recovers_from_lack_of_files)
        .scenario("file_size_limit_is_an_error", file_size_limit_is_an_error)
        .scenario("caller_recovers_from_lack_of_files", caller_recovers_from_lack_of_files)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn said_by_one_short_of(what: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let serve = |route| domain.serve(route).handle(|number: u64, _| Ok(number + 1)).unwrap();
    let _first = serve("first");
    let mut caller = Process::start(this_program().args([ROLE, what]).arg(&path));
    assert_eq!(caller.line(), "is short");
    let _second = serve("second");
    caller.line()
}

fn caller_recovers_from_lack_of_files() {
    assert_eq!(said_by_one_short_of("descriptors"), "Ok(2) Ok(3)");
}

fn file_size_limit_is_an_error() {
    assert_eq!(said_by_one_short_of("lengths"), "Ok(4) Ok(5)");
}

fn lack_of_memory_is_survived() {
    instance_without("memory");
}

fn instance_recovers_from_lack_of_files() {
    instance_without("descriptors of an instance");
}

fn instance_without(what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let mut instance = Process::start(this_program().args([ROLE, what]).arg(&path).stdin(Stdio::piped()));
    assert_eq!(instance.line(), "is short");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let caller: Caller<u64, u64> = domain.caller("third").unwrap();
    let place = format!("(process {})", instance.pid().as_raw_nonzero());
    until("it has refused the table", || is_busy(&caller.call(0), &place));
    let process_id = instance.pid().as_raw_nonzero().get() as u32;
    let ends = caller.broadcast(&0).unwrap();
    assert!(ends.len() == 1 && ends[0].0.process_id() == Some(process_id) && is_busy(&ends[0].1, &place), "{ends:?}");
    drop(instance.input());
    assert_eq!(instance.line(), "has it again");
    until("it has taken the table", || caller.call_with(1, &patient()) == Ok(2));
}

pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[1], DomainOptions::default()).unwrap();
    if ["memory", "descriptors of an instance"].contains(&&*arguments[0]) {
        be_an_instance_without(&arguments[0], &domain);
    }
    let first: Caller<u64, u64> = domain.caller("first").unwrap();
    assert_eq!(first.call_with(0, &patient()), Ok(1));
    let second: Caller<u64, u64> = domain.caller("second").unwrap();
    match &*arguments[0] {
        "descriptors" => be_without_descriptors(&second),
        _ => be_limited(&domain, &first, &second),
    }
    std::process::exit(0);
}

fn is_busy(end: &Result<u64, CallError>, with: &str) -> bool {
    matches!(end, Err(CallError::Busy { reason, .. }) if reason.contains(with))
}

fn be_without_descriptors(second: &Caller<u64, u64>) {
    let waiting = second.start_with(1, &patient());
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..before }).unwrap();
    println!("is short");
    until("it has none for the table", || is_busy(&second.call(0), "no descriptors"));
    setrlimit(Resource::Nofile, before).unwrap();
    println!("{:?} {:?}", waiting.wait(), second.call_with(2, &patient()));
}

fn be_an_instance_without(what: &str, domain: &Domain) -> ! {
    let _served = domain.serve("third").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let (resource, current) = if what == "memory" {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
        (Resource::As, pages * rustix::param::page_size() as u64 + LEFT_BYTES)
    } else {
        // Enough to accept a caller, but not its table.
        let free = [(); 2].map(|()| File::open("/dev/null").unwrap());
        (Resource::Nofile, free[1].as_raw_fd() as u64 + 1)
    };
    let before = getrlimit(resource);
    setrlimit(resource, Rlimit { current: Some(current), ..before }).unwrap();
    println!("is short");
    for _ in std::io::stdin().lock().lines() {}
    setrlimit(resource, before).unwrap();
    println!("has it again");
    loop {
        std::thread::park();
    }
}

fn be_limited(domain: &Domain, first: &Caller<u64, u64>, second: &Caller<u64, u64>) {
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(1), ..before }).unwrap();
    println!("is short");
    until("it has no memory for the table", || is_busy(&second.call(0), "ulimit -f"));
    let told = first.call_with(3, &patient());
    let _ = domain.caller_statistics();
    setrlimit(Resource::Fsize, before).unwrap();
    println!("{told:?} {:?}", second.call_with(4, &patient()));
}
