//! The driver in processes of its own: their record of acknowledged messages outlives a service that is killed.

use super::load::{client_options, load_of};
use super::{NAME, failed, finish};
use crate::child_process::{Child, ChildRole, OrphanPolicy, Parent, receive_all};
use crate::histogram::RecordedRun;
use crate::options::{MessageEncoding, RunSettings};
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_agent::{Clock, Pauses};
use gapless_engine::ServiceHost;
use gapless_load::canonical::driver::{CanonicalLoad, DriverSignals, LoadOutcome, drive};
use gapless_load::canonical::form::CarFunctions;
use gapless_measure::affinity::pin_current_thread;
use gapless_measure::progress::BenchProgress;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ClientAssignment {
    socket: PathBuf,
    encoding: String,
    load: CanonicalLoad,
    cpus: Option<Vec<usize>>,
}

/// A client process: does the work of `assignment` and answers its [`LoadOutcome`].
pub(crate) fn main(assignment: &str) -> Result<()> {
    let assignment: ClientAssignment = serde_json::from_str(assignment)?;
    let encoding: MessageEncoding = assignment.encoding.parse().map_err(BenchError::Option)?;
    let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
    if let Some(cpus) = &assignment.cpus {
        pin_current_thread(cpus)?;
    }
    let mut client = PolledClient::connect(&assignment.socket, client_options()).map_err(failed)?;
    let (clock, _) = Clock::fastest();
    let (form, signals) = (CarFunctions::of(encoding), DriverSignals::default());
    let pauses = &Pauses::default;
    let mut outcome = drive(&form, &mut client, &assignment.load, &clock, &signals, &mut |_| (), pauses)?;
    outcome.latencies.intervals.clear();
    parent.send(&outcome)
}

fn add(all: &mut LoadOutcome, one: LoadOutcome) {
    all.sent += one.sent;
    all.replied += one.replied;
    all.repeats += one.repeats;
    all.replies_again += one.replies_again;
    all.repeats_differing += one.repeats_differing;
    all.replies_wrong += one.replies_wrong;
    all.refused = all.refused.take().or(one.refused);
    all.counted += one.counted;
    all.elapsed_ns = all.elapsed_ns.max(one.elapsed_ns);
    all.driver_cpu_ns += one.driver_cpu_ns;
    all.counted_from_ns = all.counted_from_ns.max(one.counted_from_ns);
    all.rate_reached = match (all.rate_reached, one.rate_reached) {
        (Some(one), Some(other)) => Some(one && other),
        (one, other) => one.or(other),
    };
    all.warm_up_cut_short |= one.warm_up_cut_short;
    all.payload_bytes = one.payload_bytes;
    all.expected.cars += one.expected.cars;
    all.expected.sum = all.expected.sum.wrapping_add(one.expected.sum);
    all.latencies.total.merge(&one.latencies.total);
}

/// Returns the outcome of all processes, and the CPU time of this one.
pub(super) fn drive_outside(
    settings: &RunSettings,
    host: &ServiceHost,
    driver_cpus: Option<&[usize]>,
    progress: &BenchProgress,
    interrupted: &AtomicBool,
) -> Result<(LoadOutcome, u64)> {
    let socket = host.socket_path().ok_or_else(|| failed("the node has no socket"))?.to_owned();
    let processes = u64::from(settings.client_processes);
    let whole = load_of(settings);
    let cpu_before = crate::resources::process_cpu_ns();
    let mut clients = Vec::new();
    for number in 0..processes {
        let share = |total: u64| total / processes + u64::from(number < total % processes);
        let load = CanonicalLoad {
            count: share(whole.count),
            rate_per_s: whole.rate_per_s.map(|rate| share(rate).max(1)),
            sessions: share(whole.sessions).max(1),
            ..whole.clone()
        };
        let cpus = driver_cpus.map(<[usize]>::to_vec);
        let assignment =
            ClientAssignment { socket: socket.clone(), encoding: settings.encoding.to_string(), load, cpus };
        let name = format!("client process {}", number + 1);
        clients.push(Child::start(NAME, &name, (ChildRole::CanonicalClient, &assignment), interrupted)?);
    }
    let mut look = || {
        progress.set_position(progress.position());
        host.failure().map_or(Ok(()), |failure| Err(failed(failure)))
    };
    let outcomes = receive_all(&mut clients, &mut look).map_err(|error| match interrupted.load(Ordering::Relaxed) {
        true => failed("interrupted; client processes give no figures before their end"),
        false => error,
    })?;
    clients.into_iter().try_for_each(finish)?;
    let mut all = LoadOutcome::default();
    outcomes.into_iter().for_each(|outcome| add(&mut all, outcome));
    all.latencies = RecordedRun::of_one_interval(all.latencies.total, all.elapsed_ns);
    // The service does not know which messages the clients count: its time is shared out over all of them.
    let service_cpu_ns = crate::resources::process_cpu_ns() - cpu_before;
    let counted = service_cpu_ns as f64 * all.counted as f64 / all.sent.max(1) as f64;
    Ok((all, counted as u64))
}
