use super::floor::{
    answered_status, are_ready, down, find, kill_both, pids, place, process, status, up, wait_for, write,
};
use super::instance_program::{EXIT, LEAVE, NOTIFY, STAY, STUBBORN};
use super::test_place::{TestPlace, kill, kill_if_there, lines, name, roles};
use gapless_supervisor::EndStatus;
use gapless_supervisor::SupervisorError;
use gapless_supervisor::control::protocol::{EventSubject, InstanceCondition, SupervisorAnswer, SupervisorRequest};
use gapless_supervisor::control::{ControlClient, connect_if_any, status_of_files};
use gapless_supervisor::guardian::start_if_missing;
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::event::{InstanceEventKind, OperatorCommand};
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("start_in_order_and_end_in_reverse", start_in_order_and_end_in_reverse)
        .scenario("dead_instance_is_restarted", dead_instance_is_restarted)
        .scenario("killed_supervisor_is_replaced", killed_supervisor_is_replaced)
        .scenario("killed_guardian_is_replaced", killed_guardian_is_replaced)
        .scenario("up_restarts_after_both_roles_died", up_restarts_after_both_roles_died)
        .scenario("status_without_a_supervisor", status_without_a_supervisor)
        .scenario("wait_ends_when_no_role_is_left", wait_ends_when_no_role_is_left)
        .scenario("commands_change_what_runs", commands_change_what_runs)
        .scenario("crash_loop_is_held", crash_loop_is_held)
        .scenario("descendants_are_killed", descendants_are_killed)
        .scenario("invalid_configuration_is_rejected", invalid_configuration_is_rejected)
        .scenario("ignored_stop_signal_leads_to_kill", ignored_stop_signal_leads_to_kill)
        .with_choices("random_kills_start_nothing_twice", random_kills_start_nothing_twice)
}

fn start_in_order_and_end_in_reverse() {
    let place = place();
    let processes = [
        process(&place, "late", STAY, "after = [\"early\", \"task\"]"),
        process(&place, "early", NOTIFY, "ready = \"notify\"\ninstances = 2"),
        process(&place, "task", "exit:0", "once = true"),
    ];
    let mut client = up(&place, &processes);
    let status = wait_for(&place, "the task is done", |status| find(status, "task.1").state == InstanceCondition::Done);
    assert_eq!(find(&status, "late.1").state, InstanceCondition::Waiting);
    assert!(!are_ready(&status, 1), "no instance has reported readiness");
    std::fs::write(place.folder().join("ready"), "").unwrap();
    let status = wait_for(&place, "all are ready", |status| are_ready(status, 3));
    assert_eq!(status.instances.len(), 4);
    client.request(&SupervisorRequest::Events).unwrap();
    down(&place);
    let mut ended = Vec::new();
    while let Ok(Some(answer)) = client.next(PATIENCE) {
        if let SupervisorAnswer::Event { record } = answer
            && let EventSubject::Instance(event) = record.subject
            && let InstanceEventKind::Ended { end } = event.what
        {
            assert_eq!(end, InstanceEnd::Status(EndStatus::Signaled { signal: 15, has_core: false }));
            ended.push(event.instance.process().to_owned());
        }
    }
    assert_eq!(ended, ["late", "early", "early"]);
    up(&place, &processes);
    wait_for(&place, "all are ready again", |status| are_ready(status, 3));
    down(&place);
}

fn dead_instance_is_restarted() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "instances = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let victim = find(&before, "a.1").process_id.unwrap();
    until("it has said something", || !lines(&place.directory.log(&name("a.1"))).is_empty());
    kill(victim, Signal::KILL);
    let after = wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 2));
    let instance = find(&after, "a.1");
    assert_ne!(instance.process_id, Some(victim));
    assert_eq!(instance.last_end, Some(InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false })));
    assert!(instance.last_lines.iter().any(|line| line.starts_with("a.1 ") && line.ends_with(" runs")), "{instance:?}");
    assert_eq!(find(&after, "a.2").process_id, find(&before, "a.2").process_id);
    down(&place);
}

