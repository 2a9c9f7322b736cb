//! `gapless bench link`: messages between two members of a cluster, each a process on a core of its own.
//!
//! | module | what lives there |
//! |---|---|
//! | `partner` | the second process: reads and measures, echoes, or acknowledges |
//! | `endpoint` | one member's links |
//! | `protocol` | the assignment of the second process |
//!
//! Over TCP, and through shared memory. This process sends. A message is a consensus part of `CONSENSUS_BYTES` and one frame, which is the payload and a
//! header of 64 bytes; every message's number is compared on its way.

mod endpoint;
pub(crate) mod partner;
mod protocol;

use super::peer::PeerProcess;
use super::{ComponentArguments, Unit, failed, measure_beside_floors, named};
use crate::Result;
use crate::child_process::Role;
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use clap::Args;
use endpoint::{Endpoint, Outgoing};
use gapless_cluster::link::MemberLinkOptions;
use gapless_measure::affinity::{pair_of_cores, pin_current_thread};
use gapless_measure::{Report, Row};
use protocol::{Assignment, PARTS, Task, Transport};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Messages of a row that measures a rate.
const MESSAGES: u64 = 500_000;
/// With `--quick`.
const MESSAGES_QUICK: u64 = 60_000;
/// A round trip costs as much as so many messages of a stream; so does a long message.
const MESSAGES_PER_ROUND_TRIP: u64 = 10;
const PAYLOADS: [usize; 4] = [72, 256, 1024, 65_536];
/// From so many bytes on a message is long.
const LONG_BYTES: usize = 16 << 10;
/// Each ring for long messages: an end that waits for room does not read meanwhile, so that all in flight must find
/// some.
const LONG_RING_BYTES: usize = 8 << 20;
/// Messages in flight where it is more than one.
const IN_FLIGHT: u64 = 64;
/// Messages in flight where they are acknowledged, and bytes of their payloads.
const UNACKNOWLEDGED: u64 = 1024;
const UNACKNOWLEDGED_BYTES: u64 = 4 << 20;
/// Bytes of the consensus part: about what an append of Raft needs.
const CONSENSUS_BYTES: usize = 64;

/// Options beside the common ones.
#[derive(Debug, Clone, Default, Args)]
pub struct LinkArguments {
    /// Common options.
    #[command(flatten)]
    pub part: ComponentArguments,

    /// Few messages, to see that it works
    #[arg(long, conflicts_with = "count")]
    pub quick: bool,
}

/// Measures; returns the text to print.
///
/// # Errors
/// No free port, a second process that cannot be started or ends too early, messages that did not arrive as they were
/// sent, a report that cannot be written.
pub fn run(arguments: &LinkArguments, interrupted: &AtomicBool) -> Result<String> {
    let messages = arguments.part.count.unwrap_or(if arguments.quick { MESSAGES_QUICK } else { MESSAGES });
    let mut report = Report::new("link");
    let floor = |measurement: &Measurement| (measurement.floor(), measurement.payload as u64 + HEADER_BYTES);
    let row = |measurement: &Measurement| measurement.row(messages, interrupted);
    measure_beside_floors(&mut report, interrupted, measurements(), floor, row)?;
    report.notes.extend([
        "each row stands beside the floor of the same place in the list, which was measured right before it".to_owned(),
        format!(
            "each message has a consensus part of {CONSENSUS_BYTES} bytes and a frame; the floor moves the frame only, \
             between two threads"
        ),
        format!(
            "shared memory: two rings of {} KiB, {} MiB for messages from {} KiB on, so that all of them in flight find room",
            MemberLinkOptions::default().shared_ring_bytes >> 10,
            LONG_RING_BYTES >> 20,
            LONG_BYTES >> 10
        ),
        format!(
            "acknowledged: one answer for all that one look brought, at most {UNACKNOWLEDGED} messages or {} MiB under \
             way",
            UNACKNOWLEDGED_BYTES >> 20
        ),
    ]);
    arguments.part.finish(&report, Unit::Microseconds)
}

/// Everything that is measured, in the order of the table.
fn measurements() -> impl Iterator<Item = Measurement> {
    use Transport::{SharedMemory, Tcp};
    [
        ("TCP, there and back", Tcp, Figure::ThereAndBack),
        ("TCP, there and back, 64 in flight", Tcp, Figure::InFlight),
        ("TCP, one way", Tcp, Figure::OneWay),
        ("TCP, one way, acknowledged", Tcp, Figure::Acknowledged),
        ("shared memory, there and back", SharedMemory, Figure::ThereAndBack),
        ("shared memory, there and back, 64 in flight", SharedMemory, Figure::InFlight),
        ("shared memory, one way", SharedMemory, Figure::OneWay),
        ("shared memory, one way, acknowledged", SharedMemory, Figure::Acknowledged),
    ]
    .into_iter()
    .flat_map(|(name, transport, figure)| PAYLOADS.map(|payload| Measurement { name, transport, payload, figure }))
}

/// One row.
#[derive(Clone, Copy)]
struct Measurement {
    name: &'static str,
    transport: Transport,
    payload: usize,
    figure: Figure,
}

