//! Simulates whole clusters of shipped members on virtual time and a virtual network, from one seed.
//!
//! The members are those of `gapless-cluster`, with their journals, links, handshakes and consensus. Only their
//! environment is replaced: connections, clocks, randomness, threads. A run has a phase of faults, which checks safety,
//! and then a calm phase, which checks liveness. The same seed gives the same run.
//!
//! | module | what lives there |
//! |---|---|
//! | `command_application` | the simulator's own command bus: accounts, and transfers between two of them |
//! | [`store_application`] | [`StoreApplication`], the simulator's own application with replicated state |
//! | [`ledger`] | [`Ledger`] and [`Bulletin`], the simulator's own applications |
//! | `fault_injector` | the faults of machines and network |
//! | `simulation` | one run: machines, network, workloads and faults, step by step |
//! | `second_pass` | the check of a run in a second process, and where the two differ |
//! | `second_process` | how a second process reaches the same call of the simulator |
//! | `machine` | a member with its disk and its clock |
//! | `fault_profile` | how likely each fault is |
//! | `network` | connections of bytes on virtual time |
//! | `disk` | the effects of a loss of power |
//! | `faulty_disk` | a disk that is full, or fails |
//! | `publishing_node` | nodes of an event stream, which publish and resend |
//! | `service_client` | clients of a service, which resend commands without a reply |
//! | `workload` | `Workload`s: publishing nodes of an event stream or clients of a service |
//! | `system_under_test` | the applications of the members and the messages to them, for each kind of application |
//! | [`application`] | [`Application`] and [`StateApplication`]: the service and the messages |
//! | [`report`] | [`Tally`] and [`SimulationFailure`]: the result of a run |
//! | [`options`] | [`Options`], [`ClusterShape`] and [`ApplicationKind`]: size and kind of a run |
//! | [`random`] | dice |
//! | `observed_service` | a service whose state hashes the simulator sees before its member does |
//! | `reference` | the expected replies of the service |
//! | `record` | the released frames of a run and their results |
//! | `output` | the output of a handler, for comparison and for reports |
//! | `handler_fault` | defects of a handler that stop the service |
//! | `wall_clock` | the time of day of a thread |
//! | `checker` | the invariants |
//! | `trace` | the events, folded into one number |
//!
//! ```
//! use gapless_sim::{Ledger, Options, simulate};
//! let options = Options { messages: 5, faults_ms: 200, ..Options::default() };
//! let first = simulate(&Ledger::default(), &options, 1)?;
//! assert_eq!(first.acknowledged, 5 * 2);
//! assert_eq!(simulate(&Ledger::default(), &options, 1)?, first);
//! # Ok::<(), Box<gapless_sim::SimulationFailure>>(())
//! ```

#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/simulating.md")]
struct Guide;

pub mod application;
mod checker;
mod command_application;
mod disk;
mod fault_injector;
mod fault_profile;
mod faulty_disk;
mod handler_fault;
pub mod ledger;
mod machine;
mod network;
mod observed_service;
pub mod options;
mod output;
mod publishing_node;
pub mod random;
mod record;
mod reference;
pub mod report;
mod second_pass;
mod second_process;
mod service_client;
mod simulation;
pub mod store_application;
mod system_under_test;
mod trace;
mod wall_clock;
mod workload;

use crate::options::MS;
pub use application::{Application, StateApplication};
pub use ledger::{Bulletin, Ledger};
pub use options::{ApplicationKind, ClusterShape, Options, SecondPass};
pub use random::Random;
pub use report::{SimulationFailure, Tally};
pub use store_application::StoreApplication;

use command_application::CommandApplication;
use handler_fault::FailurePlace;
use record::RunRecord;
use second_process::{ProcessRole, SimulationCall};
use simulation::Simulation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use system_under_test::{StateSystem, SystemUnderTest};

/// Runs `application` on a cluster, with the faults of `seed`.
///
/// # Errors
/// A broken promise, including a panic, or no place for the members' files.
pub fn simulate<A: Application>(
    application: &A,
    options: &Options,
    seed: u64,
) -> Result<Tally, Box<SimulationFailure>> {
    const {
        assert!(
            matches!(A::APPLICATION_KIND, ApplicationKind::EventStream | ApplicationKind::Service),
            "a replicated state is for a StateApplication and simulate_state"
        );
    }
    simulate_system(application, options, seed)
}

/// Runs a service whose state is replicated; see [`simulate`].
///
/// # Errors
/// See [`simulate`].
pub fn simulate_state<A: StateApplication>(
    application: &A,
    options: &Options,
    seed: u64,
) -> Result<Tally, Box<SimulationFailure>> {
    simulate_system(&StateSystem(application), options, seed)
}

