use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{
    Call, CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Priority, Rejection,
    ServedRoute, caller::together,
};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .with_choices("each_class_keeps_its_order", each_class_keeps_its_order)
        .scenario("cancelled_in_queue_is_not_offered", cancelled_in_queue_is_not_offered)
        .scenario("dequeued_call_can_be_cancelled", dequeued_call_can_be_cancelled)
        .scenario("timeout_races_with_cancellation", timeout_races_with_cancellation)
        .scenario("disk_limit_is_busy", disk_limit_is_busy)
        .with_choices("corrupt_backlog_ends_affected_calls", corrupt_backlog_ends_affected_calls)
        .scenario("other_route_is_unaffected", other_route_is_unaffected)
        .scenario("backlog_survives_a_killed_instance", backlog_survives_a_killed_instance)
        .scenario("backlog_alone_has_no_route", backlog_alone_has_no_route)
        .scenario("sends_outlive_their_caller", sends_outlive_their_caller)
}

const SLOTS: u32 = 8;

struct Pair {
    folder: tempfile::TempDir,
    _server: Domain,
    client: Domain,
    route: ServedRoute,
}

fn pair(slots: u32, handler: impl Fn(u64, &CallContext) -> Result<u64, Rejection> + Send + Sync + 'static) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let server = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let route = server.serve("route").handle(handler).unwrap();
    let client = Domain::open_directory(&path, DomainOptions { slots, ..DomainOptions::default() }).unwrap();
    Pair { folder, _server: server, client, route }
}

fn noting_pair() -> (Pair, Arc<Mutex<Vec<u64>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let order = Arc::clone(&seen);
    let pair = pair(SLOTS, move |number, _| {
        order.lock().unwrap().push(number);
        Ok(number + 1)
    });
    (pair, seen)
}

/// The smallest memory tier, so that almost everything goes through the disk.
fn tiny(directory: &Path) -> ElasticQueueOptions {
    let mut overflow = ElasticQueueOptions::new("tiny", directory);
    overflow.memory_bytes_max = 4096;
    overflow
}

fn caller(domain: &Domain, overflow: ElasticQueueOptions) -> Caller<u64, u64> {
    let call = CallOptions { timeout: None, ..CallOptions::default() };
    let options = CallerOptions { overflow: Some(overflow), call, ..CallerOptions::default() };
    domain.caller_with("route", options).unwrap()
}

fn each_class_keeps_its_order(random: &mut Random) {
    const CALLS: u64 = 20_000;
    let (pair, seen) = noting_pair();
    let caller = caller(&pair.client, tiny(pair.folder.path()));
    assert_eq!(caller.call(0), Ok(1));
    pair.route.suspend().unwrap();
    let (told, outcomes) = mpsc::channel();
    let (mut futures, mut blocking, mut polled, mut callbacks) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let classes = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low];
    let class_of = |number: u64| classes[(number % 4) as usize];
    for number in 1..CALLS {
        let options = CallOptions { timeout: None, priority: class_of(number), ..CallOptions::default() };
        match random.below(5) {
            0 => caller.send_with(number, &options).unwrap(),
            1 => futures.push((number, caller.start_with(number, &options))),
            2 => blocking.push((number, caller.start_with(number, &options))),
            3 => polled.push((number, caller.start_with(number, &options))),
            _ => {
                let told = told.clone();
                callbacks += 1;
                caller.start_with(number, &options).on_end(move |outcome| told.send((number, outcome)).unwrap());
            }
        }
        if random.below(2_000) == 0 {
            pair.route.resume().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(2_000)));
            pair.route.suspend().unwrap();
        }
    }
    pair.route.resume().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let awaited = runtime.spawn(async move {
        for (number, call) in futures {
            assert_eq!(call.await, Ok(number + 1));
        }
    });
    // The newest first: an unpolled call keeps no slot from the others.
    for (number, call) in blocking.into_iter().rev() {
        assert_eq!(call.wait(), Ok(number + 1));
    }
    runtime.block_on(awaited).unwrap();
    for (number, mut call) in polled {
        until("it has ended", || call.try_take().map(|outcome| assert_eq!(outcome, Ok(number + 1))).is_some());
    }
    for _ in 0..callbacks {
        let (number, outcome) = outcomes.recv_timeout(PATIENCE).unwrap();
        assert_eq!(outcome, Ok(number + 1));
    }
    until("what was sent has arrived, too", || seen.lock().unwrap().len() as u64 == CALLS);
    let seen = seen.lock().unwrap();
    for class in classes {
        let of_class: Vec<_> = seen.iter().filter(|number| class_of(**number) == class).collect();
        assert!(of_class.is_sorted(), "{class:?} in the order in which it was called");
    }
    until("the line is empty", || caller.statistics().in_backlog == 0);
    let statistics = caller.statistics();
    assert_eq!((statistics.on_disk, statistics.offered), (0, CALLS), "{statistics:?}");
    assert!(statistics.overflowed > CALLS / 2 && statistics.spilled > CALLS / 2, "{statistics:?}");
    println!("{statistics:?}");
    let names = std::fs::read_dir(pair.folder.path()).unwrap().count();
    assert_eq!(names, 1, "the domain, and nothing of the backlog");
}