#[derive(Clone, Copy)]
enum Figure {
    /// Round trips, one message in flight.
    ThereAndBack,
    /// Messages a second, each sent back, [`IN_FLIGHT`] of them at a time.
    InFlight,
    /// Messages a second as the other side sees them.
    OneWay,
    /// Messages a second until the last one is acknowledged.
    Acknowledged,
}

impl Measurement {
    const fn floor(&self) -> FloorKind {
        match (self.transport, self.figure) {
            (Transport::Tcp, Figure::ThereAndBack) => FloorKind::TcpRoundTrip,
            (Transport::Tcp, _) => FloorKind::TcpStream,
            (Transport::SharedMemory, Figure::ThereAndBack) => FloorKind::ShmPingPong,
            (Transport::SharedMemory, _) => FloorKind::ShmStream,
        }
    }

    fn row(&self, messages: u64, interrupted: &AtomicBool) -> Result<Row> {
        let mut messages = messages;
        if self.payload >= LONG_BYTES {
            messages = (messages / MESSAGES_PER_ROUND_TRIP).max(1);
        }
        if matches!(self.figure, Figure::ThereAndBack) {
            messages = (messages / MESSAGES_PER_ROUND_TRIP).max(1);
        }
        let messages = messages.div_ceil(PARTS) * PARTS;
        let mut row = named(self.name, self.payload as u64, messages);
        // As on the floor, the measuring process has the first core.
        let (own_cpu, its_cpu) = pair_of_cores().unzip();
        let rate = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                own_cpu.map_or(Ok(()), |cpu| pin_current_thread(&[cpu]))?;
                self.measure(messages, its_cpu, interrupted, &mut row)
            });
            worker.join().unwrap_or_else(|_| Err(failed("link", "the sender panicked")))
        })?;
        if let Some(rate) = rate {
            row.throughput_per_s = Some(rate.round());
            let bytes_per_s = rate * self.payload as f64;
            row.extra.insert("bytes_per_s".to_owned(), bytes_per_s.round().into());
            if self.payload >= LONG_BYTES {
                row.notes.push(format!("{}, {} bytes: {:.2} GB/s", self.name, self.payload, bytes_per_s / 1e9));
            }
        }
        // Every message's number is compared on its way.
        row.verified = Some(true);
        Ok(row)
    }

    /// Messages a second, or the latencies in `row`.
    fn measure(
        &self,
        messages: u64,
        its_cpu: Option<usize>,
        interrupted: &AtomicBool,
        row: &mut Row,
    ) -> Result<Option<f64>> {
        let task = match self.figure {
            Figure::ThereAndBack | Figure::InFlight => Task::Echo,
            Figure::OneWay => Task::Read,
            Figure::Acknowledged => Task::Acknowledge,
        };
        let frame_length = self.payload + HEADER_BYTES as usize;
        let transport = self.transport;
        let assignment = Assignment { cpu: its_cpu, frame_length, messages, task, transport };
        let mut other = PeerProcess::start("link", (Role::LinkPartner, &assignment), its_cpu, interrupted)?;
        let address: String = other.receive()?;
        let mut end = Endpoint::dials(address, frame_length, other)?;
        let mut message = Outgoing::new(frame_length);
        let rate = match self.figure {
            Figure::ThereAndBack => {
                row.latency_ns = there_and_back(&mut end, &mut message, messages)?.latency_ns();
                None
            }
            Figure::InFlight => Some(answered(&mut end, &mut message, messages, IN_FLIGHT)?),
            Figure::OneWay => {
                for number in 1..=messages {
                    end.send(message.number(number))?;
                }
                end.flush()?;
                Some(end.other().receive()?)
            }
            Figure::Acknowledged => {
                let in_flight = (UNACKNOWLEDGED_BYTES / self.payload as u64).clamp(1, UNACKNOWLEDGED);
                Some(answered(&mut end, &mut message, messages, in_flight)?)
            }
        };
        end.finish()?;
        Ok(rate)
    }
}

/// Sends a message and waits for it to come back, again and again.
fn there_and_back(end: &mut Endpoint, message: &mut Outgoing, messages: u64) -> Result<LatencyHistogram> {
    let mut histogram = LatencyHistogram::new();
    for number in 1..=messages {
        let begin = Instant::now();
        end.send(message.number(number))?;
        let mut answered = 0;
        end.wait_until(|received| {
            answered = received.number;
            Ok(answered == number)
        })?;
        if number > messages / PARTS {
            histogram.record(elapsed_ns(begin));
        }
    }
    Ok(histogram)
}

/// Sends with at most `in_flight` messages that no answer has named; messages a second, the first part left out.
fn answered(end: &mut Endpoint, message: &mut Outgoing, messages: u64, in_flight: u64) -> Result<f64> {
    let warm_up = messages / PARTS;
    let (mut sent, mut answered) = (0, 0);
    let mut begin = None;
    while answered < messages {
        while sent < messages && sent - answered < in_flight {
            sent += 1;
            end.send(message.number(sent))?;
        }
        let before = answered;
        end.wait_until(|received| {
            answered = received.number;
            Ok(answered > before)
        })?;
        if begin.is_none() && answered >= warm_up {
            begin = Some((Instant::now(), answered));
        }
    }
    let (begin, from) = begin.unwrap_or((Instant::now(), messages));
    Ok((messages - from) as f64 / begin.elapsed().as_secs_f64())
}
