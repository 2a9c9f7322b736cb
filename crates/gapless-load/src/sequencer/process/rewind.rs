//! A late joiner: reads from the first frame until it is live.

use super::TIMEOUT;
use super::link_counters::{CountingLink, complete};
use crate::Result;
use crate::child_process::Parent;
use crate::resources::process_cpu_ns;
use crate::sequencer::failed;
use crate::sequencer::payload::{MessageTally, ReceivedMessage};
use crate::sequencer::protocol::{NodeRequest, RewindResult, stream_failed};
use crate::time_sources::elapsed_ns;
use gapless_client::node::{NodeEvent, NodeState, StreamNode};
use std::time::Instant;

const FRAMES_PER_TURN: usize = 4096;

/// Receives the participants, reads from the first frame, and reports when it is live.
pub fn run<L: CountingLink>(mut node: StreamNode<L>, parent: &Parent) -> Result<()> {
    let request = parent.receive()?;
    let Some(NodeRequest::Participants(participants)) = request else {
        return Err(failed(format!("its participants were expected, {request:?} was found")));
    };
    let mut tally = MessageTally::new(&participants, false);
    let (cpu_before, begin) = (process_cpu_ns(), Instant::now());
    let mut is_live = false;
    while !is_live {
        let frames = node.poll(FRAMES_PER_TURN, |event| match event {
            NodeEvent::Message(message) => {
                tally.take(ReceivedMessage::from(&message));
            }
            NodeEvent::State(NodeState::Live) => is_live = true,
            _ => {}
        });
        if frames.map_err(|error| stream_failed(&error))? == 0 && begin.elapsed() > TIMEOUT * 10 {
            return Err(failed(format!("a late joiner is not live after {:?}", TIMEOUT * 10)));
        }
    }
    let elapsed_ns = elapsed_ns(begin);
    let cpu_ns = process_cpu_ns() - cpu_before;
    let frames = node.position().saturating_sub(1);
    parent.send(&RewindResult { frames, elapsed_ns, cpu_ns, account: complete(tally.account(), &node) })
}
