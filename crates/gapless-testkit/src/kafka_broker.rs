//! A broker of Kafka 4 for tests: started, killed, started again on the same port and data, stopped.

use crate::ports::own_loopback;
use crate::process::Process;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PORT: u16 = 9092;
const CONTROLLER_PORT: u16 = 9093;
const INTERNAL_PORT: u16 = 9094;

/// One node of Kafka, with a loopback address of its own. It ends with its test.
#[derive(Debug)]
pub struct KafkaBroker {
    host: String,
    data: PathBuf,
    arguments: Vec<String>,
    process: Option<Process>,
    /// Metadata, and data where no other folder was given.
    folder: TempDir,
}

impl KafkaBroker {
    /// Starts one with arguments of `benchmarks/peers/kafka/broker`. `None`, visibly, where Java or Maven are missing.
    ///
    /// # Panics
    /// It does not start; or Java or Maven are missing and `GAPLESS_NEEDS_BROKER` is 1.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_at(own_loopback(), None, arguments)
    }

    /// Starts one at an address of the loopback; its records lie in `data`, such as a small disk, its metadata elsewhere.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn start_at(host: Ipv4Addr, data: Option<&Path>, arguments: &[&str]) -> Option<Self> {
        if !is_fetched() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let data = data.map_or_else(|| folder.path().join("data"), |data| data.join("data"));
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut broker = Self { host: host.to_string(), data, arguments, process: None, folder };
        broker.restart();
        Some(broker)
    }

    /// Address as `host:port`; the same after a restart.
    pub fn address(&self) -> String {
        format!("{}:{PORT}", self.host)
    }

    /// Starts it again with the records on its disk, and waits until it serves.
    ///
    /// # Panics
    /// It does not start.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        let mut command = Command::new(script());
        command.args(["--host", &self.host, "--port", &PORT.to_string()]);
        command.args(["--controller-port", &CONTROLLER_PORT.to_string()]);
        command.args(["--internal-port", &INTERNAL_PORT.to_string()]);
        command.arg("--data").arg(&self.data).arg("--metadata").arg(self.folder.path().join("metadata"));
        command.args(&self.arguments).stdin(Stdio::piped());
        let mut process = Process::start(&mut command);
        let line = process.next_line().expect("the broker starts; its reason stands above");
        assert!(line.contains(&self.address()), "the broker said {line}");
        self.process = Some(process);
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Output of a plain Java client: `benchmarks/peers/kafka/README.md` has its arguments.
    ///
    /// # Panics
    /// It fails.
    #[track_caller]
    pub fn java_client(&self, arguments: &[&str]) -> String {
        let (name, others) = arguments.split_first().expect("the first argument says what to do");
        let mut command = Command::new(script());
        let output = command.args(["--peer", name, &self.address()]).args(others).stdin(Stdio::null()).output();
        let output = output.expect("the script of the broker is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
        String::from_utf8(output.stdout).expect("the client prints text")
    }

    /// The process.
    ///
    /// # Panics
    /// It was killed.
    #[track_caller]
    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("it runs")
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/peers/kafka/broker")
}

/// Fetches it, once; false, visibly, where a program for that is missing.
#[track_caller]
fn is_fetched() -> bool {
    // The broker's own word for a missing program.
    const MISSING: i32 = 3;
    let output = Command::new(script()).arg("--fetch").output().expect("the script of the broker is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return true;
    }
    let is_missing = output.status.code() == Some(MISSING);
    let is_needed = std::env::var_os("GAPLESS_NEEDS_BROKER").is_some_and(|value| value == "1");
    assert!(is_missing && !is_needed, "Kafka cannot be fetched: {}: {said}", output.status);
    println!("SKIPPED: {}", said.trim());
    false
}
