use super::instance_program::{LEAVE, STAY};
use super::minimal_supervisor::WANTED;
use super::test_place::{TestPlace, descriptors, ended, kill, lines, name, next_message, no_zombies, roles};
use gapless_supervisor::EndStatus;
use gapless_supervisor::guardian::GuardianClient;
use gapless_supervisor::guardian::protocol::{GuardianMessage, GuardianRequest};
use gapless_supervisor::role::ProcessRole;
use gapless_supervisor::state_directory::{Holder, RoleLock};
use gapless_testkit::process::Process;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("ends_are_kept_until_acknowledged", ends_are_kept_until_acknowledged)
        .scenario("repeated_start_runs_once", repeated_start_runs_once)
        .scenario("killed_supervisor_is_restarted", killed_supervisor_is_restarted)
        .scenario("foreign_supervisor_is_watched", foreign_supervisor_is_watched)
        .scenario("failing_supervisors_back_off", failing_supervisors_back_off)
        .scenario("there_is_one_guardian", there_is_one_guardian)
        .scenario("children_survive_the_guardian", children_survive_the_guardian)
        .scenario("forked_descendant_is_found", forked_descendant_is_found)
        .scenario("shutdown_waits_for_the_last_child", shutdown_waits_for_the_last_child)
        .scenario("sigterm_is_sent_to_each_supervisor", sigterm_is_sent_to_each_supervisor)
        .scenario("guardian_without_lock_file_ends", guardian_without_lock_file_ends)
        .scenario("inherited_descriptors_are_closed", inherited_descriptors_are_closed)
}

/// Without the lock file another guardian may start; both would otherwise run forever.
fn guardian_without_lock_file_ends() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let instance = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    std::fs::remove_file(place.directory.path().join("guardian.lock")).unwrap();
    drop(client);
    place.start_guardian();
    assert_ne!(place.wait_for_role(RoleLock::Guardian), guardian, "another guardian has started");
    let mut other = until_some("another guardian", || {
        Some(place.connect()).filter(|other| other.guardian_process_id() != guardian)
    });
    assert!(is_there(guardian), "it still waits for its children");
    kill(instance, Signal::KILL);
    until("the first guardian has ended", || !is_there(guardian));
    let second = place.start(&mut other, "b.1", 1, STAY);
    assert_eq!(place.wait_for_start("b.1", 1), second);
}

fn is_there(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn ends_are_kept_until_acknowledged() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let pid = place.start(&mut client, "a.1", 1, "exit:7");
    assert_eq!(ended(&mut client, "a.1", 1), EndStatus::Exited(7));
    let killed = place.start(&mut client, "b.1", 1, STAY);
    place.wait_for_start("b.1", 1);
    drop(client);
    kill(killed, Signal::USR1);
    until("it is dead", || matches!(place.directory.instance(&name("b.1")).holder().unwrap(), Holder::Free { .. }));

    let mut client = place.connect();
    assert_eq!(client.guardian_process_id(), guardian);
    let children = until_some("both have ended", || {
        Some(client.list(PATIENCE).unwrap()).filter(|all| all.iter().all(|child| child.ended.is_some()))
    });
    let signaled = EndStatus::Signaled { signal: 10, has_core: false };
    let found = children.iter().map(|child| (child.instance.to_string(), child.process_id, child.ended.unwrap()));
    let expected = [("a.1".to_owned(), pid, EndStatus::Exited(7)), ("b.1".to_owned(), killed, signaled)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    client.ask(&GuardianRequest::Forget { instance: name("a.1"), incarnation: 1 }).unwrap();
    client.ask(&GuardianRequest::Forget { instance: name("never.1"), incarnation: 1 }).unwrap();
    let left = client.list(PATIENCE).unwrap();
    assert_eq!(left.iter().map(|child| child.instance.to_string()).collect::<Vec<_>>(), ["b.1"]);
    no_zombies(guardian);
}

fn repeated_start_runs_once() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let pid = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    drop(client);
    let mut client = place.connect();
    assert_eq!(place.start(&mut client, "a.1", 1, STAY), pid);
    kill(pid, Signal::KILL);
    let signaled = EndStatus::Signaled { signal: 9, has_core: false };
    assert_eq!(ended(&mut client, "a.1", 1), signaled);
    assert_eq!(place.start(&mut client, "a.1", 1, STAY), pid);
    assert_eq!(ended(&mut client, "a.1", 1), signaled, "the end is reported again");
    place.check_starts();
    assert_eq!(place.starts().len(), 1);
}

