//! [`SimulationCall`]: a call that a second process reaches again, started with the test's name or this process's
//! arguments. Earlier calls return the results of the first process.

use crate::options::{Options, SecondPass};
use crate::record::RunRecord;
use crate::report::{SimulationFailure, Tally};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Environment variable: directory of the assignment.
const DIRECTORY: &str = "GAPLESS_SIM_SECOND_PASS";
const SECOND_PROCESS_TIMEOUT: Duration = Duration::from_secs(300);

type SimulationResult = Result<Tally, Box<SimulationFailure>>;

/// Calls by caller, in order; `None` for a call in progress.
static CALLS: Mutex<BTreeMap<String, Vec<Option<SimulationResult>>>> = Mutex::new(BTreeMap::new());

#[derive(Serialize, Deserialize)]
pub(crate) struct SecondPassAssignment {
    caller: String,
    seed: u64,
    /// Earlier calls of the same caller.
    before: Vec<Option<SimulationResult>>,
    pub record: RunRecord,
    pub tally: Tally,
    pub snapshot: Option<Vec<u8>>,
    /// Thread of the run.
    pub thread: String,
    process: u32,
}

impl SecondPassAssignment {
    /// Ends this process with the first one, however that ends: this one may be stuck.
    fn end_with_first_process(&self) -> Result<(), String> {
        let set = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        set.map_err(|error| format!("the kernel does not tell of the first process's end: {error}"))?;
        // The first process may have ended before.
        let parent = std::os::unix::process::parent_id();
        if parent == self.process { Ok(()) } else { Err(format!("process {} has gone", self.process)) }
    }
}

pub(crate) struct SimulationCall {
    caller: String,
    seed: u64,
    number: usize,
    arguments: Vec<OsString>,
}

pub(crate) enum ProcessRole {
    /// There is no assignment.
    First,
    Second(&'static SecondPassAssignment),
    /// An earlier call.
    Known(Box<SimulationResult>),
}

/// A second process without its assignment exits, because it must not start a third.
fn assignment() -> Option<&'static (PathBuf, SecondPassAssignment)> {
    static ASSIGNMENT: OnceLock<Option<(PathBuf, SecondPassAssignment)>> = OnceLock::new();
    let read = || {
        let directory = PathBuf::from(std::env::var_os(DIRECTORY)?);
        let assignment = std::fs::read(directory.join("assignment")).map_err(|error| error.to_string());
        let assignment = assignment.and_then(|bytes| postcard::from_bytes(&bytes).map_err(|error| error.to_string()));
        match assignment
            .and_then(|assignment: SecondPassAssignment| assignment.end_with_first_process().map(|()| assignment))
        {
            Ok(assignment) => Some((directory, assignment)),
            Err(error) => {
                eprintln!(
                    "the assignment in {}, which {DIRECTORY} names, cannot be followed: {error}",
                    directory.display()
                );
                std::process::exit(1);
            }
        }
    };
    ASSIGNMENT.get_or_init(read).as_ref()
}

/// A second process on its way to a later call of this thread returns the recorded result, and leaves statics
/// untouched.
pub(crate) fn once(seed: u64, run: impl FnOnce() -> SimulationResult) -> SimulationResult {
    let thread = std::thread::current();
    let Some(caller) = thread.name() else { return run() };
    let call = SimulationCall::register(caller.to_owned(), seed, Vec::new());
    let known = assignment().filter(|(_, assignment)| assignment.caller == call.caller);
    if let Some((_, assignment)) = known
        && let Some(Some(outcome)) = assignment.before.get(call.number)
    {
        return outcome.clone();
    }
    let outcome = run();
    call.end(&outcome);
    outcome
}

impl SimulationCall {
    fn register(caller: String, seed: u64, arguments: Vec<OsString>) -> Self {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = calls.entry(caller.clone()).or_default();
        of_caller.push(None);
        Self { number: of_caller.len() - 1, caller, seed, arguments }
    }

    /// Registers the next call of this caller.
    ///
    /// # Errors
    /// No way is known for a second process to reach this call.
    pub(crate) fn begin(options: &Options, seed: u64) -> Result<Self, String> {
        let thread = std::thread::current();
        let own = || std::env::args_os().skip(1).collect::<Vec<_>>();
        let (caller, arguments) = match (&options.second_pass, thread.name()) {
            (SecondPass::With(arguments), _) => (format!("seed {seed}"), arguments.clone()),
            (_, Some("main")) => ("main".to_owned(), own()),
            (_, Some(test)) => {
                let harness = ["--exact", "--nocapture", "--include-ignored", "--test-threads=1"];
                (test.to_owned(), std::iter::once(test).chain(harness).map(OsString::from).collect())
            }
            (_, None) => {
                return Err("the second pass starts this program again, and cannot tell which call a thread without a name makes: \
                            simulate on the thread of the test or on the main one, or say in Options::second_pass how \
                            (SecondPass::With) or that there is none (SecondPass::Off)"
                    .to_owned());
            }
        };
        Ok(Self::register(caller, seed, arguments))
    }