fn simulate_system(
    system: &impl SystemUnderTest,
    options: &Options,
    seed: u64,
) -> Result<Tally, Box<SimulationFailure>> {
    if options.second_pass == SecondPass::Off {
        return second_process::once(seed, || run_once(system, options, seed).outcome);
    }
    let failed = |reason: String, tally: Tally| {
        Box::new(SimulationFailure { seed, at_ms: tally.virtual_ns / MS, reason, state: String::new(), tally })
    };
    let call = SimulationCall::begin(options, seed).map_err(|reason| failed(reason, Tally::default()))?;
    match call.role() {
        ProcessRole::First => {}
        ProcessRole::Known(outcome) => return *outcome,
        ProcessRole::Second(assignment) => second_pass::answer(system, options, seed, assignment),
    }
    let SimulationRun { mut outcome, record, snapshot } = run_once(system, options, seed);
    if let (Ok(tally), Some(record)) = (&outcome, record) {
        let tally = *tally;
        let snapshots = std::iter::once(None).chain(snapshot.map(Some)).collect();
        match call.again(record, tally, snapshots) {
            Ok(None) => {}
            Ok(Some(reason)) | Err(reason) => outcome = Err(failed(reason, tally)),
        }
    }
    call.end(&outcome);
    outcome
}

struct SimulationRun {
    outcome: Result<Tally, Box<SimulationFailure>>,
    /// `None` where several histories may exist.
    record: Option<RunRecord>,
    snapshot: Option<Vec<u8>>,
}

fn run_once(system: &impl SystemUnderTest, options: &Options, seed: u64) -> SimulationRun {
    let without = |outcome| SimulationRun { outcome, record: None, snapshot: None };
    let no_place = |reason: String| {
        without(Err(Box::new(SimulationFailure {
            seed,
            at_ms: 0,
            reason,
            state: String::new(),
            tally: Tally::default(),
        })))
    };
    let directory = match directory() {
        Ok(directory) => directory,
        Err(error) => return no_place(format!("no directory for the members: {error}")),
    };
    let mut simulation = match Simulation::new(system, options, seed, directory.path()) {
        Ok(simulation) => simulation,
        Err(reason) => return no_place(reason),
    };
    // A panic is a broken promise, too, and is reported with its seed.
    let outcome = catch_unwind(AssertUnwindSafe(|| simulation.run()))
        .unwrap_or_else(|panic| Err(format!("it panics: {}", panic_text(&*panic))));
    let tally = simulation.tally();
    let (state, place) = (simulation.describe(), simulation.place());
    let record = simulation.take_record();
    match outcome {
        Ok(()) => {
            let has_steps = record.as_ref().is_some_and(|record| !record.steps.is_empty());
            let snapshot = if has_steps { simulation.any_snapshot() } else { None };
            SimulationRun { outcome: Ok(tally), record, snapshot }
        }
        Err(reason) => {
            let reason = match place.zip(record.as_ref()) {
                Some((FailurePlace::Fault(sequence), record)) => {
                    second_pass::with_message(system, seed, record, sequence, &reason)
                }
                Some((FailurePlace::Divergence(sequence), record)) => {
                    second_pass::with_difference(system, seed, record, sequence, &reason)
                }
                None => reason,
            };
            let at_ms = tally.virtual_ns / MS;
            SimulationRun { record, ..without(Err(Box::new(SimulationFailure { seed, at_ms, reason, state, tally }))) }
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word")
}

/// Runs one of the simulator's own applications. The seed chooses among a service, replicated state and an event
/// stream, sometimes with long messages, and whether older copies of directories are put back. `offer` fixes the kind;
/// a command bus runs only on request.
///
/// # Errors
/// See [`simulate`].
pub fn simulate_own(
    offer: Option<ApplicationKind>,
    options: &Options,
    seed: u64,
) -> Result<Tally, Box<SimulationFailure>> {
    let mut random = Random::of(seed, &[11]);
    let (drawn, is_bulky) = (random.happens_per_100_000(60_000), random.happens_per_100_000(15_000));
    // Separate dice, so that other seeds keep their runs.
    let is_replicated = Random::of(seed, &[13]).happens_per_100_000(40_000);
    let drawn = match (drawn, is_replicated) {
        (false, _) => ApplicationKind::EventStream,
        (true, false) => ApplicationKind::Service,
        (true, true) => ApplicationKind::State,
    };
    let options = &Options { puts_copies_back: true, ..options.clone() };
    match offer.unwrap_or(drawn) {
        ApplicationKind::Service => simulate(&Ledger { is_bulky }, options, seed),
        ApplicationKind::Commands => simulate_system(&CommandApplication::of(seed), options, seed),
        ApplicationKind::State => simulate_state(&StoreApplication { is_bulky }, options, seed),
        ApplicationKind::EventStream => simulate(&Bulletin { is_bulky }, options, seed),
    }
}

/// Prefers memory, so that runs do not wait for a device.
fn directory() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let builder = || tempfile::Builder::new().prefix("gapless-sim-").rand_bytes(8).to_owned();
    match builder().tempdir_in(memory) {
        Ok(directory) => Ok(directory),
        Err(_) => builder().tempdir(),
    }
}
