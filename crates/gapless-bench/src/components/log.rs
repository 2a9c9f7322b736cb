//! `gapless bench log`: ring and window between two processes with a core each, one way and there and
//! back.
//!
//! This process sends. A frame is the payload and a header of 64 bytes, copied in on one side and out on
//! the other; no checksums. The floor moves as many bytes by the least that two cores need.

use super::{ComponentArguments, Unit, measure_beside_floors, named};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use gapless_load::components::log::partner::SPINS_BETWEEN_LOOKS;
use gapless_load::components::log::sending::{Sending, Way};
use gapless_measure::{Report, Row};
use std::sync::atomic::AtomicBool;

/// Frames of each one-way row.
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
    let floor = |measurement: &Measurement| (measurement.figure.floor(), measurement.payload as u64 + HEADER_BYTES);
    let row = |measurement: &Measurement| measurement.row(frames, interrupted);
    measure_beside_floors(&mut report, interrupted, measurements(), floor, row)?;
    report.notes.extend([
        "each row stands beside the floor of the same place in the list, which was measured right before it".to_owned(),
        "each row is between two processes; a window is read through a free cursor of the other process, and there \
         and back takes two windows, one made by each"
            .to_owned(),
        format!("one way, a reader that found nothing looks again after {SPINS_BETWEEN_LOOKS} spins; else at once"),
        "no checksums; bytes are those of the payload, the floor moves 64 more, as frames do".to_owned(),
    ]);
    arguments.finish(&report, Unit::Microseconds)
}

/// Everything that is measured, in the order of the table.
fn measurements() -> impl Iterator<Item = Measurement> {
    let one_way = [
        ("ring, one way, 16 a publish", Way::Ring, 16),
        ("ring, one way, 1 a publish", Way::Ring, 1),
        ("window, one way, 16 a publish", Way::Window, 16),
    ];
    let there_and_back = [("ring, there and back", Way::Ring), ("window, there and back", Way::Window)];
    let one_way = one_way.into_iter().flat_map(|(name, way, batch)| {
        PAYLOADS.map(|payload| Measurement { name, way, payload, figure: Figure::OneWay { batch } })
    });
    one_way.chain(there_and_back.map(|(name, way)| Measurement {
        name,
        way,
        payload: PING_PONG_PAYLOAD,
        figure: Figure::ThereAndBack,
    }))
}

/// One row.
#[derive(Clone, Copy)]
struct Measurement {
    name: &'static str,
    way: Way,
    payload: usize,
    figure: Figure,
}

#[derive(Clone, Copy)]
enum Figure {
    /// Frames a second, so many of them for each publish.
    OneWay { batch: u64 },
    /// Round trips, copied in and out on both sides.
    ThereAndBack,
}

impl Figure {
    const fn floor(self) -> FloorKind {
        match self {
            Self::OneWay { .. } => FloorKind::ShmStream,
            Self::ThereAndBack => FloorKind::ShmPingPong,
        }
    }
}

impl Measurement {
    fn row(&self, frames: u64, interrupted: &AtomicBool) -> Result<Row> {
        let mut row;
        match self.figure {
            Figure::OneWay { batch } => {
                row = named(self.name, self.payload as u64, frames);
                row.throughput_per_s = Some(self.sending().one_way(frames, batch, interrupted)?.round());
            }
            Figure::ThereAndBack => {
                let round_trips = (frames / FRAMES_PER_ROUND_TRIP).max(1);
                row = named(self.name, self.payload as u64, round_trips);
                row.latency_ns = self.sending().there_and_back(round_trips, interrupted)?.latency_ns();
            }
        }
        // Every frame's number is compared on its way.
        row.verified = Some(true);
        Ok(row)
    }

    const fn sending(&self) -> Sending {
        Sending { way: self.way, frame_length: self.payload + HEADER_BYTES as usize }
    }
}