fn killed_supervisor_is_replaced() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "instances = 3"), process(&place, "b", STAY, "after = [\"a\"]")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 4));
    kill(find(&before, "a.3").process_id.unwrap(), Signal::KILL);
    let before = wait_for(&place, "it is back", |status| find(status, "a.3").restarts == 1 && are_ready(status, 4));
    for _ in 0..3 {
        let supervisor = place.wait_for_role(RoleLock::Supervisor);
        kill(supervisor, Signal::KILL);
        let after = wait_for(&place, "another one is in control", |status| {
            status.supervisor.supervisor_process_id.is_some_and(|pid| pid != supervisor)
        });
        assert_eq!(pids(&after), pids(&before), "the same processes");
        assert!(are_ready(&after, 4));
        assert_eq!(find(&after, "a.3").restarts, 1);
    }
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    let after = wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 4));
    assert_eq!(
        find(&after, "a.1").last_end,
        Some(InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }))
    );
    down(&place);
}

fn killed_guardian_is_replaced() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "instances = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let guardian = place.wait_for_role(RoleLock::Guardian);
    kill(guardian, Signal::KILL);
    let after = wait_for(&place, "another guardian is there", |status| {
        status.supervisor.guardian_process_id.is_some_and(|pid| pid != guardian)
    });
    assert_eq!((pids(&after), find(&after, "a.1").restarts), (pids(&before), 0));
    // The process has lost its parent: its exit status is unknown.
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    let after = wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 2));
    assert_eq!(find(&after, "a.1").last_end, Some(InstanceEnd::Unseen));
    kill(find(&after, "a.1").process_id.unwrap(), Signal::KILL);
    let after = wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 2 && are_ready(status, 2));
    assert_eq!(
        find(&after, "a.1").last_end,
        Some(InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }))
    );
    down(&place);
}

fn up_restarts_after_both_roles_died() {
    let place = place();
    let processes = [process(&place, "a", STAY, "instances = 2")];
    up(&place, &processes);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    let before = wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 2));
    kill_both(&place);
    let victim = find(&before, "a.2").process_id.unwrap();
    kill(victim, Signal::KILL);
    until("its death is seen", || {
        let found = status_of_files(&place.directory).unwrap();
        find(&found, "a.2").state == InstanceCondition::Stopped
    });
    assert!(status(&place).is_none());
    let found = status_of_files(&place.directory).unwrap();
    assert_eq!(found.supervisor.supervisor_process_id, None);
    assert_eq!(find(&found, "a.1").state, InstanceCondition::Unwatched);
    assert_eq!(find(&found, "a.2").state, InstanceCondition::Stopped);
    up(&place, &processes);
    let after =
        wait_for(&place, "the other is back", |status| find(status, "a.2").restarts == 1 && are_ready(status, 2));
    assert_eq!(find(&after, "a.1").process_id, find(&before, "a.1").process_id);
    assert_eq!(find(&after, "a.1").restarts, 1);
    assert_eq!(find(&after, "a.2").last_end, Some(InstanceEnd::Unseen));
    down(&place);
}

fn status_without_a_supervisor() {
    let place = place();
    let mut client = up(
        &place,
        &[
            process(&place, "scaled", STAY, "instances = { min = 1, max = 3 }"),
            process(&place, "dying", &format!("{EXIT}7"), "restart = { restarts_max = 1, backoff_first = \"1 ms\" }"),
            process(&place, "task", &format!("{EXIT}0"), "once = true"),
        ],
    );
    client.change(OperatorCommand::Scale(vec![("scaled".to_owned(), 3)])).unwrap();
    let before = wait_for(&place, "there are three", |status| are_ready(status, 3));
    client.change(OperatorCommand::Scale(vec![("scaled".to_owned(), 2)])).unwrap();
    kill(find(&before, "scaled.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "two instances are left and the others have ended", |status| {
        let states = ["dying.1", "task.1"].map(|instance| find(status, instance).state);
        are_ready(status, 2)
            && status.instances.len() == 4
            && find(status, "scaled.1").restarts == 1
            && states == [InstanceCondition::Held, InstanceCondition::Done]
    });
    kill_both(&place);
    let found = status_of_files(&place.directory).unwrap();
    let names: Vec<String> = found.instances.iter().map(|instance| instance.instance.to_string()).collect();
    assert_eq!(names, ["scaled.1", "scaled.2", "dying.1", "task.1"], "no instance of an earlier scale");
    let states: Vec<InstanceCondition> = found.instances.iter().map(|instance| instance.state).collect();
    use InstanceCondition::{Done, Held, Unwatched};
    assert_eq!(states, [Unwatched, Unwatched, Held, Done]);
    let restarts: Vec<u64> = found.instances.iter().map(|instance| instance.restarts).collect();
    assert_eq!(restarts, [1, 0, 1, 0]);
    let killed = InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false });
    assert_eq!(find(&found, "scaled.1").last_end, Some(killed));
    let dying = find(&found, "dying.1");
    assert_eq!(dying.last_end, Some(InstanceEnd::Status(EndStatus::Exited(7))));
    assert!(dying.last_lines.iter().any(|line| line.ends_with(" runs")), "{dying:?}");
    let mut memory: serde_json::Value = place.directory.read_state().unwrap().unwrap();
    memory["boot"] = "another".into();
    place.directory.write_state(&memory).unwrap();
    let found = status_of_files(&place.directory).unwrap();
    assert_eq!((find(&found, "scaled.1").restarts, find(&found, "dying.1").state), (0, InstanceCondition::Stopped));
    drop(client);
    up(&place, &[process(&place, "scaled", STAY, "instances = 2")]);
    wait_for(&place, "they are taken over", |status| are_ready(status, 2));
    down(&place);
}

