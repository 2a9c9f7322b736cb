//! Records of the own inbox.

use super::{BridgeCore, Phase, Topic};
use crate::calls_in::RequestRecord;
use crate::effects::{BridgeError, Effect, Notice, Token};
use crate::outcome::Ended;
use crate::presence::MarkPlace;
use crate::record::names::{self, BridgeId};
use crate::record::{Content, Envelope, Malformed, Record, Sender, bundle, read};

impl BridgeCore {
    /// A record of the inbox.
    pub(super) fn read_inbox(&mut self, record: Record, place: MarkPlace, now_ns: u64, effects: &mut Vec<Effect>) {
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
        record: Record,
        place: MarkPlace,
        is_in_bundle: bool,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let payload = record.payload.unwrap_or_default();
        let Envelope { sender, to, content } = match read(&record.headers) {
            Ok(envelope) => envelope,
            Err(malformed) => return self.refuse_unread(&malformed, now_ns, effects),
        };
        if self.is_marked() {
            self.hear(&sender, now_ns, effects);
        }
        let is_for_earlier = to.is_some_and(|to| to != self.id.incarnation);
        let append_time_ms = place.time_ms;
        let record = |payload| RequestRecord { sender: &sender, append_time_ms, payload };
        match content {
            // A mark has an offset of its own.
            Content::Bundle | Content::Mark(_) if is_in_bundle => self.counters.malformed_records += 1,
            Content::Bundle => self.read_bundle(&payload, place, now_ns, effects),
            Content::Mark(words) => self.read_mark(sender.from.as_ref(), &words, place, now_ns, effects),
            // Records before the mark are not for this incarnation.
            _ if !self.is_marked() => {}
            Content::Request(..) if is_for_earlier => self.discard(&sender, effects),
            // Of a request in segments only the first is answered.
            Content::RequestSegment(_) if is_for_earlier => {}
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
            Content::Cancel => self.with_calls_in(now_ns, effects, |calls, turn| calls.cancel(&sender, turn)),
            Content::Ping if sender.from.as_ref() == Some(&self.id) => {
                self.echo(Topic::Inbox, &sender.correlation, append_time_ms, now_ns, effects);
            }
            Content::Ping => self.answer_ping(&sender, effects),
            Content::Pong => {}
        }
    }

    /// A record of another bridge is a sign of life.
    fn hear(&mut self, sender: &Sender, now_ns: u64, effects: &mut Vec<Effect>) {
        if let Some(from) = sender.from.as_ref().filter(|from| **from != self.id)
            && self.peers.hear(from, now_ns)
        {
            effects.push(Effect::Notice(Notice::PeerBack { bridge: from.name.to_string() }));
            self.update_routes(effects);
        }
    }

    /// Answers a request to an earlier incarnation, which nothing begins any more.
    fn discard(&mut self, sender: &Sender, effects: &mut Vec<Effect>) {
        if self.calls_in.is_known(sender) {
            // An earlier incarnation of this process has begun it: a broker has repeated the record.
            self.counters.repeated_requests += 1;
        } else if let Some(from) = &sender.from {
            let record = self.writer.control("discarded", &sender.correlation, Some(from.incarnation));
            let topic = names::inbox(&self.options.prefix, &from.name).into();
            self.send(Token::Control, &topic, record, effects);
            self.counters.discarded_requests += 1;
        }
    }

    fn answer_ping(&self, sender: &Sender, effects: &mut Vec<Effect>) {
        let topic = match &sender.from {
            Some(from) => Some(names::inbox(&self.options.prefix, &from.name)),
            None => sender.reply_topic.clone().filter(|topic| self.is_reply_topic(topic)),
        };
        if let Some(topic) = topic {
            let to = sender.from.as_ref().map(|from| from.incarnation);
            let record = self.writer.control("pong", &sender.correlation, to);
            self.send(Token::Control, &topic.into(), record, effects);
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
        let Malformed { reason, protocol, sender, is_reply } = malformed;
        let ended = match protocol {
            Some(_) => Ended::Unavailable { reason: format!("bridge {}: {reason}", self.id.name) },
            None => Ended::BadMessage { reason: format!("the request cannot be read at its bridge: {reason}") },
        };
        let counter =
            if protocol.is_some() { &mut self.counters.other_protocol } else { &mut self.counters.malformed_records };
        *counter += 1;
        if let Some(sender) = sender.as_ref().filter(|_| *is_reply) {
            return self.calls_out.unread_reply(sender, reason, &mut self.peers, &mut self.counters, effects);
        }
        if let Some(sender) = sender.as_ref().filter(|_| self.is_marked()) {
            self.with_calls_in(now_ns, effects, |calls, turn| calls.refuse_unread(sender, ended, turn));
        }
    }
}