    /// An unknown call waits until the process ends.
    pub(crate) fn role(&self) -> ProcessRole {
        let Some((_, assignment)) = assignment() else { return ProcessRole::First };
        if self.caller == assignment.caller {
            match assignment.before.get(self.number) {
                None if self.number == assignment.before.len() && self.seed == assignment.seed => {
                    return ProcessRole::Second(assignment);
                }
                None if self.number == assignment.before.len() => Self::answer(Some(&format!(
                    "the second pass comes to a call with seed {} where the run had seed {}: take the seed from the arguments or the \
                     environment, or say SecondPass::With how the second process gets it",
                    self.seed, assignment.seed
                ))),
                Some(Some(outcome)) => return ProcessRole::Known(Box::new(outcome.clone())),
                _ => {}
            }
        }
        loop {
            std::thread::park();
        }
    }

    pub(crate) fn answer(said: Option<&str>) -> ! {
        let written = assignment().map(|(directory, _)| {
            let said = serde_json::to_vec(&said).unwrap_or_default();
            std::fs::write(directory.join("answer"), said)
        });
        std::process::exit(if matches!(written, Some(Ok(()))) { 0 } else { 1 });
    }

    pub(crate) fn end(&self, outcome: &SimulationResult) {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get_mut(&self.caller).and_then(|of_caller| of_caller.get_mut(self.number)) {
            *call = Some(outcome.clone());
        }
    }

    /// Returns the finding of a second process, from `snapshot` or from the beginning.
    ///
    /// # Errors
    /// The second process did not start or did not reach this call.
    pub(crate) fn again(
        &self,
        record: RunRecord,
        tally: Tally,
        snapshots: Vec<Option<Vec<u8>>>,
    ) -> Result<Option<String>, String> {
        let before = {
            let calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(&self.caller).map_or_else(Vec::new, |of_caller| of_caller[..self.number].to_vec())
        };
        let thread = format!("{:?}", std::thread::current().id());
        let (caller, seed, process) = (self.caller.clone(), self.seed, std::process::id());
        let mut assignment =
            SecondPassAssignment { caller, seed, before, record, tally, snapshot: None, thread, process };
        let mut processes = Vec::new();
        for snapshot in snapshots {
            assignment.snapshot = snapshot;
            processes.push(SecondProcess::start(&assignment, &self.arguments)?);
        }
        let answers: Vec<_> = processes.into_iter().map(SecondProcess::wait).collect();
        for answer in answers {
            if let Some(said) = answer? {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }
}

struct SecondProcess {
    directory: tempfile::TempDir,
    child: Child,
}

impl SecondProcess {
    fn start(assignment: &SecondPassAssignment, arguments: &[OsString]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the second process cannot be started: {error}");
        let directory = tempfile::Builder::new().prefix("gapless-sim-second-").tempdir().map_err(failed)?;
        let bytes = postcard::to_stdvec(assignment)
            .map_err(|error| format!("the run cannot be written down for the second process: {error}"))?;
        std::fs::write(directory.path().join("assignment"), bytes).map_err(failed)?;
        let words = File::create(directory.path().join("words")).map_err(failed)?;
        // The second process exits in the middle of the test and leaves files; this directory is removed.
        let temporary = directory.path().join("tmp");
        std::fs::create_dir(&temporary).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(arguments).env(DIRECTORY, directory.path()).env("TMPDIR", temporary).stdin(Stdio::null());
        // Environment that a handler may have read.
        for (name, value) in
            [("TZ", "Asia/Kathmandu"), ("LANG", "tr_TR.UTF-8"), ("LC_ALL", "tr_TR.UTF-8"), ("USER", "second")]
        {
            command.env(name, value);
        }
        command.stdout(words.try_clone().map_err(failed)?).stderr(words);
        Ok(Self { child: command.spawn().map_err(failed)?, directory })
    }

    fn wait(mut self) -> Result<Option<String>, String> {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if begun.elapsed() < SECOND_PROCESS_TIMEOUT => std::thread::sleep(Duration::from_millis(2)),
                Ok(None) => break None,
                Err(error) => return Err(format!("the second pass: {error}")),
            }
        };
        let answer = std::fs::read(self.directory.path().join("answer"));
        match answer.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(answer) => Ok(answer),
            None => Err(not_reached(status, self.directory.path())),
        }
    }
}

impl Drop for SecondProcess {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

fn not_reached(status: Option<ExitStatus>, directory: &Path) -> String {
    let words = std::fs::read_to_string(directory.join("words")).unwrap_or_default();
    let lines: Vec<_> = words.lines().rev().take(8).collect();
    let last: Vec<_> = lines.into_iter().rev().collect();
    let last = last.join("\n");
    match status {
        Some(status) => format!(
            "the second pass has started this program again, and that did not come to the same call of the simulator ({status}); say \
             in Options::second_pass with which arguments it does, or SecondPass::Off. Its last words:\n{last}"
        ),
        None => format!(
            "the second pass has started this program again, and that has not ended after {} s; make the run shorter, or say \
             SecondPass::Off. Its last words:\n{last}",
            SECOND_PROCESS_TIMEOUT.as_secs()
        ),
    }
}
