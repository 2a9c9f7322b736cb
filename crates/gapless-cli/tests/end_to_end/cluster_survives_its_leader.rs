#![allow(clippy::unwrap_used, reason = "a test")]

use crate::turn;
use gapless_testkit::process::Process;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(90);
/// Keeps a leader on a busy machine. A longer timeout helps no more: links give up a peer after 2 s of silence.
const STEADY: &str = "\n[election]\ntimeout = \"3 s\"\n";

fn gapless() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gapless"))
}

fn run(arguments: &[&str]) -> Output {
    gapless().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Cluster {
    directory: PathBuf,
    members: Vec<Option<Process>>,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// Appends `more` to each member's file.
    fn new(root: &Path, options: &[&str], count: usize, more: &str) -> Self {
        let turn = turn();
        let directory = root.join("orders");
        let made = gapless().args(["cluster", "new"]).arg(&directory).args(options).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        assert_eq!(text(&made.stdout).lines().count(), count);
        let mut cluster = Self { directory, members: (0..count).map(|_| None).collect(), _turn: turn };
        for member in 1..=count {
            let text = std::fs::read_to_string(cluster.file(member)).unwrap();
            std::fs::write(cluster.file(member), text + more).unwrap();
            cluster.start(member);
        }
        cluster
    }

    fn file(&self, member: usize) -> PathBuf {
        self.directory.join(format!("member-{member}.toml"))
    }

    fn start(&mut self, member: usize) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.directory.join(format!("log-{member}")))
            .unwrap();
        let mut command = gapless();
        command.args(["cluster", "start"]).arg(self.file(member)).stdout(log.try_clone().unwrap()).stderr(log);
        self.members[member - 1] = Some(Process::start_as(&mut command));
    }

    fn kill(&mut self, member: usize) {
        drop(self.members[member - 1].take());
    }

    fn status(&self, member: usize) -> Option<Value> {
        let file = self.file(member);
        let answer = run(&["cluster", "status", file.to_str().unwrap(), "--json"]);
        answer.status.success().then(|| serde_json::from_slice(&answer.stdout).unwrap())
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, mut is_there: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(found) = is_there(self) {
                return found;
            }
            if Instant::now() > deadline {
                for member in 1..=self.members.len() {
                    let log = std::fs::read_to_string(self.directory.join(format!("log-{member}")));
                    eprintln!("member {member}: {}\n{:?}", log.unwrap_or_default(), self.status(member));
                }
                panic!("{what} has not come");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn leader(&self) -> usize {
        self.wait("a leader", |cluster| {
            let leads = |member: &usize| {
                cluster.members[member - 1].is_some()
                    && cluster.status(*member).is_some_and(|status| status["role"] == "leader")
            };
            (1..=cluster.members.len()).find(leads)
        })
    }

    fn directories(&self) -> Vec<String> {
        let each = (1..=self.members.len()).map(|member| self.directory.join(format!("member-{member}")));
        each.flat_map(|directory| ["--directory".to_owned(), directory.display().to_string()]).collect()
    }

    #[track_caller]
    fn lines(&self, member: usize, count: usize) -> Vec<String> {
        let directory = self.directory.join(format!("member-{member}"));
        self.wait("every line", |_| {
            let tail = run(&[
                "stream",
                "tail",
                "--directory",
                directory.to_str().unwrap(),
                "--from",
                "first",
                "--no-follow",
                "--json",
            ]);
            if !tail.status.success() {
                return None;
            }
            let frames = text(&tail.stdout);
            let frames = frames.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let events = frames.filter(|frame| frame["kind"] == "event");
            let lines: Vec<_> = events.map(|frame| frame["payload"].as_str().unwrap().to_owned()).collect();
            (lines.len() >= count).then_some(lines)
        })
    }
}

fn lines(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("line {number}")).collect()
}

fn survives(options: &[&str], kills: usize) {
    const COUNT: usize = 6000;
    let root = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::new(root.path(), options, 3, "");
    cluster.leader();
    let mut publisher = gapless()
        .args(["stream", "publish", "--rate", "2000"])
        .args(cluster.directories())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = publisher.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for line in lines(COUNT) {
            if writeln!(input, "{line}").is_err() {
                return;
            }
        }
    });
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(700));
        let leader = cluster.leader();
        cluster.kill(leader);
        let next = cluster.leader();
        assert_ne!(leader, next);
        cluster.start(leader);
    }
    let published = publisher.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(published.status.success(), "{}", text(&published.stderr));
    for member in 1..=3 {
        let found = cluster.lines(member, COUNT);
        assert!(found == lines(COUNT), "member {member}: {} lines, in another order or twice", found.len());
    }
}

#[test]
fn killed_leaders_lose_nothing() {
    survives(&[], 3);
}

#[test]
fn witness_keeps_two_members_going() {
    survives(&["--witness"], 2);
}

#[test]
fn lead_is_transferred() {
    let root = tempfile::tempdir().unwrap();
    let cluster = Cluster::new(root.path(), &[], 3, STEADY);
    let leader = cluster.leader();
    let next = leader % 3 + 1;
    let file = cluster.file(leader);
    let transfer = |to: usize| run(&["cluster", "transfer", file.to_str().unwrap(), "--to", &to.to_string()]);
    let done = transfer(next);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).starts_with(&format!("member {next} leads in term")), "{}", text(&done.stdout));
    assert_eq!(cluster.leader(), next);
    let refused = transfer(leader);
    let said = text(&refused.stderr);
    let words = format!("member {leader} does not lead: member {next} at 127.0.0.1:");
    assert!(!refused.status.success() && said.contains(&words) && said.contains("name its file"), "{said}");
    let files: Vec<_> = (1..=3).map(|member| cluster.file(member)).collect();
    let names: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let back = leader.to_string();
    let done = run(&[&["cluster", "transfer"], &names[..], &["--to", &back]].concat());
    assert!(done.status.success() && cluster.leader() == leader, "{}", text(&done.stderr));
    assert!(transfer(next).status.success());
    let file = cluster.file(next);
    let refused = run(&["cluster", "transfer", file.to_str().unwrap(), "--to", "9"]);
    assert!(text(&refused.stderr).contains("member 9 is no member that votes"), "{}", text(&refused.stderr));
    let shown = text(&run(&["cluster", "status", file.to_str().unwrap()]).stdout);
    assert!(shown.contains(": leader, term") && shown.contains("tier quorum"), "{shown}");
}

#[test]
fn invalid_use_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("orders");
    let directory = directory.to_str().unwrap();
    let fails = |arguments: &[&str], code, words: &str| {
        let output = run(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(words) && error.lines().count() == 1, "{arguments:?}: {error}");
    };
    fails(&["cluster", "new", directory, "--members", "0"], 2, "1 to 16 are allowed");
    fails(&["cluster", "new", directory, "--members", "2", "--witness"], 2, "two members and a witness");
    fails(&["cluster", "new", directory, "--port", "65535"], 2, "are not ports");
    fails(&["cluster", "status", directory], 1, "No such file");
    assert!(run(&["cluster", "new", directory, "--members", "1"]).status.success());
    fails(&["cluster", "new", directory, "--members", "1"], 1, "is there already");
    let file = format!("{directory}/member-1.toml");
    fails(&["cluster", "status", &file], 3, "no member was ever there");
    fails(&["cluster", "start", directory], 1, "is a directory");
    let text = std::fs::read_to_string(&file).unwrap().replace("member = 1", "member = 7");
    std::fs::write(&file, text).unwrap();
    fails(&["cluster", "start", &file], 1, "there is no member 7");
}