fn cancelled_in_queue_is_not_offered() {
    let (pair, seen) = noting_pair();
    let caller = caller(&pair.client, tiny(pair.folder.path()));
    assert_eq!(caller.call(0), Ok(1));
    pair.route.suspend().unwrap();
    let before: Vec<_> = (1..=300).map(|number| caller.start(number)).collect();
    let mut dropped: Vec<_> = (1_000..1_300).map(|number| caller.start(number)).collect();
    let timeout = Duration::from_millis(50);
    let hurried = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
    let late: Vec<_> = (2_000..2_300).map(|number| caller.start_with(number, &hurried)).collect();
    let after: Vec<_> = (3_000..3_300).map(|number| caller.start(number)).collect();
    assert!(dropped.iter_mut().all(|call| call.try_take().is_none()));
    drop(dropped);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    for (index, call) in late.into_iter().enumerate() {
        let outcome = if index % 2 == 0 { call.wait() } else { runtime.block_on(call) };
        let expected =
            CallError::TimedOut { route: "route".to_owned(), after: timeout, begun: false, not_taken_by: vec![] };
        assert_eq!(outcome, Err(expected));
    }
    pair.route.resume().unwrap();
    assert_eq!(together::all(before), (2..=301).map(Ok).collect::<Vec<_>>());
    assert_eq!(together::all(after), (3_001..3_301).map(Ok).collect::<Vec<_>>());
    assert_eq!(*seen.lock().unwrap(), (0..=300).chain(3_000..3_300).collect::<Vec<_>>());
    until("the line is empty", || caller.statistics().in_backlog == 0);
    let counted = caller.statistics();
    assert_eq!(
        (counted.replied, counted.timed_out, counted.cancelled, counted.in_flight),
        (601, 300, 300, 0),
        "{counted:?}"
    );
}

fn timeout_races_with_cancellation() {
    let (pair, _seen) = noting_pair();
    let caller = caller(&pair.client, tiny(pair.folder.path()));
    assert_eq!(caller.call(0), Ok(1));
    pair.route.suspend().unwrap();
    // A quarter of the slots is reserved for the queue.
    let _before: Vec<_> = (1..=6).map(|number| caller.start(number)).collect();
    let timeout = Duration::from_millis(30);
    let hurried = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
    for round in 0..20 {
        let dropped = caller.start(10);
        let begun = Instant::now();
        let late = caller.start_with(11, &hurried);
        until("both are offered", || caller.statistics().in_flight == 8 || begun.elapsed() >= timeout);
        while begun.elapsed() < timeout + Duration::from_micros(20) {
            std::hint::spin_loop();
        }
        drop(dropped);
        let late = late.wait();
        let is_late = matches!(&late, Err(CallError::TimedOut { after, begun: false, .. }) if *after == timeout);
        assert!(is_late, "round {round}: {late:?}");
    }
    pair.route.resume().unwrap();
}

