//! [`Guarding`]: the server's end of its guard: tells it what begins and ends, and never waits for it.
//!
//! What the pipe has no room for is left out, and the guard is told all that runs once it reads again, so that what is kept for it has a
//! bound. A guard that ends is replaced.

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

/// Between two guards: one that ends at once is not started again and again.
const NEXT_AFTER: Duration = Duration::from_secs(1);

/// The guard, and what it has to know.
pub(super) struct Guarding {
    state: Mutex<State>,
}

struct State {
    process: Child,
    started: Instant,
    /// Where it is told; written without waiting.
    input: File,
    /// What the pipe had no room for, from the middle of a line on, perhaps.
    unwritten: Vec<u8>,
    /// Lines behind that were left out.
    is_behind: bool,
    /// What runs, and when it has started.
    running: BTreeMap<u32, u64>,
    /// That it does not read was said.
    is_said: bool,
}

impl Guarding {
    /// Starts a guard.
    pub(super) fn start() -> io::Result<Self> {
        let (process, input) = start()?;
        let state = State {
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program has begun, with a process group of its own.
    pub(super) fn begin(&self, process_id: u32) {
        let start = start_of(process_id);
        let mut state = self.lock();
        state.running.insert(process_id, start);
        state.tell(format_args!("+{process_id} {start}\n"));
    }

    /// It has ended, or is killed: said before its number can be another's.
    pub(super) fn end(&self, process_id: u32) {
        let mut state = self.lock();
        state.running.remove(&process_id);
        state.tell(format_args!("-{process_id}\n"));
    }

    /// To be called now and then: replaces a guard that has ended, and tells one that reads again what it has missed. What a person should
    /// know is the result.
    pub(super) fn look(&self) -> Option<String> {
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

impl State {
    fn tell(&mut self, line: std::fmt::Arguments<'_>) {
        self.write();
        if self.is_behind {
            return;
        }
        if !self.unwritten.is_empty() {
            self.is_behind = true;
            return;
        }
        // Writing to a vector cannot fail.
        let _ = self.unwritten.write_fmt(line);
        self.write();
    }

    /// Writes what there is room for: the rest of a line first, then, if lines were left out, all that runs.
    fn write(&mut self) {
        while self.write_some() {}
    }

    /// Whether more may be written.
    fn write_some(&mut self) -> bool {
        if self.unwritten.is_empty() {
            if !std::mem::take(&mut self.is_behind) {
                return false;
            }
            let mut all = "=\n".to_owned();
            for (process_id, start) in &self.running {
                // Writing to a string cannot fail.
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
            // Full, or nobody reads: `look` sees that.
            Err(_) => false,
        }
    }
}

/// A guard, and its standard input.
fn start() -> io::Result<(Child, File)> {
    let mut command = Command::new("/proc/self/exe");
    // A group of its own: the Ctrl-C of a terminal is not for it.
    command.arg0("gapless").arg(COMMAND).process_group(0).current_dir("/");
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let input = File::from(OwnedFd::from(process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?));
    fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
    Ok((process, input))
}
