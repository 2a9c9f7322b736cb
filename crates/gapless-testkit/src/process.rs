//! `Process`: a child process that ends with its test.

use crate::wait::until_some;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Starts this program again in another role.
pub fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("a program knows where it is"))
}

/// `None` unless `role` is the first argument of this process.
pub fn started_as(role: &str) -> Option<Vec<String>> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next().as_deref() == Some(role)).then(|| arguments.collect())
}

/// Killed at the end of its test, also on failure.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Process {
    /// Pipes its output to [`line`](Self::line).
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::start_as(command.stdout(Stdio::piped()))
    }

    /// Keeps the output of `command`.
    #[track_caller]
    pub fn start_as(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Self { child, lines }
    }

    pub fn next_line(&mut self) -> Option<String> {
        let lines = self.lines.as_mut().expect("its output is read here");
        lines.next().map(|line| line.expect("its output is text"))
    }

    #[track_caller]
    pub fn line(&mut self) -> String {
        self.next_line().expect("it has ended")
    }

    pub fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_line()).collect()
    }

    /// Reads on a thread, so that the pipe never fills.
    pub fn lines_in_background(&mut self) -> Receiver<String> {
        let (sender, receiver) = channel();
        let lines = self.lines.take().expect("its output is read here");
        std::thread::spawn(move || {
            lines.map_while(|line| sender.send(line.expect("its output is text")).ok()).for_each(drop);
        });
        receiver
    }

    /// Reads piped standard error to the end.
    pub fn errors(&mut self) -> String {
        let stderr = self.child.stderr.take().expect("its errors go into a pipe");
        std::io::read_to_string(stderr).expect("its errors are text")
    }

    /// Reads piped standard error on a thread, so that the pipe never fills.
    pub fn error_lines(&mut self) -> Receiver<String> {
        let (sender, receiver) = channel();
        let lines = BufReader::new(self.child.stderr.take().expect("its errors go into a pipe")).lines();
        std::thread::spawn(move || {
            lines.map_while(|line| sender.send(line.expect("its errors are text")).ok()).for_each(drop);
        });
        receiver
    }

    pub fn stop_reading(&mut self) {
        self.lines = None;
    }

    /// Takes piped input, which is closed when the result is dropped.
    pub fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("its input is a pipe")
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it takes the signal");
    }

    /// Waits until no thread of it runs.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid().as_raw_nonzero());
        until_some("it stands still", || {
            let mut states = std::fs::read_dir(&tasks).ok()?.map(|task| {
                let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
                // The state follows the name, which may contain any character.
                stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('T'))
            });
            states.all(|is_stopped| is_stopped == Some(true)).then_some(())
        });
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Kills, and waits until the process has ended.
    pub fn kill(&mut self) {
        // Fails only if it has already ended.
        let _ = self.child.kill();
        self.wait();
    }

    /// Ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it can be waited for")
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be asked")
    }

    /// Ends by itself; fails at the deadline.
    #[track_caller]
    pub fn wait_end(&mut self, what: &str) -> ExitStatus {
        until_some(what, || self.ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
