//! The driver in processes of its own: what they have seen acknowledged outlives a service that is
//! killed.
//!
//! The parent starts this very program with a hidden subcommand; the work goes over as JSON in an
//! argument, the outcome comes back as JSON on standard output.

use super::driver::{Load, Outcome, Signals, drive, stream_error};
use super::form::Form;
use super::load::{client_options, load_of};
use super::processor::ProcessorState;
use crate::histogram::{Interval, LatencyHistogram, RecordedRun};
use crate::options::{MessageEncoding, RunSettings};
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_agent::{Clock, Pauses};
use gapless_report::affinity::pin_current_thread;
use gapless_report::progress::Progress;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The hidden subcommand of `gapless bench`.
pub const SUBCOMMAND: &str = "canonical-client";

/// What a client process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    socket: PathBuf,
    encoding: String,
    load: Load,
    cpu: Option<usize>,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    sent: u64,
    replied: u64,
    repeats: u64,
    replies_again: u64,
    repeats_differing: u64,
    replies_wrong: u64,
    refused: Option<(u64, String)>,
    counted: u64,
    elapsed_ns: u64,
    driver_cpu_ns: u64,
    counted_from_ns: u64,
    rate_reached: Option<bool>,
    warm_up_cut_short: bool,
    payload_bytes: u64,
    expected_cars: u64,
    expected_sum: u64,
    /// Latencies and how often each was seen.
    latencies_ns: Vec<(u64, u64)>,
}

/// A client process: does what `order` says and prints the answer.
///
/// # Errors
/// A malformed order, a service that cannot be reached or goes away.
pub fn main(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order)?;
    let encoding: MessageEncoding = order.encoding.parse().map_err(BenchError::Option)?;
    if let Some(cpu) = order.cpu {
        pin_current_thread(&[cpu])?;
    }
    let mut client = Client::connect(&order.socket, client_options()).map_err(stream_error)?;
    let (clock, _) = Clock::fastest();
    let (form, signals) = (Form::of(encoding), Signals::default());
    let pauses = &Pauses::default;
    let outcome = drive(&form, &mut client, &order.load, &clock, &signals, &mut |_| (), pauses, &mut || Ok(0))?;
    println!("{}", serde_json::to_string(&Answer::from(outcome))?);
    Ok(())
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self {
            sent: outcome.sent,
            replied: outcome.replied,
            repeats: outcome.repeats,
            replies_again: outcome.replies_again,
            repeats_differing: outcome.repeats_differing,
            replies_wrong: outcome.replies_wrong,
            refused: outcome.refused,
            counted: outcome.counted,
            elapsed_ns: outcome.elapsed_ns,
            driver_cpu_ns: outcome.driver_cpu_ns,
            counted_from_ns: outcome.counted_from_ns,
            rate_reached: outcome.rate_reached,
            warm_up_cut_short: outcome.warm_up_cut_short,
            payload_bytes: outcome.payload_bytes,
            expected_cars: outcome.expected.cars,
            expected_sum: outcome.expected.sum,
            latencies_ns: outcome.latencies.total.values().collect(),
        }
    }
}

/// Adds one process's answer to the outcome of all.
fn add(all: &mut Outcome, latencies: &mut LatencyHistogram, answer: Answer) {
    all.sent += answer.sent;
    all.replied += answer.replied;
    all.repeats += answer.repeats;
    all.replies_again += answer.replies_again;
    all.repeats_differing += answer.repeats_differing;
    all.replies_wrong += answer.replies_wrong;
    all.refused = all.refused.take().or(answer.refused);
    all.counted += answer.counted;
    all.elapsed_ns = all.elapsed_ns.max(answer.elapsed_ns);
    all.driver_cpu_ns += answer.driver_cpu_ns;
    all.counted_from_ns = all.counted_from_ns.max(answer.counted_from_ns);
    all.rate_reached = match (all.rate_reached, answer.rate_reached) {
        (Some(one), Some(other)) => Some(one && other),
        (one, other) => one.or(other),
    };
    all.warm_up_cut_short |= answer.warm_up_cut_short;
    all.payload_bytes = answer.payload_bytes;
    let gained = ProcessorState { cars: answer.expected_cars, sum: answer.expected_sum };
    all.expected.cars += gained.cars;
    all.expected.sum = all.expected.sum.wrapping_add(gained.sum);
    for (value, count) in answer.latencies_ns {
        latencies.record_many(value, count);
    }
}

/// Client processes; killed if they are still there when this is dropped.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended by itself cannot be killed, and need not be.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Drives from processes of their own; the outcome of all, and the CPU time of this process.
pub(super) fn drive_outside(
    settings: &RunSettings,
    host: &ServiceHost,
    driver_cpu: Option<usize>,
    progress: &Progress,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Outcome, u64)> {
    let failed = |reason: String| BenchError::Measurement { name: "canonical", reason };
    let socket = host.socket_path().ok_or_else(|| failed("the node has no socket".to_owned()))?.to_owned();
    let program = std::env::current_exe().map_err(|source| BenchError::system("find this program", source))?;
    let processes = u64::from(settings.client_processes);
    let whole = load_of(settings);
    let cpu_before = crate::resources::process_cpu_ns();
    let mut children = Children(Vec::new());
    for number in 0..processes {
        let share = |total: u64| total / processes + u64::from(number < total % processes);
        let load = Load {
            count: share(whole.count),
            rate_per_s: whole.rate_per_s.map(|rate| share(rate).max(1)),
            sessions: share(whole.sessions).max(1),
            ..whole.clone()
        };
        let order = Order { socket: socket.clone(), encoding: settings.encoding.to_string(), load, cpu: driver_cpu };
        let child = Command::new(&program)
            .args(["bench", SUBCOMMAND, &serde_json::to_string(&order)?])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| BenchError::system("start a client process", source))?;
        children.0.push(child);
    }
    let (mut all, mut latencies) = (Outcome::default(), LatencyHistogram::new());
    while !children.0.is_empty() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(failed("interrupted; client processes give no figures before their end".to_owned()));
        }
        if let Some(failure) = host.failure() {
            return Err(failed(failure.to_string()));
        }
        progress.set_position(progress.position());
        let mut still = Vec::new();
        for mut child in std::mem::take(&mut children.0) {
            match child.try_wait().map_err(|source| BenchError::system("wait for a client process", source))? {
                None => still.push(child),
                Some(status) => {
                    let mut text = String::new();
                    if let Some(mut stdout) = child.stdout.take() {
                        stdout
                            .read_to_string(&mut text)
                            .map_err(|source| BenchError::system("read from a client process", source))?;
                    }
                    if !status.success() {
                        children.0 = still;
                        return Err(failed(format!("a client process ended with {status}")));
                    }
                    add(&mut all, &mut latencies, serde_json::from_str(&text)?);
                }
            }
        }
        children.0 = still;
        std::thread::sleep(Duration::from_millis(20));
    }
    let interval = Interval { start_ns: 0, length_ns: all.elapsed_ns, histogram: latencies.clone() };
    all.latencies = RecordedRun { total: latencies, intervals: vec![interval] };
    // The service does not know which messages the clients count: its time is shared out over all of them.
    let service_cpu_ns = crate::resources::process_cpu_ns() - cpu_before;
    let counted = service_cpu_ns as f64 * all.counted as f64 / all.sent.max(1) as f64;
    Ok((all, counted as u64))
}
