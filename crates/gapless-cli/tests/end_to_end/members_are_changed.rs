#![allow(clippy::unwrap_used, reason = "a test")]

use crate::turn;
use gapless_testkit::ports::free_port;
use gapless_testkit::process::Process;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(90);

fn gapless(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gapless")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn does(arguments: &[&str]) -> String {
    let output = gapless(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn fails(arguments: &[&str], words: &str) {
    let output = gapless(arguments);
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.contains(words), "{arguments:?}: {error}");
}

fn start(file: &Path, log: &Path) -> Process {
    let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gapless"));
    Process::start_as(command.args(["cluster", "start"]).arg(file).stdout(log.try_clone().unwrap()).stderr(log))
}

struct Cluster {
    root: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    fn new(count: &str) -> Self {
        let cluster = Self { root: tempfile::tempdir().unwrap(), _turn: turn() };
        does(&["cluster", "new", &cluster.path("orders"), "--members", count]);
        cluster
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, member: usize) -> String {
        self.path(&format!("orders/member-{member}.toml"))
    }

    fn log(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("log-{member}"))
    }

    fn start(&self, member: usize) -> Process {
        start(Path::new(&self.file(member)), &self.log(member))
    }

    fn status(&self, member: usize) -> Option<Value> {
        let output = gapless(&["cluster", "status", &self.file(member), "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, mut is_there: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(found) = is_there() {
                return found;
            }
            assert!(Instant::now() < deadline, "{what} has not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn leader(&self, members: &[usize]) -> usize {
        self.wait("a leader", || {
            let leads = |member: &&usize| self.status(**member).is_some_and(|status| status["role"] == "leader");
            members.iter().find(leads).copied()
        })
    }

    fn publish(&self, members: &[usize], line: &str) {
        let directories = members.iter().map(|member| self.path(&format!("orders/member-{member}")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_gapless"));
        command.args(["stream", "publish"]);
        for directory in directories {
            command.args(["--directory", &directory]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{line}\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    #[track_caller]
    fn lines(&self, member: usize, count: usize) -> Vec<String> {
        let directory = self.path(&format!("orders/member-{member}"));
        let arguments = ["stream", "tail", "--directory", &directory, "--from", "first", "--no-follow", "--json"];
        self.wait("every line", || {
            let output = gapless(&arguments);
            let all = text(&output.stdout);
            let frames = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let events = frames.filter(|frame| frame["kind"] == "event");
            let lines: Vec<_> = events.map(|frame| frame["payload"].as_str().unwrap().to_owned()).collect();
            (output.status.success() && lines.len() >= count).then_some(lines)
        })
    }
}

fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

#[test]
fn member_added_and_leader_removed() {
    let cluster = Cluster::new("3");
    let mut members: Vec<_> = (1..=3).map(|member| cluster.start(member)).collect();
    cluster.leader(&[1, 2, 3]);
    cluster.publish(&[1, 2, 3], "one");
    let files: Vec<_> = (1..=4).map(|member| cluster.file(member)).collect();
    let address = free_address();
    let add = |member: &'static str| {
        let files = files[..3].iter().map(String::as_str);
        ["cluster", "add"].into_iter().chain(files).chain(["--member", member, "--address", &address])
    };
    let other = cluster.path("other.toml");
    fails(&add("2").chain(["--output", &other]).collect::<Vec<_>>(), "member 2 is a member already");
    fails(&add("2").collect::<Vec<_>>(), "is there already");

    let said = does(&add("4").chain(["--no-wait"]).collect::<Vec<_>>());
    assert!(said.contains(&format!("start it: gapless cluster start {}", files[3])), "{said}");
    members.push(cluster.start(4));
    cluster.wait("its vote", || {
        let status = cluster.status(cluster.leader(&[1, 2, 3, 4]))?;
        let members = status["members"].as_array()?.clone();
        members.iter().any(|each| each["member"] == 4 && each["kind"] == "voter").then_some(())
    });
    assert_eq!(cluster.lines(4, 1), ["one"]);

    let leader_now = cluster.leader(&[1, 2, 3, 4]);
    let number = leader_now.to_string();
    let remove = ["cluster", "remove", &files[0], &files[1], &files[2], &files[3], "--member", &number];
    let said = does(&remove);
    assert!(said.contains("is a member no longer"), "{said}");
    assert_eq!(members[leader_now - 1].wait_end("the end of the member").code(), Some(1));
    let log = std::fs::read_to_string(cluster.log(leader_now)).unwrap();
    assert!(log.contains("was removed from its cluster"), "{log}");
    fails(&["cluster", "start", &files[leader_now - 1]], "does not start again");
    let left: Vec<_> = (1..=4).filter(|member| *member != leader_now).collect();
    cluster.publish(&left, "two");
    left.iter().for_each(|member| assert_eq!(cluster.lines(*member, 2), ["one", "two"]));
}

#[test]
fn lost_partner_is_removed_by_force() {
    let cluster = Cluster::new("2");
    let (first, second) = (cluster.start(1), cluster.start(2));
    cluster.leader(&[1, 2]);
    cluster.publish(&[1, 2], "one");
    assert_eq!(cluster.lines(1, 1), ["one"]);
    let log = std::fs::read_to_string(cluster.log(1)).unwrap();
    assert!(log.contains("the cluster stops when either is lost"), "{log}");
    let file = cluster.file(1);
    fails(&["cluster", "recover", &file], "--force-single");
    assert!(!gapless(&["cluster", "recover", "--force-single", "--yes", &file]).status.success(), "it runs");
    drop((first, second));
    fails(&["cluster", "recover", "--force-single", &file], "--yes");
    let said = does(&["cluster", "recover", "--force-single", "--yes", &file]);
    assert!(said.contains("keeps its frames up to sequence") && said.contains("is lost"), "{said}");
    let _first = cluster.start(1);
    cluster.leader(&[1]);
    cluster.publish(&[1], "two");
    assert_eq!(cluster.lines(1, 2), ["one", "two"]);
    // The old partner finds no leader with its own file, and does not start with a copy of the new one.
    let second = cluster.start(2);
    cluster.wait("a refusal", || {
        let log = std::fs::read_to_string(cluster.log(2)).unwrap();
        (log.contains("another incarnation") || log.contains("no connection")).then_some(())
    });
    drop(second);
    let copied = std::fs::read_to_string(&file).unwrap();
    let copied = copied
        .replace("member = 1\n", "member = 2\n")
        .replace("id = 1\n", "id = 2\n")
        .replace("member-1\"", "member-2\"");
    std::fs::write(cluster.file(2), copied).unwrap();
    fails(&["cluster", "start", &cluster.file(2)], "the directory has incarnation 1");
}
