//! `CallsIn`: requests of other bridges, and of foreign programs, to this domain. Each is begun at most once, by its
//! correlation, and answered once unless it is one-way.
//!
//! | module | what lives there |
//! |---|---|
//! | `known` | requests that were seen, by which a repeated one is recognised |
//! | `replies` | hand-over of replies to the producer, and its reports |

mod known;
mod replies;

use crate::config::{CoreOptions, Limits, PAYLOAD_BYTES_MAX, TopicFilter};
use crate::counters::Counters;
use crate::effects::{CallId, Effect, IncomingCall, Token};
use crate::outcome::{Ended, Outcome};
use crate::peers::Load;
use crate::presence::PEERS_MAX;
use crate::record::names::{self, BridgeId};
use crate::record::{HOPS_MAX, ReplyHead, RequestHead, SegmentPlace, Sender, Writer};
use crate::route_filter::{RouteFilter, any_matches};
use crate::segments::{Assemblies, AssemblyKey, SegmentFault};
use gapless_agent::monotonic::saturating_ns;
use known::{Known, Seen};
use replies::{Sent, Unsent, reply_record, send};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The place for replies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    topic: Arc<str>,
    /// Incarnation of a bridge.
    to: Option<u64>,
    correlation: String,
}

/// A request that is under way in the domain.
#[derive(Debug)]
struct CallIn {
    key: Arc<AssemblyKey>,
    route: String,
    bytes: u64,
    /// `None` for one-way requests.
    address: Option<Address>,
    is_of_bridge: bool,
}

/// A request whose payload is not whole yet.
#[derive(Debug)]
struct Unfinished {
    head: Box<RequestHead>,
    address: Option<Address>,
    append_time_ms: i64,
    is_of_bridge: bool,
}

/// Requests to this domain.
#[derive(Debug)]
pub(crate) struct CallsIn {
    name: String,
    prefix: String,
    offer: Vec<RouteFilter>,
    reply_topics: Vec<TopicFilter>,
    limits: Limits,
    calls: HashMap<CallId, CallIn>,
    last_call: u64,
    known: Known,
    unfinished: Assemblies<Unfinished>,
    /// Requests in flight of each sender.
    loads: HashMap<String, Load>,
    /// Requests in flight of each route.
    by_route: HashMap<String, u32>,
    sent: HashMap<u64, Sent>,
    /// By the time of their repetition, ns of the monotonic clock, and a number.
    unsent: BTreeMap<(u64, u64), Unsent>,
    last_reply: u64,
    is_stopping: bool,
}

/// A record that a request came in.
pub(crate) struct RequestRecord<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) append_time_ms: i64,
    pub(crate) payload: Vec<u8>,
}

