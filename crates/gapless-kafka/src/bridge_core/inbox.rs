//! Records of the own inbox.

use super::{BridgeCore, Phase, Topic};
use crate::calls_in::{Origin, RequestRecord};
use crate::calls_out::Sender;
use crate::effects::{BridgeError, Effect, Notice, Token};
use crate::outcome::Ended;
use crate::presence::MarkPlace;
use crate::record::names::{self, BridgeId};
use crate::record::{Content, Envelope, Malformed, Record, bundle, read};

impl BridgeCore {
    /// A record of the inbox, or several in one.
    pub(super) fn read_inbox(&mut self, record: Record, place: MarkPlace, now_ns: u64, effects: &mut Vec<Effect>) {
        let Record { headers, payload, .. } = record;
        let payload = payload.unwrap_or_default();
        match read(&headers) {
            Ok(Envelope { content: Content::Bundle, .. }) => self.read_bundle(&payload, place, now_ns, effects),
            Ok(envelope) => self.read_one(envelope, place, payload, now_ns, effects),
            Err(malformed) => self.refuse_unread(&malformed, now_ns, effects),
        }
    }

    fn read_bundle(&mut self, payload: &[u8], place: MarkPlace, now_ns: u64, effects: &mut Vec<Effect>) {
        for record in bundle::read(payload) {
            let Ok(Record { headers, payload, .. }) = record else {
                self.counters.malformed_records += 1;
                return;
            };
            match read(&headers) {
                // A mark has an offset of its own.
                Ok(Envelope { content: Content::Bundle | Content::Mark(_), .. }) => {
                    self.counters.malformed_records += 1
                }
                Ok(envelope) => self.read_one(envelope, place, payload.unwrap_or_default(), now_ns, effects),
                Err(malformed) => self.refuse_unread(&malformed, now_ns, effects),
            }
        }
    }

    fn read_one(
        &mut self,
        envelope: Envelope,
        place: MarkPlace,
        payload: Vec<u8>,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Envelope { correlation, from, reply_topic, program, to, content } = envelope;
        if let Content::Mark(words) = &content {
            return self.read_mark(from.as_ref(), words, place, now_ns, effects);
        }
        if !self.is_marked() {
            // Records before the mark are not for this incarnation.
            return;
        }
        if let Some(from) = from.as_ref().filter(|from| **from != self.id)
            && self.peers.hear(from, now_ns)
        {
            let bridge = from.name.to_string();
            effects.push(Effect::Notice(Notice::PeerBack { bridge }));
            self.update_routes(effects);
        }
        let is_for_earlier = to.is_some_and(|to| to != self.id.incarnation);
        let sender = Sender { correlation: &correlation, from: from.as_ref() };
        let append_time_ms = place.time_ms;
        let (from, reply_topic) = (from.as_ref(), reply_topic.as_deref());
        let origin = Origin { correlation: &correlation, from, reply_topic, program: &program };
        let record = |payload| RequestRecord { origin, append_time_ms, payload };
        match content {
            Content::Request(..) | Content::RequestSegment(_) if is_for_earlier => {
                if self.calls_in.is_known(origin) {
                    // An earlier incarnation of this process has begun it: a broker has repeated the record.
                    self.counters.repeated_requests += 1;
                } else if let (Some(from), Content::Request(..)) = (from, &content) {
                    // Of a request in segments only the first is answered.
                    let record = self.writer.control("discarded", &correlation, Some(from.incarnation));
                    let topic = names::inbox(&self.options.prefix, &from.name).into();
                    self.send(Token::Control, &topic, record, effects);
                    self.counters.discarded_requests += 1;
                }
            }
            Content::Reply(..) | Content::ReplySegment(_) | Content::Discarded if is_for_earlier => {
                self.counters.replies_to_earlier += 1;
            }
            Content::Request(head, place) => self.with_calls_in(now_ns, effects, |calls, turn| {
                calls.request(record(payload), head, place, turn);
            }),
            Content::RequestSegment(place) => self.with_calls_in(now_ns, effects, |calls, turn| {
                calls.segment(record(payload), place, turn);
            }),
            Content::Reply(head, place) => {
                let counters = &mut self.counters;
                self.calls_out.reply(&sender, (head, place), payload, &mut self.peers, counters, effects);
            }
            Content::ReplySegment(place) => {
                let counters = &mut self.counters;
                self.calls_out.reply_segment(&sender, place, &payload, &mut self.peers, counters, effects);
            }
            Content::Discarded => {
                self.calls_out.discarded(&sender, &mut self.peers, &mut self.counters, effects);
            }
            Content::Cancel => self.with_calls_in(now_ns, effects, |calls, turn| {
                calls.cancel(origin, turn);
            }),
            Content::Ping if from == Some(&self.id) => {
                self.echo(Topic::Inbox, &correlation, append_time_ms, now_ns, effects);
            }
            Content::Ping => {
                let topic = match from {
                    Some(from) => Some(names::inbox(&self.options.prefix, &from.name)),
                    None => reply_topic.filter(|topic| self.is_reply_topic(topic)).map(str::to_owned),
                };
                if let Some(topic) = topic {
                    let record = self.writer.control("pong", &correlation, from.map(|from| from.incarnation));
                    self.send(Token::Control, &topic.into(), record, effects);
                }
            }
            Content::Bundle | Content::Mark(_) | Content::Pong => {}
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
            if self.phase == Phase::Reading {
                (self.mark, self.phase) = (Some(place), Phase::Joining);
                self.inbox_end.echo_ns = now_ns;
                self.is_lease_due = true;
            }
        } else if self.is_marked() {
            // Another process has the name now: no record after its mark is for this one.
            let error = BridgeError::NameTaken {
                name: self.id.name.to_string(),
                own: format!("{} ({:016x})", self.words(), self.id.incarnation),
                other: format!("{words} ({:016x})", from.incarnation),
            };
            let reason = error.to_string();
            self.end_calls(&reason, now_ns, effects);
            self.finish(Err(error), effects);
        }
    }

    pub(super) fn refuse_unread(&mut self, malformed: &Malformed, now_ns: u64, effects: &mut Vec<Effect>) {
        let Malformed { reason, protocol, address, is_reply } = malformed;
        let ended = match protocol {
            Some(_) => Ended::Unavailable { reason: format!("bridge {}: {reason}", self.id.name) },
            None => Ended::BadMessage { reason: format!("the request cannot be read at its bridge: {reason}") },
        };
        let counter =
            if protocol.is_some() { &mut self.counters.other_protocol } else { &mut self.counters.malformed_records };
        *counter += 1;
        if let Some(address) = address.as_ref().filter(|_| *is_reply) {
            let sender = Sender { correlation: &address.correlation, from: address.from.as_ref() };
            return self.calls_out.unread_reply(&sender, reason, &mut self.peers, &mut self.counters, effects);
        }
        if let Some(address) = address.as_ref().filter(|_| self.is_marked()) {
            self.with_calls_in(now_ns, effects, |calls, turn| calls.refuse_unread(address, ended, turn));
        }
    }
}
