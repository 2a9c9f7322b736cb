//! `gapless bench messaging`: from a client to a service at tier `memory` and back, with everything that
//! is on the way: rings, sequencer, window, handler, exactly-once, both checksums, fragments.

use super::{ComponentArguments, Unit, compare, failed, is_interrupted, measure_floors, named};
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_agent::CpuMask;
use gapless_client::ClientError;
use gapless_measure::Report;
use gapless_measure::affinity::{available_cpus, pair_of_cores, pin_current_thread};
use gapless_transport::link::RingSizes;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Round trips of each size.
const ROUND_TRIPS: u64 = 1_500;
/// Payloads in bytes; from 64 KiB on a message is several frames.
const PAYLOADS: [usize; 8] = [72, 256, 1024, 4096, 16 << 10, 64 << 10, 256 << 10, 500_000];
/// The reply to one message comes within this time, or the service has lost it.
const REPLY_TIME_MAX: Duration = Duration::from_secs(10);
/// Every so many round trips the whole content is compared.
const CHECK_EVERY: u64 = 16;

const ECHO: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

/// Replies with the message that it gets.
#[derive(Default)]
struct Echo;

impl Service for Echo {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ECHO.schema, |_, payload, context| context.reply_with(ECHO, payload));
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> std::result::Result<(), String> {
        Ok(())
    }
}

/// Measures; returns the text to print.
///
/// # Errors
/// A host that cannot be run, a reply that is late or another one, a report that cannot be written.
pub fn run(arguments: &ComponentArguments, interrupted: &AtomicBool) -> Result<String> {
    let count = arguments.count.unwrap_or(ROUND_TRIPS);
    let mut report = Report::new("messaging");
    let items = PAYLOADS.map(|payload| (FloorKind::ShmPingPong, payload as u64 + HEADER_BYTES));
    measure_floors(&mut report, Path::new("."), items.into());
    let cpus = pair_of_cores();
    let mut options = ServiceHostOptions::in_memory();
    options.threads.callers_hot = 1;
    options.threads.service_cpus = cpus.and_then(|(client, _)| {
        let others: Vec<usize> = available_cpus().into_iter().filter(|cpu| *cpu != client).collect();
        CpuMask::of(&others)
    });
    let host = ServiceHost::start(Echo, options).map_err(|error| failed("messaging", error))?;
    let plan = host.plan().to_string();
    report
        .notes
        .extend(plan.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("plan: {line}")));
    let link = RingSizes { command_ring_bytes: 4 << 20, reply_ring_bytes: 4 << 20 };
    let mut client =
        host.connect(ClientOptions { link, ..ClientOptions::default() }).map_err(|error| failed("messaging", error))?;
    let measured = std::thread::scope(|scope| {
        let report = &mut report;
        let client = &mut client;
        let driver = scope.spawn(move || {
            if let Some((first, _)) = cpus {
                pin_current_thread(&[first])?;
            }
            let session = client.open_session(random_token(), 16).map_err(|error| failed("messaging", error))?;
            for payload in PAYLOADS {
                if is_interrupted(report, interrupted) {
                    break;
                }
                let mut row = named("client to node and back", payload as u64, count);
                row.config.tier = Some("memory".to_owned());
                row.latency_ns = round_trips(client, session, payload, count)?.latency_ns();
                row.verified = Some(true);
                compare(&mut row, report, FloorKind::ShmPingPong, payload as u64 + HEADER_BYTES);
                report.rows.push(row);
            }
            Ok(())
        });
        driver.join().unwrap_or_else(|_| Err(failed("messaging", "the client panicked")))
    });
    drop(client);
    host.stop().map_err(|error| failed("messaging", error))?;
    measured?;
    arguments.finish(&report, Unit::Microseconds)
}

fn round_trips(client: &mut Client, session: SessionKey, length: usize, count: u64) -> Result<LatencyHistogram> {
    let payload: Vec<u8> = (0..length).map(|index| (index * 31 % 251) as u8).collect();
    let warm_up = count.div_ceil(10);
    let mut histogram = LatencyHistogram::new();
    for number in 0..warm_up + count {
        if number % CHECK_EVERY == 0 {
            let reply =
                client.call(session, ECHO, &payload, REPLY_TIME_MAX).map_err(|error| failed("messaging", error))?;
            if reply.payload != payload {
                return Err(failed("messaging", format!("the reply to {length} bytes is not what was sent")));
            }
        }
        let elapsed_ns = round_trip(client, session, &payload)?;
        if number >= warm_up {
            histogram.record(elapsed_ns);
        }
    }
    Ok(histogram)
}

/// One message and its reply, spinning; ns.
fn round_trip(client: &mut Client, session: SessionKey, payload: &[u8]) -> Result<u64> {
    let of_stream = |error: ClientError| failed("messaging", error);
    let begin = Instant::now();
    let sent = client
        .send(session, ECHO, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        })
        .map_err(of_stream)?;
    let mut answer: Option<std::result::Result<usize, String>> = None;
    let mut turns = 0u32;
    while answer.is_none() {
        client
            .poll(16, |incoming| {
                if let Incoming::Reply { reply, .. } = incoming
                    && reply.session_seq == sent
                {
                    answer = Some(match reply.refusal {
                        Some(refusal) => Err(refusal.text.to_owned()),
                        None => Ok(black_box(reply.payload).len()),
                    });
                }
            })
            .map_err(of_stream)?;
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(4096) {
            if begin.elapsed() > REPLY_TIME_MAX {
                return Err(failed("messaging", format!("no reply within {} s", REPLY_TIME_MAX.as_secs())));
            }
            // Where client and service share a CPU.
            std::thread::yield_now();
        }
    }
    let elapsed_ns = elapsed_ns(begin);
    let wrong = |reason: String| -> BenchError { failed("messaging", reason) };
    match answer {
        Some(Ok(length)) if length == payload.len() => Ok(elapsed_ns),
        Some(Ok(length)) => Err(wrong(format!("a reply of {length} bytes to {}", payload.len()))),
        Some(Err(reason)) => Err(wrong(format!("refused: {reason}"))),
        None => Err(wrong("no reply".to_owned())),
    }
}
