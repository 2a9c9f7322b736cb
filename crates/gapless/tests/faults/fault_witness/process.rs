//! The service runs in this executable, started again with arguments that select it.

use super::bank::Bank;
use super::state_bank::StateBank;
use gapless::journal::Retention;
use gapless::prelude::*;
use gapless_testkit::process::{Process, started_as, this_program};
use std::io::Read;
use std::path::Path;
use std::process::{ChildStdin, ExitStatus, Stdio};

const SERVICE: &str = "fault_witness::service";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    EventSourced,
    StateReplicated,
}

/// Small segments, frequent snapshots, hardly any retention: a few thousand commands cause the events of weeks.
fn host_on(directory: &Path, tier: Tier) -> Host {
    let persistence = Persistence {
        segment_length_bytes: 256 << 10,
        retention: Retention { bytes_max: Some(512 << 10), age_max_ns: None },
        ..Persistence::default()
    };
    let host =
        Host::in_directory(directory).tier(tier).frame_length_max(4096).window_bytes(1 << 20).snapshot_every(500);
    host.persistence(persistence).threads(Threads { detach_persister: true, ..Threads::default() })
}

/// Does not return if this process was started as the service.
pub fn be_the_service_if_asked() {
    let Some(arguments) = started_as(SERVICE) else { return };
    let [directory, tier, kind] = &arguments[..] else { panic!("three arguments are expected, not {arguments:?}") };
    let host = host_on(Path::new(directory), tier.parse().unwrap());
    let host = match *kind == format!("{:?}", Kind::EventSourced) {
        true => host.service_from(Bank::default),
        false => host.replicated_state(StateBank::new),
    };
    let host = match host.start() {
        Ok(host) => host,
        Err(error) => {
            println!("failed: {error}");
            std::process::exit(3);
        }
    };
    println!("ready");
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    while end.recv_timeout(Duration::from_millis(20)).is_err() {
        if let Some(failure) = host.status().failure {
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

pub struct ServiceProcess {
    process: Process,
    /// Closed with this process, which ends the service.
    input: Option<ChildStdin>,
}

impl ServiceProcess {
    pub fn start(directory: &Path, tier: Tier, kind: Kind, environment: &[(&str, &str)]) -> Self {
        let mut command = this_program();
        command.env_remove("GAPLESS_CRASH_POINT").env_remove("GAPLESS_MUTANT");
        command.arg(SERVICE).arg(directory).arg(tier.name()).arg(format!("{kind:?}"));
        let mut process = Process::start(command.envs(environment.iter().copied()).stdin(Stdio::piped()));
        let input = Some(process.input());
        Self { process, input }
    }

    /// False if the service was killed before. The error is the reason of an earlier end.
    pub fn is_ready(&mut self) -> Result<bool, String> {
        match self.process.next_line().as_deref() {
            Some("ready") => Ok(true),
            None => Ok(false),
            Some(other) => Err(format!("the service says: {other}")),
        }
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn ask_to_stop(&mut self) {
        self.input = None;
    }

    pub fn is_alive(&mut self) -> bool {
        self.process.ended().is_none()
    }

    pub fn wait(&mut self) -> (ExitStatus, String) {
        let said = self.process.rest().join("\n");
        (self.process.wait(), said)
    }
}
