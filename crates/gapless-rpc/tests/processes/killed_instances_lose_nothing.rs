use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, InstanceQuery, Retry};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CALLER: &str = "be-a-caller";

pub fn module() -> Module {
    Module::new(module_path!())
        .with_choices("instances_killed_under_load", instances_killed_under_load)
        .with_choices("callers_killed_under_load", callers_killed_under_load)
}

/// Scenarios that count no descriptors of this process.
pub fn shared_module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("killed_instance_ends_its_calls", killed_instance_ends_its_calls)
        .scenario("retry_waits_for_an_instance", retry_waits_for_an_instance)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Retries of begun requests are allowed: incrementing is idempotent.
fn instances_killed_under_load(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let mut instances: Vec<Process> = (0..2).map(|_| start(&path, 2, &["route"])).collect();
    let options = CallerOptions {
        call: CallOptions {
            retry: Retry::Always,
            timeout: None,
            wait_for_route: Some(Duration::from_secs(60)),
            ..CallOptions::default()
        },
        ..CallerOptions::default()
    };
    let caller = domain.caller_with::<Ask, Told>("route", options).unwrap();
    assert_eq!(caller.call(Ask::Increment(0)), Ok(Told::Number(1)));
    let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let threads: Vec<_> = (0..4_u64)
        .map(|number| {
            let (caller, is_over, done) = (caller.clone(), Arc::clone(&is_over), Arc::clone(&done));
            std::thread::spawn(move || {
                let mut lost = 0_u64;
                for each in 0_u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let asked = number << 32 | each;
                    match caller.call(Ask::Increment(asked)) {
                        Ok(told) => assert_eq!(told, Told::Number(asked + 1), "the answer to another call"),
                        // All instances were dead at one moment, and it was not its first attempt.
                        Err(CallError::Unknown { .. } | CallError::NotBegun { .. }) => lost += 1,
                        Err(error) => panic!("{error}"),
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
                lost
            })
        })
        .collect();
    let before = descriptors();
    for _ in 0..rounds(60, 20) {
        let progress = done.load(Ordering::Relaxed);
        until("calls go on", || done.load(Ordering::Relaxed) > progress);
        std::thread::sleep(Duration::from_micros(random.below(3_000)));
        let victim = random.below(2) as usize;
        instances[victim].kill();
        instances[victim] = start(&path, 2, &["route"]);
    }
    is_over.store(true, Ordering::Relaxed);
    let lost: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{} calls, {lost} of them lost", done.load(Ordering::Relaxed));
    assert_eq!(caller.call(Ask::Increment(7)), Ok(Told::Number(8)));
    until("descriptors of the dead are closed", || descriptors() <= before + 2);
    let files = std::fs::read_dir(&path).unwrap().count();
    assert!(files <= 3 * 3, "the next process has swept what the dead have left, but for the last: {files} files");
}

pub fn be_a_caller_if_asked() {
    let Some(arguments) = started_as(CALLER) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let caller = domain.caller::<Ask, Told>("route").unwrap();
    let patient = CallOptions { timeout: None, ..CallOptions::default() };
    let endless = caller.start_with(Ask::SleepUntilCancelled, &patient);
    println!("calls");
    for number in 0.. {
        assert_eq!(caller.call(Ask::Increment(number)), Ok(Told::Number(number + 1)));
        assert_eq!(endless.attempts(), 1, "it was begun before");
        let pending: Vec<_> = (0..10).map(|each| caller.start(Ask::Increment(each))).collect();
        drop(pending);
    }
}

fn callers_killed_under_load(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let handlers = Arc::new(AtomicU64::new(0));
    let cancelled = Arc::clone(&handlers);
    let route = domain
        .serve("route")
        .workers(4)
        .handle(move |ask: Ask, context| match ask {
            Ask::Increment(number) => Ok(Told::Number(number + 1)),
            Ask::SleepUntilCancelled => {
                until("its caller is dead", || context.is_cancelled());
                cancelled.fetch_add(1, Ordering::Relaxed);
                Ok(Told::Cancelled(true))
            }
            other => Err(format!("{other:?}").into()),
        })
        .unwrap();
    let begin = |path: &Path| {
        let mut command = this_program();
        let mut process = Process::start(command.arg(CALLER).arg(path));
        assert_eq!(process.line(), "calls");
        process
    };
    let mut before = None;
    for _ in 0..rounds(40, 15) {
        let mut callers = [begin(&path), begin(&path)];
        std::thread::sleep(Duration::from_micros(random.below(5_000)));
        callers.iter_mut().for_each(Process::kill);
        until("their tables are gone, and handlers have noticed", || {
            route.callers() == 0 && route.statistics().in_flight == 0
        });
        let at_first = *before.get_or_insert_with(descriptors);
        until("descriptors of the dead are closed", || descriptors() <= at_first + 4);
    }
    let statistics = route.statistics();
    assert!(statistics.begun > 0 && statistics.in_flight == 0, "{statistics:?}");
    assert!(handlers.load(Ordering::Relaxed) > 0, "handlers have seen that their callers were dead");
    let mut last = begin(&path);
    until("it is served", || route.statistics().begun > statistics.begun);
    last.kill();
}

fn killed_instance_ends_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let mut instance = start(&path, 1, &["route"]);
    let caller = domain.caller::<Ask, Told>("route").unwrap();
    assert_eq!(caller.call(Ask::Increment(0)), Ok(Told::Number(1)));
    let patient = CallOptions { timeout: None, ..CallOptions::default() };
    let begun = caller.start_with(Ask::Sleep(1_000_000), &patient);
    let unserved = caller.start_with(Ask::Increment(1), &patient);
    let patient = CallOptions { wait_for_route: Some(gapless_testkit::wait::PATIENCE), ..patient };
    let mut waiting = caller.start_with(Ask::Increment(1), &patient);
    std::thread::sleep(Duration::from_millis(20));
    assert!(waiting.try_take().is_none(), "one worker, which is busy");
    instance.kill();
    let outcome = begun.wait().unwrap_err();
    assert!(matches!(outcome, CallError::Unknown { attempts: 1, .. }), "{outcome}");
    assert_eq!(unserved.wait(), Err(CallError::no_route("route")));
    let _next = start(&path, 1, &["route"]);
    assert_eq!(waiting.wait(), Ok(Told::Number(2)));
}

