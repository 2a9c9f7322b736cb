//! A broker as a process of the benchmark: found on the PATH, started in its own directory on free ports, and killed
//! with all its children, however the benchmark ends.

use crate::peers::{PeerError, Result};
use gapless_measure::resources::cpu_ns_of;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const START_TIME_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Grace for processes that have left the broker's process group.
const END_TIME: Duration = Duration::from_secs(2);
const LAST_WORDS_LENGTH: usize = 400;
const OUTPUT_FILE: &str = "output";
/// Starts the broker, and kills the process group when standard input ends, which any end of the benchmark causes.
const GUARD: &str = r#""$@" </dev/null & cat >/dev/null; kill -s KILL -- -$$"#;

/// Resolves links.
///
/// # Errors
/// The program is missing; `install` says how to install it.
pub fn find(program: &'static str, install: &'static str) -> Result<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // Server directories of distributions, seldom on a user's PATH.
    let directories = std::env::split_paths(&paths).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = directories.map(|directory| directory.join(program)).find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok()).ok_or(PeerError::Missing { program, install })
}

pub fn free_address() -> Result<SocketAddr> {
    let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    found.map_err(|error| PeerError::io("find a free port", error))
}

/// Processes in a group of their own: Ctrl-C does not reach it, so dropping this ends it.
#[derive(Debug)]
pub struct BrokerProcess {
    program: &'static str,
    guard: Child,
    directory: PathBuf,
}

impl BrokerProcess {
    /// `directory` must exist and gets the output as a file.
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
        // The path in the form of `/proc`.
        let directory = directory.canonicalize().map_err(failed)?;
        Ok(Self { program, guard, directory })
    }

    /// Waits until `is_up` returns a value.
    ///
    /// # Errors
    /// No value within [`START_TIME_MAX`]; the broker has ended, with the end of its output.
    pub fn wait_until_up<T>(&mut self, mut is_up: impl FnMut() -> Option<T>, stop: &dyn Fn() -> bool) -> Result<T> {
        let begin = Instant::now();
        loop {
            if let Some(value) = is_up() {
                return Ok(value);
            }
            if stop() {
                return Err(self.error("was not waited for: interrupted"));
            }
            // Only the guard and its `cat` are left.
            if self.processes().len() <= 2 && begin.elapsed() > 4 * POLL_INTERVAL {
                return Err(self.error("has ended"));
            }
            if begin.elapsed() > START_TIME_MAX {
                return Err(self.error(&format!("was not up within {} s", START_TIME_MAX.as_secs())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// All processes, ns, without threads that have ended.
    pub fn cpu_ns(&self) -> u64 {
        self.processes().into_iter().filter_map(cpu_ns_of).sum()
    }

    /// The process group with its guard, and processes that have left it but still work in the directory, such as
    /// Erlang's starter.
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
            // Fails harmlessly if the group has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.guard.wait();
        // The directory can be removed only once no process works there: those outside the group end with the broker,
        // or are killed.
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

fn group_of(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything.
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
    fn broker_ends_with_its_children() {
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
    fn orphaned_broker_ends() {
        let directory = tempfile::tempdir().unwrap();
        let mut broker = start(directory.path(), "sleep 1000");
        until_some("a broker", || (broker.processes().len() >= 3).then_some(()));
        drop(broker.guard.stdin.take());
        until_some("its end", || broker.processes().is_empty().then_some(()));
    }

    #[test]
    fn early_end_shows_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let mut broker = start(directory.path(), "echo the port is taken; exit 1");
        let error = broker.wait_until_up(|| None::<()>, &|| false).unwrap_err().to_string();
        assert_eq!(error, "sh has ended: the port is taken");
        drop(broker);
        let mut broker = start(directory.path(), "sleep 1000");
        let error = broker.wait_until_up(|| None::<()>, &|| true).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let directory = tempfile::tempdir().unwrap();
        let broker = start(directory.path(), "while :; do :; done");
        until_some("work", || (broker.cpu_ns() > 20_000_000).then_some(()));
    }

    #[test]
    fn missing_program_shows_install_hint() {
        let error = find("no-such-broker", "apt-get install no-such-broker").unwrap_err().to_string();
        assert_eq!(error, "no-such-broker is not on the PATH: apt-get install no-such-broker");
        assert!(find("sh", "").unwrap().is_absolute());
        assert!(free_address().unwrap().port() > 0);
    }
}
