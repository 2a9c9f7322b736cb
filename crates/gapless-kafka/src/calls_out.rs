//! Relayed requests: each ends once, with the reply, by its deadline, or when no reply will come. A loss is *not begun*
//! only if nothing was handed over, the producer says that the request was not appended, or the next incarnation of the
//! bridge shows that nothing has begun it; else it is *unknown*.

mod inbox_queues;
mod sending;

use crate::config::{BridgeLimits, PAYLOAD_BYTES_MAX};
use crate::counters::Counters;
use crate::effects::{DeliveryToken, Effect, OutgoingRecord, RequestId};
use crate::outcome::{CallFailure, CallOutcome};
use crate::peers::{InstanceSelector, PeerBridges, PeerIndex};
use crate::presence::MarkPlace;
use crate::record::names::BridgeId;
use crate::record::{RecordSender, RecordWriter, ReplyHead, RequestHead, SegmentPlace, read_failure};
use crate::segments::{Assemblies, SegmentFault};
use gapless_agent::monotonic::saturating_ns;
use gapless_rpc::Refusal;
use inbox_queues::{InboxQueues, QueueIndex};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A relayed request that its owner has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingCall {
    /// Name for its end.
    pub request: RequestId,
    /// The request. Its time left is not read.
    pub head: Box<RequestHead>,
    pub payload: Vec<u8>,
    /// Time the caller still waits; `None` without end.
    pub timeout: Option<Duration>,
}

/// Place of a record that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// Offset in its partition.
    pub offset: i64,
    /// Append time, ms since 1970; -1 where it is not known.
    pub append_time_ms: i64,
}

/// A record that may not have been appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendFailure {
    /// The producer's knowledge.
    pub certainty: Certainty,
    /// The producer's words.
    pub reason: String,
}

/// Knowledge about a record that has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    Doubtful,
    Absent,
    /// Not appended, and retries are useless: longer than the broker allows.
    TooLong,
}

#[derive(Clone, Debug)]
struct PeerLoss {
    reason: String,
    /// Mark of its next incarnation, if known and of the same log: of the requests to the lost one, none after the mark
    /// has begun.
    mark: Option<MarkPlace>,
}

#[derive(Debug)]
struct CallOut {
    peer: PeerIndex,
    to: BridgeId,
    inbox: Arc<str>,
    queue: QueueIndex,
    correlation: String,
    route: Arc<str>,
    bytes: u64,
    deadline_ns: Option<u64>,
    timeout: Duration,
    is_one_way: bool,
    attempt: u32,
    unsent: Option<HeldRequest>,
    /// Records without a delivery report.
    pending: u32,
    /// Last record that was appended.
    last_place: Option<RecordPlace>,
    /// The producer's words about a record that may have been appended.
    doubt: Option<String>,
    loss: Option<PeerLoss>,
}

#[derive(Debug)]
struct HeldRequest {
    head: Box<RequestHead>,
    payload: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct CallsOut {
    segment_bytes: usize,
    calls: HashMap<RequestId, CallOut>,
    deadlines: BTreeSet<(u64, RequestId)>,
    queues: InboxQueues,
    /// Ended before all reports came: queue, reports still due.
    ended_unreported: HashMap<RequestId, (QueueIndex, u32)>,
    replies: Assemblies<ReplyHead>,
}

impl CallsOut {
    pub(crate) fn new(limits: &BridgeLimits) -> Self {
        Self {
            segment_bytes: limits.segment_bytes,
            calls: HashMap::new(),
            deadlines: BTreeSet::new(),
            queues: InboxQueues::new(saturating_ns(limits.lease_interval) / 2),
            ended_unreported: HashMap::new(),
            replies: Assemblies::new(limits.assembly()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_ns, _)| *deadline_ns)
    }

    pub(crate) fn begin(
        &mut self,
        own: (&BridgeId, &RecordWriter),
        call: OutgoingCall,
        peers: &mut PeerBridges,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let OutgoingCall { request, mut head, payload, timeout } = call;
        let bytes = payload.len() as u64;
        if payload.len() > PAYLOAD_BYTES_MAX {
            let reason = format!("the request has {bytes} bytes; at most {PAYLOAD_BYTES_MAX} pass a bridge");
            return end(effects, request, CallFailure::BadMessage { reason });
        }
        let wanted = match (head.instance, head.key) {
            (Some(identity), _) => InstanceSelector::Instance(identity),
            (None, Some(key)) => InstanceSelector::Key(key),
            (None, None) => InstanceSelector::Any,
        };
        let (peer, route) = match peers.choose(&head.route, wanted, bytes, now_ns) {
            Ok(chosen) => chosen,
            Err(failure) => return end(effects, request, failure),
        };
        let deadline_ns = timeout.map(|timeout| now_ns.saturating_add(saturating_ns(timeout)));
        head.hops = head.hops.saturating_add(1);
        peers.begin(peer, &route, bytes);
        let inbox = peers.get(peer).inbox.clone();
        let queue = self.queues.queue(&inbox);
        if let Some(deadline_ns) = deadline_ns {
            self.deadlines.insert((deadline_ns, request));
        }
        let call = CallOut {
            peer,
            to: peers.get(peer).id.clone(),
            inbox,
            queue,
            correlation: format!("{:016x}:{}", own.0.incarnation, request.0),
            route,
            bytes,
            deadline_ns,
            timeout: timeout.unwrap_or_default(),
            is_one_way: head.is_one_way,
            attempt: head.attempt.max(1).into(),
            unsent: None,
            pending: 0,
            last_place: None,
            doubt: None,
            loss: None,
        };
        let earlier = self.calls.insert(request, call);
        assert!(earlier.is_none(), "the name of request {} was used twice", request.0);
        let unsent = HeldRequest { head, payload };
        if !self.queues.is_stalled(queue, now_ns) {
            return self.send(own.1, request, unsent, now_ns, effects);
        }
        self.queues.hold(queue, request);
        if let Some(call) = self.calls.get_mut(&request) {
            call.unsent = Some(unsent);
        }
    }

