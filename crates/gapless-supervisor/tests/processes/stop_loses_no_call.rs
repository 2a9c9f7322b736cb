use super::floor::{are_ready, down, find, place, process, up, wait_for};
use super::serving_program::{FOR_EVER, ROUTE, SERVE, WORKERS};
use super::test_place::{TestPlace, kill};
use gapless_rpc::{Call, CallOptions, Caller, Domain, DomainOptions, Retry};
use gapless_supervisor::EndStatus;
use gapless_supervisor::control::ControlClient;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::event::OperatorCommand;
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("reload_and_scale_lose_no_call", reload_and_scale_lose_no_call)
        .scenario("unconfigured_routes_are_drained", unconfigured_routes_are_drained)
        .with_choices("killed_supervisor_loses_no_call", killed_supervisor_loses_no_call)
        .scenario("drain_ends_at_half_of_the_grace", drain_ends_at_half_of_the_grace)
        .scenario("stopped_process_is_killed_at_last", stopped_process_is_killed_at_last)
}

const ROUTED: &str = "instances = { min = 2, max = 4 }\nready = { route = \"answer\" }\n";
const CALLERS: u64 = 4;

fn caller(place: &TestPlace) -> Caller<u64, u32> {
    let domain = Domain::open_directory(place.directory.path().join("domain"), DomainOptions::default()).unwrap();
    domain.caller(ROUTE).unwrap()
}

fn once() -> CallOptions {
    CallOptions {
        timeout: Some(PATIENCE),
        wait_for_route: Some(PATIENCE),
        retry: Retry::Never,
        ..CallOptions::default()
    }
}

struct Traffic {
    is_over: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Vec<String>>>,
}

impl Traffic {
    fn begin(place: &TestPlace) -> Self {
        let (is_over, made) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..CALLERS).map(|number| {
            let (caller, is_over, made) = (caller(place), Arc::clone(&is_over), Arc::clone(&made));
            std::thread::spawn(move || {
                let mut failed = Vec::new();
                for ms in (number..).map(|count| count % 4) {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    made.fetch_add(1, Ordering::SeqCst);
                    failed.extend(caller.call_with(ms, &once()).err().map(|error| format!("{error:?}")));
                }
                failed
            })
        });
        let threads = threads.collect();
        Self { is_over, made, threads }
    }

    fn go_on(&self) {
        let before = self.made.load(Ordering::SeqCst);
        until("calls go on", || self.made.load(Ordering::SeqCst) > before + 20);
    }

    #[track_caller]
    fn end(self) {
        self.is_over.store(true, Ordering::SeqCst);
        let failed: Vec<String> = self.threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        println!("{} calls", self.made.load(Ordering::SeqCst));
        assert_eq!(failed, [] as [String; 0]);
    }
}

fn reload_and_scale_lose_no_call() {
    let place = place();
    let mut client = up(&place, &[process(&place, "a", SERVE, ROUTED)]);
    let mut before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let traffic = Traffic::begin(&place);
    for _ in 0..3 {
        traffic.go_on();
        client.change(OperatorCommand::Reload(vec!["a".to_owned()])).unwrap();
        let old = before.instances.iter().map(|instance| instance.process_id).collect::<Vec<_>>();
        before = wait_for(&place, "all are replaced", |status| {
            are_ready(status, 2)
                && status.instances.len() == 2
                && status.instances.iter().all(|instance| !old.contains(&instance.process_id))
        });
    }
    for count in [4, 2, 3, 2] {
        client.change(OperatorCommand::Scale(vec![("a".to_owned(), count)])).unwrap();
        wait_for(&place, "the scale is reached", |status| {
            are_ready(status, count as usize) && status.instances.len() == count as usize
        });
        traffic.go_on();
    }
    traffic.end();
    down(&place);
}

fn killed_supervisor_loses_no_call(random: &mut Random) {
    let place = place();
    up(&place, &[process(&place, "a", SERVE, ROUTED)]);
    let mut before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let traffic = Traffic::begin(&place);
    for round in 0..6 {
        traffic.go_on();
        let mut client = ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap();
        client.change(OperatorCommand::Reload(vec!["a".to_owned()])).unwrap();
        let pause_ms = if round < 2 { 0 } else { random.below(120) };
        std::thread::sleep(Duration::from_millis(pause_ms));
        kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
        let old = before.instances.iter().map(|instance| instance.process_id).collect::<Vec<_>>();
        before = wait_for(&place, "all are replaced", |status| {
            are_ready(status, 2)
                && status.instances.len() == 2
                && status.instances.iter().all(|instance| !old.contains(&instance.process_id))
        });
    }
    traffic.end();
    down(&place);
}

fn unconfigured_routes_are_drained() {
    let place = place();
    let mut client = up(&place, &[process(&place, "a", SERVE, "instances = { min = 1, max = 3 }\n")]);
    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 3)])).unwrap();
    let all = wait_for(&place, "they run", |status| are_ready(status, 3));
    let caller = caller(&place);
    let mut unseen: Vec<u32> = all.instances.iter().filter_map(|instance| instance.process_id).collect();
    until("each answers", || {
        let calls: Vec<Call<u32>> = (0..3 * WORKERS).map(|_| caller.start_with(5, &once())).collect();
        let answered: Vec<u32> = calls.into_iter().map(|call| call.wait().unwrap()).collect();
        unseen.retain(|pid| !answered.contains(pid));
        unseen.is_empty()
    });
    let traffic = Traffic::begin(&place);
    traffic.go_on();
    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 1)])).unwrap();
    wait_for(&place, "one is left", |status| status.instances.len() == 1);
    traffic.go_on();
    traffic.end();
    down(&place);
}

fn drain_ends_at_half_of_the_grace() {
    let place = place();
    let more = "instances = 1\nready = { route = \"answer\" }\nstop = { grace = \"2 s\" }\n";
    let mut client = up(&place, &[process(&place, "a", SERVE, more)]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let endless = caller(&place).start_with(FOR_EVER, &once());
    until("it has begun", || caller(&place).call_with(0, &once()).is_ok());
    client.change(OperatorCommand::Stop(vec!["a".to_owned()])).unwrap();
    let after = wait_for(&place, "it has stopped", |status| find(status, "a.1").state == InstanceCondition::Stopped);
    assert_eq!(
        find(&after, "a.1").last_end,
        Some(InstanceEnd::Status(EndStatus::Signaled { signal: 15, has_core: false })),
        "not killed"
    );
    assert!(endless.wait().is_err());
    down(&place);
}

fn stopped_process_is_killed_at_last() {
    let place = place();
    let more = "instances = 1\nready = { route = \"answer\" }\nstop = { grace = \"500 ms\" }\n";
    let mut client = up(&place, &[process(&place, "a", SERVE, more)]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    kill(find(&before, "a.1").process_id.unwrap(), Signal::STOP);
    client.change(OperatorCommand::Stop(vec!["a".to_owned()])).unwrap();
    let after = wait_for(&place, "it has stopped", |status| find(status, "a.1").state == InstanceCondition::Stopped);
    let end = find(&after, "a.1").last_end.clone();
    assert_eq!(end, Some(InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false })));
    down(&place);
}
