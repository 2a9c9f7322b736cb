//! Rows of the client that tasks share, beside the polled client: round trips, queries, and the rate of 1,000 tasks.

use super::{compare, failed, named, print_measured};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use gapless::client::{CallOptions, ClientError};
use gapless::host::HostError;
use gapless::prelude::*;
use gapless_load::components::shared_clients::{
    command_length, commands_of_tasks_per_s, polled_commands, shared_commands, shared_queries, start,
};
use gapless_measure::affinity::{pair_of_cores, pin_current_thread};
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::{Report, Row};

/// Round trips of each kind in turn, so that a change of the machine meets them all.
const ROUNDS: usize = 5;
const TASKS: u64 = 1_000;
const TASK_THREADS: usize = 2;
const TASK_SESSIONS: usize = 16;
const COMMANDS_PER_ROUND_TRIP: u64 = 1_000;
/// Longer than a stall of a busy machine: a spinning call does not sleep.
const SPIN: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum RoundTrip {
    Polled,
    Task,
    Query,
    SleepingTask,
}

impl RoundTrip {
    const ALL: [Self; 4] = [Self::Polled, Self::Task, Self::Query, Self::SleepingTask];

    const fn name(self) -> &'static str {
        match self {
            Self::Polled => "typed command, polled client",
            Self::Task => "typed command, one task, spinning",
            Self::Query => "query, one task, spinning",
            Self::SleepingTask => "typed command, one task, woken across threads",
        }
    }
}

pub fn floors() -> Result<[(FloorKind, u64); 2]> {
    let bytes = command_length()? + HEADER_BYTES;
    Ok([(FloorKind::ShmPingPong, bytes), (FloorKind::ShmStream, bytes)])
}

/// Appends the rows, of `count` round trips each.
pub fn measure(report: &mut Report, threads: Threads, count: u64) -> Result<()> {
    let cpus = pair_of_cores();
    let measured = std::thread::scope(|scope| {
        let driver = scope.spawn(|| {
            if let Some((first, _)) = cpus {
                pin_current_thread(&[first])?;
            }
            round_trips(&threads, count)
        });
        driver.join().unwrap_or_else(|_| Err(failed("messaging", "the client panicked")))
    });
    let length = command_length()?;
    let mut medians_ns = Vec::new();
    for (kind, histogram) in RoundTrip::ALL.into_iter().zip(measured?) {
        let mut row = named(kind.name(), length, count);
        row.latency_ns = histogram.latency_ns();
        medians_ns.extend(row.latency_ns.map(|latency| latency.p50));
        compare(&mut row, report, FloorKind::ShmPingPong, length + HEADER_BYTES);
        add(report, row);
    }
    if let [polled, task, query, _] = medians_ns[..] {
        let more = task as f64 - polled as f64;
        report.notes.push(format!("one task, spinning: {:+.2} µs against the polled client (p50)", more / 1e3));
        let ratio = query as f64 / task.max(1) as f64;
        report.notes.push(format!("query: {ratio:.2} times a spinning call of the same client (p50)"));
    }
    let mut row = named("typed commands, 1,000 tasks on two threads", length, count * COMMANDS_PER_ROUND_TRIP);
    row.throughput_per_s = Some(rate_of_tasks(count * COMMANDS_PER_ROUND_TRIP)?);
    compare(&mut row, report, FloorKind::ShmStream, length + HEADER_BYTES);
    add(report, row);
    Ok(())
}

fn round_trips(threads: &Threads, count: u64) -> Result<[LatencyHistogram; 4]> {
    let host = start(threads.clone())?;
    let polled = || host.polled_client(ClientOptions::default()).map_err(of_host);
    let shared = |spin| Client::over(polled()?, CallOptions { spin, ..CallOptions::default() }).map_err(of_client);
    let mut histograms = [(); 4].map(|()| LatencyHistogram::new());
    let each = count.div_ceil(ROUNDS as u64);
    for _ in 0..ROUNDS {
        for (kind, histogram) in RoundTrip::ALL.into_iter().zip(&mut histograms) {
            let measured = match kind {
                RoundTrip::Polled => {
                    let mut client = polled()?;
                    let session = client.open_session(random_token(), 16).map_err(of_client)?;
                    polled_commands(&mut client, session, each)?
                }
                RoundTrip::Task => shared_commands(&shared(SPIN)?, each)?,
                RoundTrip::Query => shared_queries(&shared(SPIN)?, each)?,
                RoundTrip::SleepingTask => shared_commands(&shared(Duration::ZERO)?, each)?,
            };
            histogram.merge(&measured);
        }
    }
    host.stop().map_err(of_host)?;
    Ok(histograms)
}

/// Client and service choose their cores by themselves.
fn rate_of_tasks(count: u64) -> Result<f64> {
    let host = start(Threads { callers_hot: TASK_THREADS, ..Threads::default() })?;
    let polled = host.polled_client(ClientOptions::default()).map_err(of_host)?;
    let client =
        Client::over(polled, CallOptions { sessions: TASK_SESSIONS, ..CallOptions::default() }).map_err(of_client)?;
    let measured = commands_of_tasks_per_s(&client, TASKS, TASK_THREADS, count.div_ceil(10))
        .and_then(|_| commands_of_tasks_per_s(&client, TASKS, TASK_THREADS, count));
    drop(client);
    host.stop().map_err(of_host)?;
    measured
}

fn add(report: &mut Report, mut row: Row) {
    row.config.tier = Some("memory".to_owned());
    row.verified = Some(true);
    print_measured(std::slice::from_ref(&row));
    report.rows.push(row);
}

fn of_host(error: HostError) -> crate::BenchError {
    failed("messaging", error)
}

fn of_client(error: ClientError) -> crate::BenchError {
    failed("messaging", error)
}
