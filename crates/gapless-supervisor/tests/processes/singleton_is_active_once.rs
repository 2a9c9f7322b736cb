use super::floor::{are_ready, down, find, kill_both, place, process, status, up, wait_for};
use super::instance_program::SINGLE;
use super::test_place::{TestPlace, kill, name};
use gapless_supervisor::InstanceName;
use gapless_supervisor::control::SupervisionStatus;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::event::OperatorCommand;
use gapless_testkit::process::Process;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{until, until_some};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::Duration;

pub fn module(rounds: u64) -> Module {
    Module::new(module_path!())
        .scenario("standby_takes_over_without_roles", standby_takes_over_without_roles)
        .scenario("commands_keep_one_active", commands_keep_one_active)
        .with_choices("random_kills_leave_one_active", move |random| random_kills_leave_one_active(rounds, random))
}

fn count(status: &SupervisionStatus, process: &str, state: InstanceCondition) -> usize {
    status.instances.iter().filter(|instance| instance.instance.process() == process && instance.state == state).count()
}

fn has_one_active(status: &SupervisionStatus, standbys: usize) -> bool {
    count(status, "a", InstanceCondition::Ready) == 1 && count(status, "a", InstanceCondition::Standby) == standbys
}

fn active(status: &SupervisionStatus) -> InstanceName {
    let mut active =
        status.instances.iter().filter(|instance| instance.instance.process() == "a" && instance.process_id.is_some());
    active.find(|instance| instance.state == InstanceCondition::Ready).unwrap().instance.clone()
}

fn standby_takes_over_without_roles() {
    let place = place();
    let processes = [
        process(&place, "a", SINGLE, "singleton = true\ninstances = 3"),
        process(&place, "later", "stay", "after = [\"a\"]"),
    ];
    up(&place, &processes);
    let is_good =
        |status: &SupervisionStatus| has_one_active(status, 2) && count(status, "later", InstanceCondition::Ready) == 1;
    let before = wait_for(&place, "one instance is active and the dependent runs", is_good);
    let first = active(&before);
    kill(find(&before, &first.to_string()).process_id.unwrap(), Signal::KILL);
    let after = wait_for(&place, "another is active", |status| is_good(status) && active(status) != first);
    assert_eq!(find(&after, &first.to_string()).restarts, 1);

    // Without guardian and supervisor the kernel hands the lock on.
    let second = active(&after);
    kill_both(&place);
    let starts = place.starts().len();
    kill(find(&after, &second.to_string()).process_id.unwrap(), Signal::KILL);
    until("another one runs", || place.starts().len() == starts + 1);
    assert!(status(&place).is_none(), "no supervisor runs");
    let third = place.starts().keys().max_by_key(|(_, incarnation)| *incarnation).unwrap().0.clone();
    assert_ne!(third, second);
    up(&place, &processes);
    let after =
        wait_for(&place, "the dead instance is a standby again", |status| is_good(status) && active(status) != second);
    assert_eq!(find(&after, &second.to_string()).restarts, 1);
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    let last = wait_for(&place, "another supervisor sees it", is_good);
    assert_eq!(active(&last), active(&after));
    let events = std::fs::read_to_string(place.directory.events()).unwrap();
    assert!(events.contains("\"standby\"") && events.contains("\"active\""), "{events}");
    down(&place);
}

fn commands_keep_one_active() {
    let place = place();
    let file =
        |more: &str| [process(&place, "a", SINGLE, &format!("singleton = true\ninstances = {{ max = 3 }}\n{more}"))];
    let mut client = up(&place, &file(""));
    wait_for(&place, "the one is active", |status| has_one_active(status, 0));
    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 3)])).unwrap();
    let before = wait_for(&place, "two are standbys", |status| has_one_active(status, 2));
    assert_eq!(active(&before), name("a.1"));

    let starts = place.starts().len();
    client.change(OperatorCommand::Reload(vec!["a".to_owned()])).unwrap();
    let pids = |status: &SupervisionStatus| {
        status.instances.iter().filter_map(|instance| instance.process_id).collect::<Vec<_>>()
    };
    let after = wait_for(&place, "all are replaced", |status| {
        has_one_active(status, 2) && pids(status).iter().all(|pid| !pids(&before).contains(pid))
    });
    assert_ne!(active(&after), name("a.1"));
    until("the active one runs", || place.starts().len() > starts);
    assert_eq!(place.starts().len(), starts + 1);

    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 1)])).unwrap();
    let after =
        wait_for(&place, "the first is active", |status| status.instances.len() == 1 && has_one_active(status, 0));
    assert_eq!(active(&after), name("a.1"));
    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 2)])).unwrap();
    wait_for(&place, "one is a standby", |status| has_one_active(status, 1));
    client.change(OperatorCommand::Restart(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "all have started again", |status| has_one_active(status, 1) && !are_ready(status, 2));
    client.change(OperatorCommand::Stop(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "none runs", |status| count(status, "a", InstanceCondition::Stopped) == 2);
    client.change(OperatorCommand::Start(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "one is active again", |status| has_one_active(status, 1));
    down(&place);
}

fn random_kills_leave_one_active(rounds: u64, random: &mut Random) {
    let place = TestPlace::without_supervisor();
    let instances = ["b.1", "b.2", "b.3"];
    let mut incarnation = 0;
    let mut start = |instance: &str| {
        incarnation += 1;
        place.write_plan(&name(instance), incarnation, SINGLE);
        let mut command = place.launcher(&name(instance), incarnation);
        (incarnation, Process::start_as(command.stderr(Stdio::null())))
    };
    let mut running = instances.map(&mut start);
    let active_index = |running: &[(u64, Process)]| {
        until_some("one is active", || {
            let starts = place.starts();
            let is_active = |index: usize| starts.contains_key(&(name(instances[index]), running[index].0));
            (0..running.len()).find(|index| is_active(*index))
        })
    };
    for round in 0..rounds {
        // Every tenth kill hits the active one, so that each time another becomes active.
        let index = match round % 10 {
            0 => active_index(&running),
            _ => random.below(instances.len() as u64) as usize,
        };
        running[index].1.kill();
        running[index].1.wait();
        running[index] = start(instances[index]);
        if random.happens(200) {
            active_index(&running);
        } else {
            std::thread::sleep(Duration::from_micros(random.below(6_000)));
        }
    }
    place.check_starts();
    let starts = place.starts().len();
    assert!(starts as u64 >= rounds / 10, "{starts} were active in {rounds} rounds");
    println!("{starts} of {incarnation} starts were active");
}
