//! The first process: sends frames, and takes them back.

use super::endpoints::{
    FrameSink, FrameSource, check_number, new_frame, open_window, ring_to_send, ring_to_take, set_number, window,
    window_with_progress,
};
use super::partner::{LogAssignment, LogTask, PARTS};
use crate::Result;
use crate::child_process::ChildRole;
use crate::components::peer::PeerProcess;
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use gapless_measure::affinity::{pair_of_cores, pin_current_thread};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const FRAMES_PER_LOOK: u64 = 1 << 16;

#[derive(Clone, Copy)]
pub enum LogTransport {
    Ring,
    Window,
}

#[derive(Clone, Copy)]
pub struct FrameTransfer {
    pub way: LogTransport,
    /// Length with the header.
    pub frame_length: usize,
}

impl FrameTransfer {
    fn start<'a>(
        &self,
        frames: u64,
        cpu: Option<usize>,
        task: LogTask,
        interrupted: &'a AtomicBool,
    ) -> Result<PeerProcess<'a>> {
        let assignment = LogAssignment { cpu, frame_length: self.frame_length, frames, task };
        PeerProcess::start("log", (ChildRole::LogPartner, &assignment), cpu, interrupted)
    }

    /// Frames a second at the second process, `batch` frames for each publish.
    ///
    /// # Errors
    /// Damaged frames; a second process that ends too early.
    pub fn one_way(&self, frames: u64, batch: u64, interrupted: &AtomicBool) -> Result<f64> {
        let frames = frames.div_ceil(PARTS) * PARTS;
        let (its_cpu, own_cpu) = pair_of_cores().unzip();
        match self.way {
            LogTransport::Ring => {
                let (sender, ring) = ring_to_send()?;
                let partner = self.start(frames, its_cpu, LogTask::ReadRing { ring }, interrupted)?;
                on_core(own_cpu, || self.send(sender, partner, frames, batch))
            }
            LogTransport::Window => {
                let (sender, window, progress) = window_with_progress(self.frame_length)?;
                let partner = self.start(frames, its_cpu, LogTask::ReadWindow { window, progress }, interrupted)?;
                on_core(own_cpu, || self.send(sender, partner, frames, batch))
            }
        }
    }

    fn send(&self, mut sender: impl FrameSink, mut partner: PeerProcess<'_>, frames: u64, batch: u64) -> Result<f64> {
        let mut frame = new_frame(self.frame_length);
        for number in 1..=frames {
            set_number(&mut frame, number);
            sender.write(black_box(&frame), number, &mut partner)?;
            if number.is_multiple_of(batch) {
                sender.publish();
            }
            if number.is_multiple_of(FRAMES_PER_LOOK) {
                partner.check_running()?;
            }
        }
        sender.publish();
        let rate = partner.receive()?;
        partner.finish()?;
        Ok(rate)
    }

    pub fn measure_round_trips(&self, round_trips: u64, interrupted: &AtomicBool) -> Result<LatencyHistogram> {
        let warm_up = round_trips.div_ceil(10);
        let frames = warm_up + round_trips;
        let (own_cpu, its_cpu) = pair_of_cores().unzip();
        match self.way {
            LogTransport::Ring => {
                let ((sender, ring), (taker, back)) = (ring_to_send()?, ring_to_take()?);
                let partner = self.start(frames, its_cpu, LogTask::EchoByRing { ring, back }, interrupted)?;
                on_core(own_cpu, || self.bounce(sender, taker, partner, warm_up, frames))
            }
            LogTransport::Window => {
                let (sender, window) = window()?;
                let mut partner = self.start(frames, its_cpu, LogTask::EchoByWindow { window }, interrupted)?;
                let taker = open_window(&partner.receive::<PathBuf>()?)?;
                on_core(own_cpu, || self.bounce(sender, taker, partner, warm_up, frames))
            }
        }
    }

    fn bounce(
        &self,
        mut sender: impl FrameSink,
        mut taker: impl FrameSource,
        mut partner: PeerProcess<'_>,
        warm_up: u64,
        frames: u64,
    ) -> Result<LatencyHistogram> {
        let mut sent = new_frame(self.frame_length);
        let mut came_back = vec![0; self.frame_length];
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
                partner.check_running()?;
            }
        }
        partner.finish()?;
        Ok(histogram)
    }
}

/// The calling thread keeps its affinity.
fn on_core<T: Send>(cpu: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            cpu.map_or(Ok(()), |cpu| pin_current_thread(&[cpu]))?;
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
