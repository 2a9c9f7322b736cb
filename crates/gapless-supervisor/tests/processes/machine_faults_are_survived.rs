use super::floor::{are_ready, down, find, is_alive, pids, place, process, up, wait_for};
use super::instance_program::STAY;
use super::test_place::{lines, name};
use gapless_supervisor::EndStatus;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::control::status_of_files;
use gapless_supervisor::state_directory::{Holder, RoleLock};
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{until, until_some};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use std::os::unix::fs::FileExt;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("failed_fork_is_retried", failed_fork_is_retried)
        .scenario("copied_directory_is_independent", copied_directory_is_independent)
        .scenario("failed_probe_kills_no_instance", failed_probe_kills_no_instance)
        .scenario("daemonised_child_is_found", daemonised_child_is_found)
        .scenario("ages_ignore_the_wall_clock", ages_ignore_the_wall_clock)
}

fn failed_fork_is_retried() {
    let place = place();
    let restart = "restart = { restarts_max = 1 }";
    let mut client = up(&place, &[process(&place, "a", STAY, restart), process(&place, "b", STAY, "")]);
    let before = wait_for(&place, "both are ready", |status| are_ready(status, 2));
    // RLIMIT_NPROC does not apply to root.
    let guardian = Pid::from_raw(place.wait_for_role(RoleLock::Guardian) as i32);
    let lowered = Rlimit { current: Some(3), ..getrlimit(Resource::Nofile) };
    let old = prlimit(guardian, Resource::Nofile, lowered).unwrap();
    client.change(gapless_supervisor::supervision::event::OperatorCommand::Restart(vec!["a".to_owned()])).unwrap();
    let held = wait_for(
        &place,
        "it is not started",
        |status| matches!(&find(status, "a.1").last_end, Some(InstanceEnd::Shortage(reason)) if reason.contains("starting a launcher")),
    );
    assert_eq!(find(&held, "b.1").process_id, find(&before, "b.1").process_id);
    prlimit(guardian, Resource::Nofile, old).unwrap();
    let after = wait_for(&place, "it runs", |status| are_ready(status, 2));
    assert_eq!([find(&after, "a.1").restarts, find(&after, "b.1").restarts], [0, 0]);
    down(&place);
}

fn copied_directory_is_independent() {
    let (first, second) = (place(), place());
    up(&first, &[process(&first, "a", STAY, "")]);
    let before = wait_for(&first, "it is ready", |status| are_ready(status, 1));
    let all = format!("{}/.", first.directory.path().display());
    let copied = std::process::Command::new("cp").args(["-a", &all]).arg(second.directory.path()).status();
    assert!(copied.unwrap().success());
    up(&second, &[process(&second, "a", STAY, "")]);
    let other = wait_for(&second, "another is ready", |status| are_ready(status, 1));
    assert_ne!(pids(&other), pids(&before));
    assert_ne!(other.supervisor.guardian_process_id, before.supervisor.guardian_process_id);
    down(&second);
    let after = wait_for(&first, "it still runs", |status| are_ready(status, 1));
    assert_eq!((pids(&after), after.supervisor), (pids(&before), before.supervisor));
    down(&first);
}

fn failed_probe_kills_no_instance() {
    let place = place();
    let go = place.folder().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.02; done; echo here; exec sleep 300", go.display());
    let ready = "ready = { line = \"here\" }\nready_within = \"500 ms\"";
    let instance = format!("[process.a]\ncommand = {:?}\n{ready}\n", ["sh", "-c", &script]);
    std::fs::write(&go, "").unwrap();
    let mut client = up(&place, &[instance]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    std::fs::remove_file(&go).unwrap();
    super::test_place::kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    let begun = until_some("another begins", || {
        let status = client.status().unwrap();
        let process = find(&status, "a.1").process_id.filter(|pid| find(&before, "a.1").process_id != Some(*pid))?;
        (find(&status, "a.1").state == InstanceCondition::Starting).then_some(process)
    });
    let supervisor = before.supervisor.supervisor_process_id.unwrap();
    let open: Vec<u64> = descriptor_numbers(supervisor);
    let free = (0..).find(|number| !open.contains(number)).unwrap();
    let supervisor = Pid::from_raw(supervisor as i32);
    let old =
        prlimit(supervisor, Resource::Nofile, Rlimit { current: Some(free), ..getrlimit(Resource::Nofile) }).unwrap();
    let blind = until_some("the problem lasts longer than the readiness timeout", || {
        let status = client.status().unwrap();
        let says = status.supervisor.problem.as_ref().is_some_and(|problem| problem.contains("Too many open files"));
        (says && find(&status, "a.1").since_ms > 1_000).then_some(status)
    });
    assert_eq!((find(&blind, "a.1").state, find(&blind, "a.1").process_id), (InstanceCondition::Starting, Some(begun)));
    std::fs::write(&go, "").unwrap();
    prlimit(supervisor, Resource::Nofile, old).unwrap();
    let after = wait_for(&place, "it is ready, and the problem is over", |status| {
        are_ready(status, 1) && status.supervisor.problem.is_none()
    });
    assert_eq!((find(&after, "a.1").process_id, find(&after, "a.1").restarts), (Some(begun), 1));
    down(&place);
}

fn descriptor_numbers(pid: u32) -> Vec<u64> {
    let listed = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    listed.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

fn daemonised_child_is_found() {
    let place = place();
    let away = place.folder().join("away");
    let away_path = away.display();
    let script = format!(
        "setsid sh -c 'echo $$ > {away_path}; exec sleep 300' & until [ -s {away_path} ]; do sleep 0.02; done; exit 0"
    );
    up(&place, &[format!("[process.a]\ncommand = {:?}\nonce = true\n", ["sh", "-c", &script])]);
    let status = wait_for(&place, "it is done", |status| find(status, "a.1").state == InstanceCondition::Done);
    assert_eq!(find(&status, "a.1").last_end, Some(InstanceEnd::Status(EndStatus::Exited(0))));
    let pid: u32 = lines(&away)[0].parse().unwrap();
    until("the daemonised child is dead", || !is_alive(pid));
    assert!(matches!(place.directory.instance(&name("a.1")).holder().unwrap(), Holder::Free { .. }));
    down(&place);
}

fn ages_ignore_the_wall_clock() {
    let place = place();
    let processes = [process(&place, "a", STAY, "")];
    up(&place, &processes);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    super::floor::kill_both(&place);
    let path = place.directory.instance(&name("a.1")).path().join("lock");
    for unix_time_ms in [9_000_000_000_000_u64, 1] {
        let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        record["unix_time_ms"] = unix_time_ms.into();
        let mut text = serde_json::to_vec(&record).unwrap();
        text.resize(512, b' ');
        std::fs::File::options().write(true).open(&path).unwrap().write_all_at(&text, 0).unwrap();
        let status = status_of_files(&place.directory).unwrap();
        let instance = find(&status, "a.1");
        assert_eq!(instance.state, InstanceCondition::Unwatched);
        assert!(instance.since_ms < 3_600_000, "{instance:?}");
    }
    up(&place, &processes);
    let status = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    assert!(find(&status, "a.1").since_ms < 3_600_000);
    down(&place);
}
