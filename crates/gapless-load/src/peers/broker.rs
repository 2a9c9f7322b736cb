//! A broker as a process of the benchmark: found on the PATH, started in a directory of its own on free ports, its CPU
//! time read, and killed with everything that it started, however the benchmark ends.

use crate::peers::{PeerError, Result};
use gapless_measure::resources::cpu_ns_of;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A broker is up within this time.
pub const START_TIME_MAX: Duration = Duration::from_secs(60);
/// Between two looks whether it is.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Who left the process group of a broker ends by itself within this time.
const END_TIME: Duration = Duration::from_secs(2);
/// So much of the end of a log is shown, bytes.
const LAST_WORDS_LENGTH: usize = 400;
/// Standard output and standard error of a broker, in its directory.
const OUTPUT_FILE: &str = "output";
/// Starts the broker, and waits for the end of its standard input, which comes with the end of the benchmark, also with
/// one that nobody could notice; then it kills its process group, the broker and itself in it.
const GUARD: &str = r#""$@" </dev/null & cat >/dev/null; kill -s KILL -- -$$"#;

/// The program `name` as the PATH has it, links followed.
///
/// # Errors
/// When it is not there; `install` says how it gets there.
pub fn find(program: &'static str, install: &'static str) -> Result<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // Where a distribution puts servers, and an ordinary user's PATH seldom has it.
    let directories = std::env::split_paths(&paths).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = directories.map(|directory| directory.join(program)).find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok()).ok_or(PeerError::Missing { program, install })
}

/// An address of this machine that nobody uses now.
///
/// # Errors
/// When the system has none left.
pub fn free_address() -> Result<SocketAddr> {
    let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    found.map_err(|error| PeerError::io("find a free port", error))
}

/// A process of a broker, in a process group of its own: Ctrl-C does not reach it, its end comes from here.
#[derive(Debug)]
pub struct BrokerProcess {
    program: &'static str,
    guard: Child,
    directory: PathBuf,
}

