//! [`RunRecord`]: the released frames of a run and their effects, for the second pass.

use crate::output::HandlerOutput;
use crate::trace::hash_of;
use gapless_client::polled::MessageType;
use gapless_stream::logger::utc;
use gapless_wire::control::{SessionOpen, TimerFired};
use gapless_wire::{Frame, Kind};
use serde::{Deserialize, Serialize};

/// Limit of states and outputs; beyond that only hashes are kept.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Frames from sequence 1 on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    pub frames: Vec<Vec<u8>>,
    /// Empty for a service whose handlers ran on leaders.
    pub steps: Vec<FrameEffect>,
    /// Numbered from 1.
    pub publishers: u64,
    kept_bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FrameEffect {
    pub outputs: Vec<HandlerOutput>,
    pub state_hash: u64,
    pub state: Option<Vec<u8>>,
}

impl FrameEffect {
    pub(crate) fn new(outputs: Vec<HandlerOutput>, state: Vec<u8>) -> Self {
        Self { outputs, state_hash: hash_of(&state), state: Some(state) }
    }
}

pub(crate) struct RecordedMessage {
    pub message: MessageType,
    pub payload: Vec<u8>,
}

impl RunRecord {
    pub(crate) fn push(&mut self, mut step: FrameEffect) {
        let outputs: usize = step.outputs.iter().map(HandlerOutput::kept_bytes).sum();
        let length = step.state.as_ref().map_or(0, Vec::len) + outputs;
        if self.kept_bytes + length > KEPT_BYTES_MAX {
            step.state = None;
            step.outputs.iter_mut().for_each(HandlerOutput::forget_bytes);
        } else {
            self.kept_bytes += length;
        }
        self.steps.push(step);
    }

    pub(crate) fn follow(&mut self, frame: &Frame<'_>) {
        self.frames.push(frame.bytes().to_vec());
    }

    pub(crate) fn frame(&self, sequence: u64) -> Option<Frame<'_>> {
        let at = usize::try_from(sequence.checked_sub(1)?).ok()?;
        Frame::parse(self.frames.get(at)?).ok()
    }

    /// Complete with that frame.
    pub(crate) fn message(&self, sequence: u64) -> Option<RecordedMessage> {
        let last = self.frame(sequence).filter(|frame| matches!(frame.kind(), Kind::Command | Kind::Event))?;
        let message = MessageType { schema: last.schema(), encoding: last.encoding() };
        let mut payloads = vec![last.payload()];
        let (mut at, mut index) = (sequence, last.fragment().index);
        while index > 0 {
            at -= 1;
            let frame = self.frame(at)?;
            index = frame.fragment().index;
            payloads.push(frame.payload());
        }
        payloads.reverse();
        Some(RecordedMessage { message, payload: payloads.concat() })
    }

    /// `sequence 7: command 3 of session 2`.
    pub(crate) fn place(&self, sequence: u64) -> String {
        let Some(frame) = self.frame(sequence) else { return format!("sequence {sequence}") };
        let (session, number) = (frame.session(), frame.session_seq());
        let what = match frame.kind() {
            Kind::Command => format!("command {number} of session {session}"),
            Kind::Event => format!("message {number} of publisher session {session}"),
            Kind::Timer => match TimerFired::from_bytes(frame.payload()) {
                Some(TimerFired { timer, deadline_ns }) => {
                    let late_ns = frame.timestamp_ns().saturating_sub(deadline_ns);
                    format!("timer {timer}, due at {} and {} late", utc(deadline_ns), milliseconds(late_ns))
                }
                None => "a timer".to_owned(),
            },
            kind => format!("{kind:?} of session {session}"),
        };
        format!("sequence {sequence}: {what}")
    }

    /// `None` where handlers ran on leaders.
    pub(crate) fn timer_set_by(&self, sequence: u64) -> Option<u64> {
        let frame = self.frame(sequence).filter(|frame| frame.kind() == Kind::Timer)?;
        let TimerFired { timer, deadline_ns } = TimerFired::from_bytes(frame.payload())?;
        let before = self.steps.get(..sequence as usize - 1)?;
        let at =
            before.iter().rposition(|step| step.outputs.contains(&HandlerOutput::TimerSet { timer, deadline_ns }))?;
        Some(at as u64 + 1)
    }

    /// Token of a command's session, and number of its earlier commands.
    pub(crate) fn sender(&self, sequence: u64) -> Option<(u128, u64)> {
        let session = self.frame(sequence).filter(|frame| frame.kind() == Kind::Command)?.session();
        let (mut token, mut commands) = (None, 0);
        for at in 1..=sequence {
            let Some(frame) = self.frame(at).filter(|frame| frame.session() == session) else { continue };
            match frame.kind() {
                Kind::SessionOpen => token = SessionOpen::from_bytes(frame.payload()).map(|open| open.token),
                Kind::Command if frame.fragment().index == 0 => commands += 1,
                _ => {}
            }
        }
        Some((token?, commands - 1))
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000)
}
