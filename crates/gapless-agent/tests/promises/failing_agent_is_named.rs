#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::{Arc, Mutex};

use gapless_agent::{
    Agent, AgentError, AgentFailure, AgentGroup, AgentSpec, AgentThread, Clock, Error, FailureSlot, IdleStrategy, Now,
    OptimizeFor, PlanKind, ThreadGroup, ThreadSpec, VirtualTime, Waker, plan,
};

type Log = Arc<Mutex<Vec<String>>>;

#[derive(Clone, Copy, PartialEq, Debug)]
enum FailurePoint {
    Start,
    Poll,
    Arm,
    Deadline,
    Close,
    Drop,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum FailureKind {
    Error,
    Panic,
}

struct Probe {
    name: String,
    fails: Option<(FailurePoint, FailureKind)>,
    log: Log,
    closed: bool,
    polls_to_drain: u32,
}

impl Probe {
    fn boxed(name: &str, fails: Option<(FailurePoint, FailureKind)>, log: &Log) -> Box<dyn Agent> {
        Self::draining(name, fails, log, 0)
    }

    fn draining(
        name: &str,
        fails: Option<(FailurePoint, FailureKind)>,
        log: &Log,
        polls_to_drain: u32,
    ) -> Box<dyn Agent> {
        Box::new(Self { name: name.to_owned(), fails, log: log.clone(), closed: false, polls_to_drain })
    }

    fn fail(&self, when: FailurePoint) -> Result<(), AgentError> {
        match self.fails {
            Some((at, FailureKind::Error)) if at == when => Err(format!("broke in {when:?}").into()),
            Some((at, FailureKind::Panic)) if at == when => panic!("broke in {when:?}"),
            _ => Ok(()),
        }
    }

    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl Agent for Probe {
    fn name(&self) -> &str {
        &self.name
    }
    fn on_start(&mut self, _now: Now) -> Result<(), AgentError> {
        self.note("starts");
        self.fail(FailurePoint::Start)
    }
    fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.closed && self.polls_to_drain > 0 {
            self.polls_to_drain -= 1;
            self.note("drains");
        }
        self.fail(FailurePoint::Poll)?;
        Ok(0)
    }
    fn arm(&mut self) {
        let _ = self.fail(FailurePoint::Arm);
    }
    fn next_deadline_ns(&self) -> Option<u64> {
        let _ = self.fail(FailurePoint::Deadline);
        None
    }
    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        self.note("closes");
        self.closed = true;
        self.fail(FailurePoint::Close)
    }
    fn is_drained(&self) -> bool {
        self.polls_to_drain == 0
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.note("ends");
        let _ = self.fail(FailurePoint::Drop);
    }
}

fn spec() -> ThreadSpec {
    let idle = IdleStrategy::SpinYieldPark { spin_ns: 0, yield_ns: 0, park_ns_max: 3_600_000_000_000 };
    ThreadSpec { idle, ..ThreadSpec::new("probes") }
}

