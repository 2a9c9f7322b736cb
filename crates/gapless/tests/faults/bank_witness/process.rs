//! The bank's process: this executable, started again with arguments that select it.

use super::direct;
use super::model::model;
use gapless::cqrs::{BusOptions, CommandHost, CommandHostOptions, CommandMember, DirectBus, HostError};
use gapless::prelude::*;
use gapless_testkit::process::{Process, started_as, this_program};
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// First argument of a bank's process, before its directory and its tier.
const BANK: &str = "bank_witness::bank";
/// First argument of a bank on a cluster member, before the member's file.
const MEMBER: &str = "bank_witness::member";

/// First argument of a bank that owns its bus, before its directory and its tier.
const OWNER: &str = "bank_witness::owner";

/// Index files that are soon full, and few accounts in memory.
fn bus_options() -> CommandHostOptions {
    CommandHostOptions { aggregates_max: 8, index_entries_max: 300, ..CommandHostOptions::default() }
}

/// Small segments and windows, and frequent snapshots: a few thousand commands cause everything that usually happens in
/// weeks.
fn stream_options(directory: &Path, tier: Tier) -> ServiceHostOptions {
    ServiceHostOptions {
        tier,
        frame_length_max: 4096,
        window_bytes: 1 << 20,
        snapshot_interval_frames: Some(500),
        persistence: Persistence { segment_length_bytes: 256 << 10, ..Persistence::default() },
        // The journaler has a thread of its own, as on a larger machine.
        threads: Threads { detach_persister: true, ..Threads::default() },
        ..ServiceHostOptions::in_directory(directory)
    }
}

/// Runs the bank if this process was started as one, until its input ends or it is killed.
pub fn run_bank_if_asked() {
    if let Some(arguments) = started_as(BANK) {
        let [directory, tier] = &arguments[..] else { panic!("two arguments are expected, not {arguments:?}") };
        let stream = stream_options(Path::new(directory), tier.parse().unwrap());
        let host = CommandHost::start(model(), bus_options(), stream).unwrap_or_else(|error| failed(&error));
        serve(|| host.service().failure());
        end(host.stop());
    }
    if let Some(arguments) = started_as(OWNER) {
        let [directory, tier] = &arguments[..] else { panic!("two arguments are expected, not {arguments:?}") };
        let stream = stream_options(Path::new(directory), tier.parse().unwrap());
        let bus = DirectBus::start(model(), bus_options(), stream, &BusOptions::default());
        let mut bus = bus.unwrap_or_else(|error| failed(&error));
        direct::serve(&mut bus);
        end(bus.stop());
    }
    if let Some(arguments) = started_as(MEMBER) {
        let config = ClusterConfig::load(&arguments[0]).unwrap_or_else(|error| failed(&error));
        let member = CommandMember::start(model(), bus_options(), &config).unwrap_or_else(|error| failed(&error));
        serve(|| member.replica().failure());
        end(member.stop());
    }
}

fn serve<E: std::fmt::Display>(failure: impl Fn() -> Option<E>) {
    println!("ready");
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // An error also counts as the end.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    while end.recv_timeout(Duration::from_millis(20)).is_err() {
        if let Some(failure) = failure() {
            failed(&failure);
        }
    }
}

fn end(stopped: Result<u64, HostError>) -> ! {
    match stopped {
        Ok(_) => std::process::exit(0),
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::fmt::Display) -> ! {
    println!("failed: {error}");
    std::process::exit(3);
}

pub struct BankProcess {
    process: Process,
    /// Closed with this process, which ends the bank.
    input: ChildStdin,
}

impl BankProcess {
    pub fn start(directory: &Path, tier: Tier, environment: &[(&str, &str)]) -> Self {
        Self::start_as(this_program().arg(BANK).arg(directory).arg(tier.name()), environment)
    }

    pub fn start_member(file: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_as(this_program().arg(MEMBER).arg(file), environment)
    }

    pub fn start_owner(directory: &Path, tier: Tier, environment: &[(&str, &str)]) -> Self {
        Self::start_as(this_program().arg(OWNER).arg(directory).arg(tier.name()), environment)
    }

    /// Writes to its input; returns whether it lives.
    pub fn write(&mut self, text: &str) -> bool {
        self.input.write_all(text.as_bytes()).is_ok()
    }

    /// Next line of its output; `None` at its end.
    pub fn next_line(&mut self) -> Option<String> {
        self.process.next_line()
    }

    fn start_as(command: &mut Command, environment: &[(&str, &str)]) -> Self {
        command.env_remove("GAPLESS_CRASH_POINT").env_remove("GAPLESS_MUTANT");
        let mut process = Process::start(command.envs(environment.iter().copied()).stdin(Stdio::piped()));
        let input = process.input();
        Self { process, input }
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    /// Kills it with SIGKILL, if it lives.
    ///
    /// # Errors
    /// The reason for which it has failed by itself.
    pub fn kill(&mut self) -> Result<(), String> {
        self.process.kill();
        let (status, said) = (self.process.wait(), self.process.rest().join("\n"));
        match (status.signal(), &said[..]) {
            (Some(9), "" | "ready") => Ok(()),
            _ => Err(format!("the bank ended with {status} and said: {said}")),
        }
    }
}
