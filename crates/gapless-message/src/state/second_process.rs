//! [`check_in_two_processes`]: this program again, with the same test or the same arguments, restores a state and writes
//! it. The second process ends at the call; it gets the snapshot in a directory that an environment variable names.

use super::{State, StateError, check, first_difference, read, write};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Environment variable: directory of the second process.
const DIRECTORY: &str = "GAPLESS_STATE_CHECK";
const TIMEOUT: Duration = Duration::from_secs(300);
const EQUAL: &str = "equal";
const DIFFERS: &str = "differs at ";

/// Calls so far, by the name of their thread.
static CALLS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Checks that the state restored from a snapshot has an equal snapshot, and that a second process, which has other hash
/// seeds and addresses, writes the same bytes: a test of each service's state. Starts this program again: with the name of the test, whose thread calls this, or with the arguments
/// of this process if its main thread does. Everything before the call runs a second time, the call itself ends the
/// second process.
///
/// ```
/// # use gapless_message::State;
/// # use gapless_message::state::check_in_two_processes;
/// # use serde::{Deserialize, Serialize};
/// # use std::collections::BTreeMap;
/// #[derive(Serialize, Deserialize, State)]
/// struct Ledger {
///     balances: BTreeMap<u64, u64>,
/// }
///
/// // #[test]
/// fn ledger_is_sound() {
///     let ledger = Ledger { balances: (0..100).map(|account| (account, 7)).collect() };
///     check_in_two_processes(&ledger).unwrap();
/// }
/// ```
///
/// # Errors
/// A state that was read back has other bytes, or cannot be read; or no second process came to the same call, as for a
/// thread that a test has started.
pub fn check_in_two_processes<S: State>(state: &S) -> Result<(), StateError> {
    check(state)?;
    let thread = std::thread::current();
    let Some(caller) = thread.name() else {
        let reason = "the calling thread has no name: call it on the thread of the test, or on the main one".to_owned();
        return Err(StateError::SecondProcess { name: S::NAME, reason });
    };
    let number = {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.entry(caller.to_owned()).or_default();
        *count += 1;
        *count
    };
    let call = format!("{number} {caller}");
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        let mut snapshot = Vec::new();
        write(state, &mut snapshot);
        return ask(caller, &call, &snapshot).map_err(|finding| finding.of::<S>());
    };
    match std::fs::read_to_string(directory.join("call")) {
        // An earlier call, or one of another thread: it is the first process's to check.
        Ok(awaited) if awaited != call => Ok(()),
        Ok(_) => {
            let written = std::fs::write(directory.join("answer"), answer::<S>(&directory));
            std::process::exit(i32::from(written.is_err()));
        }
        Err(error) => {
            eprintln!("{DIRECTORY} names {}, which cannot be read: {error}", directory.display());
            std::process::exit(1);
        }
    }
}

/// In the second process.
fn answer<S: State>(directory: &Path) -> String {
    let first = match std::fs::read(directory.join("snapshot")) {
        Ok(first) => first,
        Err(error) => return format!("no snapshot: {error}"),
    };
    let mut second = Vec::new();
    match read::<S>(&first) {
        Ok(state) => write(&state, &mut second),
        Err(error) => return error.to_string(),
    }
    first_difference(&first, &second).map_or_else(|| EQUAL.to_owned(), |at| format!("{DIFFERS}{at}"))
}

enum Finding {
    Differs { at: usize },
    Failed(String),
}

impl Finding {
    fn of<S: State>(self) -> StateError {
        match self {
            Self::Differs { at } => StateError::Unstable { name: S::NAME, at },
            Self::Failed(reason) => StateError::SecondProcess { name: S::NAME, reason },
        }
    }
}

