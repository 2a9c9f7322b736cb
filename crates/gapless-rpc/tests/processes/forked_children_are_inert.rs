use super::AT_A_TIME;
use super::instance_process::{self, Ask, Told};
use gapless_rpc::{Call, CallError, CallOptions, Caller, Domain, DomainOptions, ServedRoute};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

const ROLE: &str = "fork-children";

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("child_cannot_affect_its_parent", child_cannot_affect_its_parent)
        .scenario("forked_handler_returns_once", forked_handler_returns_once)
        .scenario("forked_callback_returns_once", forked_callback_returns_once)
}

fn parent(what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let domain = folder.path().join("domain");
    let _instance = instance_process::start(&domain, 2, &["route"]);
    let mut parent = Process::start(this_program().args([ROLE, what]).arg(&domain));
    assert_eq!(parent.line(), "as it should be");
}

fn child_cannot_affect_its_parent() {
    parent("inherited");
}

fn forked_handler_returns_once() {
    parent("handler");
}

fn forked_callback_returns_once() {
    parent("told");
}

pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[1], DomainOptions::default()).unwrap();
    match &*arguments[0] {
        "inherited" => be_a_parent(&domain, Path::new(&arguments[1])),
        "told" => fork_in_what_is_told(Path::new(&arguments[1])),
        _ => fork_in_a_handler(&domain),
    }
    println!("as it should be");
    std::process::exit(0);
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn in_child(run: impl FnOnce()) -> i32 {
    // SAFETY: the child takes no lock that another thread of its parent may hold: that is what is tested.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_well = catch_unwind(AssertUnwindSafe(run)).is_ok();
        // SAFETY: it ends this process at once.
        unsafe { libc::_exit(if is_well { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

fn be_a_parent(domain: &Domain, path: &Path) {
    let caller: Caller<Ask, Told> = domain.caller("route").unwrap();
    let own: Caller<u64, u64> = domain.caller("own").unwrap();
    let served = domain.serve("own").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let tasks = Arc::new(Mutex::new(Vec::<Pin<Box<dyn Future<Output = ()> + Send>>>::new()));
    let spawned = Arc::clone(&tasks);
    let by_tasks =
        domain.serve("tasks").tasks(move |task| spawned.lock().unwrap().push(task)).handle(|(): (), _| Ok(())).unwrap();
    let poll_tasks = || {
        let mut context = Context::from_waker(Waker::noop());
        tasks.lock().unwrap().iter_mut().for_each(|task| assert!(task.as_mut().poll(&mut context).is_pending()));
    };
    poll_tasks();
    for number in 0..200 {
        assert_eq!(caller.call_with(Ask::Increment(number), &patient()), Ok(Told::Number(number + 1)));
    }
    assert_eq!(own.call_with(1, &patient()), Ok(2));
    let open = || Domain::open_directory(path, DomainOptions::default()).unwrap();
    let mut under_way = Some(caller.start_with(Ask::Sleep(300), &patient()));
    let mut things = Some((caller.clone(), own.clone(), served, by_tasks, domain.clone()));
    let status = in_child(|| {
        assert_eq!(caller.call(Ask::Increment(1)), Err(CallError::Closed));
        assert_eq!(caller.send(Ask::Increment(1)), Err(CallError::Closed));
        assert_eq!(caller.broadcast(&Ask::Increment(1)), Err(CallError::Closed));
        assert_eq!(own.call(1), Err(CallError::Closed));
        assert!(domain.serve("more").handle(|(): (), _| Ok(())).is_err());
        assert!(domain.caller::<u64, u64>("own").is_err());
        assert!(domain.routes(PATIENCE).is_err() && domain.caller_statistics().is_err());
        let _ = caller.statistics();
        let (clone, own, served, by_tasks, domain): (Caller<Ask, Told>, _, ServedRoute, _, _) = things.take().unwrap();
        assert!(served.suspend().is_err());
        tasks.lock().unwrap().clear();
        by_tasks.drain();
        drop((clone, own, served, domain));
        let mut call: Call<Told> = under_way.take().unwrap();
        assert_eq!(call.try_take(), Some(Err(CallError::Closed)));
        drop(call);
        let anew = open();
        let caller: Caller<Ask, Told> = anew.caller("route").unwrap();
        assert_eq!(caller.call_with(Ask::Increment(7), &patient()), Ok(Told::Number(8)));
    });
    assert_eq!(status, 0, "the child has ended so: {status:#x}");
    let dropped = in_child(|| drop(under_way.take()));
    assert_eq!(dropped, 0);
    let told = under_way.take().map(Call::wait);
    assert!(matches!(told, Some(Ok(Told::Left(_)))), "{told:?}");
    for number in 0..200 {
        assert_eq!(caller.call_with(Ask::Increment(number), &patient()), Ok(Told::Number(number + 1)));
    }
    let other: Caller<u64, u64> = open().caller("own").unwrap();
    assert_eq!(other.call_with(5, &patient()), Ok(6));
    drop(things);
}

/// Returns the child's wait status in the parent, and `None` in the child.
fn fork_and_return() -> Option<i32> {
    // SAFETY: as in `in_child`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: only prevents a core file of this process.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
        return None;
    }
    let mut status = 0;
    // SAFETY: `status` is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    Some(status)
}

fn is_abort(status: i32) -> bool {
    libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT
}

fn fork_in_a_handler(domain: &Domain) {
    let answer = |number: u64, _: &gapless_rpc::CallContext| {
        if let Some(status) = fork_and_return() {
            assert!(is_abort(status), "{status:#x}");
        }
        Ok(number)
    };
    let _served = domain.serve("forks").handle(answer).unwrap();
    let here: Caller<u64, u64> = domain.caller("forks").unwrap();
    assert_eq!(here.call_with(5, &patient()), Ok(5));
    let options = gapless_rpc::CallerOptions { reach: gapless_rpc::Reach::OtherProcesses, ..Default::default() };
    let other = Domain::open_directory(domain.name(), DomainOptions::default()).unwrap();
    let elsewhere: Caller<u64, u64> = other.caller_with("forks", options).unwrap();
    for number in 0..3 {
        assert_eq!(elsewhere.call_with(number, &patient()), Ok(number));
    }
}

/// The forking thread has more to do: a one-way request has ended at the same time.
fn fork_in_what_is_told(path: &Path) {
    const WAITS: u64 = 1;
    const GOES_ON: u64 = 2;
    let open = |slots| Domain::open_directory(path, DomainOptions { slots, ..DomainOptions::default() }).unwrap();
    let (serving, calling) = (open(64), open(4));
    let (answer, answered) = channel();
    let answered = Mutex::new(answered);
    let back = serving.serve("back").handle(|number: u64, _| Ok(number)).unwrap();
    let front = serving.serve("front").workers(1).handle(move |number: u64, context| {
        match number {
            WAITS => answered.lock().unwrap().recv().unwrap(),
            GOES_ON => return Err(context.forward("back")),
            _ => {}
        }
        Ok(number)
    });
    let front = front.unwrap();
    let caller: Caller<u64, u64> = calling.caller("front").unwrap();
    assert_eq!(caller.call_with(0, &patient()), Ok(0));

    // Holds up the thread until the next ends have come together.
    let ((held, is_held), (go_on, goes_on)) = (channel(), channel());
    caller.start_with(WAITS, &patient()).on_end(move |outcome| {
        held.send(outcome).unwrap();
        goes_on.recv().unwrap();
    });
    answer.send(()).unwrap();
    assert_eq!(is_held.recv().unwrap(), Ok(WAITS));
    let (tell, told) = channel();
    caller
        .start_with(WAITS, &patient())
        .on_end(move |_| fork_and_return().into_iter().for_each(|status| tell.send(status).unwrap()));
    caller.send_with(GOES_ON, &patient()).unwrap();
    caller.send_with(0, &patient()).unwrap();
    answer.send(()).unwrap();
    assert_eq!(caller.call_with(0, &patient()), Ok(0), "all before it are answered");
    go_on.send(()).unwrap();
    let status = told.recv().unwrap();
    assert!(is_abort(status), "{status:#x}");

    until("what was sent has gone on", || back.statistics().replied == 1);
    let calls: Vec<_> = (0..4).map(|_| caller.start_with(WAITS, &patient())).collect();
    until("every slot is used", || caller.statistics().in_flight == 4);
    for call in calls {
        answer.send(()).unwrap();
        assert_eq!(call.wait(), Ok(WAITS));
    }
    drop((front, back));
}