fn wait_ends_when_no_role_is_left() {
    let place = TestPlace::new();
    let path = place.directory.path();
    assert!(connect_if_any(path, PATIENCE).unwrap().is_none());
    start_if_missing(&place.directory, &roles(), PATIENCE).unwrap();
    assert!(connect_if_any(path, Duration::from_millis(1)).is_err());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| connect_if_any(path, PATIENCE));
        // A role without its lock would start the other one again.
        for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
            place.wait_for_role(role_lock);
        }
        kill_both(&place);
        assert!(waiting.join().unwrap().unwrap().is_none(), "the wait ends early");
    });
}

fn commands_change_what_runs() {
    let place = place();
    let mut client =
        up(&place, &[process(&place, "a", STAY, "instances = { min = 1, max = 3 }"), process(&place, "b", STAY, "")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 3)])).unwrap();
    wait_for(&place, "there are more", |status| are_ready(status, 4));
    client.change(OperatorCommand::Scale(vec![("a".to_owned(), 1)])).unwrap();
    let after = wait_for(&place, "there are fewer", |status| status.instances.len() == 2 && are_ready(status, 2));
    assert_eq!(pids(&after), pids(&before));
    client.change(OperatorCommand::Stop(vec!["b".to_owned()])).unwrap();
    wait_for(&place, "it has stopped", |status| find(status, "b.1").state == InstanceCondition::Stopped);
    client.change(OperatorCommand::Start(vec!["b".to_owned()])).unwrap();
    let after = wait_for(&place, "it runs", |status| are_ready(status, 2));
    assert_ne!(pids(&after), pids(&before));
    client.change(OperatorCommand::Restart(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "it is another process", |status| {
        are_ready(status, 2) && find(status, "a.1").process_id != find(&before, "a.1").process_id
    });
    for wrong in [OperatorCommand::Start(vec!["c".to_owned()]), OperatorCommand::Scale(vec![("a".to_owned(), 9)])] {
        let error = client.change(wrong).unwrap_err();
        assert!(matches!(error, SupervisorError::Refused(_)), "{error}");
    }
    down(&place);
}

