//! Replies: hand-over to the producer, its reports, and the repetition of those that could not be sent.

use super::known::Seen;
use super::{Address, CallsIn, Turn};
use crate::calls_out::{Certainty, NotAppended};
use crate::config::PAYLOAD_BYTES_MAX;
use crate::effects::{Effect, OutgoingRecord, Token};
use crate::outcome::{Ended, Outcome};
use crate::record::{Record, ReplyHead, SegmentPlace, Writer};
use crate::segments::split;

/// Half of the pause before the second repetition of a reply that could not be sent, ns; each pause is twice the one before.
const PAUSE_NS: u64 = 125_000_000;
/// Repetitions of a reply that could not be sent, in half a minute.
const ATTEMPTS_MAX: u32 = 8;
/// Replies that wait for their repetition at most.
const UNSENT_MAX: usize = 4_096;

/// A reply of which the producer has not said everything.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) address: Address,
    pub(super) pending: u32,
    /// Of a reply that is sent again: its records, and the number of the attempt.
    pub(super) again: Option<(Vec<Record>, u32)>,
}

/// A reply that could not be sent, and is sent again after a pause.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) address: Address,
    pub(super) records: Vec<Record>,
    pub(super) attempt: u32,
}

impl CallsIn {
    /// A record of a reply was appended, or not.
    pub(crate) fn delivered(&mut self, reply: u64, failed: Option<NotAppended>, turn: &mut Turn<'_>) {
        let Some(sent) = self.sent.get_mut(&reply) else { return };
        let Some(NotAppended { certainty, reason }) = failed else {
            sent.pending -= 1;
            if sent.pending == 0 {
                self.sent.remove(&reply);
            }
            return;
        };
        let Some(Sent { address, again, .. }) = self.sent.remove(&reply) else { return };
        if let Some((records, attempt)) = again {
            if attempt < ATTEMPTS_MAX && self.unsent.len() < UNSENT_MAX {
                let due_ns = turn.now_ns + (PAUSE_NS << attempt);
                self.unsent.insert((due_ns, reply), Unsent { address, records, attempt: attempt + 1 });
            }
            return;
        }
        turn.counters.lost_replies += 1;
        // A short record may pass where a long one did not.
        let reason = format!("the reply could not be sent: {reason}");
        let is_too_long = certainty == Certainty::TooLong;
        let key = (address.topic.to_string(), address.correlation.clone());
        let kept = self.known.get(&key).filter(|_| address.to.is_none());
        let records = match kept {
            // A program has no leases by which it would know that the broker was away: it waits still.
            Some(Seen::Ended(Some(records))) if !is_too_long => records.clone(),
            _ => {
                let ended = if is_too_long { Ended::BadMessage { reason } } else { Ended::unknown(reason) };
                let records = vec![reply_record(turn.writer, &address, &ReplyHead::Ended, None, ended.to_json())];
                if address.to.is_none() {
                    self.known.replace(&key, &records);
                }
                records
            }
        };
        self.send_again(address, records, 1, turn);
    }

    pub(super) fn send_again(&mut self, address: Address, records: Vec<Record>, attempt: u32, turn: &mut Turn<'_>) {
        self.last_reply += 1;
        for record in &records {
            send(&address, record.clone(), Token::Reply(self.last_reply), turn.effects);
        }
        let pending = records.len() as u32;
        self.sent.insert(self.last_reply, Sent { address, pending, again: Some((records, attempt)) });
    }

    /// Sends an outcome. The records of a program that is no bridge.
    pub(super) fn send(&mut self, address: &Address, outcome: Outcome, turn: &mut Turn<'_>) -> Vec<Record> {
        let (head, payload) = match outcome {
            Outcome::Reply(payload) => (ReplyHead::Reply, payload),
            Outcome::Refused(refusal) => {
                (ReplyHead::Refused { code: refusal.code, text: refusal.text }, refusal.payload)
            }
            Outcome::Ended(ended) => (ReplyHead::Ended, ended.to_json()),
        };
        let (head, payload) = if payload.len() > PAYLOAD_BYTES_MAX {
            let reason = format!("the reply has {} bytes; at most {PAYLOAD_BYTES_MAX} pass a bridge", payload.len());
            (ReplyHead::Ended, Ended::BadMessage { reason }.to_json())
        } else {
            (head, payload)
        };
        self.last_reply += 1;
        let reply = self.last_reply;
        let segments = split(payload, self.limits.segment_bytes);
        self.sent.insert(reply, Sent { address: address.clone(), pending: segments.len() as u32, again: None });
        let mut records = Vec::new();
        for (place, bytes) in segments {
            let record = reply_record(turn.writer, address, &head, place, bytes);
            if address.to.is_none() {
                records.push(record.clone());
            }
            send(address, record, Token::Reply(reply), turn.effects);
        }
        records
    }
}

pub(super) fn reply_record(
    writer: &Writer,
    address: &Address,
    head: &ReplyHead,
    place: Option<SegmentPlace>,
    payload: Vec<u8>,
) -> Record {
    let mut record = match place {
        Some(place) if place.index > 0 => writer.segment(false, &address.correlation, address.to, place),
        place => writer.reply(&address.correlation, address.to, head, place),
    };
    record.payload = Some(payload);
    record
}

pub(super) fn send(address: &Address, record: Record, token: Token, effects: &mut Vec<Effect>) {
    let topic = address.topic.clone();
    effects.push(Effect::Send(OutgoingRecord { token, topic, record, begins: None }));
}