    pub(crate) fn give_up(
        &mut self,
        writer: &RecordWriter,
        request: RequestId,
        peers: &mut PeerBridges,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(call) = self.remove(request, peers) {
            cancel(writer, &call, effects);
        }
    }

    pub(crate) fn reply(
        &mut self,
        sender: &RecordSender,
        (head, place): (ReplyHead, Option<SegmentPlace>),
        payload: Vec<u8>,
        peers: &mut PeerBridges,
        counters: &mut Counters,
        effects: &mut Vec<Effect>,
    ) {
        let Some(request) = self.expected(sender, counters) else { return };
        let Some(place) = place else {
            return self.finish(request, outcome_of(head, payload), peers, effects);
        };
        // A reply without a deadline lasts as long as its bridge, which is watched.
        let begun = self.replies.begin(sender.key(), head, place, payload, u64::MAX);
        if let Err((_, reason)) = begun {
            self.finish_unreadable(request, &reason, peers, effects);
        }
    }

    pub(crate) fn unreadable_reply(
        &mut self,
        sender: &RecordSender,
        reason: &str,
        peers: &mut PeerBridges,
        counters: &mut Counters,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(request) = self.expected(sender, counters) {
            self.finish_unreadable(request, reason, peers, effects);
        }
    }

    pub(crate) fn reply_segment(
        &mut self,
        sender: &RecordSender,
        place: SegmentPlace,
        payload: &[u8],
        peers: &mut PeerBridges,
        counters: &mut Counters,
        effects: &mut Vec<Effect>,
    ) {
        let Some(request) = self.expected(sender, counters) else { return };
        match self.replies.add(&sender.key(), place, payload) {
            Ok(None) => {}
            Ok(Some((head, payload))) => self.finish(request, outcome_of(head, payload), peers, effects),
            Err(SegmentFault::Known(_, reason) | SegmentFault::Unknown(reason)) => {
                self.finish_unreadable(request, &reason, peers, effects);
            }
        }
    }

    pub(crate) fn discarded(
        &mut self,
        sender: &RecordSender,
        peers: &mut PeerBridges,
        counters: &mut Counters,
        effects: &mut Vec<Effect>,
    ) {
        let Some(request) = self.find(sender) else {
            counters.late_replies += 1;
            return;
        };
        let call = &self.calls[&request];
        let is_successor = sender.from.as_ref().is_some_and(|from| from.name == call.to.name && *from != call.to);
        if !is_successor {
            counters.foreign_replies += 1;
            return;
        }
        let reason = format!("bridge {} began again before it read the request", call.to.name);
        let failure = CallFailure::NotBegun { attempts: call.attempt, reason };
        self.finish(request, CallOutcome::Failed(failure), peers, effects);
    }

    /// This incarnation of a bridge will not reply any more. Requests of which the producer has not reported yet wait
    /// for that.
    pub(crate) fn lose(
        &mut self,
        bridge: &BridgeId,
        reason: &str,
        mark: Option<MarkPlace>,
        peers: &mut PeerBridges,
        effects: &mut Vec<Effect>,
    ) {
        self.lose_matching(|call| call.to == *bridge, reason, mark, peers, effects);
    }

    pub(crate) fn lose_all(&mut self, reason: &str, peers: &mut PeerBridges, effects: &mut Vec<Effect>) {
        self.lose_matching(|_| true, reason, None, peers, effects);
    }

    pub(crate) fn end_all(&mut self, reason: &str, peers: &mut PeerBridges, effects: &mut Vec<Effect>) {
        for request in self.matching(|_| true) {
            let CallOut { attempt: attempts, unsent, .. } = &self.calls[&request];
            let (attempts, reason) = (*attempts, reason.to_owned());
            let failure = if unsent.is_some() {
                CallFailure::NotBegun { attempts, reason }
            } else {
                CallFailure::Unknown { attempts, reason }
            };
            self.finish(request, CallOutcome::Failed(failure), peers, effects);
        }
    }