fn crash_loop_is_held() {
    let place = place();
    let restart = "restart = { restarts_max = 2, backoff_first = \"1 ms\" }";
    let mut client = up(&place, &[process(&place, "a", &format!("{EXIT}7"), restart), process(&place, "b", STAY, "")]);
    let status = wait_for(&place, "it is held", |status| find(status, "a.1").state == InstanceCondition::Held);
    let instance = find(&status, "a.1");
    assert_eq!((instance.restarts, &instance.last_end), (2, &Some(InstanceEnd::Status(EndStatus::Exited(7)))));
    assert!(instance.last_lines.iter().any(|line| line.ends_with(" runs")), "{instance:?}");
    assert_eq!(place.starts().keys().filter(|(instance, _)| instance.process() == "a").count(), 3);
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    wait_for(&place, "it is held", |status| find(status, "a.1").state == InstanceCondition::Held);
    drop(client);
    client = ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap();
    client.change(OperatorCommand::Start(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "it is held again", |status| {
        find(status, "a.1").state == InstanceCondition::Held && place.starts().len() == 7
    });
    down(&place);
}

fn descendants_are_killed() {
    let place = place();
    up(&place, &[process(&place, "a", LEAVE, "restart = { policy = \"never\" }")]);
    let status = wait_for(&place, "it has failed", |status| find(status, "a.1").state == InstanceCondition::Failed);
    assert_eq!(find(&status, "a.1").last_end, Some(InstanceEnd::Status(EndStatus::Exited(3))));
    let holder = place.directory.instance(&name("a.1")).holder().unwrap();
    assert!(matches!(holder, gapless_supervisor::state_directory::Holder::Free { .. }), "{holder:?}");
    down(&place);
}

fn invalid_configuration_is_rejected() {
    let place = place();
    let processes = [process(&place, "a", STAY, ""), process(&place, "b", STAY, "")];
    let mut client = up(&place, &processes);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let path = write(&place, &["[process.a]\ncommand = [\"/nowhere/at/all\"]\n".to_owned()]);
    let error = client.request(&SupervisorRequest::Up { path: path.clone() }).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    let after = answered_status(&place);
    assert_eq!(pids(&after), pids(&before));
    assert!(after.supervisor.problem.as_ref().unwrap().contains("/nowhere/at/all"));
    let many = (0..400).map(|number| format!("[process.p{number}]\ncommand = [\"/nowhere/at/all\"]\n")).collect();
    write(&place, &[many]);
    client.request(&SupervisorRequest::Up { path: path.clone() }).unwrap_err();
    let later = answered_status(&place);
    assert_eq!(later.supervisor.supervisor_process_id, after.supervisor.supervisor_process_id);
    write(&place, &processes[..1]);
    client.request(&SupervisorRequest::Up { path }).unwrap();
    let after = wait_for(&place, "the other has ended", |status| status.instances.len() == 1);
    assert_eq!((find(&after, "a.1").process_id, after.supervisor.problem), (find(&before, "a.1").process_id, None));
    down(&place);
}

fn ignored_stop_signal_leads_to_kill() {
    let place = place();
    up(&place, &[process(&place, "a", STUBBORN, "stop = { grace = \"50 ms\" }")]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    until("it ignores signals", || !lines(&place.folder().join("deaf")).is_empty());
    down(&place);
    let events = std::fs::read_to_string(place.directory.events()).unwrap();
    assert!(events.contains("it did not end when it was asked to"), "{events}");
}

fn random_kills_start_nothing_twice(random: &mut Random) {
    let place = place();
    let processes = [
        process(
            &place,
            "a",
            STAY,
            "instances = 3\nrestart = { restarts_max = 100000, backoff_max = \"10 ms\", backoff_first = \"1 ms\" }",
        ),
        process(
            &place,
            "b",
            STAY,
            "after = [\"a\"]\nrestart = { restarts_max = 100000, backoff_max = \"10 ms\", backoff_first = \"1 ms\" }",
        ),
    ];
    up(&place, &processes);
    for _ in 0..60 {
        let victim: usize = random.pick(&[0, 1, 1, 2, 2, 3]);
        match victim {
            0 => place.running_as(RoleLock::Guardian).into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL)),
            1 => place.running_as(RoleLock::Supervisor).into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL)),
            2 => {
                let instance = random.pick(&["a.1", "a.2", "a.3", "b.1"]);
                if let gapless_supervisor::state_directory::Holder::Recorded { pidfd, .. } =
                    place.directory.instance(&name(instance)).holder().unwrap()
                {
                    let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
                }
            }
            _ => {
                kill_both(&place);
                up(&place, &processes);
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(30_000)));
    }
    until("all are ready in the end", || {
        // The last two victims may still have been dying.
        if [RoleLock::Guardian, RoleLock::Supervisor].into_iter().all(|role_lock| place.running_as(role_lock).is_none())
        {
            up(&place, &processes);
        }
        status(&place).is_some_and(|status| are_ready(&status, 4))
    });
    down(&place);
}
