//! The second process of `gapless bench link`: takes messages and measures how fast they come, sends each back, or
//! acknowledges them.
//!
//! The first process starts this very program with a hidden subcommand; the work goes over as JSON in an argument, what
//! there is to answer comes back as lines of JSON on standard output, and an error on standard error. It ends when its
//! parent has gone.

use super::end::{End, Other, Outgoing};
use crate::Result;
use crate::parts::failed;
use gapless_report::affinity::pin_current_thread;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::time::Instant;

/// The hidden subcommand of `gapless bench`.
pub const SUBCOMMAND: &str = "link-partner";

/// A run is split into this many parts; the first warms up.
pub(super) const PARTS: u64 = 6;
/// Bytes of an acknowledgement's frame: its number twice.
const ACKNOWLEDGEMENT_BYTES: usize = 16;

/// What the second process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Who waits for it; when that process has gone, it ends.
    pub(super) parent_pid: u32,
    /// Its CPU; none if both processes have to share one.
    pub(super) cpu: Option<usize>,
    /// Bytes of each frame, with its header.
    pub(super) frame_length: usize,
    /// Messages that will come, a multiple of [`PARTS`].
    pub(super) messages: u64,
    pub(super) role: Role,
    #[serde(default)]
    pub(super) transport: Transport,
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transport {
    /// TCP on loopback.
    #[default]
    Tcp,
    /// Two rings that both processes map.
    SharedMemory,
}

/// What it does with the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// Answers how many there were a second.
    Reads,
    /// Sends each back.
    Echoes,
    /// Sends the number of the last one that a look brought.
    Acknowledges,
}

/// The second process: does what `order` says.
///
/// # Errors
/// A malformed order, no free port, messages that did not arrive as they were sent, a parent that has gone.
pub fn main(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order)?;
    if order.frame_length < 16 || order.messages == 0 || !order.messages.is_multiple_of(PARTS) {
        return Err(failed("link", "the order is malformed"));
    }
    if let Some(cpu) = order.cpu {
        pin_current_thread(&[cpu])?;
    }
    let parent = Other::Parent { pid: order.parent_pid, shares_the_cpu: order.cpu.is_none() };
    let mut end = End::listens(parent, order.transport, order.frame_length)?;
    answer(&end.address())?;
    match order.role {
        Role::Reads => answer(&read(&mut end, order.messages)?),
        Role::Echoes => send_back(&mut end, order.messages, order.frame_length, true),
        Role::Acknowledges => send_back(&mut end, order.messages, ACKNOWLEDGEMENT_BYTES, false),
    }?;
    Ok(())
}

/// One line of JSON for the parent.
fn answer(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|source| crate::BenchError::system("answer the first process", source))
}

/// Takes messages until `last` has come; each must be the next.
fn take(end: &mut End<'_>, number: &mut u64, last: u64) -> Result<usize> {
    end.turn(|message| {
        *number += 1;
        if message.number == *number && *number <= last {
            Ok(())
        } else {
            Err(failed("link", format!("message {number} was expected, {} came", message.number)))
        }
    })
}

/// Messages a second behind the first part. A look brings a megabyte of them, so smaller parts would say nothing.
fn read(end: &mut End<'_>, messages: u64) -> Result<f64> {
    let mut number = 0;
    while number < messages / PARTS {
        take(end, &mut number, messages)?;
    }
    let (begin, from) = (Instant::now(), number);
    while number < messages {
        take(end, &mut number, messages)?;
    }
    Ok((messages - from) as f64 / begin.elapsed().as_secs_f64())
}

/// Answers each message, or all that a look brought with the number of the last.
fn send_back(end: &mut End<'_>, messages: u64, answer_length: usize, each: bool) -> Result<()> {
    let mut outgoing = Outgoing::new(answer_length);
    let mut number = 0;
    while number < messages {
        let before = number;
        take(end, &mut number, messages)?;
        if number > before {
            for answered in if each { before + 1 } else { number }..=number {
                end.send(outgoing.number(answered))?;
            }
        }
    }
    end.flush()?;
    end.wait_for_end()
}
