//! Appends the resulting transaction, contiguously, in place of a command or a timer.

use super::Ingress;
use crate::StreamError;
use crate::deferred::DeferredSessions;
use crate::ingress_links::IngressCounters;
use crate::messages::ResponderMessage;
use crate::sequencer::{Sequencer, Timer};
use crate::transactions::{ExecutionResult, Transactions};
use gapless_agent::fault::crash_point;
use gapless_log::WindowWriter;
use gapless_transport::link::ConnectionId;
use gapless_wire::control::{RefusalCode, TimerFired};
use gapless_wire::descriptor::{ENCODING_FLAGS, REFUSED_FLAG, TRANSACTION_FLAG};
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, MessageParts};

pub(super) struct SpeculativeExecution {
    pub transactions: Box<dyn Transactions>,
    bytes: Vec<u8>,
    command: Vec<u8>,
    length_max: usize,
    /// Room for a transaction, needed before a handler runs: its effect cannot be undone.
    pub room_bytes: usize,
}

impl SpeculativeExecution {
    fn new(transactions: Box<dyn Transactions>, message_bytes_max: usize, frame_length_max: usize) -> Self {
        let (part, overhead) = (frame_length_max - HEADER_LENGTH, HEADER_LENGTH + 8);
        let (frames, rest) = (message_bytes_max / (part + overhead), message_bytes_max % (part + overhead));
        let length_max = (frames * part + rest.saturating_sub(overhead)).min(part * usize::from(u16::MAX));
        Self { transactions, bytes: Vec::new(), command: Vec::new(), length_max, room_bytes: message_bytes_max }
    }

    /// Runs a command's handler; `header` has the sequence and time of the transaction.
    #[inline]
    pub fn run(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        sequencer: &Sequencer,
        counters: &IngressCounters,
    ) -> ExecutionResult {
        self.bytes.clear();
        counters.begin_execution(header.sequence, header.session, header.session_seq);
        let execution = self.transactions.command(header, payload, sequencer, self.length_max, &mut self.bytes);
        counters.end_execution();
        execution
    }

    /// Appends the last transaction; there is room.
    #[inline]
    pub fn append(
        &self,
        header: &mut FrameHeader,
        window: &mut WindowWriter,
        sequencer: &mut Sequencer,
        epoch_ns: u64,
    ) -> Result<(), StreamError> {
        header.flags = header.flags & !(ENCODING_FLAGS | REFUSED_FLAG) | TRANSACTION_FLAG;
        let parts = MessageParts::new(&self.bytes, window.frame_length_max() - HEADER_LENGTH);
        for (fragment, part) in parts.iter() {
            if fragment.index > 0 {
                crash_point("transaction_between_frames");
                (header.sequence, header.timestamp_ns) = sequencer.stamp(epoch_ns);
            }
            header.fragment = fragment;
            let mut writer = FrameWriter::new(window.claim(HEADER_LENGTH + part.len())?);
            writer.payload_mut()[..part.len()].copy_from_slice(part);
            let length = writer.finish(header, part.len());
            window.commit(length, header.sequence);
        }
        crash_point("transaction_appended");
        Ok(())
    }

    #[inline]
    pub fn transaction(&self) -> &[u8] {
        &self.bytes
    }
}

impl SpeculativeExecution {
    #[cold]
    pub(super) fn become_version(&mut self, version: u32) {
        self.transactions.become_version(version);
    }
}

#[cold]
pub(super) fn drop_deferred(speculation: &mut Option<SpeculativeExecution>, frame: &Frame<'_>) {
    if let Some(speculation) = speculation
        && frame.kind() == Kind::Command
    {
        speculation.transactions.dropped(&frame.header(), frame.payload());
    }
}

pub(super) fn forget_deferred_from(
    deferred: &mut DeferredSessions,
    speculation: &mut Option<SpeculativeExecution>,
    connection: ConnectionId,
) {
    if let Some(speculation) = speculation {
        deferred.forget_from(connection, |session| speculation.transactions.gone(session));
    }
}

impl Ingress {
    /// Runs commands and timers through `transactions` before they are appended.
    #[must_use]
    pub fn with_speculative_execution(mut self, transactions: Box<dyn Transactions>) -> Self {
        let message_bytes_max = self.options.message_bytes_max;
        self.speculation =
            Some(SpeculativeExecution::new(transactions, message_bytes_max, self.window.frame_length_max()));
        self
    }

    /// The service's state must be recovered first.
    #[inline]
    pub(super) fn may_append(&mut self) -> bool {
        let (last_sequence, last_timestamp_ns) = (self.window.last_sequence(), self.sequencer.last_timestamp_ns());
        self.speculation.as_mut().is_none_or(|speculation| {
            let is_ready = speculation.transactions.poll(last_sequence);
            if is_ready {
                speculation.transactions.answer_queries(last_sequence, last_timestamp_ns);
            }
            is_ready
        })
    }

    #[inline]
    pub(super) fn has_room_for_transaction(&mut self) -> Result<bool, StreamError> {
        match &self.speculation {
            Some(speculation) => Ok(self.window.has_room(speculation.room_bytes)?),
            None => Ok(true),
        }
    }

