//! The second process of `gapless bench log`: takes frames and measures how fast they come, or sends
//! each back.
//!
//! The first process starts this very program with a hidden subcommand; the work goes over as JSON in
//! an argument, what there is to answer comes back as one line of JSON on standard output, and an
//! error on standard error. It ends when its parent has gone.

use super::ends::{
    Sends, Takes, check_number, open_ring_to_send, open_ring_to_take, open_window, open_window_with_progress, window,
};
use super::waiting::Other;
use crate::Result;
use crate::parts::failed;
use crate::statistics::median;
use gapless_report::affinity::pin_current_thread;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// The hidden subcommand of `gapless bench`.
pub const SUBCOMMAND: &str = "log-partner";

/// A one-way run is split into this many parts; the first warms up, the rate is the median of the others.
pub(super) const PARTS: u64 = 6;

/// Spins of a one-way reader that found nothing, before it looks again: about half a microsecond.
pub(super) const SPINS_BETWEEN_LOOKS: u32 = 32;

/// What the second process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Who waits for it; when that process has gone, it ends.
    pub(super) parent_pid: u32,
    /// Its CPU; none if both processes have to share one.
    pub(super) cpu: Option<usize>,
    /// Bytes of each frame, with its header.
    pub(super) frame_length: usize,
    /// Frames that will come; for one that measures a multiple of [`PARTS`].
    pub(super) frames: u64,
    pub(super) role: Role,
}

/// What it does with the frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// Takes them from `ring` and answers how many there were a second.
    ReadsRing { ring: PathBuf },
    /// The same with a free cursor of `window`, telling in the ring `progress` how far it is.
    ReadsWindow { window: PathBuf, progress: PathBuf },
    /// Takes each from `ring` and sends it back through the ring `back`.
    EchoesByRing { ring: PathBuf, back: PathBuf },
    /// Takes each from `window` and sends it back through a window of its own, whose path it answers first.
    EchoesByWindow { window: PathBuf },
}

/// The second process: does what `order` says.
///
/// # Errors
/// A malformed order, memory that cannot be opened, frames that did not arrive as they were sent, a
/// parent that has gone.
pub fn main(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order)?;
    if let Some(cpu) = order.cpu {
        pin_current_thread(&[cpu])?;
    }
    let mut parent = OwnParent::new(order.parent_pid, order.cpu.is_none());
    parent.look()?;
    match &order.role {
        Role::ReadsRing { ring } => answer(&read(open_ring_to_take(ring)?, &order, &mut parent)?),
        Role::ReadsWindow { window, progress } => {
            let taker = open_window_with_progress(window, progress, order.frame_length)?;
            answer(&read(taker, &order, &mut parent)?)
        }
        Role::EchoesByRing { ring, back } => {
            echo(open_ring_to_take(ring)?, open_ring_to_send(back)?, &order, &mut parent)
        }
        Role::EchoesByWindow { window: from } => {
            let (sender, path) = window()?;
            answer(&path)?;
            echo(open_window(from)?, sender, &order, &mut parent)
        }
    }
}

/// One line of JSON for the parent.
fn answer(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|source| crate::BenchError::system("answer the first process", source))
}

/// Frames a second.
fn read(mut taker: impl Takes, order: &Order, parent: &mut OwnParent) -> Result<f64> {
    let mut frame = vec![0; order.frame_length];
    let part = order.frames / PARTS;
    let (mut number, mut rates) = (0, Vec::new());
    for index in 0..PARTS {
        let begin = Instant::now();
        let end = number + part;
        while number < end {
            parent.wait_until(|| {
                let is_taken = taker.take(&mut frame)?;
                if !is_taken {
                    let_frames_gather();
                }
                Ok(is_taken)
            })?;
            number += 1;
            check_number(black_box(&frame), number)?;
            taker.release(number, parent)?;
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

fn echo(mut taker: impl Takes, mut sender: impl Sends, order: &Order, parent: &mut OwnParent) -> Result<()> {
    let mut frame = vec![0; order.frame_length];
    for number in 1..=order.frames {
        parent.wait_until(|| taker.take(&mut frame))?;
        check_number(&frame, number)?;
        sender.write(&frame, number, parent)?;
        sender.publish();
        taker.release(number, parent)?;
    }
    Ok(())
}

/// The process that started this one, as it was then.
pub(super) struct OwnParent {
    pid: u32,
    shares_the_cpu: bool,
}

impl OwnParent {
    pub(super) const fn new(pid: u32, shares_the_cpu: bool) -> Self {
        Self { pid, shares_the_cpu }
    }
}

impl Other for OwnParent {
    fn look(&mut self) -> Result<()> {
        // An orphan has another parent at once.
        if std::os::unix::process::parent_id() == self.pid {
            Ok(())
        } else {
            Err(failed("log", format!("process {}, which this one works for, has gone", self.pid)))
        }
    }

    fn shares_the_cpu(&self) -> bool {
        self.shares_the_cpu
    }
}
