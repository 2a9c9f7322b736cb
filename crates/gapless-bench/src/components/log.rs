//! `gapless bench log`: ring and window between two processes with a core each, one way and there and back. A frame is
//! a header of 64 bytes and the payload, copied in and out, without checksums. The floor moves as many bytes by the
//! least that two cores need.

use super::{ComponentArguments, TimeUnit, measure_with_floors, named};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use gapless_load::components::log::partner::SPINS_BETWEEN_LOOKS;
use gapless_load::components::log::sending::{FrameTransfer, LogTransport};
use gapless_measure::{Report, Row};
use std::sync::atomic::AtomicBool;

const FRAMES: u64 = 1_000_000;
/// Round trips for so many frames: one costs more.
const FRAMES_PER_ROUND_TRIP: u64 = 10;
const PAYLOADS: [usize; 3] = [64, 256, 1024];
const PING_PONG_PAYLOAD: usize = 256;
/// Measures; returns the text to print.
///
/// # Errors
/// No memory for rings and windows, a second process that cannot be started or ends too early, frames
/// that did not arrive as they were sent, a report that cannot be written.
pub fn run(arguments: &ComponentArguments, interrupted: &AtomicBool) -> Result<String> {
    let frames = arguments.count.unwrap_or(FRAMES);
    let mut report = Report::new("log");
    let floor = |measurement: &LogMeasurement| (measurement.figure.floor(), measurement.payload as u64 + HEADER_BYTES);
    let row = |measurement: &LogMeasurement| measurement.row(frames, interrupted);
    measure_with_floors(&mut report, interrupted, measurements(), floor, row)?;
    report.notes.extend([
        "each row stands beside the floor of the same place in the list, which was measured right before it".to_owned(),
        "each row is between two processes; a window is read through a free cursor of the other process, and there \
         and back takes two windows, one made by each"
            .to_owned(),
        format!("one way, a reader that found nothing looks again after {SPINS_BETWEEN_LOOKS} spins; else at once"),
        "no checksums; bytes are those of the payload, the floor moves 64 more, as frames do".to_owned(),
    ]);
    arguments.finish(&report, TimeUnit::Microseconds)
}

fn measurements() -> impl Iterator<Item = LogMeasurement> {
    let one_way = [
        ("ring, one way, 16 a publish", LogTransport::Ring, 16),
        ("ring, one way, 1 a publish", LogTransport::Ring, 1),
        ("window, one way, 16 a publish", LogTransport::Window, 16),
    ];
    let round_trips = [("ring, there and back", LogTransport::Ring), ("window, there and back", LogTransport::Window)];
    let one_way = one_way.into_iter().flat_map(|(name, way, batch)| {
        PAYLOADS.map(|payload| LogMeasurement { name, way, payload, figure: LogFigure::OneWay { batch } })
    });
    one_way.chain(round_trips.map(|(name, way)| LogMeasurement {
        name,
        way,
        payload: PING_PONG_PAYLOAD,
        figure: LogFigure::RoundTrips,
    }))
}

#[derive(Clone, Copy)]
struct LogMeasurement {
    name: &'static str,
    way: LogTransport,
    payload: usize,
    figure: LogFigure,
}

#[derive(Clone, Copy)]
enum LogFigure {
    /// Frames for each publish.
    OneWay {
        batch: u64,
    },
    RoundTrips,
}

impl LogFigure {
    const fn floor(self) -> FloorKind {
        match self {
            Self::OneWay { .. } => FloorKind::ShmStream,
            Self::RoundTrips => FloorKind::ShmPingPong,
        }
    }
}

impl LogMeasurement {
    fn row(&self, frames: u64, interrupted: &AtomicBool) -> Result<Row> {
        let mut row;
        match self.figure {
            LogFigure::OneWay { batch } => {
                row = named(self.name, self.payload as u64, frames);
                row.throughput_per_s = Some(self.sending().one_way(frames, batch, interrupted)?.round());
            }
            LogFigure::RoundTrips => {
                let round_trips = (frames / FRAMES_PER_ROUND_TRIP).max(1);
                row = named(self.name, self.payload as u64, round_trips);
                row.latency_ns = self.sending().measure_round_trips(round_trips, interrupted)?.latency_ns();
            }
        }
        // Every frame's number is compared on its way.
        row.verified = Some(true);
        Ok(row)
    }

    const fn sending(&self) -> FrameTransfer {
        FrameTransfer { way: self.way, frame_length: self.payload + HEADER_BYTES as usize }
    }
}
