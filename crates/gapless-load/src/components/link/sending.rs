//! The first process: sends messages, and measures.

use super::endpoint::{Endpoint, Outgoing};
use super::protocol::{Assignment, PARTS, Task, Transport};
use crate::Result;
use crate::child_process::Role;
use crate::components::peer::PeerProcess;
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use gapless_measure::floor::HEADER_BYTES;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Messages in flight for [`Figure::InFlight`].
pub const IN_FLIGHT: u64 = 64;
/// Limits of [`Figure::Acknowledged`]: messages in flight, and bytes of their payloads.
pub const UNACKNOWLEDGED: u64 = 1024;
pub const UNACKNOWLEDGED_BYTES: u64 = 4 << 20;

#[derive(Clone, Copy)]
pub enum Figure {
    /// Round trips, one message in flight.
    ThereAndBack,
    /// Messages a second, each sent back, [`IN_FLIGHT`] at a time.
    InFlight,
    /// Messages a second, measured by the receiver.
    OneWay,
    /// Messages a second until the last one is acknowledged.
    Acknowledged,
}

pub enum Measured {
    Latencies(LatencyHistogram),
    /// Messages a second.
    Rate(f64),
}

/// Measures between this process and a second one on `its_cpu`.
///
/// # Errors
/// Damaged messages; a second process that ends too early.
pub fn measure(
    (transport, payload, figure): (Transport, usize, Figure),
    messages: u64,
    its_cpu: Option<usize>,
    interrupted: &AtomicBool,
) -> Result<Measured> {
    let task = match figure {
        Figure::ThereAndBack | Figure::InFlight => Task::Echo,
        Figure::OneWay => Task::Read,
        Figure::Acknowledged => Task::Acknowledge,
    };
    let frame_length = payload + HEADER_BYTES as usize;
    let assignment = Assignment { cpu: its_cpu, frame_length, messages, task, transport };
    let mut other = PeerProcess::start("link", (Role::LinkPartner, &assignment), its_cpu, interrupted)?;
    let address: String = other.receive()?;
    let mut end = Endpoint::dials(address, frame_length, other)?;
    let mut message = Outgoing::new(frame_length);
    let measured = match figure {
        Figure::ThereAndBack => Measured::Latencies(there_and_back(&mut end, &mut message, messages)?),
        Figure::InFlight => Measured::Rate(answered(&mut end, &mut message, messages, IN_FLIGHT)?),
        Figure::OneWay => {
            for number in 1..=messages {
                end.send(message.number(number))?;
            }
            end.flush()?;
            Measured::Rate(end.other().receive()?)
        }
        Figure::Acknowledged => {
            let in_flight = (UNACKNOWLEDGED_BYTES / payload as u64).clamp(1, UNACKNOWLEDGED);
            Measured::Rate(answered(&mut end, &mut message, messages, in_flight)?)
        }
    };
    end.finish()?;
    Ok(measured)
}

/// Sends messages one by one, waiting for each to come back.
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

/// Sends with at most `in_flight` unanswered messages. Returns messages a second without the warm-up.
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
