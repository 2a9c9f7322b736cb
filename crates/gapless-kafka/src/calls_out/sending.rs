//! Hand-over of requests to the producer, and its reports.

use super::inbox_queues::QueueIndex;
use super::{AppendFailure, CallsOut, Certainty, HeldRequest, RecordPlace, cancel};
use crate::effects::{DeliveryToken, Effect, OutgoingRecord, RequestId};
use crate::outcome::{CallFailure, CallOutcome};
use crate::peers::PeerBridges;
use crate::record::RecordWriter;
use crate::segments::split;

impl CallsOut {
    pub(super) fn send(
        &mut self,
        writer: &RecordWriter,
        request: RequestId,
        unsent: HeldRequest,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.calls.get_mut(&request) else { return };
        if call.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) {
            // The deadline ends it, and nothing of it has begun.
            call.unsent = Some(unsent);
            return;
        }
        let HeldRequest { mut head, payload } = unsent;
        head.time_left_ms = call.deadline_ns.map(|deadline_ns| deadline_ns.saturating_sub(now_ns).div_ceil(1_000_000));
        head.deadline_ms = head.time_left_ms.and_then(|left_ms| self.queues.deadline_ms(call.queue, left_ms, now_ns));
        let segments = split(payload, self.segment_bytes);
        call.pending = segments.len() as u32;
        self.queues.sent(call.queue, request, call.pending, now_ns);
        let (correlation, to) = (&call.correlation, call.to.incarnation);
        for (place, bytes) in segments {
            let is_first = place.is_none_or(|place| place.index == 0);
            let mut record = match place {
                Some(place) if place.index > 0 => writer.segment(true, correlation, Some(to), place),
                place => writer.request(correlation, to, &head, place),
            };
            record.payload = Some(bytes);
            let (token, begins) = (DeliveryToken::Request(request), is_first.then_some(request));
            effects.push(Effect::Send(OutgoingRecord { token, topic: call.inbox.clone(), record, begins }));
        }
    }

    fn send_held(&mut self, writer: &RecordWriter, queue: QueueIndex, now_ns: u64, effects: &mut Vec<Effect>) {
        while let Some(request) = self.queues.next(queue, now_ns) {
            let unsent = self.calls.get_mut(&request).and_then(|call| call.unsent.take());
            if let Some(unsent) = unsent {
                self.send(writer, request, unsent, now_ns, effects);
            }
        }
    }

    pub(crate) const fn note_trouble(&mut self) {
        self.queues.note_trouble();
    }

    pub(crate) fn delivered(
        &mut self,
        writer: &RecordWriter,
        request: RequestId,
        result: Result<RecordPlace, AppendFailure>,
        peers: &mut PeerBridges,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(queue) = self.queue_of_report(request) else { return };
        let append_time_ms = result.as_ref().ok().map(|place| place.append_time_ms);
        self.queues.reported(queue, request, append_time_ms, now_ns);
        self.take_report(writer, request, result, peers, effects);
        self.send_held(writer, queue, now_ns, effects);
    }

    fn queue_of_report(&mut self, request: RequestId) -> Option<QueueIndex> {
        if let Some(call) = self.calls.get_mut(&request) {
            call.pending = call.pending.saturating_sub(1);
            return Some(call.queue);
        }
        let (queue, pending) = self.ended_unreported.get_mut(&request)?;
        let queue = *queue;
        *pending -= 1;
        if *pending == 0 {
            self.ended_unreported.remove(&request);
        }
        Some(queue)
    }

    fn take_report(
        &mut self,
        writer: &RecordWriter,
        request: RequestId,
        result: Result<RecordPlace, AppendFailure>,
        peers: &mut PeerBridges,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.calls.get_mut(&request) else { return };
        match result {
            Ok(place) => call.last_place = call.last_place.filter(|last| last.offset >= place.offset).or(Some(place)),
            Err(AppendFailure { certainty: Certainty::Doubtful, reason }) => call.doubt = Some(reason),
            Err(AppendFailure { certainty, reason }) => {
                let failure = if certainty == Certainty::TooLong {
                    CallFailure::BadMessage { reason: format!("the broker does not take the request: {reason}") }
                } else {
                    let reason = format!("the broker does not have the request: {reason}");
                    CallFailure::NotBegun { attempts: call.attempt, reason }
                };
                if call.pending > 0 || call.last_place.is_some() {
                    // The other segments wait at the bridge.
                    cancel(writer, call, effects);
                }
                return self.finish(request, CallOutcome::Failed(failure), peers, effects);
            }
        }
        if call.pending > 0 {
            return;
        }
        if let Some(reason) = &call.doubt {
            let reason = format!("the broker may have the request or not: {reason}");
            let failure = CallFailure::Unknown { attempts: call.attempt, reason };
            return self.finish(request, CallOutcome::Failed(failure), peers, effects);
        }
        if call.is_one_way {
            return self.finish(request, CallOutcome::Reply(Vec::new()), peers, effects);
        }
        if call.loss.is_some() {
            self.finish_lost(request, peers, effects);
        }
    }

    pub(crate) fn withhold(
        &mut self,
        writer: &RecordWriter,
        request: RequestId,
        peers: &mut PeerBridges,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let late = self.ended_unreported.remove(&request).map(|(queue, _)| queue);
        let Some(queue) = self.take(request, peers).map(|call| call.queue).or(late) else { return };
        self.queues.withdraw(queue, request);
        self.send_held(writer, queue, now_ns, effects);
    }
}
