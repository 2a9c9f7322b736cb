//! The parent's hold on one process: starts it, hears it, lets go of it, and leaves none behind.

use crate::Failure;
use crate::options::{Options, Role};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a process that was let go may take to end.
const ENDING_TIME: Duration = Duration::from_secs(15);

/// What is heard of a process.
#[derive(Debug)]
pub struct Heard {
    /// Which start of which process: its number among all starts.
    pub start: usize,
    /// What it said; `None` when it will not say anything any more.
    pub line: Option<String>,
}

/// A process of the market; killed if it is still there when this is dropped.
pub struct Process {
    /// Which one.
    pub role: Role,
    child: Child,
    /// It ends when this is closed.
    lifeline: Option<ChildStdin>,
    /// Whether it was killed on purpose.
    pub was_killed: bool,
}

impl Process {
    /// Starts this program as `role`; what it says comes to `hear`, as that of start number `start`.
    pub fn start(
        options: &Options,
        place: &Path,
        role: Role,
        start: usize,
        hear: &Sender<Heard>,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--role", &role.to_string(), "--seed", &options.seed.to_string()]).arg("--place").arg(place);
        command.args(["--orders-per-second", &options.orders_per_second.to_string()]);
        match options.seconds {
            Some(seconds) => command.args(["--seconds", &seconds.to_string()]),
            None => command.args(["--orders", &options.orders.to_string()]),
        };
        // Ctrl-C in the terminal is for the parent, which ends the others in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let lifeline = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (out, err) = (hear.clone(), hear.clone());
        let complaints = std::thread::spawn(move || pass_on(stderr, start, &err));
        std::thread::spawn(move || {
            pass_on(stdout, start, &out);
            // Its last words may be a complaint.
            let _ = complaints.join();
            let _ = out.send(Heard { start, line: None });
        });
        Ok(Self { role, child, lifeline, was_killed: false })
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&mut self) -> Result<(), Failure> {
        self.was_killed = true;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Lets go of it, which tells it to end.
    pub fn let_go(&mut self) {
        self.lifeline = None;
    }

    /// Waits for its end, which is near.
    pub fn wait(&mut self) -> Result<ExitStatus, Failure> {
        let deadline = Instant::now() + ENDING_TIME;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(format!("{} does not end", self.role).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn pass_on(pipe: Option<impl Read>, start: usize, hear: &Sender<Heard>) {
    let Some(pipe) = pipe else { return };
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if hear.send(Heard { start, line: Some(line) }).is_err() {
            return;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended, for a person.
pub fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("ended with {}", status.code().unwrap_or_default()),
    }
}
