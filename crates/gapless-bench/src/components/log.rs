//! `gapless bench log`: ring and window between two processes with a core each, one way and there and
//! back.
//!
//! | module | what lives there |
//! |---|---|
//! | `partner` | the second process: reads and measures, or echoes |
//! | `endpoints` | rings and windows, opened from both sides |
//!
//! This process sends. A frame is the payload and a header of 64 bytes, copied in on one side and out on
//! the other; no checksums. The floor moves as many bytes by the least that two cores need.

mod endpoints;
pub(crate) mod partner;

use super::peer::PeerProcess;
use super::{ComponentArguments, Unit, measure_beside_floors, named};
use crate::Result;
use crate::child_process::Role;
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use endpoints::{
    Sends, Takes, check_number, new_frame, open_window, ring_to_send, ring_to_take, set_number, window,
    window_with_progress,
};
use gapless_measure::affinity::{pair_of_cores, pin_current_thread};
use gapless_measure::{Report, Row};
use partner::{Assignment, PARTS, SPINS_BETWEEN_LOOKS, Task};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Frames of each one-way row.
const FRAMES: u64 = 1_000_000;
/// Round trips for so many frames: one costs more.
const FRAMES_PER_ROUND_TRIP: u64 = 10;
const PAYLOADS: [usize; 3] = [64, 256, 1024];
const PING_PONG_PAYLOAD: usize = 256;
/// Frames after which a sender that never has to wait looks around.
const FRAMES_PER_LOOK: u64 = 1 << 16;

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

/// The path of the frames.
#[derive(Clone, Copy)]
enum Way {
    Ring,
    Window,
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
                row.throughput_per_s = Some(self.one_way(frames, batch, interrupted)?.round());
            }
            Figure::ThereAndBack => {
                let round_trips = (frames / FRAMES_PER_ROUND_TRIP).max(1);
                row = named(self.name, self.payload as u64, round_trips);
                row.latency_ns = self.there_and_back(round_trips, interrupted)?.latency_ns();
            }
        }
        // Every frame's number is compared on its way.
        row.verified = Some(true);
        Ok(row)
    }

    const fn frame_length(&self) -> usize {
        self.payload + HEADER_BYTES as usize
    }

    /// Starts the second process.
    fn start<'a>(
        &self,
        frames: u64,
        cpu: Option<usize>,
        task: Task,
        interrupted: &'a AtomicBool,
    ) -> Result<PeerProcess<'a>> {
        let assignment = Assignment { cpu, frame_length: self.frame_length(), frames, task };
        PeerProcess::start("log", (Role::LogPartner, &assignment), cpu, interrupted)
    }

    /// Frames a second as the second process sees them, `batch` of them for each publish.
    fn one_way(&self, frames: u64, batch: u64, interrupted: &AtomicBool) -> Result<f64> {
        let frames = frames.div_ceil(PARTS) * PARTS;
        // As on the floor, the reader has the first core.
        let (its_cpu, own_cpu) = pair_of_cores().unzip();
        match self.way {
            Way::Ring => {
                let (sender, ring) = ring_to_send()?;
                let partner = self.start(frames, its_cpu, Task::ReadRing { ring }, interrupted)?;
                on_core(own_cpu, || self.send(sender, partner, frames, batch))
            }
            Way::Window => {
                let (sender, window, progress) = window_with_progress(self.frame_length())?;
                let partner = self.start(frames, its_cpu, Task::ReadWindow { window, progress }, interrupted)?;
                on_core(own_cpu, || self.send(sender, partner, frames, batch))
            }
        }
    }

    /// Sends, and returns what the second process measured.
    fn send(&self, mut sender: impl Sends, mut partner: PeerProcess<'_>, frames: u64, batch: u64) -> Result<f64> {
        let mut frame = new_frame(self.frame_length());
        for number in 1..=frames {
            set_number(&mut frame, number);
            sender.write(black_box(&frame), number, &mut partner)?;
            if number.is_multiple_of(batch) {
                sender.publish();
            }
            if number.is_multiple_of(FRAMES_PER_LOOK) {
                partner.look()?;
            }
        }
        sender.publish();
        let rate = partner.receive()?;
        partner.finish()?;
        Ok(rate)
    }

    fn there_and_back(&self, round_trips: u64, interrupted: &AtomicBool) -> Result<LatencyHistogram> {
        let warm_up = round_trips.div_ceil(10);
        let frames = warm_up + round_trips;
        let (own_cpu, its_cpu) = pair_of_cores().unzip();
        match self.way {
            Way::Ring => {
                let ((sender, ring), (taker, back)) = (ring_to_send()?, ring_to_take()?);
                let partner = self.start(frames, its_cpu, Task::EchoByRing { ring, back }, interrupted)?;
                on_core(own_cpu, || self.bounce(sender, taker, partner, warm_up, frames))
            }
            Way::Window => {
                let (sender, window) = window()?;
                let mut partner = self.start(frames, its_cpu, Task::EchoByWindow { window }, interrupted)?;
                let taker = open_window(&partner.receive::<PathBuf>()?)?;
                on_core(own_cpu, || self.bounce(sender, taker, partner, warm_up, frames))
            }
        }
    }

    /// Sends a frame and waits for it to come back, again and again.
    fn bounce(
        &self,
        mut sender: impl Sends,
        mut taker: impl Takes,
        mut partner: PeerProcess<'_>,
        warm_up: u64,
        frames: u64,
    ) -> Result<LatencyHistogram> {
        let mut sent = new_frame(self.frame_length());
        let mut came_back = vec![0; self.frame_length()];
        let mut histogram = LatencyHistogram::new();
        for number in 1..=frames {
            set_number(&mut sent, number);
            let begin = Instant::now();
            sender.write(&sent, number, &mut partner)?;
            sender.publish();
            partner.wait_until(|| taker.take(&mut came_back))?;
            let elapsed_ns = elapsed_ns(begin);
            taker.release(number, &mut partner)?;
            check_number(&came_back, number)?;
            if number > warm_up {
                histogram.record(elapsed_ns);
            }
            if number.is_multiple_of(FRAMES_PER_LOOK) {
                partner.look()?;
            }
        }
        partner.finish()?;
        Ok(histogram)
    }
}

/// Works on a thread of its own on that core; the calling thread keeps its affinity.
fn on_core<T: Send>(cpu: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            cpu.map_or(Ok(()), |cpu| pin_current_thread(&[cpu]))?;
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
