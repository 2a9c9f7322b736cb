//! The second process of `gapless bench log`: takes frames and measures how fast they come, or sends
//! each back.
//!
//! It does the work of its assignment; it ends when the first process has gone.

use super::endpoints::{
    Sends, Takes, check_number, open_ring_to_send, open_ring_to_take, open_window, open_window_with_progress, window,
};
use crate::Result;
use crate::components::peer::PeerProcess;
use crate::statistics::median;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// A one-way run is split into this many parts; the first warms up, the rate is the median of the others.
pub const PARTS: u64 = 6;

/// Spins of a one-way reader that found nothing, before it looks again: about half a microsecond.
pub const SPINS_BETWEEN_LOOKS: u32 = 32;

/// The assignment of the second process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Its CPU; none if both processes have to share one.
    pub cpu: Option<usize>,
    /// Bytes of each frame, with its header.
    pub frame_length: usize,
    /// Frames that will come; for one that measures a multiple of [`PARTS`].
    pub frames: u64,
    pub task: Task,
}

/// The use that it makes of the frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Take them from `ring` and answer how many there were a second.
    ReadRing { ring: PathBuf },
    /// The same with a free cursor of `window`; tell in the ring `progress` how far it is.
    ReadWindow { window: PathBuf, progress: PathBuf },
    /// Take each from `ring` and send it back through the ring `back`.
    EchoByRing { ring: PathBuf, back: PathBuf },
    /// Take each from `window` and send it back through a window of its own, whose path is answered first.
    EchoByWindow { window: PathBuf },
}

/// The second process: does the work of `assignment`.
///
/// # Errors
/// A malformed assignment, memory that cannot be opened, frames that did not arrive as they were sent, a
/// parent that has gone.
pub fn main(assignment: &str) -> Result<()> {
    let assignment: Assignment = serde_json::from_str(assignment)?;
    let mut first = PeerProcess::first("log", assignment.cpu)?;
    match &assignment.task {
        Task::ReadRing { ring } => {
            let rate = read(open_ring_to_take(ring)?, &assignment, &mut first)?;
            first.send(&rate)
        }
        Task::ReadWindow { window, progress } => {
            let taker = open_window_with_progress(window, progress, assignment.frame_length)?;
            let rate = read(taker, &assignment, &mut first)?;
            first.send(&rate)
        }
        Task::EchoByRing { ring, back } => {
            echo(open_ring_to_take(ring)?, open_ring_to_send(back)?, &assignment, &mut first)
        }
        Task::EchoByWindow { window: from } => {
            let (sender, path) = window()?;
            first.send(&path)?;
            echo(open_window(from)?, sender, &assignment, &mut first)
        }
    }
}

/// Frames a second.
fn read(mut taker: impl Takes, assignment: &Assignment, first: &mut PeerProcess<'_>) -> Result<f64> {
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
                    let_frames_gather();
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

/// A reader that looks again at once takes the lines from the writer that it is about to write, and both
/// go in lockstep, frame by frame, at a quarter of the rate. This is what optimising for throughput means.
fn let_frames_gather() {
    (0..SPINS_BETWEEN_LOOKS).for_each(|_| std::hint::spin_loop());
}

fn echo(
    mut taker: impl Takes,
    mut sender: impl Sends,
    assignment: &Assignment,
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
