//! Records of the own inbox.

use super::{BridgeCore, CorePhase, Topic};
use crate::calls_in::RequestRecord;
use crate::effects::{BridgeError, BridgeNotice, DeliveryToken, Effect};
use crate::outcome::CallFailure;
use crate::presence::MarkPlace;
use crate::record::names::{self, BridgeId};
use crate::record::{EnvelopeContent, KafkaRecord, MalformedRecord, RecordEnvelope, RecordSender, bundle, read};

impl BridgeCore {
    pub(super) fn read_inbox(&mut self, record: KafkaRecord, place: MarkPlace, now_ns: u64, effects: &mut Vec<Effect>) {
        self.read_one(record, place, false, now_ns, effects);
    }

    fn read_bundle(&mut self, payload: &[u8], place: MarkPlace, now_ns: u64, effects: &mut Vec<Effect>) {
        for record in bundle::read(payload) {
            match record {
                Ok(record) => self.read_one(record, place, true, now_ns, effects),
                Err(_) => self.counters.malformed_records += 1,
            }
        }
    }

    fn read_one(
        &mut self,
        record: KafkaRecord,
        place: MarkPlace,
        is_in_bundle: bool,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let payload = record.payload.unwrap_or_default();
        let RecordEnvelope { sender, to, content } = match read(&record.headers) {
            Ok(envelope) => envelope,
            Err(malformed) => return self.refuse_unreadable(&malformed, now_ns, effects),
        };
        if self.is_marked() {
            self.note_heard(&sender, now_ns, effects);
        }
        let is_for_earlier = to.is_some_and(|to| to != self.id.incarnation);
        let append_time_ms = place.time_ms;
        let record = |payload| RequestRecord { sender: &sender, append_time_ms, payload };
        match content {
            EnvelopeContent::Bundle | EnvelopeContent::Mark(_) if is_in_bundle => self.counters.malformed_records += 1,
            EnvelopeContent::Bundle => self.read_bundle(&payload, place, now_ns, effects),
            EnvelopeContent::Mark(words) => self.read_mark(sender.from.as_ref(), &words, place, now_ns, effects),
            // Records before the mark are not for this incarnation.
            _ if !self.is_marked() => {}
            EnvelopeContent::Request(..) if is_for_earlier => self.discard(&sender, effects),
            // Of a request in segments only the first is answered.
            EnvelopeContent::RequestSegment(_) if is_for_earlier => {}
            EnvelopeContent::Reply(..) | EnvelopeContent::ReplySegment(_) | EnvelopeContent::Discarded
                if is_for_earlier =>
            {
                self.counters.replies_to_earlier += 1;
            }
            EnvelopeContent::Request(head, place) => self.with_calls_in(now_ns, effects, |calls, context| {
                calls.request(record(payload), head, place, context);
            }),
            EnvelopeContent::RequestSegment(place) => self.with_calls_in(now_ns, effects, |calls, context| {
                calls.segment(record(payload), place, context);
            }),
            EnvelopeContent::Reply(head, place) => {
                let counters = &mut self.counters;
                self.calls_out.reply(&sender, (head, place), payload, &mut self.peers, counters, effects);
            }
            EnvelopeContent::ReplySegment(place) => {
                let counters = &mut self.counters;
                self.calls_out.reply_segment(&sender, place, &payload, &mut self.peers, counters, effects);
            }
            EnvelopeContent::Discarded => {
                self.calls_out.discarded(&sender, &mut self.peers, &mut self.counters, effects);
            }
            EnvelopeContent::Cancel => {
                self.with_calls_in(now_ns, effects, |calls, context| calls.cancel(&sender, context))
            }
            EnvelopeContent::Ping if sender.from.as_ref() == Some(&self.id) => {
                self.echo(Topic::Inbox, &sender.correlation, append_time_ms, now_ns, effects);
            }
            EnvelopeContent::Ping => self.answer_ping(&sender, effects),
            EnvelopeContent::Pong => {}
        }
    }

    fn note_heard(&mut self, sender: &RecordSender, now_ns: u64, effects: &mut Vec<Effect>) {
        if let Some(from) = sender.from.as_ref().filter(|from| **from != self.id)
            && self.peers.note_heard(from, now_ns)
        {
            effects.push(Effect::Notice(BridgeNotice::PeerBack { bridge: from.name.to_string() }));
            self.update_routes(effects);
        }
    }

    fn discard(&mut self, sender: &RecordSender, effects: &mut Vec<Effect>) {
        if self.calls_in.is_known(sender) {
            // An earlier incarnation of this process has begun it: the broker repeated the record.
            self.counters.repeated_requests += 1;
        } else if let Some(from) = &sender.from {
            let record = self.writer.control("discarded", &sender.correlation, Some(from.incarnation));
            let topic = names::inbox(&self.options.prefix, &from.name).into();
            self.send(DeliveryToken::Control, &topic, record, effects);
            self.counters.discarded_requests += 1;
        }
    }

    fn answer_ping(&self, sender: &RecordSender, effects: &mut Vec<Effect>) {
        let topic = match &sender.from {
            Some(from) => Some(names::inbox(&self.options.prefix, &from.name)),
            None => sender.reply_topic.clone().filter(|topic| self.is_reply_topic(topic)),
        };
        if let Some(topic) = topic {
            let to = sender.from.as_ref().map(|from| from.incarnation);
            let record = self.writer.control("pong", &sender.correlation, to);
            self.send(DeliveryToken::Control, &topic.into(), record, effects);
        }
    }

    pub(super) fn is_reply_topic(&self, topic: &str) -> bool {
        self.options.reply_topics.iter().any(|filter| filter.matches(topic))
    }

    pub(super) fn read_mark(
        &mut self,
        from: Option<&BridgeId>,
        words: &str,
        place: MarkPlace,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(from) = from.filter(|from| from.name == self.id.name) else {
            self.counters.malformed_records += 1;
            return;
        };
        if *from == self.id {
            if self.phase == CorePhase::Reading {
                (self.mark, self.phase) = (Some(place), CorePhase::Joining);
                self.inbox_end.echo_ns = now_ns;
                self.is_lease_due = true;
            }
        } else if self.is_marked() {
            // Another process has the name: no record after its mark is for this one.
            let error = BridgeError::NameTaken {
                name: self.id.name.to_string(),
                own: format!("{} ({:016x})", self.process_name(), self.id.incarnation),
                other: format!("{words} ({:016x})", from.incarnation),
            };
            let reason = error.to_string();
            self.end_calls(&reason, now_ns, effects);
            self.finish(Err(error), effects);
        }
    }

    pub(super) fn refuse_unreadable(&mut self, malformed: &MalformedRecord, now_ns: u64, effects: &mut Vec<Effect>) {
        let MalformedRecord { reason, protocol, sender, is_reply } = malformed;
        let failure = match protocol {
            Some(_) => CallFailure::Unavailable { reason: format!("bridge {}: {reason}", self.id.name) },
            None => CallFailure::BadMessage { reason: format!("the request cannot be read at its bridge: {reason}") },
        };
        let counter =
            if protocol.is_some() { &mut self.counters.other_protocol } else { &mut self.counters.malformed_records };
        *counter += 1;
        if let Some(sender) = sender.as_ref().filter(|_| *is_reply) {
            return self.calls_out.unreadable_reply(sender, reason, &mut self.peers, &mut self.counters, effects);
        }
        if let Some(sender) = sender.as_ref().filter(|_| self.is_marked()) {
            self.with_calls_in(now_ns, effects, |calls, context| calls.refuse_unreadable(sender, failure, context));
        }
    }
}
