//! Publishes as fast as the window allows, or at a rate, and reads all messages.

use super::TIMEOUT;
use super::link_counters::{CountingLink, TYPE, complete};
use crate::Result;
use crate::child_process::Parent;
use crate::histogram::LatencyHistogram;
use crate::open_loop::Schedule;
use crate::resources::process_cpu_ns;
use crate::sequencer::failed;
use crate::sequencer::payload::{MessageTally, PayloadPattern, ReceivedMessage};
use crate::sequencer::protocol::{NodeAssignment, NodeRequest, PaceResult, PushResult, stream_failed};
use crate::time_sources::elapsed_ns;
use gapless_client::ClientError;
use gapless_client::node::{NodeEvent, StreamNode};
use std::time::{Duration, Instant};

/// Messages published between two polls: they leave in full packets.
const MESSAGES_PER_TURN: u64 = 256;
const FRAMES_PER_TURN: usize = 1024;
const YIELDS: u32 = 64;
/// An arrival ends it earlier.
const SLEEP_MAX: Duration = Duration::from_millis(1);
/// Longer than waking up takes.
const AWAKE_AHEAD: Duration = Duration::from_micros(150);

pub fn run<L: CountingLink>(node: StreamNode<L>, assignment: &NodeAssignment, parent: &Parent) -> Result<()> {
    let session = node.session().ok_or_else(|| failed("a node without a session"))?;
    let mut pusher = Pusher {
        node,
        pattern: PayloadPattern::new(session, assignment.payload_bytes),
        session,
        spins: assignment.spins,
        tally: MessageTally::new(&[], false),
        sent: 0,
        reported_seen: 0,
        idle: IdlePause::default(),
    };
    loop {
        match pusher.read_until_request(parent)? {
            NodeRequest::Participants(participants) => {
                pusher.tally = MessageTally::new(&participants, false);
                parent.send(&true)?;
            }
            NodeRequest::Push(messages) => parent.send(&pusher.push(messages)?)?,
            NodeRequest::Pace(rate_per_s) => parent.send(&pusher.pace(rate_per_s, parent)?)?,
            NodeRequest::Enough => {}
            NodeRequest::End => return parent.send(&complete(pusher.tally.account(), &pusher.node)),
        }
    }
}

struct Pusher<L> {
    node: StreamNode<L>,
    pattern: PayloadPattern,
    session: u64,
    spins: bool,
    tally: MessageTally,
    sent: u64,
    reported_seen: u64,
    idle: IdlePause,
}

#[derive(Default)]
struct IdlePause {
    turns: u32,
    since: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct PollSummary {
    frames: usize,
    /// Stamps of the participants' first and last message.
    stamps_ns: Option<(u64, u64)>,
    own: u64,
}

impl<L: CountingLink> Pusher<L> {
    /// Reads while waiting: the stream evicts a node that does not.
    fn read_until_request(&mut self, parent: &Parent) -> Result<NodeRequest> {
        loop {
            if let Some(request) = parent.try_receive()? {
                self.idle = IdlePause::default();
                return Ok(request);
            }
            if self.read(|| ())?.frames == 0 {
                self.node.wait(SLEEP_MAX).map_err(|error| stream_failed(&error))?;
            }
        }
    }

    /// Publishes while there is room; returns the number.
    #[inline]
    fn publish(&mut self, messages_max: u64) -> Result<u64> {
        for count in 0..messages_max {
            let (pattern, number, length) = (&self.pattern, self.sent, self.pattern.payload_bytes());
            let published = self.node.publish_with(TYPE, length, |payload| {
                pattern.write(number, payload);
                Ok(length)
            });
            match published {
                Ok(_) => self.sent += 1,
                Err(
                    ClientError::WindowFull { .. }
                    | ClientError::KeptFull { .. }
                    | ClientError::Throttled { .. }
                    | ClientError::Halted,
                ) => return Ok(count),
                Err(error) => return Err(stream_failed(&error)),
            }
        }
        Ok(messages_max)
    }

    /// Calls `own` for each message of this node.
    #[inline]
    fn read(&mut self, mut own: impl FnMut()) -> Result<PollSummary> {
        let (tally, session) = (&mut self.tally, self.session);
        let mut look = PollSummary::default();
        let polled = self.node.poll(FRAMES_PER_TURN, |event| {
            if let NodeEvent::Message(message) = event
                && tally.take(ReceivedMessage::from(&message))
            {
                let first = look.stamps_ns.map_or(message.timestamp_ns, |(first, _)| first);
                look.stamps_ns = Some((first, message.timestamp_ns));
                if message.session == session {
                    look.own += 1;
                    own();
                }
            }
        });
        look.frames = polled.map_err(|error| stream_failed(&error))?;
        Ok(look)
    }

