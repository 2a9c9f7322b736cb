use super::floor::{answered_status, are_ready, down, find, pids, place, process, up, wait_for, write};
use super::instance_program::{OWN, ROLE, STAY};
use super::test_place::{TestPlace, lines};
use gapless_supervisor::control::protocol::SupervisorRequest;
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::fs::{FileType, Mode};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("changed_configuration_is_applied", changed_configuration_is_applied)
        .scenario("invalid_configuration_is_rejected", invalid_configuration_is_rejected)
        .scenario("special_files_are_rejected", special_files_are_rejected)
        .scenario("transient_failure_is_retried", transient_failure_is_retried)
        .scenario("reload_by_command", reload_by_command)
        .scenario("replaced_program_causes_a_reload", replaced_program_causes_a_reload)
        .scenario("slowly_written_program_is_awaited", slowly_written_program_is_awaited)
        .scenario("replaced_input_causes_a_reload", replaced_input_causes_a_reload)
        .scenario("change_while_down_is_noticed", change_while_down_is_noticed)
}

fn events(place: &TestPlace, what: &str) -> usize {
    lines(&place.directory.events()).iter().filter(|line| line.contains(what)).count()
}

fn changed_configuration_is_applied() {
    let place = place();
    let stays = process(&place, "stays", STAY, "");
    up(&place, &[stays.clone(), process(&place, "changes", STAY, "instances = 2"), process(&place, "goes", STAY, "")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 4));
    let changed = "instances = 2\nenvironment = { NEW = \"1\" }";
    let later = "environment = { NEW = \"1\" }\nreload = { file = false }";
    write(&place, &[stays, process(&place, "changes", STAY, changed), process(&place, "comes", STAY, later)]);
    let after = wait_for(&place, "the new file is in force", |status| {
        let has = |name: &str| status.instances.iter().any(|instance| instance.instance.process() == name);
        let is_other = |instance: &str| find(status, instance).process_id != find(&before, instance).process_id;
        !has("goes") && has("comes") && are_ready(status, 4) && is_other("changes.1") && is_other("changes.2")
    });
    assert_eq!(find(&after, "stays.1").process_id, find(&before, "stays.1").process_id);
    assert_eq!((after.supervisor.problem, events(&place, "file_taken")), (None, 1));
    down(&place);
}

fn invalid_configuration_is_rejected() {
    let place = place();
    let right = [process(&place, "a", STAY, "instances = 2")];
    up(&place, &right);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    write(&place, &[process(&place, "a", STAY, "instances = 0")]);
    let wrong = wait_for(&place, "the error is reported", |status| status.supervisor.problem.is_some());
    let problem = wrong.supervisor.problem.as_ref().unwrap();
    assert!(problem.contains("floor.toml:5: process.a.instances: 0 was found"), "{problem}");
    assert_eq!(pids(&wrong), pids(&before));
    assert_eq!(events(&place, "floor.toml:5"), 1, "it is reported once");
    super::test_place::kill(wrong.supervisor.supervisor_process_id.unwrap(), Signal::KILL);
    let again = wait_for(&place, "the next supervisor reports it", |status| {
        status.supervisor.supervisor_process_id != wrong.supervisor.supervisor_process_id
            && status.supervisor.problem.is_some()
    });
    assert_eq!(pids(&again), pids(&before));
    write(&place, &right);
    let after = wait_for(&place, "the problem is over", |status| status.supervisor.problem.is_none());
    assert_eq!(pids(&after), pids(&before));
    down(&place);
}

