//! Requests to this domain: each is begun at most once, by its correlation, and answered once unless it is one-way.

mod replies;
mod request_history;

use crate::config::{BridgeLimits, CoreOptions, PAYLOAD_BYTES_MAX, TopicFilter};
use crate::counters::Counters;
use crate::effects::{CallId, DeliveryToken, Effect, IncomingCall};
use crate::outcome::{CallFailure, CallOutcome};
use crate::peers::CallLoad;
use crate::presence::PEERS_MAX;
use crate::record::names::{self, BridgeId};
use crate::record::{HOPS_MAX, RecordSender, RecordWriter, ReplyHead, RequestHead, SegmentPlace};
use crate::route_filter::{RouteFilter, any_matches};
use crate::segments::{Assemblies, AssemblyKey, SegmentFault};
use gapless_agent::monotonic::saturating_ns;
use replies::{ReplyInFlight, ReplyRetry, reply_record, send};
use request_history::{KnownRequest, RequestHistory};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
struct ReplyAddress {
    topic: Arc<str>,
    to: Option<u64>,
    correlation: String,
}

#[derive(Debug)]
struct CallIn {
    key: Arc<AssemblyKey>,
    route: String,
    bytes: u64,
    address: Option<ReplyAddress>,
    is_from_bridge: bool,
}

#[derive(Debug)]
struct PartialRequest {
    head: Box<RequestHead>,
    address: Option<ReplyAddress>,
    append_time_ms: i64,
    is_from_bridge: bool,
}

#[derive(Debug)]
pub(crate) struct CallsIn {
    name: String,
    prefix: String,
    offer: Vec<RouteFilter>,
    reply_topics: Vec<TopicFilter>,
    limits: BridgeLimits,
    calls: HashMap<CallId, CallIn>,
    last_call: u64,
    history: RequestHistory,
    assemblies: Assemblies<PartialRequest>,
    loads: HashMap<String, CallLoad>,
    by_route: HashMap<String, u32>,
    replies_in_flight: HashMap<u64, ReplyInFlight>,
    reply_retries: BTreeMap<(u64, u64), ReplyRetry>,
    last_reply: u64,
    is_stopping: bool,
}

pub(crate) struct RequestRecord<'a> {
    pub(crate) sender: &'a RecordSender,
    pub(crate) append_time_ms: i64,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct InputContext<'a> {
    pub(crate) writer: &'a RecordWriter,
    pub(crate) now_ns: u64,
    /// Time since an append time, ns.
    pub(crate) age_ns: &'a dyn Fn(i64) -> u64,
    pub(crate) counters: &'a mut Counters,
    pub(crate) effects: &'a mut Vec<Effect>,
}

