//! Commands and queries of a counter: by the polled client, and by the client that tasks share.

use super::failed;
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_message::contract;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use tokio::runtime;

const REPLY_TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Add(u64);

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct ReadSum;

#[derive(Default, Serialize, Deserialize, State)]
struct Counter {
    sum: u64,
}

#[gapless::service]
impl Counter {
    #[command]
    fn add(&mut self, command: Add) -> u64 {
        self.sum += command.0;
        self.sum
    }

    #[query]
    fn read_sum(&self, _: ReadSum) -> u64 {
        self.sum
    }
}

/// A host in memory.
///
/// # Errors
/// The threads cannot be started.
pub fn start(threads: Threads) -> Result<gapless::Running> {
    Host::in_memory().threads(threads).service(Counter::default()).start().map_err(wrong)
}

/// Encoded length of a command with its contract, bytes.
///
/// # Errors
/// Encoding fails.
pub fn command_length() -> Result<u64> {
    let mut bytes = Vec::new();
    contract::encode_request(&Add(1), &mut bytes).map_err(wrong)?;
    Ok(bytes.len() as u64)
}

/// Typed commands of the polled client, one by one and spinning, after a warm-up.
///
/// # Errors
/// A late or a wrong reply.
pub fn polled_commands(client: &mut PolledClient, session: SessionKey, count: u64) -> Result<LatencyHistogram> {
    let (warm_up, mut histogram) = (count.div_ceil(10), LatencyHistogram::new());
    let Ok(before) = client.call_request(session, &Add(0), REPLY_TIME_MAX).map_err(wrong)?;
    for number in 0..warm_up + count {
        let begin = Instant::now();
        let sent = client.send_request(session, &Add(1)).map_err(wrong)?;
        let mut answer = None;
        while answer.is_none() {
            let polled = client.poll(16, |incoming| {
                if let Incoming::Reply { reply, .. } = incoming
                    && reply.session_seq == sent
                {
                    answer = Some(reply.answer::<Add>());
                }
            });
            polled.map_err(wrong)?;
            if answer.is_none() && begin.elapsed() > REPLY_TIME_MAX {
                return Err(wrong("no reply"));
            }
        }
        let elapsed_ns = elapsed_ns(begin);
        let sum = answer.transpose().map_err(wrong)?.map(|Ok(sum)| sum);
        check(sum, before + number + 1)?;
        if number >= warm_up {
            histogram.record(elapsed_ns);
        }
    }
    Ok(histogram)
}

/// Commands of one task on a runtime of this thread, one by one, after a warm-up.
///
/// # Errors
/// A late or a wrong reply.
pub fn shared_commands(client: &Client, count: u64) -> Result<LatencyHistogram> {
    let (warm_up, mut histogram) = (count.div_ceil(10), LatencyHistogram::new());
    runtime(runtime::Builder::new_current_thread())?.block_on(async {
        let before = client.call(Add(0)).await.map_err(wrong)?;
        for number in 0..warm_up + count {
            let begin = Instant::now();
            let sum = client.call(Add(1)).await.map_err(wrong)?;
            let elapsed_ns = elapsed_ns(begin);
            check(Some(sum), before + number + 1)?;
            if number >= warm_up {
                histogram.record(elapsed_ns);
            }
        }
        Ok(histogram)
    })
}

/// Queries of one task, as [`shared_commands`].
///
/// # Errors
/// A late or a wrong answer.
pub fn shared_queries(client: &Client, count: u64) -> Result<LatencyHistogram> {
    let (warm_up, mut histogram) = (count.div_ceil(10), LatencyHistogram::new());
    runtime(runtime::Builder::new_current_thread())?.block_on(async {
        let sum = client.call(Add(0)).await.map_err(wrong)?;
        for number in 0..warm_up + count {
            let begin = Instant::now();
            let found = client.query(ReadSum).await.map_err(wrong)?;
            let elapsed_ns = elapsed_ns(begin);
            check(Some(found), sum)?;
            if number >= warm_up {
                histogram.record(elapsed_ns);
            }
        }
        Ok(histogram)
    })
}

/// Commands per second of `tasks` tasks on `threads` threads, each with one command at a time. Afterwards the service's
/// sum is compared with the number of commands.
///
/// # Errors
/// A late or a wrong reply.
pub fn commands_of_tasks_per_s(client: &Client, tasks: u64, threads: usize, count: u64) -> Result<f64> {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(threads);
    let runtime = runtime(builder)?;
    let before = runtime.block_on(client.call(Add(0))).map_err(wrong)?;
    let each = count.div_ceil(tasks);
    let begin = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let client = client.clone();
            runtime.spawn(async move {
                for _ in 0..each {
                    client.call(Add(1)).await.map_err(wrong)?;
                }
                Ok::<(), BenchError>(())
            })
        })
        .collect();
    for task in running {
        runtime.block_on(task).map_err(wrong)??;
    }
    let elapsed_ns = elapsed_ns(begin);
    let after = runtime.block_on(client.query(ReadSum)).map_err(wrong)?;
    check(Some(after), before + each * tasks)?;
    Ok(((each * tasks) as f64 * 1e9 / elapsed_ns.max(1) as f64).round())
}

fn runtime(mut builder: runtime::Builder) -> Result<runtime::Runtime> {
    builder.build().map_err(wrong)
}

fn check(found: Option<u64>, expected: u64) -> Result<()> {
    if found == Some(expected) {
        return Ok(());
    }
    Err(wrong(format!("the sum is {found:?}, {expected} is expected")))
}

fn wrong(reason: impl ToString) -> BenchError {
    failed("messaging", reason)
}