fn special_files_are_rejected() {
    let place = place();
    let right = [process(&place, "a", STAY, "")];
    up(&place, &right);
    let mut before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let file = place.folder().join("floor.toml");
    let kept = std::fs::read_to_string(&file).unwrap();
    let pipe = place.folder().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let long = place.folder().join("long");
    std::fs::write(&long, format!("{kept}{}", "# comment\n".repeat(900_000))).unwrap();
    for (other, expected) in [
        (pipe.as_path(), "no regular file"),
        (Path::new("/dev/zero"), "no regular file"),
        (long.as_path(), "more than 1 MiB"),
    ] {
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(other, &file).unwrap();
        let wrong = wait_for(&place, "the error is reported", |status| {
            status.supervisor.problem.as_ref().is_some_and(|problem| problem.contains(expected))
        });
        assert_eq!(wrong.supervisor.supervisor_process_id, before.supervisor.supervisor_process_id, "{expected}");
        super::test_place::kill(wrong.supervisor.supervisor_process_id.unwrap(), Signal::KILL);
        super::test_place::kill(find(&wrong, "a.1").process_id.unwrap(), Signal::KILL);
        before = wait_for(&place, "supervisor and instance are replaced", |status| {
            pids(status) != pids(&wrong)
                && are_ready(status, 1)
                && status.supervisor.supervisor_process_id != wrong.supervisor.supervisor_process_id
        });
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, &kept).unwrap();
        wait_for(&place, "the problem is over", |status| status.supervisor.problem.is_none());
    }
    down(&place);
}

fn transient_failure_is_retried() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let supervisor = before.supervisor.supervisor_process_id.unwrap();
    let hindrance = place.directory.path().join(format!("config-in-force.{supervisor}.new"));
    std::fs::create_dir(&hindrance).unwrap();
    write(&place, &[process(&place, "a", STAY, ""), process(&place, "b", STAY, "")]);
    wait_for(&place, "the error is reported", |status| {
        status.supervisor.problem.as_ref().is_some_and(|problem| problem.contains("Is a directory"))
    });
    std::fs::remove_dir(&hindrance).unwrap();
    let after = wait_for(&place, "the new configuration is in force", |status| are_ready(status, 2));
    assert_eq!((after.supervisor.problem, events(&place, "file_refused"), events(&place, "file_taken")), (None, 1, 1));
    assert_eq!(after.supervisor.supervisor_process_id, Some(supervisor));
    down(&place);
}

