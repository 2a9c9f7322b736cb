//! A supervisor answers its own user, and members of the group named by its file. Skipped, with a note, unless run by
//! root.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::{ProgramOutput, gapless, run};
use gapless_testkit::wait::until;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

const NOBODY: u32 = 65534;
const WORKER: &str = "[process.worker]\ncommand = [\"sh\", \"-c\", \"echo here I am; exec sleep 300\"]\n\
                      ready = { line = \"here I\" }\nsecrets = [\"TOKEN\"]\nenvironment = { TOKEN = \"hunter2\" }\n";

/// Probably no process of this machine has it.
fn group() -> Option<(String, u32)> {
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    let of = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
    };
    groups.lines().filter_map(of).find(|(_, id): &(String, u32)| *id != 0 && *id != NOBODY)
}

/// Others may enter the folder. The error is the reason for skipping.
fn floor() -> Result<(Floor, String, u32), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can become another user".to_owned());
    }
    let (name, id) = group().ok_or("this machine has no group")?;
    let floor = Floor::new(WORKER);
    std::fs::set_permissions(floor.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let trial = gapless(floor.path(), &["--version"]).uid(NOBODY).gid(id).output();
    match trial {
        Ok(ended) if ended.status.success() => Ok((floor, name, id)),
        other => Err(format!("another user cannot run the program: {other:?}")),
    }
}

fn as_member(floor: &Floor, group: u32, words: &[&str]) -> ProgramOutput {
    gapless(floor.path(), words).uid(NOBODY).gid(group).output().unwrap().into()
}

fn write(floor: &Floor, supervisor: &str) {
    std::fs::write(floor.path().join("floor.toml"), format!("[supervisor]\n{supervisor}\n{WORKER}")).unwrap();
}

fn access(floor: &Floor, name: &str) -> (u32, u32) {
    let found = std::fs::metadata(floor.path().join("floor.state").join(name)).unwrap();
    (found.mode() & 0o777, found.gid())
}

#[test]
fn group_has_access_while_named() {
    let (floor, group, id) = match floor() {
        Ok(found) => found,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    run(floor.path(), &["up", "floor.toml"]).good();
    assert_eq!((access(&floor, "").0, access(&floor, "control.socket").0), (0o700, 0o600));
    for words in [&["ps"][..], &["logs"], &["events"], &["stop", "worker"], &["down"]] {
        let words = [words, &["--at", "floor.state"]].concat();
        let said = as_member(&floor, id, &words).error(1);
        assert!(said.contains("ermission denied"), "{words:?}: {said}");
    }
    let said = as_member(&floor, id, &["ps"]).error(2);
    assert!(said.contains("that can be read (./floor.state: Permission denied"), "{said}");

    write(&floor, &format!("group = {group:?}"));
    run(floor.path(), &["reload"]).good();
    assert_eq!((access(&floor, ""), access(&floor, "control.socket")), ((0o750, id), (0o660, id)));
    assert_eq!((access(&floor, "logs"), access(&floor, "logs/worker.1.log")), ((0o750, id), (0o640, id)));
    for private in ["config-in-force", "memory", "guardian.socket", "instances/worker.1/launch"] {
        assert_eq!(access(&floor, private).0, 0o600, "{private}");
    }
    let shown = as_member(&floor, id, &["ps"]).shown();
    assert!(shown.contains("worker.1") && shown.contains("ready"), "{shown}");
    assert_eq!(as_member(&floor, id, &["logs", "worker"]).good(), "here I am\n");
    let said = as_member(&floor, id, &["logs", "nobody"]).error(2);
    assert!(said.contains("worker are"), "{said}");
    let events = as_member(&floor, id, &["events"]).good();
    assert!(events.contains("worker.1: ready"), "{events}");
    for words in [&["stop", "worker"][..], &["down"], &["reload"]] {
        let said = as_member(&floor, id, words).error(1);
        assert!(said.contains("allows you to look only"), "{words:?}: {said}");
    }
    let said = as_member(&floor, NOBODY, &["ps", "--at", "floor.state"]).error(1);
    assert!(said.contains("ermission denied"), "of another group: {said}");
    let everything = format!("{shown}{events}{}", as_member(&floor, id, &["ps", "--json"]).shown());
    assert!(!everything.contains("hunter2"), "{everything}");

    write(&floor, &format!("group = {group:?}\nsteer = true"));
    run(floor.path(), &["reload"]).good();
    as_member(&floor, id, &["restart", "worker"]).good();
    until("it is back", || floor.states() == [("worker.1".to_owned(), "ready".to_owned())]);
    assert_eq!(as_member(&floor, id, &["logs"]).good(), "here I am\nhere I am\n");
    let said = as_member(&floor, id, &["up", "floor.toml"]).error(1);
    assert!(said.contains("floor.state"), "only its user puts a file in force: {said}");

    write(&floor, "");
    run(floor.path(), &["reload"]).good();
    assert_eq!((access(&floor, "").0, access(&floor, "control.socket").0), (0o700, 0o600));
    assert!(as_member(&floor, id, &["stop", "worker", "--at", "floor.state"]).error(1).contains("ermission denied"));

    write(&floor, &format!("group = {group:?}\nsteer = true"));
    run(floor.path(), &["reload"]).good();
    assert_eq!(as_member(&floor, id, &["down"]).good(), "all has ended\n");
    assert!(!Path::new(&floor.path().join("floor.state/config-in-force")).exists());
}

#[test]
fn ps_explains_missing_control_groups() {
    let floor = Floor::new(WORKER);
    run(floor.path(), &["up", "floor.toml"]).good();
    let status = floor.status();
    let group = std::fs::read_to_string(format!("/proc/{}/cgroup", status["instances"][0]["process_id"])).unwrap();
    let has_own = group.lines().any(|line| line.starts_with("0::") && line.ends_with("/worker.1"));
    let said = &status["without_control_groups"];
    assert_eq!((said.is_null(), said.is_string()), (has_own, !has_own), "{said} and {group}");

    let (floor, _, id) = match self::floor() {
        Ok(found) => found,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    std::os::unix::fs::chown(floor.path(), Some(NOBODY), None).unwrap();
    as_member(&floor, id, &["up", "floor.toml"]).good();
    let status: serde_json::Value = serde_json::from_str(&as_member(&floor, id, &["ps", "--json"]).shown()).unwrap();
    let said = status["without_control_groups"].as_str();
    let is_reason = |said: &str| said.contains("cgroup") || said.contains("control groups");
    assert!(said.is_some_and(is_reason), "{status}");
    as_member(&floor, id, &["down"]).good();
    // Another user would wait for a supervisor that may just be starting.
    std::fs::remove_dir_all(floor.path().join("floor.state")).unwrap();
}

#[test]
fn secrets_stand_in_no_error() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in ["TOKEN = \"hunter2", "TOKEN = hunter2", "TOKEN = [\"hunter2\"]"] {
        let text =
            format!("[process.a]\ncommand = [\"true\"]\nsecrets = [\"TOKEN\"]\n[process.a.environment]\n{wrong}\n");
        std::fs::write(folder.path().join("floor.toml"), text).unwrap();
        for command in ["validate", "up"] {
            let said = run(folder.path(), &[command, "floor.toml"]).error(1);
            assert!(said.contains("floor.toml:5") && !said.contains("hunter2"), "{said}");
        }
    }
}