/// In the first process.
fn ask(caller: &str, call: &str, snapshot: &[u8]) -> Result<(), Finding> {
    let failed = |error: io::Error| Finding::Failed(format!("the second process cannot be started: {error}"));
    let arguments: Vec<OsString> = if caller == "main" {
        std::env::args_os().skip(1).collect()
    } else {
        let harness = ["--exact", "--nocapture", "--include-ignored", "--test-threads=1"];
        std::iter::once(caller).chain(harness).map(OsString::from).collect()
    };
    let mut process = SecondProcess::start(call, snapshot, &arguments).map_err(failed)?;
    let status = process.wait().map_err(failed)?;
    let path = process.directory.join("answer");
    let Ok(answer) = std::fs::read_to_string(path) else { return Err(process.not_reached(status)) };
    if answer == EQUAL {
        return Ok(());
    }
    match answer.strip_prefix(DIFFERS).and_then(|at| at.parse().ok()) {
        Some(at) => Err(Finding::Differs { at }),
        None => Err(Finding::Failed(answer)),
    }
}

struct SecondProcess {
    directory: PathBuf,
    child: Child,
}

impl SecondProcess {
    fn start(call: &str, snapshot: &[u8], arguments: &[OsString]) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gapless-state-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // A directory of a former process with this number is not in use.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory)?;
        let started = Self::start_in(&directory, call, snapshot, arguments);
        if started.is_err() {
            let _ = std::fs::remove_dir_all(&directory);
        }
        Ok(Self { child: started?, directory })
    }

    fn start_in(directory: &Path, call: &str, snapshot: &[u8], arguments: &[OsString]) -> io::Result<Child> {
        std::fs::write(directory.join("call"), call)?;
        std::fs::write(directory.join("snapshot"), snapshot)?;
        let output = File::create(directory.join("output"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).env(DIRECTORY, directory).stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output).spawn()
    }

    /// `None`: it takes too long.
    fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(None)
    }

    fn not_reached(&self, status: Option<ExitStatus>) -> Finding {
        let output = std::fs::read_to_string(self.directory.join("output")).unwrap_or_default();
        let last: Vec<&str> = output.lines().rev().take(8).collect();
        let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        let end = match status {
            Some(status) => format!("it ended first ({status})"),
            None => format!("it did not end within {} s", TIMEOUT.as_secs()),
        };
        Finding::Failed(format!("a second process did not come to the same call: {end}. Its last lines:\n{last}"))
    }
}

impl Drop for SecondProcess {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::collections::{BTreeMap, BTreeSet};

    /// Keys in the order of their hashes, which depend on the process alone.
    mod by_hash {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};
        use std::collections::BTreeSet;
        use std::hash::{DefaultHasher, Hash, Hasher};

        pub fn serialize<S: Serializer>(keys: &BTreeSet<u64>, into: S) -> Result<S::Ok, S::Error> {
            let mut keys: Vec<u64> = keys.iter().copied().collect();
            keys.sort_by_key(|key| {
                let mut hasher = DefaultHasher::new();
                (std::process::id(), key).hash(&mut hasher);
                hasher.finish()
            });
            keys.serialize(into)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<u64>, D::Error> {
            Ok(Vec::deserialize(from)?.into_iter().collect())
        }
    }

    #[derive(Serialize, Deserialize, crate::State)]
    struct Sound(BTreeMap<u64, u64>);

    #[derive(Serialize, Deserialize, crate::State)]
    struct Smuggler {
        #[state(deterministic, shape = "keys 1")]
        #[serde(with = "by_hash")]
        keys: BTreeSet<u64>,
    }

    #[test]
    fn second_process_finds_other_order() {
        check_in_two_processes(&Sound((0..64).map(|key| (key, key)).collect())).unwrap();
        let smuggler = Smuggler { keys: (0..64).collect() };
        check(&smuggler).unwrap();
        let error = check_in_two_processes(&smuggler).unwrap_err();
        assert!(matches!(error, StateError::Unstable { name: "Smuggler", .. }), "{error}");
    }

    #[test]
    fn unreached_call_is_an_error() {
        if std::env::var_os(DIRECTORY).is_some() {
            panic!("the second process takes another way");
        }
        let error = check_in_two_processes(&Sound(BTreeMap::new())).unwrap_err().to_string();
        assert!(error.contains("did not come to the same call"), "{error}");
        let on_a_thread = || check_in_two_processes(&Sound(BTreeMap::new())).unwrap_err().to_string();
        let error = std::thread::spawn(on_a_thread).join().unwrap();
        assert!(error.contains("the calling thread has no name"), "{error}");
    }
}