fn reload_by_command() {
    let place = place();
    let mut client = up(&place, &[process(&place, "a", STAY, "")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    write(&place, &[process(&place, "a", STAY, "nice = 1")]);
    let error = client.request(&SupervisorRequest::TakeFile).unwrap_err().to_string();
    assert!(error.contains("floor.toml:5: process.a.nice: unknown"), "{error}");
    assert!(answered_status(&place).supervisor.problem.is_some_and(|problem| problem.contains(&error)));
    write(&place, &[process(&place, "a", STAY, ""), process(&place, "b", STAY, "")]);
    client.request(&SupervisorRequest::TakeFile).unwrap();
    let after = wait_for(&place, "the other runs", |status| are_ready(status, 2));
    assert_eq!(find(&after, "a.1").process_id, find(&before, "a.1").process_id);
    assert_eq!(after.supervisor.problem, None);
    down(&place);
}

fn script(mark: &str) -> String {
    format!("#!/bin/sh\n# {mark}\nexec \"{}\" \"$@\"\n", std::env::current_exe().unwrap().display())
}

fn program_path(place: &TestPlace) -> PathBuf {
    place.folder().join("program")
}

fn put(path: &Path, text: &str) {
    let (text_path, new) = (path.with_extension("text"), path.with_extension("new"));
    std::fs::write(&text_path, text).unwrap();
    // A child forked by a concurrent scenario would hold this process's descriptor until it calls exec.
    assert!(Command::new("cp").args([&text_path, &new]).status().unwrap().success());
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn of_program(place: &TestPlace, more: &str) -> String {
    let (program, folder) = (program_path(place), place.folder());
    let words = [program.to_str().unwrap(), ROLE, folder.to_str().unwrap(), OWN, OWN, STAY];
    format!("[process.a]\ncommand = {words:?}\ninstances = 2\n{more}\n")
}

fn replaced_program_causes_a_reload() {
    let place = place();
    put(&program_path(&place), &script("first"));
    up(&place, &[of_program(&place, "reload = { program = true }"), process(&place, "b", STAY, "")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 3));
    put(&program_path(&place), &script("second"));
    let after = wait_for(&place, "both are replaced", |status| {
        let is_other = |instance: &str| find(status, instance).process_id != find(&before, instance).process_id;
        are_ready(status, 3) && is_other("a.1") && is_other("a.2")
    });
    assert_eq!(find(&after, "b.1").process_id, find(&before, "b.1").process_id);
    assert_eq!(events(&place, "program_replaced"), 1);
    assert_eq!(find(&after, "a.1").restarts + find(&after, "a.2").restarts, 0, "a reload is not a failure");
    down(&place);
}

fn slowly_written_program_is_awaited() {
    let place = place();
    put(&program_path(&place), &script("first"));
    up(&place, &[of_program(&place, "reload = { program = true }")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    until("both run", || place.starts().len() == 2);
    let text = script("second");
    std::fs::remove_file(program_path(&place)).unwrap();
    let mut slow = File::options().write(true).create_new(true).mode(0o755).open(program_path(&place)).unwrap();
    for piece in text.as_bytes().chunks(text.len() / 3 + 1) {
        slow.write_all(piece).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert_eq!(pids(&answered_status(&place)), pids(&before), "it is being written");
    }
    drop(slow);
    let after = wait_for(&place, "both are replaced", |status| {
        are_ready(status, 2) && pids(status).iter().all(|pid| !pids(&before).contains(pid))
    });
    assert_eq!(events(&place, "program_replaced"), 1);
    assert_eq!(find(&after, "a.1").restarts + find(&after, "a.2").restarts, 0, "a reload is not a failure");
    down(&place);
}

fn replaced_input_causes_a_reload() {
    let place = place();
    let input = place.folder().join("in");
    std::fs::write(&input, "first\n").unwrap();
    let reads = "[process.reads]\ncommand = [\"sh\", \"-c\", \"cat; echo read; exec sleep 300\"]\ninput = \"in\"\n\
                 ready = { line = \"read\" }\nreload = { input = true }\n";
    up(&place, &[reads.to_owned(), process(&place, "b", STAY, "")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let log = find(&before, "reads.1").log.clone().unwrap();
    assert_eq!(lines(&log), ["first", "read"]);
    std::fs::write(&input, "second\n").unwrap();
    let after = wait_for(&place, "it is replaced", |status| {
        find(status, "reads.1").process_id != find(&before, "reads.1").process_id && are_ready(status, 2)
    });
    assert_eq!(lines(&log), ["first", "read", "second", "read"]);
    assert_eq!(find(&after, "b.1").process_id, find(&before, "b.1").process_id);
    assert_eq!((events(&place, "input_replaced"), find(&after, "reads.1").restarts), (1, 0));
    std::fs::remove_file(&input).unwrap();
    super::test_place::kill(find(&after, "reads.1").process_id.unwrap(), Signal::KILL);
    let without = wait_for(&place, "it does not start", |status| {
        matches!(find(status, "reads.1").last_end, Some(InstanceEnd::NotStarted(_)))
    });
    let Some(InstanceEnd::NotStarted(reason)) = &find(&without, "reads.1").last_end else { unreachable!() };
    assert!(reason.contains("opening its input") && reason.contains("/in: No such file"), "{reason}");
    std::fs::write(&input, "third\n").unwrap();
    wait_for(&place, "it is back", |status| are_ready(status, 2));
    down(&place);
}

fn change_while_down_is_noticed() {
    let place = place();
    put(&program_path(&place), &script("first"));
    let processes = [of_program(&place, "reload = { program = true }")];
    up(&place, &processes);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    super::floor::kill_both(&place);
    put(&program_path(&place), &script("second"));
    up(&place, &processes);
    wait_for(&place, "both are replaced", |status| {
        are_ready(status, 2) && pids(status).iter().all(|pid| !pids(&before).contains(pid))
    });
    until("the event is recorded", || events(&place, "program_replaced") == 1);
    down(&place);
}
