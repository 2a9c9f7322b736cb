//! `gapless bench link`: messages between two members, each a process on a core of its own, over TCP and through shared
//! memory. This process sends. A message is a consensus part of `CONSENSUS_BYTES` and one frame: a header of 64 bytes
//! and the payload.

use super::{ComponentArguments, TimeUnit, failed, measure_with_floors, named};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use clap::Args;
use gapless_cluster::link::MemberLinkOptions;
use gapless_load::components::link::protocol::{LinkTransport, PARTS};
use gapless_load::components::link::sending::{LinkFigure, LinkResult, UNACKNOWLEDGED, UNACKNOWLEDGED_BYTES, measure};
use gapless_load::components::link::{CONSENSUS_BYTES, LONG_BYTES, LONG_RING_BYTES};
use gapless_measure::affinity::{pair_of_cores, pin_current_thread};
use gapless_measure::{Report, Row};
use std::sync::atomic::AtomicBool;

const MESSAGES: u64 = 500_000;
const MESSAGES_QUICK: u64 = 60_000;
/// A round trip costs as much as so many messages of a stream; so does a long message.
const MESSAGES_PER_ROUND_TRIP: u64 = 10;
const PAYLOADS: [usize; 4] = [72, 256, 1024, 65_536];
/// Options of its own.
#[derive(Debug, Clone, Default, Args)]
pub struct LinkArguments {
    /// Common options.
    #[command(flatten)]
    pub part: ComponentArguments,

    /// Send few messages, as a functional check
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
    let floor = |measurement: &LinkMeasurement| (measurement.floor(), measurement.payload as u64 + HEADER_BYTES);
    let row = |measurement: &LinkMeasurement| measurement.row(messages, interrupted);
    measure_with_floors(&mut report, interrupted, measurements(), floor, row)?;
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
    arguments.part.finish(&report, TimeUnit::Microseconds)
}

fn measurements() -> impl Iterator<Item = LinkMeasurement> {
    use LinkTransport::{SharedMemory, Tcp};
    [
        ("TCP, there and back", Tcp, LinkFigure::RoundTrips),
        ("TCP, there and back, 64 in flight", Tcp, LinkFigure::InFlight),
        ("TCP, one way", Tcp, LinkFigure::OneWay),
        ("TCP, one way, acknowledged", Tcp, LinkFigure::Acknowledged),
        ("shared memory, there and back", SharedMemory, LinkFigure::RoundTrips),
        ("shared memory, there and back, 64 in flight", SharedMemory, LinkFigure::InFlight),
        ("shared memory, one way", SharedMemory, LinkFigure::OneWay),
        ("shared memory, one way, acknowledged", SharedMemory, LinkFigure::Acknowledged),
    ]
    .into_iter()
    .flat_map(|(name, transport, figure)| PAYLOADS.map(|payload| LinkMeasurement { name, transport, payload, figure }))
}

#[derive(Clone, Copy)]
struct LinkMeasurement {
    name: &'static str,
    transport: LinkTransport,
    payload: usize,
    figure: LinkFigure,
}

impl LinkMeasurement {
    const fn floor(&self) -> FloorKind {
        match (self.transport, self.figure) {
            (LinkTransport::Tcp, LinkFigure::RoundTrips) => FloorKind::TcpRoundTrip,
            (LinkTransport::Tcp, _) => FloorKind::TcpStream,
            (LinkTransport::SharedMemory, LinkFigure::RoundTrips) => FloorKind::ShmPingPong,
            (LinkTransport::SharedMemory, _) => FloorKind::ShmStream,
        }
    }

    fn row(&self, messages: u64, interrupted: &AtomicBool) -> Result<Row> {
        let mut messages = messages;
        if self.payload >= LONG_BYTES {
            messages = (messages / MESSAGES_PER_ROUND_TRIP).max(1);
        }
        if matches!(self.figure, LinkFigure::RoundTrips) {
            messages = (messages / MESSAGES_PER_ROUND_TRIP).max(1);
        }
        let messages = messages.div_ceil(PARTS) * PARTS;
        let mut row = named(self.name, self.payload as u64, messages);
        let (own_cpu, its_cpu) = pair_of_cores().unzip();
        let measured = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                own_cpu.map_or(Ok(()), |cpu| pin_current_thread(&[cpu]))?;
                measure((self.transport, self.payload, self.figure), messages, its_cpu, interrupted)
            });
            worker.join().unwrap_or_else(|_| Err(failed("link", "the sender panicked")))
        })?;
        let rate = match measured {
            LinkResult::Latencies(histogram) => {
                row.latency_ns = histogram.latency_ns();
                None
            }
            LinkResult::Rate(rate) => Some(rate),
        };
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
}