fn dequeued_call_can_be_cancelled() {
    let (begun, cancelled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (has_begun, was_cancelled) = (Arc::clone(&begun), Arc::clone(&cancelled));
    let pair = pair(1, move |number, context| {
        if number > 0 {
            has_begun.fetch_add(1, Ordering::SeqCst);
            until("its caller has given it up", || context.is_cancelled());
            was_cancelled.fetch_add(1, Ordering::SeqCst);
        }
        Ok(number)
    });
    let caller = caller(&pair.client, tiny(pair.folder.path()));
    let dropped = caller.start(1);
    until("its handler has begun", || begun.load(Ordering::SeqCst) == 1);
    drop(dropped);
    until("its handler has noticed", || cancelled.load(Ordering::SeqCst) == 1);
    let hurried = CallOptions { timeout: Some(Duration::from_millis(50)), ..CallOptions::default() };
    let late = caller.call_with(2, &hurried);
    // Handler and caller see the same moment; the handler may answer before the caller times out.
    assert!(matches!(late, Err(CallError::TimedOut { .. }) | Ok(2)), "{late:?}");
    if begun.load(Ordering::SeqCst) == 2 {
        until("its handler has noticed", || cancelled.load(Ordering::SeqCst) == 2);
    }
    assert_eq!(caller.call(0), Ok(0));
    assert!(caller.statistics().overflowed >= 3);
}

fn disk_limit_is_busy() {
    let handled = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&handled);
    let pair = pair(SLOTS, move |number, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(number)
    });
    let mut overflow = tiny(pair.folder.path());
    overflow.disk_bytes_max = 64 << 10;
    overflow.record_bytes_max = 1_000;
    overflow.burst_bytes_max = 4096;
    let caller = caller(&pair.client, overflow);
    assert_eq!(caller.call(0), Ok(0));
    pair.route.suspend().unwrap();
    let mut taken: Vec<(u64, Call<u64>)> = Vec::new();
    let mut number = 0;
    let reason = loop {
        number += 1;
        let mut call = caller.start(number);
        match call.try_take() {
            None => taken.push((number, call)),
            Some(Err(CallError::Busy { reason, .. })) if reason.contains("on disk is reached") => break reason,
            Some(Err(CallError::Busy { reason, .. })) if reason.contains("slower than they come") => {}
            Some(other) => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("the backlog tiny is full") && reason.contains("limit of 65536 bytes"), "{reason}");
    assert!(matches!(caller.send(0), Err(CallError::Busy { .. })), "also for sends");
    pair.route.resume().unwrap();
    let count = taken.len() as u64;
    assert!(count > 100, "{count}");
    for (number, call) in taken {
        assert_eq!(call.wait(), Ok(number));
    }
    assert_eq!(handled.load(Ordering::SeqCst), count + 1);
    assert_eq!(caller.call(7), Ok(7), "there is room again");
}

fn files_of(directory: &Path) -> Vec<File> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = descriptors.filter_map(|entry| Some(entry.ok()?.path()));
    let is_its = |path: &std::path::PathBuf| std::fs::read_link(path).is_ok_and(|to| to.starts_with(directory));
    let opened = paths.filter(is_its).filter_map(|path| OpenOptions::new().read(true).write(true).open(path).ok());
    opened.collect()
}

