//! Runs as a service of systemd, and as process 1 of a container: SIGHUP reads the file again, SIGTERM ends everything,
//! and its own death stops nothing.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::gapless;
use gapless_testkit::wait::{until, until_some};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const WORKER: &str = "command = [\"sh\", \"-c\", \"env; exec sleep 300\"]\nready = { line = \"GAPLESS_INSTANCE\" }\n";

struct ForegroundProcess(Child);

impl ForegroundProcess {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn ended(mut self) -> Option<i32> {
        until_some("it has ended", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for ForegroundProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct FakeServiceManager(UnixDatagram);

impl FakeServiceManager {
    fn new(floor: &Floor) -> Self {
        let socket = UnixDatagram::bind(floor.path().join("manager")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self(socket)
    }

    fn start(&self, floor: &Floor) -> ForegroundProcess {
        let mut command = gapless(floor.path(), &["up", "--foreground", "floor.toml"]);
        command.env("NOTIFY_SOCKET", floor.path().join("manager")).env("WATCHDOG_USEC", "50000");
        command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1").stdout(Stdio::null());
        command.stderr(std::fs::File::options().append(true).create(true).open(floor.path().join("notes")).unwrap());
        ForegroundProcess(command.spawn().unwrap())
    }

    fn hear(&self, last: &str) -> Vec<String> {
        let mut heard = Vec::new();
        until(&format!("{last} is told"), || {
            let mut bytes = [0; 4096];
            while let Ok(count) = self.0.recv(&mut bytes) {
                let message = String::from_utf8_lossy(&bytes[..count]).into_owned();
                let is_last = message.starts_with(last);
                if last == "WATCHDOG=1" || message != "WATCHDOG=1" {
                    heard.push(message);
                }
                if is_last {
                    return true;
                }
            }
            false
        });
        heard
    }
}

fn ready(floor: &Floor, expected: &[&str]) -> bool {
    let states = floor.states();
    states.iter().map(|(instance, _)| instance.as_str()).eq(expected.iter().copied())
        && states.iter().all(|(_, state)| state == "ready")
}

fn pids(floor: &Floor) -> Vec<String> {
    floor.instances().iter().map(|instance| instance["process_id"].to_string()).collect()
}

#[test]
fn service_manager_sees_progress() {
    let floor = Floor::new(&format!("[process.first]\n{WORKER}[process.second]\n{WORKER}after = [\"first\"]\n"));
    let manager = FakeServiceManager::new(&floor);
    let running = manager.start(&floor);
    let heard = manager.hear("READY=1");
    assert!(heard.contains(&"STATUS=2 instances are up".to_owned()), "{heard:?}");
    assert!(ready(&floor, &["first.1", "second.1"]), "it says so when all are");
    for _ in 0..3 {
        manager.hear("WATCHDOG=1");
    }

    // Variables of the service must not reach other processes.
    let log = std::fs::read_to_string(floor.path().join("floor.state/logs/first.1.log")).unwrap();
    let guardian = std::fs::read(format!("/proc/{}/environ", floor.status()["guardian_process_id"])).unwrap();
    let guardian = String::from_utf8_lossy(&guardian).into_owned();
    for name in ["WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID"] {
        assert!(!log.contains(name) && !guardian.contains(name), "{name} is inherited: {log} {guardian}");
    }
    assert!(!guardian.contains("NOTIFY_SOCKET") && log.contains("floor.state/notify/socket"), "{log} {guardian}");

    let before = std::fs::read_to_string(floor.path().join("floor.toml")).unwrap();
    std::fs::write(floor.path().join("floor.toml"), format!("{before}wrong = 1\n")).unwrap();
    running.signal(Signal::HUP);
    let heard = manager.hear("READY=1");
    assert!(heard[0].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{heard:?}");
    let notes = std::fs::read_to_string(floor.path().join("notes")).unwrap();
    assert!(notes.contains("wrong"), "{notes}");
    std::fs::write(floor.path().join("floor.toml"), format!("{before}[process.third]\n{WORKER}")).unwrap();
    running.signal(Signal::HUP);
    let heard = manager.hear("READY=1");
    assert!(heard[0].starts_with("RELOADING=1\n") && ready(&floor, &["first.1", "second.1", "third.1"]), "{heard:?}");

    let before = pids(&floor);
    running.signal(Signal::KILL);
    assert_eq!(running.ended(), None);
    let running = manager.start(&floor);
    manager.hear("READY=1");
    assert_eq!(pids(&floor), before);

    running.signal(Signal::TERM);
    manager.hear("STOPPING=1");
    assert_eq!(running.ended(), Some(0));
    assert!(before.iter().all(|pid| !Path::new("/proc").join(pid).exists()), "everything has ended");
}

#[test]
fn foreign_end_and_death_are_noticed() {
    let floor = Floor::new(&format!("[process.first]\n{WORKER}"));
    let manager = FakeServiceManager::new(&floor);
    let running = manager.start(&floor);
    manager.hear("READY=1");
    let before = pids(&floor);
    let both = ["supervisor_process_id", "guardian_process_id"].map(|name| floor.status()[name].clone());
    for pid in &both {
        let pid = Pid::from_raw(pid.as_i64().unwrap() as i32).unwrap();
        // May have been replaced before it is killed.
        kill_process(pid, Signal::KILL).unwrap();
    }
    until("it has taken over", || {
        let status = floor.status();
        let now = ["supervisor_process_id", "guardian_process_id"].map(|name| status[name].clone());
        now.iter().zip(&both).all(|(now, before)| now.is_number() && now != before)
    });
    assert_eq!(pids(&floor), before);
    crate::program::run(floor.path(), &["down"]).good();
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn invalid_environment_is_named() {
    let floor = Floor::new("[process.first]\ncommand = [\"true\"]\nafter = [\"nobody\"]\n");
    let mut command = gapless(floor.path(), &["up", "--foreground", "floor.toml"]);
    let ended = command.env("NOTIFY_SOCKET", "not/absolute").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("note: NOTIFY_SOCKET is \"not/absolute\"") && said.contains("is no process of this"),
        "{said}"
    );
}

/// The command is process 1 of the namespace, which ends with it.
const UNSHARE: [&str; 8] =
    ["--user", "--map-root-user", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--"];

fn processes() -> Vec<(u32, u32, String)> {
    let of = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?.to_owned();
        Some((pid, fields.next()?.parse().ok()?, state))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

#[test]
fn ps_needs_no_proc() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("floor.toml"), "[process.a]\ncommand = [\"sleep\", \"9\"]\n").unwrap();
    std::fs::create_dir_all(folder.path().join("floor.state/instances")).unwrap();
    let unmounted = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command.args([&format!("mount -t tmpfs none /proc && {script}"), env!("CARGO_BIN_EXE_gapless")]);
        command.current_dir(folder.path()).output()
    };
    let trial = unmounted("true");
    if !trial.as_ref().is_ok_and(|ended| ended.status.success()) {
        println!("SKIPPED: namespaces of mounts cannot be made with unshare: {trial:?}");
        return;
    }
    let ended = unmounted("exec \"$0\" ps --at floor.toml").unwrap();
    let (out, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.code() == Some(3) && out.contains("no file is in force"), "{out}{said}");
}

#[test]
fn process_1_reaps_reloads_and_ends() {
    let trial = Command::new("unshare").args(UNSHARE).arg("true").output();
    if !trial.as_ref().is_ok_and(|ended| ended.status.success()) {
        println!("SKIPPED: namespaces of processes cannot be made with unshare: {trial:?}");
        return;
    }
    // An instance's parent is its guardian: killing it leaves all instances to process 1.
    let killer = "[process.killer]\ncommand = [\"sh\", \"-c\", \"kill -9 $PPID; exec sleep 0.1\"]\nrestart = { policy = \"never\" }\n";
    let stays = format!("[process.first]\n{WORKER}");
    let floor = Floor::new(&stays);
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args([env!("CARGO_BIN_EXE_gapless"), "up", "--foreground", "floor.toml"]);
    let outside = ForegroundProcess(command.current_dir(floor.path()).stdin(Stdio::null()).spawn().unwrap());
    until("it is ready", || floor.path().join("floor.state/control.socket").exists() && ready(&floor, &["first.1"]));
    let children = |parent: u32| processes().into_iter().filter(move |process| process.1 == parent);
    let first = children(outside.0.id()).next().unwrap().0;
    let status = floor.status();
    let guardian = status["guardian_process_id"].clone();

    std::fs::write(floor.path().join("floor.toml"), format!("{stays}{killer}")).unwrap();
    let pid = Pid::from_raw(first as i32).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    until("it is over, and another guardian is there", || {
        let status = floor.status();
        status["guardian_process_id"].is_number()
            && status["guardian_process_id"] != guardian
            && floor.states().iter().map(|(_, state)| state.as_str()).eq(["ready", "failed"])
    });
    until("no zombie is left", || children(first).all(|(_, _, state)| state != "Z"));
    let instances: BTreeSet<String> =
        status["instances"].as_array().unwrap().iter().map(|instance| instance["process_id"].to_string()).collect();
    assert!(
        floor.instances().iter().any(|instance| instances.contains(&instance["process_id"].to_string())),
        "the instance has stayed"
    );

    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(outside.ended(), Some(0));
    assert!(!floor.path().join("floor.state/config-in-force").exists(), "everything was ended, and in order");
}

#[test]
fn guide_unit_file_is_valid() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/gapless.service");
    let text = std::fs::read_to_string(unit).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("gapless.service");
    std::fs::write(&written, text.replace("/usr/local/bin/gapless", env!("CARGO_BIN_EXE_gapless"))).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&written).output() {
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            let about_it: Vec<&str> = said.lines().filter(|line| line.contains("gapless.service")).collect();
            assert!(about_it.is_empty(), "{said}");
        }
        Err(error) => println!("SKIPPED: systemd-analyze cannot be run: {error}"),
    }
    for words in text.lines().filter_map(|line| line.strip_prefix("ExecStart=").or(line.strip_prefix("ExecReload="))) {
        let words: Vec<&str> = words.split_whitespace().skip(1).chain(["--help"]).collect();
        crate::program::run(folder.path(), &words).good();
    }
}
