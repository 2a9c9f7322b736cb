//! The service's process: this very executable, started again with arguments that say so.

use super::bank::Bank;
use super::state_bank::StateBank;
use gapless::journal::Retention;
use gapless::prelude::*;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// The first argument of a process that shall be the service; its directory, its tier and its kind come behind it.
const SERVICE: &str = "fault_witness::service";

/// How the service keeps its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    EventSourced,
    StateReplicated,
}

/// Small segments, frequent snapshots and hardly any retention: a few thousand commands pass through
/// everything that a journal does in weeks.
fn options(directory: &Path, tier: Tier) -> ServiceHostOptions {
    ServiceHostOptions {
        tier,
        frame_length_max: 4096,
        window_bytes: 1 << 20,
        snapshot_interval_frames: Some(500),
        persistence: Persistence {
            segment_length_bytes: 256 << 10,
            retention: Retention { bytes_max: Some(512 << 10), age_max_ns: None },
            ..Persistence::default()
        },
        // The journal beside the service, as on a larger machine.
        threads: Threads { detach_persister: true, ..Threads::default() },
        ..ServiceHostOptions::in_directory(directory)
    }
}

/// If this process was started to be the service, is it until its input ends or it is killed.
pub fn be_the_service_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, directory, tier, kind] = &arguments[..] else { return };
    if role != SERVICE {
        return;
    }
    let options = options(Path::new(directory), tier.parse().unwrap());
    let host = match *kind == format!("{:?}", Kind::EventSourced) {
        true => ServiceHost::start(Bank::default(), options),
        false => ServiceHost::start_state(StateBank::new, options),
    };
    let host = match host {
        Ok(host) => host,
        Err(error) => {
            println!("failed: {error}");
            std::process::exit(3);
        }
    };
    println!("ready");
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // An error is an end, too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    while end.recv_timeout(Duration::from_millis(20)).is_err() {
        if let Some(failure) = host.failure() {
            println!("failed: {failure}");
            std::process::exit(4);
        }
    }
    match host.stop() {
        Ok(_) => std::process::exit(0),
        Err(error) => {
            println!("failed: {error}");
            std::process::exit(5);
        }
    }
}

/// A running service.
pub struct ServiceProcess {
    child: Child,
    /// Its end is the service's end, also when this process dies.
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl ServiceProcess {
    /// Starts a service with `environment`.
    pub fn start(directory: &Path, tier: Tier, kind: Kind, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env_remove("GAPLESS_CRASH_POINT").env_remove("GAPLESS_MUTANT");
        command.arg(SERVICE).arg(directory).arg(tier.name()).arg(format!("{kind:?}"));
        command.envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Waits until clients can connect. False if the service was killed before.
    ///
    /// # Errors
    /// It failed by itself, and why.
    pub fn is_ready(&mut self) -> Result<bool, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        match line.trim() {
            "ready" => Ok(true),
            "" => Ok(false),
            other => Err(format!("the service says: {other}")),
        }
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        // Fails only if it is dead already.
        let _ = self.child.kill();
    }

    /// Lets it end by itself.
    pub fn ask_to_stop(&mut self) {
        self.input = None;
    }

    /// Whether it is still there.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end; what it said after it was ready.
    pub fn wait(&mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        self.kill();
        // It is dead; nobody needs its status.
        let _ = self.child.wait();
    }
}
