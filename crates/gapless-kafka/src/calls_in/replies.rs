//! Replies: hand-over to the producer, its reports, and the repetition of those that could not be sent.

use super::request_history::KnownRequest;
use super::{CallsIn, InputContext, ReplyAddress};
use crate::calls_out::{AppendFailure, Certainty};
use crate::config::PAYLOAD_BYTES_MAX;
use crate::effects::{DeliveryToken, Effect, OutgoingRecord};
use crate::outcome::{CallFailure, CallOutcome};
use crate::record::{KafkaRecord, RecordWriter, ReplyHead, SegmentPlace};
use crate::segments::split;

/// Half of the pause before the second repetition, doubled each time.
const PAUSE_NS: u64 = 125_000_000;
/// Attempts to send a failed reply again: about half a minute in all.
const ATTEMPTS_MAX: u32 = 8;
const UNSENT_MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct ReplyInFlight {
    pub(super) address: ReplyAddress,
    pub(super) pending: u32,
    pub(super) retry: Option<(Vec<KafkaRecord>, u32)>,
}

#[derive(Debug)]
pub(super) struct ReplyRetry {
    pub(super) address: ReplyAddress,
    pub(super) records: Vec<KafkaRecord>,
    pub(super) attempt: u32,
}

impl CallsIn {
    pub(crate) fn delivered(&mut self, reply: u64, failed: Option<AppendFailure>, context: &mut InputContext<'_>) {
        let Some(sent) = self.replies_in_flight.get_mut(&reply) else { return };
        let Some(AppendFailure { certainty, reason }) = failed else {
            sent.pending -= 1;
            if sent.pending == 0 {
                self.replies_in_flight.remove(&reply);
            }
            return;
        };
        let Some(ReplyInFlight { address, retry, .. }) = self.replies_in_flight.remove(&reply) else { return };
        if let Some((records, attempt)) = retry {
            if attempt < ATTEMPTS_MAX && self.reply_retries.len() < UNSENT_MAX {
                let due_ns = context.now_ns + (PAUSE_NS << attempt);
                self.reply_retries.insert((due_ns, reply), ReplyRetry { address, records, attempt: attempt + 1 });
            }
            return;
        }
        context.counters.lost_replies += 1;
        // A short record may pass where a long one did not.
        let reason = format!("the reply could not be sent: {reason}");
        let is_too_long = certainty == Certainty::TooLong;
        let key = (address.topic.to_string(), address.correlation.clone());
        let kept = self.history.get(&key).filter(|_| address.to.is_none());
        let records = match kept {
            // A program has no leases: it does not know that the broker was away, and waits still.
            Some(KnownRequest::Ended(Some(records))) if !is_too_long => records.clone(),
            _ => {
                let failure =
                    if is_too_long { CallFailure::BadMessage { reason } } else { CallFailure::unknown(reason) };
                let records = vec![reply_record(context.writer, &address, &ReplyHead::Failed, None, failure.to_json())];
                if address.to.is_none() {
                    self.history.replace(&key, &records);
                }
                records
            }
        };
        self.resend(address, records, 1, context);
    }

    pub(super) fn resend(
        &mut self,
        address: ReplyAddress,
        records: Vec<KafkaRecord>,
        attempt: u32,
        context: &mut InputContext<'_>,
    ) {
        self.last_reply += 1;
        for record in &records {
            send(&address, record.clone(), DeliveryToken::Reply(self.last_reply), context.effects);
        }
        let pending = records.len() as u32;
        self.replies_in_flight
            .insert(self.last_reply, ReplyInFlight { address, pending, retry: Some((records, attempt)) });
    }

    pub(super) fn send(
        &mut self,
        address: &ReplyAddress,
        outcome: CallOutcome,
        context: &mut InputContext<'_>,
    ) -> Vec<KafkaRecord> {
        let (head, payload) = match outcome {
            CallOutcome::Reply(payload) => (ReplyHead::Reply, payload),
            CallOutcome::Refused(refusal) => {
                (ReplyHead::Refused { code: refusal.code, text: refusal.text }, refusal.payload)
            }
            CallOutcome::Failed(failure) => (ReplyHead::Failed, failure.to_json()),
        };
        let (head, payload) = if payload.len() > PAYLOAD_BYTES_MAX {
            let reason = format!("the reply has {} bytes; at most {PAYLOAD_BYTES_MAX} pass a bridge", payload.len());
            (ReplyHead::Failed, CallFailure::BadMessage { reason }.to_json())
        } else {
            (head, payload)
        };
        self.last_reply += 1;
        let reply = self.last_reply;
        let segments = split(payload, self.limits.segment_bytes);
        self.replies_in_flight
            .insert(reply, ReplyInFlight { address: address.clone(), pending: segments.len() as u32, retry: None });
        let mut records = Vec::new();
        for (place, bytes) in segments {
            let record = reply_record(context.writer, address, &head, place, bytes);
            if address.to.is_none() {
                records.push(record.clone());
            }
            send(address, record, DeliveryToken::Reply(reply), context.effects);
        }
        records
    }
}

pub(super) fn reply_record(
    writer: &RecordWriter,
    address: &ReplyAddress,
    head: &ReplyHead,
    place: Option<SegmentPlace>,
    payload: Vec<u8>,
) -> KafkaRecord {
    let mut record = match place {
        Some(place) if place.index > 0 => writer.segment(false, &address.correlation, address.to, place),
        place => writer.reply(&address.correlation, address.to, head, place),
    };
    record.payload = Some(payload);
    record
}

pub(super) fn send(address: &ReplyAddress, record: KafkaRecord, token: DeliveryToken, effects: &mut Vec<Effect>) {
    let topic = address.topic.clone();
    effects.push(Effect::Send(OutgoingRecord { token, topic, record, begins: None }));
}