    pub(crate) fn expire(
        &mut self,
        writer: &RecordWriter,
        now_ns: u64,
        peers: &mut PeerBridges,
        effects: &mut Vec<Effect>,
    ) {
        while let Some((deadline_ns, request)) = self.deadlines.first().copied()
            && deadline_ns <= now_ns
        {
            let call = &self.calls[&request];
            cancel(writer, call, effects);
            let after_ms = u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX);
            let begun = call.unsent.is_none();
            self.finish(request, CallOutcome::Failed(CallFailure::TimedOut { after_ms, begun }), peers, effects);
        }
    }

    fn lose_matching(
        &mut self,
        is_lost: impl Fn(&CallOut) -> bool,
        reason: &str,
        mark: Option<MarkPlace>,
        peers: &mut PeerBridges,
        effects: &mut Vec<Effect>,
    ) {
        for request in self.matching(is_lost) {
            if let Some(call) = self.calls.get_mut(&request) {
                call.loss = Some(PeerLoss { reason: reason.to_owned(), mark });
            }
            self.finish_lost(request, peers, effects);
        }
    }

    /// Ends a request whose bridge is lost, once the producer has reported all of its records.
    fn finish_lost(&mut self, request: RequestId, peers: &mut PeerBridges, effects: &mut Vec<Effect>) {
        let Some(call) = self.calls.get(&request) else { return };
        let Some(PeerLoss { reason, mark }) = call.loss.clone().filter(|_| call.pending == 0) else { return };
        let is_after_mark = |place: RecordPlace| {
            mark.is_some_and(|mark| place.offset > mark.offset && place.append_time_ms >= mark.time_ms)
        };
        let attempts = call.attempt;
        let failure = if call.unsent.is_some() || call.last_place.is_some_and(is_after_mark) {
            CallFailure::NotBegun { attempts, reason }
        } else {
            CallFailure::Unknown { attempts, reason }
        };
        self.finish(request, CallOutcome::Failed(failure), peers, effects);
    }

    fn matching(&self, is_meant: impl Fn(&CallOut) -> bool) -> Vec<RequestId> {
        let meant = self.calls.iter().filter(|(_, call)| is_meant(call));
        let mut named: Vec<_> = meant.map(|(request, _)| *request).collect();
        named.sort();
        named
    }

    fn find(&self, sender: &RecordSender) -> Option<RequestId> {
        let (_, number) = sender.correlation.split_once(':')?;
        let request = RequestId(number.parse().ok()?);
        self.calls.get(&request).filter(|call| call.correlation == sender.correlation).map(|_| request)
    }

    /// The request that a reply is for; others are counted.
    fn expected(&self, sender: &RecordSender, counters: &mut Counters) -> Option<RequestId> {
        let Some(request) = self.find(sender) else {
            counters.late_replies += 1;
            return None;
        };
        if sender.from.as_ref() != Some(&self.calls[&request].to) {
            counters.foreign_replies += 1;
            return None;
        }
        Some(request)
    }

    fn finish_unreadable(
        &mut self,
        request: RequestId,
        reason: &str,
        peers: &mut PeerBridges,
        effects: &mut Vec<Effect>,
    ) {
        let attempts = self.calls[&request].attempt;
        let reason = format!("the reply cannot be read: {reason}");
        self.finish(request, CallOutcome::Failed(CallFailure::Unknown { attempts, reason }), peers, effects);
    }

    fn finish(&mut self, request: RequestId, outcome: CallOutcome, peers: &mut PeerBridges, effects: &mut Vec<Effect>) {
        if self.remove(request, peers).is_some() {
            effects.push(Effect::End { request, outcome });
        }
    }

    fn remove(&mut self, request: RequestId, peers: &mut PeerBridges) -> Option<CallOut> {
        let call = self.take(request, peers)?;
        if call.pending > 0 {
            self.ended_unreported.insert(request, (call.queue, call.pending));
        }
        Some(call)
    }

    fn take(&mut self, request: RequestId, peers: &mut PeerBridges) -> Option<CallOut> {
        let call = self.calls.remove(&request)?;
        peers.end(call.peer, call.to.incarnation, &call.route, call.bytes);
        if let Some(deadline_ns) = call.deadline_ns {
            self.deadlines.remove(&(deadline_ns, request));
        }
        if !self.replies.is_empty() {
            self.replies.give_up(&(call.to.to_string(), call.correlation.clone()));
        }
        Some(call)
    }
}

fn outcome_of(head: ReplyHead, payload: Vec<u8>) -> CallOutcome {
    match head {
        ReplyHead::Reply => CallOutcome::Reply(payload),
        ReplyHead::Refused { code, text } => CallOutcome::Refused(Refusal { code, text, payload }),
        ReplyHead::Failed => CallOutcome::Failed(read_failure(&payload)),
    }
}

fn end(effects: &mut Vec<Effect>, request: RequestId, failure: CallFailure) {
    effects.push(Effect::End { request, outcome: CallOutcome::Failed(failure) });
}

fn cancel(writer: &RecordWriter, call: &CallOut, effects: &mut Vec<Effect>) {
    if call.unsent.is_some() {
        return;
    }
    let record = writer.control("cancel", &call.correlation, Some(call.to.incarnation));
    let topic = call.inbox.clone();
    effects.push(Effect::Send(OutgoingRecord { token: DeliveryToken::Control, topic, record, begins: None }));
}
