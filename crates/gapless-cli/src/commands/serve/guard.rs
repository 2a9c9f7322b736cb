//! [`Guard`]: a process of its own that knows which programs run, and kills them when the server is gone, however it went: killed, or
//! out of memory. All that it reads is its standard input, whose end is the server's.

use crate::commands::Outcome;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

/// The name of the command that it is: nobody else's, so no help has it.
pub(crate) const COMMAND: &str = "serve-guard";

/// The server's end.
pub(super) struct Guard {
    input: Mutex<ChildStdin>,
    /// Ends by itself.
    _process: Child,
}

impl Guard {
    /// Starts it.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // A group of its own: the Ctrl-C of a terminal is not for it.
        command.arg0("gapless").arg(COMMAND).process_group(0).current_dir("/");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let input = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { input: Mutex::new(input), _process: process })
    }

    /// A program has begun, with a process group of its own.
    pub(super) fn begin(&self, process_id: u32) {
        self.tell('+', process_id);
    }

    /// It has ended, or is killed: said before its number can be another's.
    pub(super) fn end(&self, process_id: u32) {
        self.tell('-', process_id);
    }

    fn tell(&self, sign: char, process_id: u32) {
        let mut input = self.input.lock().expect("nobody panics with the lock");
        // One that is gone guards nothing, and hinders no request.
        let _ = input.write_all(format!("{sign}{process_id}\n").as_bytes());
    }
}

/// The guard itself: reads until its server is gone.
pub(crate) fn run() -> Outcome {
    // Who stops all processes of a service means the server, which may still finish what has begun.
    ctrlc::set_handler(|| {})?;
    let mut running = HashSet::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (sign, number) = line.split_at_checked(1).ok_or("a sign and a number are expected")?;
        let process = Pid::from_raw(number.parse()?).ok_or("a process has no number 0")?;
        if sign == "+" {
            running.insert(process)
        } else {
            running.remove(&process)
        };
    }
    for process in running {
        let _ = kill_process_group(process, Signal::KILL);
    }
    Ok(())
}
