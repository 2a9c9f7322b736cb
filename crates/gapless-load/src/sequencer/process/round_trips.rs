//! One message in flight: published, sequenced, journaled, and received back.

use super::TIMEOUT;
use super::link_counters::{CountingLink, TYPE, complete};
use crate::Result;
use crate::histogram::LatencyHistogram;
use crate::resources::process_cpu_ns;
use crate::sequencer::failed;
use crate::sequencer::payload::{MessageTally, PayloadPattern, ReceivedMessage};
use crate::sequencer::protocol::{NodeAssignment, Participant, RoundTripResult, stream_failed};
use crate::time_sources::elapsed_ns;
use gapless_agent::monotonic::saturating_ns;
use gapless_client::node::{NodeEvent, StreamNode};
use std::time::{Duration, Instant};

const LOOKS_PER_CLOCK: u32 = 1 << 16;

/// Each after the previous one has come back. The warm-up ends after a fifth of `time_limit` at the latest.
pub fn run<L: CountingLink>(
    node: &mut StreamNode<L>,
    assignment: &NodeAssignment,
    (warm_up, messages): (u64, u64),
    time_limit: Duration,
) -> Result<RoundTripResult> {
    let session = node.session().ok_or_else(|| failed("a node without a session"))?;
    let pattern = PayloadPattern::new(session, assignment.payload_bytes);
    let mut tally = MessageTally::new(&[Participant { session, payload_bytes: pattern.payload_bytes() }], true);
    let mut histogram = LatencyHistogram::new();
    let mut payload = vec![0; pattern.payload_bytes()];
    // Checked when the clock has stopped.
    let mut came = OwnMessage { payload: payload.clone(), ..OwnMessage::default() };
    let (mut began, mut cpu_before) = (Instant::now(), process_cpu_ns());
    let (started, mut warmed_up, mut measured) = (began, None, 0);
    for number in 0.. {
        if warmed_up.is_none() && (number == warm_up || started.elapsed() > time_limit / 5) {
            warmed_up = Some(number);
            (began, cpu_before) = (Instant::now(), process_cpu_ns());
        }
        if measured == messages || (measured > 0 && began.elapsed() > time_limit) {
            break;
        }
        pattern.write(number, &mut payload);
        let begin = Instant::now();
        node.publish(TYPE, &payload).map_err(|error| stream_failed(&error))?;
        node.flush().map_err(|error| stream_failed(&error))?;
        let end = wait(node, &mut came, begin, assignment.spins)?;
        if warmed_up.is_some() {
            histogram.record(saturating_ns(end - begin));
            measured += 1;
        }
        came.record_in(&mut tally, session);
    }
    let elapsed_ns = elapsed_ns(began);
    let cpu_ns = process_cpu_ns() - cpu_before;
    let account = complete(tally.account(), node);
    let warmed_up = warmed_up.unwrap_or(0);
    Ok(RoundTripResult { latencies: histogram, warmed_up, measured, elapsed_ns, cpu_ns, account })
}

#[derive(Default)]
struct OwnMessage {
    count: u64,
    sequence: u64,
    session_seq: u64,
    payload_crc: u32,
    length: usize,
    payload: Vec<u8>,
}

impl OwnMessage {
    fn record_in(&mut self, tally: &mut MessageTally, session: u64) {
        for _ in 0..std::mem::take(&mut self.count) {
            let Self { sequence, session_seq, payload_crc, .. } = *self;
            let payload = &self.payload[..self.length];
            tally.take(ReceivedMessage { sequence, session, session_seq, payload_crc, payload });
        }
    }
}

/// Returns the time of arrival.
#[inline]
fn wait<L: CountingLink>(
    node: &mut StreamNode<L>,
    came: &mut OwnMessage,
    begin: Instant,
    spins: bool,
) -> Result<Instant> {
    let mut looks = 0_u32;
    loop {
        let polled = node.poll(64, |event| {
            if let NodeEvent::Message(message) = event
                && message.own
            {
                came.count += 1;
                (came.sequence, came.session_seq) = (message.sequence, message.session_seq);
                came.payload_crc = message.payload_crc;
                came.length = message.payload.len().min(came.payload.len());
                came.payload[..came.length].copy_from_slice(&message.payload[..came.length]);
            }
        });
        polled.map_err(|error| stream_failed(&error))?;
        if came.count > 0 {
            return Ok(Instant::now());
        }
        looks = looks.wrapping_add(1);
        if !spins {
            std::thread::yield_now();
        }
        if looks.is_multiple_of(LOOKS_PER_CLOCK) && begin.elapsed() > TIMEOUT {
            return Err(failed(format!("a message has not come back for {TIMEOUT:?}")));
        }
    }
}
