use super::floor::{answered_status, are_ready, down, find, place, process, up, wait_for};
use super::instance_program::STAY;
use super::serving_program::{FOR_EVER, ROUTE, SERVE, SERVE_IN_50_MS, SERVE_LATE, WORKERS};
use super::test_place::{TestPlace, kill, kill_if_there};
use gapless_rpc::{Call, CallOptions, Caller, Domain, DomainOptions};
use gapless_supervisor::EndStatus;
use gapless_supervisor::control::SupervisionStatus;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("own_route_makes_an_instance_ready", own_route_makes_an_instance_ready)
        .scenario("stopped_instance_is_killed", stopped_instance_is_killed)
        .scenario("hung_handlers_lead_to_a_kill", hung_handlers_lead_to_a_kill)
        .scenario("busy_instance_is_not_killed", busy_instance_is_not_killed)
        .scenario("next_supervisor_continues_pings", next_supervisor_continues_pings)
        .scenario("hostile_files_in_domain_are_ignored", hostile_files_in_domain_are_ignored)
        .scenario("replacement_serves_soon", replacement_serves_soon)
}

const READY: &str = "ready = { route = \"answer\" }\n";
/// A live instance answers in this time, even on a busy machine.
const PING: &str = "ping = { every = \"100 ms\", within = \"1 s\", failures_max = 3 }\n";

fn pid(status: &SupervisionStatus, instance: &str) -> u32 {
    find(status, instance).process_id.unwrap()
}

fn domain(place: &TestPlace) -> Domain {
    Domain::open_directory(place.directory.path().join("domain"), DomainOptions::default()).unwrap()
}

fn caller(place: &TestPlace) -> Caller<u64, u32> {
    domain(place).caller(ROUTE).unwrap()
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn events(place: &TestPlace) -> String {
    std::fs::read_to_string(place.directory.events()).unwrap()
}

#[track_caller]
fn wait_for_stuck(place: &TestPlace, instance: &str, ready: usize) -> SupervisionStatus {
    let after = wait_for(place, "it was killed, and is back", |status| {
        find(status, instance).restarts == 1 && are_ready(status, ready)
    });
    let reason = "stuck: did not answer 3 pings in 1s";
    assert_eq!(find(&after, instance).last_reason.as_deref(), Some(reason));
    assert_eq!(
        find(&after, instance).last_end,
        Some(InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }))
    );
    assert_eq!(events(place).matches(reason).count(), 1);
    after
}

fn own_route_makes_an_instance_ready() {
    let place = place();
    let processes = [
        process(&place, "early", SERVE, READY),
        process(&place, "late", SERVE_LATE, READY),
        process(&place, "none", STAY, "ready = { route = \"nothing\" }"),
        process(&place, "behind", STAY, "after = [\"late\"]"),
    ];
    up(&place, &processes);
    wait_for(&place, "one is ready", |status| are_ready(status, 1));
    std::thread::sleep(Duration::from_millis(50));
    let before = answered_status(&place);
    let state = |instance: &str| find(&before, instance).state;
    let states = [state("early.1"), state("late.1"), state("none.1"), state("behind.1")];
    let starting = InstanceCondition::Starting;
    assert_eq!(
        states,
        [InstanceCondition::Ready, starting, starting, InstanceCondition::Waiting],
        "each needs its own route"
    );
    std::fs::write(place.folder().join(SERVE), "").unwrap();
    let begun = Instant::now();
    wait_for(&place, "the others are ready, too", |status| are_ready(status, 3));
    println!("an instance was seen as ready {:?} after it was allowed to serve", begun.elapsed());
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    wait_for(&place, "the same states", |status| are_ready(status, 3) && find(status, "none.1").state == starting);
    down(&place);
}

fn stopped_instance_is_killed() {
    let place = place();
    up(&place, &[process(&place, "a", SERVE, &format!("instances = 2\n{READY}{PING}"))]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    std::thread::sleep(Duration::from_millis(500));
    kill(pid(&before, "a.1"), Signal::STOP);
    let after = wait_for_stuck(&place, "a.1", 2);
    assert_eq!((pid(&after, "a.2"), find(&after, "a.2").restarts), (pid(&before, "a.2"), 0));
    down(&place);
}

fn hung_handlers_lead_to_a_kill() {
    let place = place();
    up(&place, &[process(&place, "a", SERVE, &format!("{READY}{PING}"))]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let caller = caller(&place);
    let endless: Vec<Call<u32>> = (0..WORKERS).map(|_| caller.start_with(FOR_EVER, &patient())).collect();
    wait_for_stuck(&place, "a.1", 1);
    drop(endless);
    down(&place);
}

fn busy_instance_is_not_killed() {
    let place = place();
    let ping = "ping = { every = \"100 ms\", within = \"5 s\", failures_max = 1 }\n";
    up(&place, &[process(&place, "a", SERVE, &format!("{READY}{ping}"))]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let caller = caller(&place);
    let calls: Vec<Call<u32>> = (0..20).map(|_| caller.start_with(50, &patient())).collect();
    for call in calls {
        assert_eq!(call.wait(), Ok(pid(&before, "a.1")));
    }
    assert!(!events(&place).contains("stuck"));
    down(&place);
}

fn next_supervisor_continues_pings() {
    let place = place();
    up(&place, &[process(&place, "a", SERVE, &format!("instances = 2\n{READY}{PING}"))]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    kill(pid(&before, "a.2"), Signal::STOP);
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    let after = wait_for_stuck(&place, "a.2", 2);
    assert_eq!(pid(&after, "a.1"), pid(&before, "a.1"));
    down(&place);
}

fn hostile_files_in_domain_are_ignored() {
    let place = place();
    up(&place, &[process(&place, "a", SERVE, &format!("instances = 2\n{READY}{PING}"))]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let domain = place.directory.path().join("domain");
    for number in 0..4_u128 {
        std::fs::write(domain.join(format!("copy-{number:032x}.sock")), "nothing").unwrap();
    }
    let silent = UnixListener::bind(domain.join(format!("copy-{:032x}.sock", 7))).unwrap();
    for entry in std::fs::read_dir(&domain).unwrap().flatten() {
        if entry.file_name().to_string_lossy().ends_with(".counters") {
            std::fs::File::options().write(true).open(entry.path()).unwrap().set_len(100).unwrap();
        }
    }
    kill(pid(&before, "a.1"), Signal::STOP);
    let after = wait_for_stuck(&place, "a.1", 2);
    assert_eq!(after.supervisor.supervisor_process_id, before.supervisor.supervisor_process_id);
    drop(silent);
    down(&place);
}

fn replacement_serves_soon() {
    let place = place();
    let restart = "restart = { healthy_after = \"1 ms\", restarts_max = 100 }\n";
    up(&place, &[process(&place, "a", SERVE_IN_50_MS, &format!("{READY}{restart}"))]);
    let mut serving = pid(&wait_for(&place, "it is ready", |status| are_ready(status, 1)), "a.1");
    let caller = caller(&place);
    let mut silences = Vec::new();
    for _ in 0..5 {
        kill_if_there(serving, Signal::KILL);
        let begun = Instant::now();
        until("the replacement answers", || match caller.call_with(0, &patient()) {
            Ok(next) if next != serving => {
                serving = next;
                true
            }
            _ => false,
        });
        silences.push(begun.elapsed());
        wait_for(&place, "it is ready", |status| are_ready(status, 1));
        // Longer than `healthy_after`: no backoff.
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("from the death of an instance to the first reply of the next, which serves after 50 ms: {silences:?}");
    down(&place);
}