fn killed_supervisor_is_restarted() {
    let place = TestPlace::new();
    std::fs::write(place.folder().join(WANTED), "a.1\na.2\n").unwrap();
    place.start_guardian();
    let guardian = place.wait_for_role(RoleLock::Guardian);
    let instances = ["a.1", "a.2"].map(|instance| place.wait_for_start(instance, 1));
    let mut before = place.wait_for_role(RoleLock::Supervisor);
    let open = descriptors(guardian);
    for _ in 0..4 {
        kill(before, Signal::KILL);
        before = until_some("there is another", || place.running_as(RoleLock::Supervisor).filter(|pid| *pid != before));
    }
    assert_eq!(place.wait_for_role(RoleLock::Guardian), guardian);
    for (instance, pid) in [("a.1", instances[0]), ("a.2", instances[1])] {
        let Holder::Recorded { record, .. } = place.directory.instance(&name(instance)).holder().unwrap() else {
            panic!("{instance}")
        };
        assert_eq!(record.process.process_id, pid, "the instance is unaffected");
    }
    kill(instances[0], Signal::KILL);
    place.wait_for_start("a.1", 2);
    place.check_starts();
    no_zombies(guardian);
    until("its descriptors are as before", || descriptors(guardian) == open);
}

fn foreign_supervisor_is_watched() {
    let place = TestPlace::new();
    std::fs::write(place.folder().join(WANTED), "a.1\n").unwrap();
    let role = ProcessRole::Supervisor { directory: place.directory.path().to_owned() };
    let mut command = roles().command(&role);
    let mut supervisor = Process::start_as(command.stderr(Stdio::null()));
    place.wait_for_start("a.1", 1);
    let guardian = place.wait_for_role(RoleLock::Guardian);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(lines(&place.folder().join("supervisors")).len(), 1, "there is one already");
    supervisor.kill();
    let second = until_some("another is started", || place.running_as(RoleLock::Supervisor));
    assert!(second != supervisor.pid().as_raw_pid() as u32);
    kill(guardian, Signal::KILL);
    until("there is another", || place.running_as(RoleLock::Guardian).is_some_and(|pid| pid != guardian));
    place.check_starts();
    assert_eq!(place.starts().len(), 1);
}

fn failing_supervisors_back_off() {
    let place = TestPlace::without_supervisor();
    let begun = Instant::now();
    let _client = place.connect();
    let count = || lines(&place.folder().join("supervisors")).len();
    until("the fifth supervisor starts", || count() == 5);
    // Backoff of 50 + 100 + 200 + 400 ms.
    assert!(begun.elapsed() >= Duration::from_millis(750), "{:?}", begun.elapsed());
}

