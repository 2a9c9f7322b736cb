//! A node that prints the requested messages.

use super::output::{EventOutput, note};
use super::waiting::WaitMonitor;
use crate::commands::pipe::is_reader_gone;
use crate::commands::{CommandResult, interrupt};
use clap::Args;
use gapless_client::node::{AnyLink, NodeEvent, NodeLink, NodeState, Start, StreamNode};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const FRAMES_PER_POLL: usize = 1024;
const PAUSE: Duration = Duration::from_millis(10);

/// Timeout for the first answer of a stream.
#[derive(Args)]
pub(super) struct TimeoutArguments {
    /// Seconds to wait for the first answer of a sequencer; a later loss has no limit
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl TimeoutArguments {
    pub(super) fn check(&self, node: &StreamNode<AnyLink>, begun: Instant) -> CommandResult {
        let patience = Duration::from_secs(self.timeout);
        if begun.elapsed() > patience { Err(silent(node, patience).into()) } else { Ok(()) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadExtent {
    pub(super) last_sequence: Option<u64>,
    pub(super) lines: Option<u64>,
    pub(super) follows: bool,
}

pub(super) fn start(text: &str) -> Result<Start, String> {
    match (text, text.parse()) {
        ("first", _) => Ok(Start::First),
        ("live", _) => Ok(Start::Live),
        (_, Ok(sequence)) if sequence > 0 => Ok(Start::Sequence(sequence)),
        _ => Err("first, live, or a sequence from 1 is expected".to_owned()),
    }
}

pub(super) fn print(
    mut node: StreamNode<AnyLink>,
    mut output: EventOutput,
    extent: ReadExtent,
    patience: &TimeoutArguments,
) -> CommandResult {
    let interrupted = interrupt()?;
    let begun = Instant::now();
    let (mut left, mut is_done, mut was_connected) = (extent.lines.unwrap_or(u64::MAX), false, false);
    let (mut was_live, mut waits) = (false, WaitMonitor::new());
    while !is_done && left > 0 {
        let polled = node.poll(FRAMES_PER_POLL, |event| {
            if is_done || left == 0 {
                return;
            }
            let is_behind = extent.last_sequence.is_some_and(|last| sequence(&event).is_some_and(|found| found > last));
            is_done = is_behind || (!extent.follows && matches!(event, NodeEvent::State(NodeState::Live)));
            was_live |= matches!(event, NodeEvent::State(NodeState::Live));
            if was_live {
                note(&event);
            }
            if !is_done && output.event(&event) {
                left -= 1;
            }
        });
        // Messages read before a failure are printed, too.
        let is_read = output.flush()?;
        let count = polled?;
        if !is_read || interrupted.load(Ordering::Relaxed) {
            break;
        }
        is_done |= extent.last_sequence.is_some_and(|last| node.position() > last);
        was_connected |= node.state() != NodeState::Connecting;
        waits.print_due(&node);
        if !was_connected {
            patience.check(&node, begun)?;
        }
        if count == 0 && !is_done {
            node.wait(PAUSE)?;
            if is_reader_gone(Duration::ZERO)? {
                break;
            }
        }
    }
    Ok(())
}

pub(super) fn silent(node: &StreamNode<AnyLink>, patience: Duration) -> String {
    let failure = node.connect_failure().map(|failure| format!(" ({failure})")).unwrap_or_default();
    let (peer, patience_s) = (node.link().peer(), patience.as_secs_f64());
    format!("no sequencer answers at {peer} within {patience_s} s; is it running?{failure}")
}

fn sequence(event: &NodeEvent<'_>) -> Option<u64> {
    match event {
        NodeEvent::Message(message) => Some(message.sequence),
        NodeEvent::Timer { sequence, .. }
        | NodeEvent::TimerRefused { sequence, .. }
        | NodeEvent::Session { sequence, .. }
        | NodeEvent::Halted { sequence, .. }
        | NodeEvent::Resumed { sequence, .. }
        | NodeEvent::FeedBegan { sequence, .. }
        | NodeEvent::FeedEnded { sequence, .. } => Some(*sequence),
        _ => None,
    }
}