fn corrupt_backlog_ends_affected_calls(random: &mut Random) {
    let handled = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&handled);
    let pair = pair(SLOTS, move |number, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(number)
    });
    let disk = tempfile::tempdir().unwrap();
    let caller = caller(&pair.client, tiny(disk.path()));
    assert_eq!(caller.call(0), Ok(0));
    pair.route.suspend().unwrap();
    let calls: Vec<_> = (0..5_000).map(|number| caller.start(number)).collect();
    until("most of them are on disk", || caller.statistics().on_disk > 4_000);
    let files = files_of(disk.path());
    assert!(!files.is_empty());
    for file in &files {
        let at = random.below(file.metadata().unwrap().len());
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
    }
    drop(files);
    pair.route.resume().unwrap();
    let mut lost = 0;
    for (number, call) in (0..5_000).zip(calls) {
        match call.wait() {
            Ok(reply) => assert_eq!(reply, number),
            Err(CallError::NotBegun { reason, .. }) => {
                assert!(reason.contains("are lost") && reason.contains("damaged at byte"), "{reason}");
                lost += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!((1..2_500).contains(&lost), "{lost}");
    assert_eq!(handled.load(Ordering::SeqCst), 5_000 - lost + 1);
    assert_eq!(caller.call(7), Ok(7), "it goes on");
    assert_eq!(caller.statistics().in_backlog, 0);
}

fn other_route_is_unaffected() {
    let pair = pair(SLOTS, |number, _| Ok(number));
    let _other = pair._server.serve("other").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let flooded = caller(&pair.client, tiny(pair.folder.path()));
    let options = CallerOptions { overflow: Some(tiny(pair.folder.path())), ..CallerOptions::default() };
    let other = pair.client.caller_with::<u64, u64>("other", options).unwrap();
    assert_eq!((flooded.call(0), other.call(0)), (Ok(0), Ok(1)));
    pair.route.suspend().unwrap();
    let calls: Vec<_> = (0..5_000).map(|number| flooded.start(number)).collect();
    for number in 0..1_000 {
        assert_eq!(other.call(number), Ok(number + 1));
    }
    assert_eq!(other.statistics().overflowed, 0);
    assert!(flooded.statistics().in_backlog >= 5_000 - u64::from(SLOTS));
    pair.route.resume().unwrap();
    assert_eq!(together::all(calls), (0..5_000).map(Ok).collect::<Vec<_>>());
}

fn asking(domain: &Domain, directory: &Path, wait_for_route: Option<Duration>) -> Caller<Ask, Told> {
    let call = CallOptions { timeout: None, wait_for_route, ..CallOptions::default() };
    let options = CallerOptions { overflow: Some(tiny(directory)), call, ..CallerOptions::default() };
    domain.caller_with("route", options).unwrap()
}

fn backlog_survives_a_killed_instance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions { slots: SLOTS, ..DomainOptions::default() }).unwrap();
    let mut instance = start(&path, 1, &["route"]);
    let caller = asking(&domain, folder.path(), Some(PATIENCE));
    assert_eq!(caller.call(Ask::Increment(0)), Ok(Told::Number(1)));
    let begun = caller.start(Ask::Sleep(1_000_000));
    let calls: Vec<_> = (0..3_000).map(|number| caller.start(Ask::Increment(number))).collect();
    until("most of them are on disk", || caller.statistics().on_disk > 1_500);
    instance.kill();
    // The worker may not have taken this call yet.
    drop(begun);
    let mut next = start(&path, 1, &["route"]);
    let mut calls = (0..3_000).zip(calls);
    for (number, call) in calls.by_ref().take(1_000) {
        assert_eq!(call.wait(), Ok(Told::Number(number + 1)));
    }
    next.kill();
    let _last = start(&path, 1, &["route"]);
    let unknown = calls.map(|(number, call)| match call.wait() {
        Ok(told) => {
            assert_eq!(told, Told::Number(number + 1));
            0
        }
        Err(CallError::Unknown { .. }) => 1,
        Err(other) => panic!("{other}"),
    });
    assert!(unknown.sum::<u32>() <= 1, "one worker has begun one at a time");
    until("nothing is in line", || caller.statistics().in_backlog == 0);
}

fn backlog_alone_has_no_route() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions { slots: SLOTS, ..DomainOptions::default() }).unwrap();
    let mut instance = start(&path, 1, &["route"]);
    let caller = asking(&domain, folder.path(), None);
    assert_eq!(caller.call(Ask::Increment(0)), Ok(Told::Number(1)));
    let begun = caller.start(Ask::Sleep(1_000_000));
    let in_slots: Vec<_> = (0..u64::from(SLOTS)).map(|number| caller.start(Ask::Increment(number))).collect();
    let calls: Vec<_> = (0..500).map(|number| caller.start(Ask::Increment(number))).collect();
    instance.kill();
    let no_route = CallError::no_route("route");
    let probe = domain.caller::<Ask, Told>("route").unwrap();
    let hurried = CallOptions { timeout: Some(Duration::from_millis(100)), ..CallOptions::default() };
    until("its death is known", || probe.call_with(Ask::Increment(0), &hurried) == Err(no_route.clone()));
    drop(begun);
    // Requests in slots wait there for another instance; dropping them lets queued ones out.
    drop(in_slots);
    let ended = calls.into_iter().map(|call| call.wait().unwrap_err()).collect::<Vec<_>>();
    assert!(ended.iter().all(|error| *error == no_route), "{:?}", ended.iter().find(|error| **error != no_route));
}

fn sends_outlive_their_caller() {
    let (pair, seen) = noting_pair();
    let caller = caller(&pair.client, tiny(pair.folder.path()));
    assert_eq!(caller.call(0), Ok(1));
    pair.route.suspend().unwrap();
    (1..3_000).for_each(|number| caller.send(number).unwrap());
    let last = caller.start(3_000);
    drop(caller);
    pair.route.resume().unwrap();
    assert_eq!(last.wait(), Ok(3_001));
    assert_eq!(*seen.lock().unwrap(), (0..=3_000).collect::<Vec<_>>());
}