/// Means of an input's turn.
pub(crate) struct Turn<'a> {
    pub(crate) writer: &'a Writer,
    /// Monotonic time, ns.
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
            known: Known::new(),
            unfinished: Assemblies::new(options.limits.assembly()),
            loads: HashMap::new(),
            by_route: HashMap::new(),
            sent: HashMap::new(),
            unsent: BTreeMap::new(),
            last_reply: 0,
            is_stopping: false,
        }
    }

    /// True if no call and no reply is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.sent.is_empty() && self.unsent.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn next_expiry_ns(&self) -> Option<u64> {
        let unsent_ns = self.unsent.first_key_value().map(|((due_ns, _), _)| *due_ns);
        unsent_ns.into_iter().chain(self.unfinished.next_expiry_ns()).min()
    }

    /// Requests in flight of a route.
    pub(crate) fn in_flight(&self, route: &str) -> u32 {
        self.by_route.get(route).copied().unwrap_or(0)
    }

    /// Requests in flight of a sender.
    pub(crate) fn load(&self, sender: &BridgeId) -> Load {
        self.loads.get(&sender.to_string()).copied().unwrap_or_default()
    }

    /// True for a request that this process has begun or refused, also as an earlier incarnation.
    pub(crate) fn is_known(&self, sender: &Sender) -> bool {
        self.known.get(&sender.key()).is_some()
    }

    /// Takes no more requests.
    pub(crate) const fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// A request, or its first segment.
    pub(crate) fn request(
        &mut self,
        record: RequestRecord<'_>,
        mut head: Box<RequestHead>,
        place: Option<SegmentPlace>,
        turn: &mut Turn<'_>,
    ) {
        let RequestRecord { sender, append_time_ms, payload } = record;
        let address = self.address(sender);
        if address.is_none() && !head.is_one_way {
            // No one can wait for a reply without a place for it.
            turn.counters.without_address += 1;
            return;
        }
        if let Some(deadline_ms) = head.deadline_ms {
            // The record may have waited for its append.
            let left_ms = deadline_ms.saturating_sub(append_time_ms).max(0).cast_unsigned();
            head.time_left_ms = Some(head.time_left_ms.map_or(left_ms, |own_ms| own_ms.min(left_ms)));
        }
        let key = sender.key();
        if self.is_repeated(&key, address.as_ref().filter(|_| !head.is_one_way), turn) {
            return;
        }
        let is_of_bridge = sender.from.is_some();
        let unfinished = Unfinished { head, address, append_time_ms, is_of_bridge };
        let Some(place) = place else { return self.admit(key, unfinished, payload, turn) };
        let segment_ns = saturating_ns(self.limits.segment_time);
        let time_ns = unfinished.head.time_left_ms.map_or(segment_ns, |left_ms| {
            left_ms.saturating_mul(1_000_000).saturating_sub((turn.age_ns)(append_time_ms)).min(segment_ns)
        });
        let expires_ns = turn.now_ns.saturating_add(time_ns);
        if let Err((unfinished, reason)) = self.unfinished.begin(key.clone(), unfinished, place, payload, expires_ns) {
            let is_too_long = place.total_bytes > PAYLOAD_BYTES_MAX as u64;
            let ended = if is_too_long { Ended::BadMessage { reason } } else { Ended::Busy { reason } };
            self.refuse(key, &unfinished, ended, turn);
        }
    }

    /// A further segment of a request.
    pub(crate) fn segment(&mut self, record: RequestRecord<'_>, place: SegmentPlace, turn: &mut Turn<'_>) {
        let (sender, key) = (record.sender, record.sender.key());
        match self.unfinished.add(&key, place, &record.payload) {
            Ok(None) => {}
            Ok(Some((unfinished, payload))) => self.admit(key, unfinished, payload, turn),
            Err(SegmentFault::OfKnown(unfinished, reason)) => {
                self.refuse(key, &unfinished, Ended::not_begun(reason), turn);
            }
            Err(SegmentFault::OfUnknown(reason)) => {
                let address = self.address(sender);
                if self.known.get(&key).is_some() {
                    return;
                }
                let ended = Outcome::Ended(Ended::not_begun(reason));
                self.end(Arc::new(key), address.as_ref().map(|address| (address, ended)), sender.from.is_some(), turn);
            }
        }
    }

    /// The caller no longer waits.
    pub(crate) fn cancel(&mut self, sender: &Sender, turn: &mut Turn<'_>) {
        let key = sender.key();
        if self.unfinished.give_up(&key).is_some() {
            return self.known.end(Arc::new(key), None, sender.from.is_some(), turn.now_ns);
        }
        if let Some(Seen::Running(call)) = self.known.get(&key) {
            self.cancel_call(*call, turn);
        }
    }

    /// An incarnation of a bridge is over, and with it the wait for its calls.
    pub(crate) fn forget(&mut self, bridge: &BridgeId, turn: &mut Turn<'_>) {
        let sender = bridge.to_string();
        self.unfinished.give_up_of(&sender);
        let its = self.calls.iter().filter(|(_, call)| call.key.0 == sender);
        let its: BTreeSet<_> = its.map(|(call, _)| *call).collect();
        its.into_iter().for_each(|call| self.cancel_call(call, turn));
    }

    /// Cancels every call: no caller waits any more, or this bridge ends, for a reason that callers are told.
    pub(crate) fn cancel_all(&mut self, reason: Option<&str>, turn: &mut Turn<'_>) {
        let all: BTreeSet<_> = self.calls.keys().copied().collect();
        for call in all {
            let address = self.calls[&call].address.clone();
            self.cancel_call(call, turn);
            if let (Some(reason), Some(address)) = (reason, address) {
                self.send(&address, Outcome::Ended(Ended::unknown(reason)), turn);
            }
        }
        self.unfinished = Assemblies::new(self.limits.assembly());
    }

    /// A call in the domain has ended.
    pub(crate) fn ended(&mut self, call: CallId, outcome: Outcome, turn: &mut Turn<'_>) {
        let Some(CallIn { key, address, is_of_bridge, .. }) = self.remove(call) else { return };
        self.end(key, address.as_ref().map(|address| (address, outcome)), is_of_bridge, turn);
    }

    /// Ends a request, and tells its sender. A program may ask for the reply again.
    fn end(
        &mut self,
        key: Arc<AssemblyKey>,
        reply: Option<(&Address, Outcome)>,
        is_of_bridge: bool,
        turn: &mut Turn<'_>,
    ) {
        let records = reply.map(|(address, outcome)| self.send(address, outcome, turn));
        self.known.end(key, records.filter(|_| !is_of_bridge), is_of_bridge, turn.now_ns);
    }

    /// Ends requests whose segments have not come in time.
    pub(crate) fn expire(&mut self, turn: &mut Turn<'_>) {
        self.known.expire(turn.now_ns);
        while let Some(first) = self.unsent.first_entry()
            && first.key().0 <= turn.now_ns
        {
            let Unsent { address, records, attempt } = first.remove();
            self.send_again(address, records, attempt, turn);
        }
        for (key, unfinished) in self.unfinished.expire(turn.now_ns) {
            let ended = Ended::not_begun("not all segments of the request came in time");
            self.refuse(key, &unfinished, ended, turn);
        }
    }

    /// Tells the sender of a request that cannot be read.
    pub(crate) fn refuse_unread(&mut self, sender: &Sender, ended: Ended, turn: &mut Turn<'_>) {
        if let Some(address) = self.address(sender) {
            self.send(&address, Outcome::Ended(ended), turn);
        }
    }

    fn address(&self, sender: &Sender) -> Option<Address> {
        let correlation = sender.correlation.clone();
        if let Some(BridgeId { name, incarnation }) = &sender.from {
            let topic = names::inbox(&self.prefix, name).into();
            return Some(Address { topic, to: Some(*incarnation), correlation });
        }
        let is_allowed = |topic: &&str| self.reply_topics.iter().any(|filter| filter.matches(topic));
        let topic = sender.reply_topic.as_deref().filter(is_allowed)?;
        Some(Address { topic: topic.into(), to: None, correlation })
    }

    /// True for a request that was seen before. Its reply is sent again to a program that is no bridge; a bridge never repeats a request,
    /// so that a broker has repeated the record and the reply is on its way.
    fn is_repeated(&self, key: &AssemblyKey, address: Option<&Address>, turn: &mut Turn<'_>) -> bool {
        let Some(known) = self.known.get(key) else { return false };
        turn.counters.repeated_requests += 1;
        let Some(address) = address.filter(|address| address.to.is_none()) else { return true };
        match known {
            Seen::Running(_) => {}
            Seen::Ended(Some(records)) => {
                records.iter().for_each(|record| send(address, record.clone(), Token::Control, turn.effects));
            }
            Seen::Ended(None) => {
                let ended = Ended::unknown("the request came before, and its reply is not kept any more");
                let record = reply_record(turn.writer, address, &ReplyHead::Ended, None, ended.to_json());
                send(address, record, Token::Control, turn.effects);
            }
        }
        true
    }

    /// Starts a call, or refuses it.
    fn admit(&mut self, key: AssemblyKey, unfinished: Unfinished, payload: Vec<u8>, turn: &mut Turn<'_>) {
        let head = &unfinished.head;
        let age_ns = (turn.age_ns)(unfinished.append_time_ms);
        let left_ns = head.time_left_ms.map(|left_ms| left_ms.saturating_mul(1_000_000).saturating_sub(age_ns));
        let bytes = payload.len() as u64;
        let load = self.loads.get(&key.0).copied().unwrap_or_default();
        let name = &self.name;
        let refused = if self.is_stopping {
            Some(Ended::not_begun(format!("bridge {name} stops")))
        } else if !any_matches(&self.offer, &head.route) {
            Some(Ended::NoRoute { reason: format!("bridge {name} does not offer it") })
        } else if head.hops > HOPS_MAX {
            Some(Ended::CannotForward { reason: format!("the request has passed {HOPS_MAX} bridges and forwards") })
        } else if left_ns == Some(0) {
            Some(Ended::not_begun(format!("its time was over when bridge {name} read the request")))
        } else if self.loads.len() >= PEERS_MAX && load == Load::default() {
            Some(Ended::Busy { reason: format!("bridge {name} has calls of {PEERS_MAX} senders in flight") })
        } else if !load.has_room(bytes, &self.limits) {
            let Limits { calls_per_peer, bytes_per_peer, .. } = self.limits;
            let reason =
                format!("bridge {name} has {calls_per_peer} calls or {bytes_per_peer} bytes of this sender in flight");
            Some(Ended::Busy { reason })
        } else {
            None
        };
        if let Some(ended) = refused {
            return self.refuse(key, &unfinished, ended, turn);
        }
        let Unfinished { head, address, is_of_bridge, .. } = unfinished;
        self.last_call += 1;
        let call = CallId(self.last_call);
        let key = Arc::new(key);
        self.loads.entry(key.0.clone()).or_default().add(bytes);
        *self.by_route.entry(head.route.clone()).or_insert(0) += 1;
        self.known.begin(key.clone(), call);
        let address = address.filter(|_| !head.is_one_way);
        self.calls.insert(call, CallIn { key, route: head.route.clone(), bytes, address, is_of_bridge });
        let timeout = left_ns.map(Duration::from_nanos);
        turn.effects.push(Effect::Start(IncomingCall { call, head, payload, timeout }));
    }

    /// Ends a request that has not begun.
    fn refuse(&mut self, key: AssemblyKey, unfinished: &Unfinished, ended: Ended, turn: &mut Turn<'_>) {
        let address = unfinished.address.as_ref().filter(|_| !unfinished.head.is_one_way);
        let reply = address.map(|address| (address, Outcome::Ended(ended)));
        self.end(Arc::new(key), reply, unfinished.is_of_bridge, turn);
    }

    fn cancel_call(&mut self, call: CallId, turn: &mut Turn<'_>) {
        if let Some(CallIn { key, is_of_bridge, .. }) = self.remove(call) {
            turn.effects.push(Effect::Cancel(call));
            self.known.end(key, None, is_of_bridge, turn.now_ns);
        }
    }

    fn remove(&mut self, call: CallId) -> Option<CallIn> {
        let call = self.calls.remove(&call)?;
        if let Some(load) = self.loads.get_mut(&call.key.0) {
            load.remove(call.bytes);
            if *load == Load::default() {
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
