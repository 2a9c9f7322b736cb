//! Real processes in a domain of their own. Each is this test program again, with commands on its standard input, and
//! the calls of its sides on its standard output, prefixed with `@`.

mod hostile;
mod member;
mod orphans;
mod processes;

use super::directory::{DomainDirectory, DomainLocation};
use gapless_testkit::process::{Process, this_program};
use gapless_testkit::wait::PATIENCE;
use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

const DOMAIN: &str = "GAPLESS_REGISTRY_DOMAIN";

struct Domain {
    _parent: tempfile::TempDir,
    directory: Arc<DomainDirectory>,
}

impl Domain {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let directory = DomainDirectory::open(&DomainLocation::Path(parent.path().join("domain")), None).unwrap();
        Self { _parent: parent, directory: Arc::new(directory) }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.path()).unwrap().count()
    }

    fn member(&self, commands: &[&str]) -> Member {
        let mut command = this_program();
        command.args(["--exact", "registry::tests::member::entry", "--nocapture"]);
        command.env(DOMAIN, self.path()).stdin(Stdio::piped());
        let mut process = Process::start(&mut command);
        let (input, lines) = (Some(process.input()), process.lines_in_background());
        let mut member = Member { process, input, lines, seen: Vec::new() };
        for command in commands {
            member.tell(command);
        }
        member
    }
}

struct Member {
    process: Process,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Member {
    fn pid(&self) -> u32 {
        self.process.pid().as_raw_nonzero().get() as u32
    }

    #[track_caller]
    fn tell(&mut self, command: &str) {
        writeln!(self.input.as_mut().unwrap(), "{command}").unwrap();
        self.expect(&format!("done {command}"));
    }

    /// Also takes a line that came earlier.
    #[track_caller]
    fn expect(&mut self, beginning: &str) -> String {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.seen.iter().position(|line| line.starts_with(beginning)) {
                return self.seen.remove(at);
            }
            self.read_lines(Duration::from_millis(20));
            assert!(begun.elapsed() < PATIENCE, "no {beginning:?}, but {:?}", self.seen);
            assert!(self.process.ended().is_none() || self.has_more(), "{beginning:?}: it ended: {:?}", self.seen);
        }
    }

    fn has_more(&mut self) -> bool {
        let before = self.seen.len();
        self.read_lines(Duration::from_millis(500));
        self.seen.len() > before
    }

    fn read_lines(&mut self, patience: Duration) {
        let first = self.lines.recv_timeout(patience).ok();
        let told = first.into_iter().chain(self.lines.try_iter());
        self.seen.extend(told.filter_map(|line| line.strip_prefix('@').map(str::to_owned)));
    }

    #[track_caller]
    fn expect_found(&mut self, process_id: u32) -> u32 {
        let begun = Instant::now();
        let marker = format!(" {process_id} ");
        loop {
            let mut found = self.seen.iter().filter(|line| line.starts_with("found ") && line.contains(&marker));
            if let Some(line) = found.next_back() {
                return line.split(' ').nth(1).unwrap().parse().unwrap();
            }
            assert!(begun.elapsed() < PATIENCE, "the process {process_id} is not in {:?}", self.seen);
            self.read_lines(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn expect_no(&mut self, beginning: &str) {
        self.read_lines(Duration::from_millis(300));
        assert!(!self.seen.iter().any(|line| line.starts_with(beginning)), "{beginning:?} in {:?}", self.seen);
    }

    #[track_caller]
    fn descriptors(&mut self) -> usize {
        self.tell("count");
        self.expect("count ").split_once(' ').unwrap().1.parse().unwrap()
    }

    #[track_caller]
    fn expect_descriptors(&mut self, expected: usize) {
        let begun = Instant::now();
        loop {
            let found = self.descriptors();
            if found == expected {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{found} descriptors, not {expected}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn quit(mut self) {
        self.input = None;
        assert!(self.process.wait_end("a member ends").success());
    }
}
