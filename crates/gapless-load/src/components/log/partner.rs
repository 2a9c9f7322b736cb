//! The second process of `gapless bench log`: measures the rate or echoes. Ends when the first process is gone.

use super::endpoints::{
    FrameSink, FrameSource, check_number, open_ring_to_send, open_ring_to_take, open_window, open_window_with_progress,
    window,
};
use crate::Result;
use crate::components::peer::PeerProcess;
use crate::statistics::median;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Parts of a one-way run; the first warms up, and the rate is the median of the others.
pub const PARTS: u64 = 6;

/// About half a microsecond.
pub const SPINS_BETWEEN_LOOKS: u32 = 32;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogAssignment {
    pub cpu: Option<usize>,
    /// Length with the header.
    pub frame_length: usize,
    /// Number of frames; for a task that measures a multiple of [`PARTS`].
    pub frames: u64,
    pub task: LogTask,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogTask {
    /// Report the rate, frames a second.
    ReadRing {
        ring: PathBuf,
    },
    /// Report the rate; progress goes to the ring `progress`.
    ReadWindow {
        window: PathBuf,
        progress: PathBuf,
    },
    EchoByRing {
        ring: PathBuf,
        back: PathBuf,
    },
    /// Reports the path of its own window first.
    EchoByWindow {
        window: PathBuf,
    },
}

pub fn main(assignment: &str) -> Result<()> {
    let assignment: LogAssignment = serde_json::from_str(assignment)?;
    let mut first = PeerProcess::first("log", assignment.cpu)?;
    match &assignment.task {
        LogTask::ReadRing { ring } => {
            let rate = read(open_ring_to_take(ring)?, &assignment, &mut first)?;
            first.send(&rate)
        }
        LogTask::ReadWindow { window, progress } => {
            let taker = open_window_with_progress(window, progress, assignment.frame_length)?;
            let rate = read(taker, &assignment, &mut first)?;
            first.send(&rate)
        }
        LogTask::EchoByRing { ring, back } => {
            echo(open_ring_to_take(ring)?, open_ring_to_send(back)?, &assignment, &mut first)
        }
        LogTask::EchoByWindow { window: from } => {
            let (sender, path) = window()?;
            first.send(&path)?;
            echo(open_window(from)?, sender, &assignment, &mut first)
        }
    }
}

fn read(mut taker: impl FrameSource, assignment: &LogAssignment, first: &mut PeerProcess<'_>) -> Result<f64> {
    let mut frame = vec![0; assignment.frame_length];
    let part = assignment.frames / PARTS;
    let (mut number, mut rates) = (0, Vec::new());
    for index in 0..PARTS {
        let begin = Instant::now();
        let end = number + part;
        while number < end {
            first.wait_until(|| {
                let is_taken = taker.take(&mut frame)?;
                if !is_taken {
                    pause_for_batching();
                }
                Ok(is_taken)
            })?;
            number += 1;
            check_number(black_box(&frame), number)?;
            taker.release(number, first)?;
        }
        if index > 0 {
            rates.push(part as f64 / begin.elapsed().as_secs_f64());
        }
    }
    Ok(median(&rates))
}

/// Lets frames gather: a reader that polls again at once takes away the cache lines that the writer needs next; both
/// then go in lockstep, at a quarter of the rate.
fn pause_for_batching() {
    (0..SPINS_BETWEEN_LOOKS).for_each(|_| std::hint::spin_loop());
}

fn echo(
    mut taker: impl FrameSource,
    mut sender: impl FrameSink,
    assignment: &LogAssignment,
    first: &mut PeerProcess<'_>,
) -> Result<()> {
    let mut frame = vec![0; assignment.frame_length];
    for number in 1..=assignment.frames {
        first.wait_until(|| taker.take(&mut frame))?;
        check_number(&frame, number)?;
        sender.write(&frame, number, first)?;
        sender.publish();
        taker.release(number, first)?;
    }
    Ok(())
}