    /// Appends the transaction, or defers the command, which its session has counted.
    #[inline]
    pub(super) fn append_transaction(&mut self, length: usize, connection: ConnectionId) -> Result<(), StreamError> {
        let Self { sequencer, window, speculation, now, deferred, links, .. } = self;
        let speculation = speculation.as_mut().expect("only a service with speculative execution appends transactions");
        // The same place again: the frame is still there.
        let claim = window.claim(length)?;
        let frame = Frame::parse(claim).expect("it was checked");
        let last_timestamp_ns = sequencer.last_timestamp_ns();
        let (sequence, timestamp_ns) = sequencer.stamp(now.epoch_ns);
        let mut header = FrameHeader { sequence, timestamp_ns, term: sequencer.term(), ..frame.header() };
        match speculation.run(&header, frame.payload(), sequencer, &links.counters) {
            ExecutionResult::Done => {
                speculation.append(&mut header, window, sequencer, now.epoch_ns)?;
                if !deferred.is_empty() {
                    deferred.forget(header.session);
                }
            }
            ExecutionResult::Deferred => {
                sequencer.take_back(header.session, last_timestamp_ns);
                deferred.defer(header.session, header.session_seq, connection, now.monotonic_ns);
            }
        }
        Ok(())
    }

    #[cold]
    pub(super) fn append_long_transaction(
        &mut self,
        session: u64,
        connection: ConnectionId,
    ) -> Result<(), StreamError> {
        let Self { sequencer, window, speculation, now, fragments, deferred, links, .. } = self;
        let speculation = speculation.as_mut().expect("only a service with speculative execution appends transactions");
        let (message, frames) = fragments.complete(session);
        let mut command = std::mem::take(&mut speculation.command);
        command.clear();
        let mut last = FrameHeader::default();
        for range in frames {
            let frame = Frame::parse(&message[range.clone()]).expect("it was checked");
            command.extend_from_slice(frame.payload());
            last = frame.header();
        }
        let frames = frames.len() as u64;
        let last_timestamp_ns = sequencer.last_timestamp_ns();
        let (sequence, timestamp_ns) = sequencer.stamp(now.epoch_ns);
        let mut header = FrameHeader { sequence, timestamp_ns, term: sequencer.term(), ..last };
        match speculation.run(&header, &command, sequencer, &links.counters) {
            ExecutionResult::Done => {
                speculation.append(&mut header, window, sequencer, now.epoch_ns)?;
                sequencer.count_message(session, frames);
                deferred.forget(session);
            }
            ExecutionResult::Deferred => {
                sequencer.take_stamp_back(last_timestamp_ns);
                deferred.defer(session, last.session_seq, connection, now.monotonic_ns);
            }
        }
        speculation.command = command;
        Ok(())
    }

    #[inline]
    pub(super) fn recall_deferred(&mut self) {
        while !self.deferred.is_empty() && self.links.service.has_room(1) {
            let speculation = self.speculation.as_mut();
            let Some(session) = speculation.and_then(|speculation| speculation.transactions.ready()) else { return };
            let connection = self.deferred.recall(session, self.now.monotonic_ns);
            let Some(connection) = connection else { continue };
            if let Ok(next) = self.sequencer.expected(session, connection) {
                let (session_seq, code, detail) = (next, RefusalCode::Gap, next);
                self.notify_service(ResponderMessage::Refuse { connection, session, session_seq, code, detail });
            }
        }
    }

    /// `false` while the window is full.
    pub(super) fn append_timer_transaction(&mut self, timer: Timer) -> Result<bool, StreamError> {
        if !self.has_room_for_transaction()? {
            return Ok(false);
        }
        let Self { sequencer, window, speculation, now, links, .. } = self;
        let speculation = speculation.as_mut().expect("only a service with speculative execution appends transactions");
        sequencer.take_timer(timer);
        let fired = TimerFired { timer: timer.timer, deadline_ns: timer.deadline_ns };
        // The service has cancelled or reset the timer, and the sequencer does not know yet.
        if !speculation.transactions.is_set(fired) {
            return Ok(true);
        }
        let (sequence, timestamp_ns) = sequencer.stamp(now.epoch_ns);
        let term = sequencer.term();
        let mut header = FrameHeader { kind: Kind::Timer, sequence, timestamp_ns, term, ..FrameHeader::default() };
        speculation.bytes.clear();
        links.counters.begin_execution(sequence, 0, timer.timer);
        speculation.transactions.timer(&header, fired, sequencer, speculation.length_max, &mut speculation.bytes);
        links.counters.end_execution();
        speculation.append(&mut header, window, sequencer, now.epoch_ns)?;
        Ok(true)
    }

    #[cold]
    pub(super) fn note_passed(&mut self, kind: Kind, session: u64, acknowledged: u64) {
        let Some(speculation) = &mut self.speculation else { return };
        match kind {
            Kind::Acknowledge => speculation.transactions.acknowledged(session, acknowledged),
            Kind::SessionClose => speculation.transactions.closed(session),
            _ => {}
        }
    }
}