fn there_is_one_guardian() {
    let place = TestPlace::without_supervisor();
    let clients = std::thread::scope(|scope| {
        let threads = (0..6).map(|_| scope.spawn(|| place.connect().guardian_process_id())).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(clients.iter().all(|pid| *pid == clients[0]), "{clients:?}");
    let role = ProcessRole::Guardian { directory: place.directory.path().to_owned() };
    let status = roles().command(&role).status().unwrap();
    assert_eq!(status.code(), Some(75));
    assert_eq!(place.running_as(RoleLock::Guardian), Some(clients[0]));
}

fn children_survive_the_guardian() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let pid = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    kill(client.guardian_process_id(), Signal::KILL);
    let error = until_some("the connection is closed", || client.try_next().err());
    assert!(error.to_string().contains("the guardian of "), "{error}");
    let mut other = place.connect();
    assert!(other.guardian_process_id() != client.guardian_process_id());
    assert_eq!(other.list(PATIENCE).unwrap(), []);
    let instance = place.directory.instance(&name("a.1"));
    let Holder::Recorded { record, pidfd } = instance.holder().unwrap() else { panic!("it lives") };
    assert_eq!((record.process.process_id, record.incarnation), (pid, 1));
    place.write_plan(&name("a.1"), 2, STAY);
    other.ask(&GuardianRequest::Start { instance: name("a.1"), incarnation: 2 }).unwrap();
    assert_eq!(ended(&mut other, "a.1", 2), EndStatus::Exited(75));
    assert!(instance.read_launch_failure(2).unwrap().unwrap().already_runs);
    kill(pid, Signal::KILL);
    until("its death is seen", || gapless_supervisor::state_directory::is_dead(&pidfd));
    place.start(&mut other, "a.1", 3, STAY);
    place.wait_for_start("a.1", 3);
    place.check_starts();
}

fn forked_descendant_is_found() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    place.start(&mut client, "a.1", 1, LEAVE);
    assert_eq!(ended(&mut client, "a.1", 1), EndStatus::Exited(3));
    let left: u32 = lines(&place.folder().join("left"))[0].parse().unwrap();
    let instance = place.directory.instance(&name("a.1"));
    let Holder::Descendants(orphans) = instance.holder().unwrap() else { panic!("a descendant holds the lock") };
    assert_eq!(orphans.iter().map(|orphan| orphan.process_id).collect::<Vec<_>>(), [left]);
    place.start(&mut client, "a.1", 2, STAY);
    assert_eq!(ended(&mut client, "a.1", 2), EndStatus::Exited(75));
    rustix::process::pidfd_send_signal(&orphans[0].pidfd, Signal::KILL).unwrap();
    assert_eq!(
        next_message(
            &mut client,
            |told| matches!(told, GuardianMessage::OrphanEnded { process_id } if *process_id == left)
        ),
        GuardianMessage::OrphanEnded { process_id: left }
    );
    assert!(matches!(instance.holder().unwrap(), Holder::Free { .. }));
    place.start(&mut client, "a.1", 3, STAY);
    place.wait_for_start("a.1", 3);
    no_zombies(guardian);
}

fn shutdown_waits_for_the_last_child() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let pid = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    client.ask(&GuardianRequest::End).unwrap();
    client.list(PATIENCE).unwrap();
    drop(client);
    let mut client = place.connect();
    let second = place.start(&mut client, "b.1", 1, "exit:0");
    assert!(second > 0 && client.guardian_process_id() == guardian);
    assert_eq!(ended(&mut client, "b.1", 1), EndStatus::Exited(0));

    client.ask(&GuardianRequest::End).unwrap();
    place.write_plan(&name("b.1"), 2, STAY);
    client.ask(&GuardianRequest::Start { instance: name("b.1"), incarnation: 2 }).unwrap();
    let refused = next_message(&mut client, |told| matches!(told, GuardianMessage::NotStarted { .. }));
    assert!(matches!(&refused, GuardianMessage::NotStarted { reason, .. } if reason.contains("to end")), "{refused:?}");
    kill(pid, Signal::TERM);
    let status = ended(&mut client, "a.1", 1);
    assert_eq!(status, EndStatus::Signaled { signal: 15, has_core: false });
    until("it has ended", || place.running_as(RoleLock::Guardian).is_none());
    assert!(client.try_next().is_err());
    assert!(GuardianClient::connect(&place.directory, PATIENCE).unwrap().is_none());
}

fn sigterm_is_sent_to_each_supervisor() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    for harmless in [Signal::HUP, Signal::INT] {
        kill(guardian, harmless);
    }
    assert_eq!(client.list(PATIENCE).unwrap(), []);
    kill(guardian, Signal::TERM);
    assert_eq!(next_message(&mut client, |told| *told == GuardianMessage::EndWanted), GuardianMessage::EndWanted);
    drop(client);
    let mut client = place.connect();
    assert_eq!(client.wait(PATIENCE).unwrap(), Some(GuardianMessage::EndWanted), "also sent to the next supervisor");
    client.ask(&GuardianRequest::End).unwrap();
    until("it has ended", || place.running_as(RoleLock::Guardian).is_none());
}

fn inherited_descriptors_are_closed() {
    let place = TestPlace::without_supervisor();
    let leaked = std::fs::File::create(place.folder().join("leaked")).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let mut client = place.connect();
    let pid = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    for process in [client.guardian_process_id(), pid] {
        let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
        let open = open.map(|entry| std::fs::read_link(entry.path()).unwrap()).collect::<Vec<_>>();
        assert!(!open.iter().any(|path| path.ends_with("leaked")), "{open:?}");
    }
    let own = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let own = own.map(|entry| std::fs::read_link(entry.path()).unwrap()).filter(|path| path.ends_with("lock")).count();
    assert_eq!(own, 1, "exactly one descriptor of its lock");
}
