//! The server's side of its guard: reports starts and ends of programs, and never waits for it. Lines that do not fit
//! the pipe are omitted, and once the guard reads again, it gets the list of all running programs. So memory is
//! bounded. A guard that ends is replaced.

use super::guard::{COMMAND, start_of};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Avoids a loop if the guard ends at once.
const NEXT_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Guarding {
    state: Mutex<GuardState>,
}

struct GuardState {
    process: Child,
    started: Instant,
    input: File,
    /// Did not fit the pipe; perhaps from the middle of a line.
    unwritten: Vec<u8>,
    is_behind: bool,
    running: BTreeMap<u32, u64>,
    is_said: bool,
}

impl Guarding {
    pub(super) fn start() -> io::Result<Self> {
        let (process, input) = start()?;
        let state = GuardState {
            process,
            started: Instant::now(),
            input,
            unwritten: Vec::new(),
            is_behind: false,
            running: BTreeMap::new(),
            is_said: false,
        };
        Ok(Self { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, process_id: u32) {
        let start = start_of(process_id);
        let mut state = self.lock();
        state.running.insert(process_id, start);
        state.tell(format_args!("+{process_id} {start}\n"));
    }

    /// Called before the process id can be reused.
    pub(super) fn end(&self, process_id: u32) {
        let mut state = self.lock();
        state.running.remove(&process_id);
        state.tell(format_args!("-{process_id}\n"));
    }

    /// Call it regularly: replaces a guard that has ended, and sends omitted lines. Returns a message for the user.
    pub(super) fn check_guard(&self) -> Option<String> {
        let mut state = self.lock();
        let state = &mut *state;
        let process_id = state.process.id();
        if let Ok(Some(end)) = state.process.try_wait() {
            if state.started.elapsed() < NEXT_AFTER {
                return None;
            }
            state.started = Instant::now();
            return Some(match start() {
                Ok((process, input)) => {
                    (state.process, state.input) = (process, input);
                    (state.unwritten, state.is_behind, state.is_said) = (Vec::new(), true, false);
                    state.write();
                    format!("the guard of its programs, process {process_id}, has ended ({end}); another is started")
                }
                Err(error) => format!(
                    "the guard of its programs, process {process_id}, has ended ({end}), and no other can be started: {error}"
                ),
            });
        }
        state.write();
        if state.is_behind && !std::mem::replace(&mut state.is_said, true) {
            return Some(format!(
                "the guard of its programs, process {process_id}, does not read: until it does, what begins now outlives this process if that is killed"
            ));
        }
        state.is_said &= state.is_behind;
        None
    }
}

impl GuardState {
    fn tell(&mut self, line: std::fmt::Arguments<'_>) {
        self.write();
        if self.is_behind {
            return;
        }
        if !self.unwritten.is_empty() {
            self.is_behind = true;
            return;
        }
        let _ = self.unwritten.write_fmt(line);
        self.write();
    }

    fn write(&mut self) {
        while self.write_some() {}
    }

    fn write_some(&mut self) -> bool {
        if self.unwritten.is_empty() {
            if !std::mem::take(&mut self.is_behind) {
                return false;
            }
            let mut all = "=\n".to_owned();
            for (process_id, start) in &self.running {
                let _ = writeln!(all, "+{process_id} {start}");
            }
            self.unwritten = all.into_bytes();
        }
        match self.input.write(&self.unwritten) {
            Ok(count) => {
                self.unwritten.drain(..count);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            // Full or closed, which `look` handles.
            Err(_) => false,
        }
    }
}

fn start() -> io::Result<(Child, File)> {
    let mut command = Command::new("/proc/self/exe");
    // The Ctrl-C of a terminal must not reach the guard.
    command.arg0("gapless").arg(COMMAND).process_group(0).current_dir("/");
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let input = File::from(OwnedFd::from(process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?));
    fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
    Ok((process, input))
}
