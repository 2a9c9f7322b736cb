use crate::Failure;
use crate::options::{Options, Role};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

const ENDING_TIME: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Heard {
    pub start: usize,
    /// `None` at the end of the output.
    pub line: Option<String>,
}

/// Killed on drop if it still runs.
pub struct Process {
    pub role: Role,
    child: Child,
    /// Closing it ends the process.
    lifeline: Option<ChildStdin>,
    pub was_killed: bool,
}

impl Process {
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
        // Ctrl-C in the terminal is for the parent, which ends the children in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let lifeline = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (out, err) = (hear.clone(), hear.clone());
        let complaints = std::thread::spawn(move || pass_on(stderr, start, &err));
        std::thread::spawn(move || {
            pass_on(stdout, start, &out);
            let _ = complaints.join();
            let _ = out.send(Heard { start, line: None });
        });
        Ok(Self { role, child, lifeline, was_killed: false })
    }

    pub fn kill(&mut self) -> Result<(), Failure> {
        self.was_killed = true;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn let_go(&mut self) {
        self.lifeline = None;
    }

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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("ended with {}", status.code().unwrap_or_default()),
    }
}
