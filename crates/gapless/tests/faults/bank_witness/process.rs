//! The bank's process: this very executable, started again with arguments that say so.

use super::direct;
use super::model::model;
use gapless::cqrs::{BusOptions, CommandHost, CommandHostOptions, CommandMember, DirectBus, HostError};
use gapless::prelude::*;
use gapless_testkit::process::{Process, started_as, this_program};
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// The first argument of a process that shall be the bank; its directory and its tier come behind it.
const BANK: &str = "bank_witness::bank";
/// The first argument of a process that shall be the bank on a member of a cluster; the member's file comes behind it.
const MEMBER: &str = "bank_witness::member";

/// The first argument of a process that shall be the bank and owns its bus; its directory and its tier come behind it.
const OWNER: &str = "bank_witness::owner";

/// Files of the index that are soon full, and few accounts in memory.
fn bus_options() -> CommandHostOptions {
    CommandHostOptions { aggregates_max: 8, index_entries_max: 300, ..CommandHostOptions::default() }
}

/// Small segments and windows, and frequent snapshots: a few thousand commands pass through everything that a bus does in weeks.
fn stream_options(directory: &Path, tier: Tier) -> ServiceHostOptions {
    ServiceHostOptions {
        tier,
        frame_length_max: 4096,
        window_bytes: 1 << 20,
        snapshot_interval_frames: Some(500),
        persistence: Persistence { segment_length_bytes: 256 << 10, ..Persistence::default() },
        // The journal beside the service, as on a larger machine.
        threads: Threads { detach_persister: true, ..Threads::default() },
        ..ServiceHostOptions::in_directory(directory)
    }
}

/// If this process was started to be the bank, is it until its input ends or it is killed.
pub fn be_the_bank_if_asked() {
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

/// Until the input ends.
fn serve<E: std::fmt::Display>(failure: impl Fn() -> Option<E>) {
    println!("ready");
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // An error is an end, too.
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

/// A running bank.
pub struct BankProcess {
    process: Process,
    /// Its end is the bank's end, also when this process dies.
    input: ChildStdin,
}

impl BankProcess {
    /// Starts a bank with `environment`.
    pub fn start(directory: &Path, tier: Tier, environment: &[(&str, &str)]) -> Self {
        Self::start_as(this_program().arg(BANK).arg(directory).arg(tier.name()), environment)
    }

    /// Starts a member of a cluster with that file, and with `environment`.
    pub fn start_member(file: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_as(this_program().arg(MEMBER).arg(file), environment)
    }

    /// Starts a bank that owns its bus, with `environment`.
    pub fn start_owner(directory: &Path, tier: Tier, environment: &[(&str, &str)]) -> Self {
        Self::start_as(this_program().arg(OWNER).arg(directory).arg(tier.name()), environment)
    }

    /// Writes to its input, if it lives, and says whether that was so.
    pub fn write(&mut self, text: &str) -> bool {
        self.input.write_all(text.as_bytes()).is_ok()
    }

    /// The next line that it says; `None` at its end.
    pub fn next_line(&mut self) -> Option<String> {
        self.process.next_line()
    }

    fn start_as(command: &mut Command, environment: &[(&str, &str)]) -> Self {
        command.env_remove("GAPLESS_CRASH_POINT").env_remove("GAPLESS_MUTANT");
        let mut process = Process::start(command.envs(environment.iter().copied()).stdin(Stdio::piped()));
        let input = process.input();
        Self { process, input }
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    /// Kills it with SIGKILL, if it lives.
    ///
    /// # Errors
    /// It has failed by itself, and why.
    pub fn kill(&mut self) -> Result<(), String> {
        self.process.kill();
        let (status, said) = (self.process.wait(), self.process.rest().join("\n"));
        match (status.signal(), &said[..]) {
            (Some(9), "" | "ready") => Ok(()),
            _ => Err(format!("the bank ended with {status} and said: {said}")),
        }
    }
}