impl BrokerProcess {
    /// Starts `path` in `directory`, which must be there; its output goes to a file there.
    ///
    /// # Errors
    /// A process that cannot be started.
    pub fn start(
        program: &'static str,
        path: &Path,
        arguments: &[OsString],
        environment: &[(&str, OsString)],
        directory: &Path,
    ) -> Result<Self> {
        let failed = |error| PeerError::io(format!("start {}", path.display()), error);
        let output = std::fs::File::create(directory.join(OUTPUT_FILE)).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARD, "sh"])
            .arg(path)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(directory).stdin(Stdio::piped()).stdout(output).stderr(errors).process_group(0);
        let guard = command.spawn().map_err(failed)?;
        // As `/proc` names it.
        let directory = directory.canonicalize().map_err(failed)?;
        Ok(Self { program, guard, directory })
    }

    /// Waits until `is_up` has a value.
    ///
    /// # Errors
    /// When it has none for [`START_TIME_MAX`], or the broker has ended: with the end of its output.
    pub fn wait_until_up<T>(&mut self, mut is_up: impl FnMut() -> Option<T>, stop: &dyn Fn() -> bool) -> Result<T> {
        let begin = Instant::now();
        loop {
            if let Some(value) = is_up() {
                return Ok(value);
            }
            if stop() {
                return Err(self.error("was not waited for: interrupted"));
            }
            // Beside the guard's own `cat` there is nobody left.
            if self.processes().len() <= 2 && begin.elapsed() > 4 * LOOK_INTERVAL {
                return Err(self.error("has ended"));
            }
            if begin.elapsed() > START_TIME_MAX {
                return Err(self.error(&format!("was not up within {} s", START_TIME_MAX.as_secs())));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// CPU time that all its processes have used, ns; of threads that have ended it is no longer known.
    pub fn cpu_ns(&self) -> u64 {
        self.processes().into_iter().filter_map(cpu_ns_of).sum()
    }

    /// Its process group, the guard among them, and who left the group but still works in the directory, as the process
    /// by which Erlang starts others does.
    pub fn processes(&self) -> Vec<u32> {
        let group = self.guard.id();
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let works_there =
            |pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place.starts_with(&self.directory));
        numbers.filter(|&pid| group_of(pid).is_some_and(|found| found == group || works_there(pid))).collect()
    }

    fn error(&self, what: &str) -> PeerError {
        let output = std::fs::read(self.directory.join(OUTPUT_FILE)).unwrap_or_default();
        let text = String::from_utf8_lossy(&output);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let from = words.char_indices().rev().nth(LAST_WORDS_LENGTH - 1).map_or(0, |(index, _)| index);
        PeerError::Broker { program: self.program, what: what.to_owned(), last_words: words[from..].to_owned() }
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.guard.id().cast_signed()) {
            // One that has ended by itself cannot be killed, and need not be.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.guard.wait();
        // A directory can be removed only when nobody works there any more: who left the group ends by itself when the
        // broker does, or is ended.
        let begin = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || begin.elapsed() > 2 * END_TIME {
                return;
            }
            if begin.elapsed() > END_TIME {
                let left = left.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed()));
                left.for_each(|pid| {
                    let _ = kill_process(pid, Signal::KILL);
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The process group of a process that has not ended.
fn group_of(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; behind it stand state, parent and group.
    let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?;
    words.nth(1)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::until_some;

    fn start(directory: &Path, script: &str) -> BrokerProcess {
        let arguments = ["-c", script].map(OsString::from);
        BrokerProcess::start("sh", Path::new("/bin/sh"), &arguments, &[("WORD", "hello".into())], directory).unwrap()
    }

    #[test]
    fn it_ends_with_all_that_it_has_started() {
        let directory = tempfile::tempdir().unwrap();
        let mut broker = start(directory.path(), "sleep 1000 & sleep 1000 & echo $WORD > up; wait");
        let is_up = || std::fs::read_to_string(directory.path().join("up")).ok().filter(|text| !text.is_empty());
        assert_eq!(broker.wait_until_up(is_up, &|| false).unwrap(), "hello\n");
        let group = broker.guard.id();
        assert!(broker.processes().len() >= 4, "guard, cat, shell and its two");
        drop(broker);
        let left =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        assert_eq!(left.filter(|&pid: &u32| group_of(pid) == Some(group)).count(), 0);
    }

    #[test]
    fn it_ends_also_when_nobody_is_left_to_stop_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut broker = start(directory.path(), "sleep 1000");
        until_some("a broker", || (broker.processes().len() >= 3).then_some(()));
        // As the end of this process would do.
        drop(broker.guard.stdin.take());
        until_some("its end", || broker.processes().is_empty().then_some(()));
    }

    #[test]
    fn an_end_before_it_is_up_says_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut broker = start(directory.path(), "echo the port is taken; exit 1");
        let error = broker.wait_until_up(|| None::<()>, &|| false).unwrap_err().to_string();
        assert_eq!(error, "sh has ended: the port is taken");
        // The end of the next one waits for all that work in its directory.
        drop(broker);
        let mut broker = start(directory.path(), "sleep 1000");
        let error = broker.wait_until_up(|| None::<()>, &|| true).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn its_cpu_time_grows_with_its_work() {
        let directory = tempfile::tempdir().unwrap();
        let broker = start(directory.path(), "while :; do :; done");
        until_some("work", || (broker.cpu_ns() > 20_000_000).then_some(()));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_way_to_get_it() {
        let error = find("no-such-broker", "apt-get install no-such-broker").unwrap_err().to_string();
        assert_eq!(error, "no-such-broker is not on the PATH: apt-get install no-such-broker");
        assert!(find("sh", "").unwrap().is_absolute());
        assert!(free_address().unwrap().port() > 0);
    }
}