impl CallsIn {
    pub(crate) fn new(options: &CoreOptions) -> Self {
        Self {
            name: options.name.clone(),
            prefix: options.prefix.clone(),
            offer: options.offer.clone(),
            reply_topics: options.reply_topics.clone(),
            limits: options.limits,
            calls: HashMap::new(),
            last_call: 0,
            history: RequestHistory::new(),
            assemblies: Assemblies::new(options.limits.assembly()),
            loads: HashMap::new(),
            by_route: HashMap::new(),
            replies_in_flight: HashMap::new(),
            reply_retries: BTreeMap::new(),
            last_reply: 0,
            is_stopping: false,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.replies_in_flight.is_empty() && self.reply_retries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn next_expiry_ns(&self) -> Option<u64> {
        let unsent_ns = self.reply_retries.first_key_value().map(|((due_ns, _), _)| *due_ns);
        unsent_ns.into_iter().chain(self.assemblies.next_expiry_ns()).min()
    }

    pub(crate) fn in_flight(&self, route: &str) -> u32 {
        self.by_route.get(route).copied().unwrap_or(0)
    }

    pub(crate) fn load(&self, sender: &BridgeId) -> CallLoad {
        self.loads.get(&sender.to_string()).copied().unwrap_or_default()
    }

    pub(crate) fn is_known(&self, sender: &RecordSender) -> bool {
        self.history.get(&sender.key()).is_some()
    }

    pub(crate) const fn stop(&mut self) {
        self.is_stopping = true;
    }

    pub(crate) fn request(
        &mut self,
        record: RequestRecord<'_>,
        mut head: Box<RequestHead>,
        place: Option<SegmentPlace>,
        context: &mut InputContext<'_>,
    ) {
        let RequestRecord { sender, append_time_ms, payload } = record;
        let address = self.address(sender);
        if address.is_none() && !head.is_one_way {
            // A foreign program without a place for the reply cannot wait for it.
            context.counters.without_address += 1;
            return;
        }
        if let Some(deadline_ms) = head.deadline_ms {
            // The record may have waited for its append.
            let left_ms = deadline_ms.saturating_sub(append_time_ms).max(0).cast_unsigned();
            head.time_left_ms = Some(head.time_left_ms.map_or(left_ms, |own_ms| own_ms.min(left_ms)));
        }
        let key = sender.key();
        if self.is_repeated(&key, address.as_ref().filter(|_| !head.is_one_way), context) {
            return;
        }
        let is_from_bridge = sender.from.is_some();
        let partial = PartialRequest { head, address, append_time_ms, is_from_bridge };
        let Some(place) = place else { return self.admit(key, partial, payload, context) };
        let segment_ns = saturating_ns(self.limits.segment_time);
        let time_ns = partial.head.time_left_ms.map_or(segment_ns, |left_ms| {
            left_ms.saturating_mul(1_000_000).saturating_sub((context.age_ns)(append_time_ms)).min(segment_ns)
        });
        let expires_ns = context.now_ns.saturating_add(time_ns);
        if let Err((partial, reason)) = self.assemblies.begin(key.clone(), partial, place, payload, expires_ns) {
            let is_too_long = place.total_bytes > PAYLOAD_BYTES_MAX as u64;
            let failure = if is_too_long { CallFailure::BadMessage { reason } } else { CallFailure::Busy { reason } };
            self.refuse(key, &partial, failure, context);
        }
    }

    pub(crate) fn segment(&mut self, record: RequestRecord<'_>, place: SegmentPlace, context: &mut InputContext<'_>) {
        let (sender, key) = (record.sender, record.sender.key());
        match self.assemblies.add(&key, place, &record.payload) {
            Ok(None) => {}
            Ok(Some((partial, payload))) => self.admit(key, partial, payload, context),
            Err(SegmentFault::Known(partial, reason)) => {
                self.refuse(key, &partial, CallFailure::not_begun(reason), context);
            }
            Err(SegmentFault::Unknown(reason)) => {
                let address = self.address(sender);
                if self.history.get(&key).is_some() {
                    return;
                }
                let failure = CallOutcome::Failed(CallFailure::not_begun(reason));
                self.end(
                    Arc::new(key),
                    address.as_ref().map(|address| (address, failure)),
                    sender.from.is_some(),
                    context,
                );
            }
        }
    }

    pub(crate) fn cancel(&mut self, sender: &RecordSender, context: &mut InputContext<'_>) {
        let key = sender.key();
        if self.assemblies.give_up(&key).is_some() {
            return self.history.end(Arc::new(key), None, sender.from.is_some(), context.now_ns);
        }
        if let Some(KnownRequest::Running(call)) = self.history.get(&key) {
            self.cancel_call(*call, context);
        }
    }

    pub(crate) fn forget(&mut self, bridge: &BridgeId, context: &mut InputContext<'_>) {
        let sender = bridge.to_string();
        self.assemblies.give_up_sender(&sender);
        let its = self.calls.iter().filter(|(_, call)| call.key.0 == sender);
        let its: BTreeSet<_> = its.map(|(call, _)| *call).collect();
        its.into_iter().for_each(|call| self.cancel_call(call, context));
    }

    pub(crate) fn cancel_all(&mut self, reason: Option<&str>, context: &mut InputContext<'_>) {
        let all: BTreeSet<_> = self.calls.keys().copied().collect();
        for call in all {
            let address = self.calls[&call].address.clone();
            self.cancel_call(call, context);
            if let (Some(reason), Some(address)) = (reason, address) {
                self.send(&address, CallOutcome::Failed(CallFailure::unknown(reason)), context);
            }
        }
        self.assemblies = Assemblies::new(self.limits.assembly());
    }

    pub(crate) fn call_ended(&mut self, call: CallId, outcome: CallOutcome, context: &mut InputContext<'_>) {
        let Some(CallIn { key, address, is_from_bridge, .. }) = self.remove(call) else { return };
        self.end(key, address.as_ref().map(|address| (address, outcome)), is_from_bridge, context);
    }

    fn end(
        &mut self,
        key: Arc<AssemblyKey>,
        reply: Option<(&ReplyAddress, CallOutcome)>,
        is_from_bridge: bool,
        context: &mut InputContext<'_>,
    ) {
        let records = reply.map(|(address, outcome)| self.send(address, outcome, context));
        self.history.end(key, records.filter(|_| !is_from_bridge), is_from_bridge, context.now_ns);
    }

    pub(crate) fn expire(&mut self, context: &mut InputContext<'_>) {
        self.history.expire(context.now_ns);
        while let Some(first) = self.reply_retries.first_entry()
            && first.key().0 <= context.now_ns
        {
            let ReplyRetry { address, records, attempt } = first.remove();
            self.resend(address, records, attempt, context);
        }
        for (key, partial) in self.assemblies.expire(context.now_ns) {
            let failure = CallFailure::not_begun("not all segments of the request came in time");
            self.refuse(key, &partial, failure, context);
        }
    }

    pub(crate) fn refuse_unreadable(
        &mut self,
        sender: &RecordSender,
        failure: CallFailure,
        context: &mut InputContext<'_>,
    ) {
        if let Some(address) = self.address(sender) {
            self.send(&address, CallOutcome::Failed(failure), context);
        }
    }

    fn address(&self, sender: &RecordSender) -> Option<ReplyAddress> {
        let correlation = sender.correlation.clone();
        if let Some(BridgeId { name, incarnation }) = &sender.from {
            let topic = names::inbox(&self.prefix, name).into();
            return Some(ReplyAddress { topic, to: Some(*incarnation), correlation });
        }
        let is_allowed = |topic: &&str| self.reply_topics.iter().any(|filter| filter.matches(topic));
        let topic = sender.reply_topic.as_deref().filter(is_allowed)?;
        Some(ReplyAddress { topic: topic.into(), to: None, correlation })
    }

    /// Sends the reply again to a foreign program. Only the broker repeats a bridge's request; its reply is on the way.
    fn is_repeated(&self, key: &AssemblyKey, address: Option<&ReplyAddress>, context: &mut InputContext<'_>) -> bool {
        let Some(known) = self.history.get(key) else { return false };
        context.counters.repeated_requests += 1;
        let Some(address) = address.filter(|address| address.to.is_none()) else { return true };
        match known {
            KnownRequest::Running(_) => {}
            KnownRequest::Ended(Some(records)) => {
                records
                    .iter()
                    .for_each(|record| send(address, record.clone(), DeliveryToken::Control, context.effects));
            }
            KnownRequest::Ended(None) => {
                let failure = CallFailure::unknown("the request came before, and its reply is not kept any more");
                let record = reply_record(context.writer, address, &ReplyHead::Failed, None, failure.to_json());
                send(address, record, DeliveryToken::Control, context.effects);
            }
        }
        true
    }

    fn admit(&mut self, key: AssemblyKey, partial: PartialRequest, payload: Vec<u8>, context: &mut InputContext<'_>) {
        let head = &partial.head;
        let age_ns = (context.age_ns)(partial.append_time_ms);
        let left_ns = head.time_left_ms.map(|left_ms| left_ms.saturating_mul(1_000_000).saturating_sub(age_ns));
        let bytes = payload.len() as u64;
        let load = self.loads.get(&key.0).copied().unwrap_or_default();
        let name = &self.name;
        let refused = if self.is_stopping {
            Some(CallFailure::not_begun(format!("bridge {name} stops")))
        } else if !any_matches(&self.offer, &head.route) {
            Some(CallFailure::NoRoute { reason: format!("bridge {name} does not offer it") })
        } else if head.hops > HOPS_MAX {
            Some(CallFailure::CannotForward {
                reason: format!("the request has passed {HOPS_MAX} bridges and forwards"),
            })
        } else if left_ns == Some(0) {
            Some(CallFailure::not_begun(format!("its time was over when bridge {name} read the request")))
        } else if self.loads.len() >= PEERS_MAX && load == CallLoad::default() {
            Some(CallFailure::Busy { reason: format!("bridge {name} has calls of {PEERS_MAX} senders in flight") })
        } else if !load.has_room(bytes, &self.limits) {
            let BridgeLimits { calls_per_peer, bytes_per_peer, .. } = self.limits;
            let reason =
                format!("bridge {name} has {calls_per_peer} calls or {bytes_per_peer} bytes of this sender in flight");
            Some(CallFailure::Busy { reason })
        } else {
            None
        };
        if let Some(failure) = refused {
            return self.refuse(key, &partial, failure, context);
        }
        let PartialRequest { head, address, is_from_bridge, .. } = partial;
        self.last_call += 1;
        let call = CallId(self.last_call);
        let key = Arc::new(key);
        self.loads.entry(key.0.clone()).or_default().add(bytes);
        *self.by_route.entry(head.route.clone()).or_insert(0) += 1;
        self.history.begin(key.clone(), call);
        let address = address.filter(|_| !head.is_one_way);
        self.calls.insert(call, CallIn { key, route: head.route.clone(), bytes, address, is_from_bridge });
        let timeout = left_ns.map(Duration::from_nanos);
        context.effects.push(Effect::Start(IncomingCall { call, head, payload, timeout }));
    }

    fn refuse(
        &mut self,
        key: AssemblyKey,
        partial: &PartialRequest,
        failure: CallFailure,
        context: &mut InputContext<'_>,
    ) {
        let address = partial.address.as_ref().filter(|_| !partial.head.is_one_way);
        let reply = address.map(|address| (address, CallOutcome::Failed(failure)));
        self.end(Arc::new(key), reply, partial.is_from_bridge, context);
    }

    fn cancel_call(&mut self, call: CallId, context: &mut InputContext<'_>) {
        if let Some(CallIn { key, is_from_bridge, .. }) = self.remove(call) {
            context.effects.push(Effect::Cancel(call));
            self.history.end(key, None, is_from_bridge, context.now_ns);
        }
    }

    fn remove(&mut self, call: CallId) -> Option<CallIn> {
        let call = self.calls.remove(&call)?;
        if let Some(load) = self.loads.get_mut(&call.key.0) {
            load.remove(call.bytes);
            if *load == CallLoad::default() {
                self.loads.remove(&call.key.0);
            }
        }
        if let Some(calls) = self.by_route.get_mut(&call.route) {
            *calls -= 1;
            if *calls == 0 {
                self.by_route.remove(&call.route);
            }
        }
        Some(call)
    }
}
