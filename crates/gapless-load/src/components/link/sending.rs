//! The first process: sends messages, and measures.

use super::endpoint::{LinkEndpoint, NumberedMessage};
use super::protocol::{LinkAssignment, LinkTask, LinkTransport, PARTS};
use crate::Result;
use crate::child_process::ChildRole;
use crate::components::peer::PeerProcess;
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use gapless_measure::floor::HEADER_BYTES;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub const IN_FLIGHT: u64 = 64;
/// Limits of [`LinkFigure::Acknowledged`]: messages, and bytes of payloads.
pub const UNACKNOWLEDGED: u64 = 1024;
pub const UNACKNOWLEDGED_BYTES: u64 = 4 << 20;

#[derive(Clone, Copy)]
pub enum LinkFigure {
    RoundTrips,
    /// Messages a second, each sent back, [`IN_FLIGHT`] at a time.
    InFlight,
    /// Messages a second at the receiver.
    OneWay,
    /// Messages a second until the last one is acknowledged.
    Acknowledged,
}

pub enum LinkResult {
    Latencies(LatencyHistogram),
    Rate(f64),
}

/// Measures between this process and a second one on `its_cpu`.
///
/// # Errors
/// Damaged messages; a second process that ends too early.
pub fn measure(
    (transport, payload, figure): (LinkTransport, usize, LinkFigure),
    messages: u64,
    its_cpu: Option<usize>,
    interrupted: &AtomicBool,
) -> Result<LinkResult> {
    let task = match figure {
        LinkFigure::RoundTrips | LinkFigure::InFlight => LinkTask::Echo,
        LinkFigure::OneWay => LinkTask::Read,
        LinkFigure::Acknowledged => LinkTask::Acknowledge,
    };
    let frame_length = payload + HEADER_BYTES as usize;
    let assignment = LinkAssignment { cpu: its_cpu, frame_length, messages, task, transport };
    let mut other = PeerProcess::start("link", (ChildRole::LinkPartner, &assignment), its_cpu, interrupted)?;
    let address: String = other.receive()?;
    let mut end = LinkEndpoint::dials(address, frame_length, other)?;
    let mut message = NumberedMessage::new(frame_length);
    let measured = match figure {
        LinkFigure::RoundTrips => LinkResult::Latencies(measure_round_trips(&mut end, &mut message, messages)?),
        LinkFigure::InFlight => LinkResult::Rate(answered(&mut end, &mut message, messages, IN_FLIGHT)?),
        LinkFigure::OneWay => {
            for number in 1..=messages {
                end.send(message.number(number))?;
            }
            end.flush()?;
            LinkResult::Rate(end.other().receive()?)
        }
        LinkFigure::Acknowledged => {
            let in_flight = (UNACKNOWLEDGED_BYTES / payload as u64).clamp(1, UNACKNOWLEDGED);
            LinkResult::Rate(answered(&mut end, &mut message, messages, in_flight)?)
        }
    };
    end.finish()?;
    Ok(measured)
}

fn measure_round_trips(
    end: &mut LinkEndpoint,
    message: &mut NumberedMessage,
    messages: u64,
) -> Result<LatencyHistogram> {
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

/// Keeps at most `in_flight` unanswered. Messages a second without the warm-up.
fn answered(end: &mut LinkEndpoint, message: &mut NumberedMessage, messages: u64, in_flight: u64) -> Result<f64> {
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
