//! The bank runs in this executable, started again with arguments that select it.

use super::direct;
use super::model::model;
use gapless::cqrs::{AggregateOptions, BusOptions};
use gapless::host::Aggregates;
use gapless::prelude::*;
use gapless_testkit::process::{Process, started_as, this_program};
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

const BANK: &str = "bank_witness::bank";
const MEMBER: &str = "bank_witness::member";

const OWNER: &str = "bank_witness::owner";

fn options() -> AggregateOptions {
    AggregateOptions { aggregates_max: 8, index_entries_max: 300, ..AggregateOptions::default() }
}

/// Small segments and windows, and frequent snapshots: a few thousand commands cause the events of weeks.
fn host_on(directory: &Path, tier: Tier) -> Host<Aggregates> {
    let persistence = Persistence { segment_length_bytes: 256 << 10, ..Persistence::default() };
    let host = Host::in_directory(directory).tier(tier).frame_length_max(4096).window_bytes(1 << 20);
    host.snapshot_every(500).persistence(persistence).aggregates(model()).aggregate_options(options())
}

/// Does not return if this process was started as a bank.
pub fn run_bank_if_asked() {
    if let Some(arguments) = started_as(BANK) {
        let [directory, tier] = &arguments[..] else { panic!("two arguments are expected, not {arguments:?}") };
        let threads = Threads { detach_persister: true, ..Threads::default() };
        serve(host_on(Path::new(directory), tier.parse().unwrap()).threads(threads));
    }
    if let Some(arguments) = started_as(OWNER) {
        let [directory, tier] = &arguments[..] else { panic!("two arguments are expected, not {arguments:?}") };
        let bus = host_on(Path::new(directory), tier.parse().unwrap()).start_polled(&BusOptions::default());
        let mut bus = bus.unwrap_or_else(|error| failed(&error));
        direct::serve(&mut bus);
        end(bus.stop());
    }
    if let Some(arguments) = started_as(MEMBER) {
        serve(Host::member(&arguments[0]).aggregates(model()).aggregate_options(options()));
    }
}

fn serve(host: Host<Aggregates>) -> ! {
    let host = host.start().unwrap_or_else(|error| failed(&error));
    println!("ready");
    let stopping = host.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stopping.stop();
    });
    end(host.wait())
}

fn end<T, E: std::fmt::Display>(ended: Result<T, E>) -> ! {
    match ended {
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

    pub fn write(&mut self, text: &str) -> bool {
        self.input.write_all(text.as_bytes()).is_ok()
    }

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

    pub fn kill(&mut self) -> Result<(), String> {
        self.process.kill();
        let (status, said) = (self.process.wait(), self.process.rest().join("\n"));
        match (status.signal(), &said[..]) {
            (Some(9), "" | "ready") => Ok(()),
            _ => Err(format!("the bank ended with {status} and said: {said}")),
        }
    }
}