fn spawn(agents: Vec<Box<dyn Agent>>, failures: &FailureSlot) -> AgentThread {
    AgentThread::spawn_sharing(spec(), agents, Clock::system(), Waker::new().unwrap(), failures).unwrap()
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn failing_agent_is_named() {
    for (when, how) in [
        (FailurePoint::Start, FailureKind::Error),
        (FailurePoint::Start, FailureKind::Panic),
        (FailurePoint::Poll, FailureKind::Error),
        (FailurePoint::Poll, FailureKind::Panic),
        (FailurePoint::Arm, FailureKind::Panic),
        (FailurePoint::Deadline, FailureKind::Panic),
    ] {
        let log = Log::default();
        let failures = FailureSlot::new();
        let agents = vec![
            Probe::boxed("first", None, &log),
            Probe::boxed("second", Some((when, how)), &log),
            Probe::boxed("third", None, &log),
        ];
        let failure = spawn(agents, &failures).join().unwrap_err();
        assert_eq!((failure.agent.as_str(), failure.thread.as_str()), ("second", "probes"), "{when:?} {how:?}");
        assert!(failure.to_string().contains(&format!("broke in {when:?}")), "{failure}");
        let panicked = failure.error.downcast_ref::<Error>().is_some_and(|e| matches!(e, Error::AgentPanicked { .. }));
        assert_eq!(panicked, how == FailureKind::Panic, "{failure}");
        assert_eq!(failures.failure().unwrap().agent, "second");
        let log = taken(&log);
        let closed: Vec<&str> = log.iter().filter_map(|line| line.strip_suffix(" closes")).collect();
        let mut expected = vec!["first"];
        if how == FailureKind::Error {
            expected.push("second");
        }
        if when != FailurePoint::Start {
            expected.push("third");
        }
        assert_eq!(closed, expected, "{when:?} {how:?}");
        assert_eq!(log.iter().filter(|line| line.ends_with(" ends")).count(), 3, "{log:?}");
    }
}

#[test]
fn failure_while_closing_is_reported() {
    for (when, how) in [
        (FailurePoint::Close, FailureKind::Error),
        (FailurePoint::Close, FailureKind::Panic),
        (FailurePoint::Drop, FailureKind::Panic),
    ] {
        let log = Log::default();
        let agents = vec![Probe::boxed("first", Some((when, how)), &log), Probe::boxed("second", None, &log)];
        let failures = FailureSlot::new();
        let thread = spawn(agents, &failures);
        thread.stop();
        let failure = thread.join().unwrap_err();
        assert!(failure.to_string().contains(&format!("broke in {when:?}")), "{failure}");
        assert!(failure.to_string().contains("first"), "{failure}");
        assert!(failures.has_failed());
        let log = taken(&log);
        for line in ["second closes", "second ends", "first ends"] {
            assert!(log.iter().any(|entry| entry == line), "{when:?} {how:?}: {line} is missing in {log:?}");
        }
    }
}

#[test]
fn later_errors_are_reported_too() {
    let log = Log::default();
    let agents = vec![
        Probe::boxed("first", Some((FailurePoint::Close, FailureKind::Error)), &log),
        Probe::boxed("second", Some((FailurePoint::Poll, FailureKind::Error)), &log),
        Probe::boxed("third", Some((FailurePoint::Close, FailureKind::Panic)), &log),
        Probe::boxed("fourth", Some((FailurePoint::Close, FailureKind::Error)), &log),
    ];
    let failure = spawn(agents, &FailureSlot::new()).join().unwrap_err();
    assert_eq!(failure.agent, "second");
    let closing = failure.while_closing.join("\n");
    assert!(["first", "third", "fourth"].iter().all(|name| closing.contains(name)), "{closing}");
}

#[test]
fn parked_threads_stop_on_failure() {
    let log = Log::default();
    let failures = FailureSlot::new();
    let bystander = spawn(vec![Probe::draining("bystander", None, &log, u32::MAX)], &failures);
    while !bystander.waker().is_parked() {
        std::thread::yield_now();
    }
    let culprit = spawn(vec![Probe::boxed("culprit", Some((FailurePoint::Poll, FailureKind::Panic)), &log)], &failures);
    assert_eq!(culprit.join().unwrap_err().agent, "culprit");
    assert_eq!(bystander.failure().unwrap().agent, "culprit");
    // Closed without draining: the awaited work may never arrive.
    bystander.join().unwrap();
    assert!(taken(&log).contains(&"bystander closes".to_owned()));
}

#[test]
fn stop_drains_agents_in_order() {
    let log = Log::default();
    let agents = vec![
        Probe::draining("first", None, &log, 2),
        Probe::draining("second", None, &log, 0),
        Probe::draining("third", None, &log, 1),
    ];
    let thread = spawn(agents, &FailureSlot::new());
    while !thread.waker().is_parked() {
        std::thread::yield_now();
    }
    taken(&log);
    thread.stop();
    thread.join().unwrap();
    assert_eq!(
        taken(&log),
        [
            "first closes",
            "first drains",
            "first drains",
            "second closes",
            "third closes",
            "third drains",
            "first ends",
            "second ends",
            "third ends"
        ]
    );
}

#[test]
fn undrained_agent_is_named() {
    let log = Log::default();
    let spec = ThreadSpec { drain_ns_max: 1_000_000, ..spec() };
    let agents = vec![Probe::boxed("first", None, &log), Probe::draining("stuck", None, &log, u32::MAX)];
    let thread = AgentThread::spawn(spec, agents, Clock::system(), Waker::new().unwrap()).unwrap();
    thread.stop();
    let failure = thread.join().unwrap_err();
    assert_eq!(failure.agent, "stuck");
    assert!(failure.to_string().contains("not drained 1000000 ns"), "{failure}");
}

#[test]
fn dropping_a_thread_stops_it() {
    let log = Log::default();
    drop(spawn(vec![Probe::boxed("only", None, &log)], &FailureSlot::new()));
    assert_eq!(taken(&log), ["only starts", "only closes", "only ends"]);
}

#[test]
fn agents_run_without_a_thread() {
    let log = Log::default();
    let time = VirtualTime::new(0, 0);
    let clock = Clock::virtual_time(&time);
    let agents = vec![Probe::draining("first", None, &log, 3), Probe::boxed("second", None, &log)];
    let mut group = AgentGroup::new(agents);
    group.start(clock.now()).unwrap();
    for _ in 0..10 {
        time.advance(1_000);
        assert_eq!(group.poll_once(clock.now()).unwrap(), 0);
    }
    let mut steps = 1;
    while !group.close_step(clock.now()).unwrap() {
        assert_eq!(group.draining(), Some("first"));
        steps += 1;
    }
    assert_eq!(steps, 3);
    let mut broken = AgentGroup::new(vec![Probe::boxed("bad", Some((FailurePoint::Poll, FailureKind::Error)), &log)]);
    broken.start(clock.now()).unwrap();
    let failure: AgentFailure = broken.poll_once(clock.now()).unwrap_err();
    assert_eq!(failure.to_string(), "agent bad: broke in Poll");
}

#[test]
fn plan_launch_stop_and_failure() {
    let log = Log::default();
    let specs = [AgentSpec::new("service").hot(), AgentSpec::new("journaler").detachable().hot()];
    let mut plan = plan(PlanKind::Max, OptimizeFor::Latency, &specs, 8, 0);
    for thread in &mut plan.threads {
        // Tests share the machine: no thread spins forever, and no CPU has this number.
        thread.spec.hot = false;
        thread.spec.cpus = "[1023]".parse().ok();
    }
    let wakers = || (0..2).map(|_| Waker::new().unwrap()).collect::<Vec<_>>();
    let clock = Clock::system();
    let agents = |fails| {
        vec![("journaler", Probe::boxed("journaler", fails, &log)), ("service", Probe::boxed("service", None, &log))]
    };
    let group = ThreadGroup::launch(&plan, agents(None), &clock, wakers()).unwrap();
    assert_eq!(group.pin_warnings().len(), 2, "each thread warns that it is not pinned");
    assert!(group.pin_warnings()[0].contains("[1023]"), "{:?}", group.pin_warnings());
    assert!(group.threads().iter().all(|thread| thread.cpu_time_ns().is_some()));
    group.stop_and_join().unwrap();

    let group =
        ThreadGroup::launch(&plan, agents(Some((FailurePoint::Poll, FailureKind::Panic))), &clock, wakers()).unwrap();
    while !group.failures().has_failed() {
        std::thread::yield_now();
    }
    assert_eq!(group.stop_and_join().unwrap_err().agent, "journaler");

    let mismatch = |agents, wakers| ThreadGroup::launch(&plan, agents, &clock, wakers).unwrap_err().to_string();
    assert!(mismatch(agents(None), Vec::new()).contains("0 wakers given for 2 threads"));
    assert!(mismatch(Vec::new(), wakers()).contains("service is planned and was not given"));
    let mut twice = agents(None);
    twice.push(("service", Probe::boxed("service", None, &log)));
    assert!(mismatch(twice, wakers()).contains("service was given and is not planned"));
}

#[test]
fn cpu_time_is_known_until_after_end() {
    let log = Log::default();
    let thread = spawn(vec![Probe::boxed("only", None, &log)], &FailureSlot::new());
    while !thread.waker().is_parked() {
        std::thread::yield_now();
    }
    assert!(thread.cpu_time_ns().is_some());
    thread.stop();
    while !thread.has_ended() {
        std::thread::yield_now();
    }
    let after = thread.cpu_time_ns().unwrap();
    assert!(after > 0);
    assert_eq!(thread.cpu_time_ns(), Some(after), "it no longer grows");
}