    #[inline]
    fn back_off(&mut self, work: usize) -> Result<()> {
        if work > 0 {
            self.idle = IdlePause::default();
            return Ok(());
        }
        self.idle.turns += 1;
        if self.idle.turns <= YIELDS {
            std::thread::yield_now();
            return Ok(());
        }
        self.sleep(SLEEP_MAX)
    }

    fn sleep(&mut self, time: Duration) -> Result<()> {
        self.node.wait(time).map_err(|error| stream_failed(&error))?;
        if self.idle.since.get_or_insert_with(Instant::now).elapsed() <= TIMEOUT {
            return Ok(());
        }
        Err(failed(format!(
            "no message for {TIMEOUT:?}: of {} published {} are on their way, {} of all participants were seen, the \
             next sequence is {}, {:?}",
            self.sent,
            self.node.in_flight(),
            self.tally.total(),
            self.node.position(),
            self.node.state()
        )))
    }

    fn push(&mut self, messages: u64) -> Result<PushResult> {
        let goal = self.sent + messages;
        let (cpu_before, begin) = (process_cpu_ns(), Instant::now());
        let (mut own_seen, mut own_ns) = (0, 0);
        let mut stamps_ns: Option<(u64, u64)> = None;
        while own_seen < messages || !self.tally.has_each(goal) {
            let published = self.publish(MESSAGES_PER_TURN.min(goal - self.sent))?;
            let look = self.read(|| ())?;
            if let Some((first, last)) = look.stamps_ns {
                stamps_ns = Some((stamps_ns.map_or(first, |(first, _)| first), last));
            }
            if look.own > 0 {
                own_seen += look.own;
                own_ns = elapsed_ns(begin);
            }
            self.back_off(look.frames + published as usize)?;
        }
        let all_ns = elapsed_ns(begin);
        let (first_stamp_ns, last_stamp_ns) = stamps_ns.unwrap_or_default();
        // Includes messages that others published before this node got its request.
        let seen = self.tally.total() - self.reported_seen;
        self.reported_seen = self.tally.total();
        let cpu_ns = process_cpu_ns() - cpu_before;
        Ok(PushResult { sent: messages, seen, own_ns, all_ns, first_stamp_ns, last_stamp_ns, cpu_ns })
    }

    /// Publishes until asked to stop; latencies count from the scheduled time.
    fn pace(&mut self, rate_per_s: u64, parent: &Parent) -> Result<PaceResult> {
        let (cpu_before, begin) = (process_cpu_ns(), Instant::now());
        let schedule = Schedule::new(0, rate_per_s);
        let mut histogram = LatencyHistogram::new();
        let (mut sent, mut came, mut is_enough) = (0_u64, 0_u64, false);
        while !is_enough || came < sent {
            is_enough = is_enough || parent.try_receive::<NodeRequest>()?.is_some();
            while !is_enough && elapsed_ns(begin) >= schedule.due_ns(sent) && self.publish(1)? == 1 {
                sent += 1;
            }
            let look = self.read(|| {
                histogram.record(elapsed_ns(begin).saturating_sub(schedule.due_ns(came)));
                came += 1;
            })?;
            let until_due = Duration::from_nanos(schedule.due_ns(sent).saturating_sub(elapsed_ns(begin)));
            if came == sent && until_due > AWAKE_AHEAD {
                self.idle = IdlePause::default();
                self.sleep((until_due - AWAKE_AHEAD).min(SLEEP_MAX))?;
            } else if self.spins && came == sent {
                std::hint::spin_loop();
            } else {
                self.wait_awake(look.frames)?;
            }
        }
        Ok(PaceResult {
            sent,
            latencies: histogram,
            elapsed_ns: elapsed_ns(begin),
            cpu_ns: process_cpu_ns() - cpu_before,
        })
    }

    #[inline]
    fn wait_awake(&mut self, work: usize) -> Result<()> {
        const SPINS: u32 = 4096;
        if !self.spins {
            return self.back_off(work);
        }
        self.idle.turns = if work > 0 { 0 } else { self.idle.turns + 1 };
        if self.idle.turns <= SPINS {
            std::hint::spin_loop();
            return Ok(());
        }
        self.sleep(SLEEP_MAX)
    }
}