fn retry_waits_for_an_instance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let mut instance = start(&path, 5, &["route"]);
    let waits = CallOptions { wait_for_route: Some(PATIENCE), timeout: None, ..CallOptions::default() };
    let waits = CallOptions { retry: Retry::Always, ..waits };
    let options = CallerOptions { call: waits.clone(), ..CallerOptions::default() };
    let caller = domain.caller_with::<Ask, Told>("route", options).unwrap();
    let in_flight = |caller: &Caller<Ask, Told>, count: u32| {
        let said = caller.query_instances(InstanceQuery::Statistics).unwrap();
        said.iter().any(|said| said.as_ref().is_ok_and(|said| said.contains(&format!("\"in_flight\":{count}"))))
    };
    // Only the successor answers; one more worker reports how many calls wait.
    let gate = folder.path().join("gate");
    let wait = Ask::WaitForFile(gate.to_str().unwrap().to_owned());
    let blocking = {
        let (caller, wait) = (caller.clone(), wait.clone());
        std::thread::spawn(move || caller.call(wait))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let task = runtime.spawn(caller.start(wait.clone()));
    let keyed = caller.start_with(wait, &CallOptions { key: Some(7), ..waits.clone() });
    until("three have begun", || in_flight(&caller, 3));
    let hurried = CallOptions { timeout: Some(Duration::from_secs(3)), ..waits };
    let no_instance_in_time = caller.start_with(Ask::SleepUntilCancelled, &hurried);
    until("all four have begun", || in_flight(&caller, 4));
    instance.kill();
    until("their instance is known to be dead", || domain.routes(Duration::ZERO).unwrap().routes.is_empty());
    let at_once = domain.caller::<Ask, Told>("route").unwrap().call(Ask::Increment(1));
    assert_eq!(at_once, Err(CallError::no_route("route")), "the others wait for an instance");
    let late = no_instance_in_time.wait();
    assert!(matches!(late, Err(CallError::TimedOut { begun: true, .. })), "{late:?}");
    std::fs::write(gate, "").unwrap();
    let _successor = start(&path, 4, &["route"]);
    for told in [blocking.join().unwrap(), runtime.block_on(task).unwrap(), keyed.wait()] {
        assert!(matches!(told, Ok(Told::Number(_))), "{told:?}");
    }
    let counted = caller.statistics();
    assert_eq!(
        (counted.retried, counted.lost, counted.timed_out, counted.no_route, counted.in_flight),
        (4, 4, 1, 1, 0),
        "all four were begun, and all but one answered again: {counted:?}"
    );
}
