//! [`BridgeCore`]: one bridge, as a state machine.
//!
//! # Signs of life
//! Each `lease_interval` the bridge writes its lease and a ping to itself. It reads both back: so it knows that the broker is there,
//! and how late the broker's clock is. If one of them does not come back for `lease_time`, the broker is lost: requests end with
//! that reason, and no other bridge is called silent, because the silence is its own. If the producer says all the time that they are
//! appended, it is the reader that gives none: it is opened again.

mod broker_liveness;
mod inbox;
mod input;
mod leases;
mod status;
mod stopping;

use crate::calls_in::{CallsIn, InputContext};
use crate::calls_out::{AppendFailure, CallsOut, OutgoingCall, RecordPlace};
use crate::config::CoreOptions;
use crate::counters::Counters;
use crate::effects::{BridgeNotice, DeliveryToken, Effect, OutgoingRecord, RemoteRoute};
use crate::outcome::{CallFailure, CallOutcome};
use crate::peers::PeerBridges;
use crate::presence::{MarkPlace, OfferedRoute};
use crate::record::names::{self, BridgeId};
use crate::record::{KafkaRecord, RecordWriter};
use broker_liveness::{BrokerState, TopicEnd};
use gapless_agent::Now;
use gapless_agent::monotonic::saturating_ns;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use input::{BridgeInput, ReadRecord, Topic};

/// Changes within this time are written as one lease.
const LEASE_PAUSE_NS: u64 = 50_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CorePhase {
    New,
    Marking {
        is_sent: bool,
    },
    Reading,
    /// Requests are taken; the own lease is not read yet.
    Joining,
    /// The own lease was read, and with it all that were written before.
    Serving,
    /// Requests in flight may end until then, monotonic ns.
    Stopping {
        until_ns: u64,
    },
    /// The tombstone is on its way.
    Leaving {
        until_ns: u64,
        /// The tombstone is on its way; the bridge ends then at the latest.
        is_delivered: bool,
    },
    Ended,
}

/// A bridge.
#[derive(Debug)]
pub struct BridgeCore {
    options: CoreOptions,
    id: BridgeId,
    writer: RecordWriter,
    inbox: Arc<str>,
    presence: Arc<str>,
    phase: CorePhase,
    mark: Option<MarkPlace>,
    last_sent: u64,
    peers: PeerBridges,
    calls_out: CallsOut,
    calls_in: CallsIn,
    offers: Vec<OfferedRoute>,
    relayed: BTreeMap<String, RemoteRoute>,
    routes_left_out: usize,
    refused_leases: HashMap<String, String>,
    has_reported_full: bool,
    inbox_end: TopicEnd,
    presence_end: TopicEnd,
    next_heartbeat_ns: u64,
    lease_sent_ns: u64,
    is_lease_due: bool,
    broker: BrokerState,
    last_input_ns: u64,
    counters: Counters,
}

impl BridgeCore {
    /// Creates an idle bridge; `incarnation` is a random number.
    #[must_use]
    pub fn new(options: CoreOptions, incarnation: u64) -> Self {
        let id = BridgeId { name: options.name.as_str().into(), incarnation };
        Self {
            writer: RecordWriter::new(&id),
            inbox: names::inbox(&options.prefix, &options.name).into(),
            presence: names::presence(&options.prefix).into(),
            phase: CorePhase::New,
            mark: None,
            last_sent: 0,
            peers: PeerBridges::new(&options.prefix, options.take.clone(), options.limits),
            calls_out: CallsOut::new(&options.limits),
            calls_in: CallsIn::new(&options),
            offers: Vec::new(),
            relayed: BTreeMap::new(),
            routes_left_out: 0,
            refused_leases: HashMap::new(),
            has_reported_full: false,
            inbox_end: TopicEnd::default(),
            presence_end: TopicEnd::default(),
            next_heartbeat_ns: 0,
            lease_sent_ns: 0,
            is_lease_due: false,
            broker: BrokerState::default(),
            last_input_ns: 0,
            counters: Counters::default(),
            id,
            options,
        }
    }

    /// Takes an input and appends its effects; of `now` only the monotonic clock is read.
    ///
    /// # Panics
    /// If the name of a request is used twice.
    pub fn handle(&mut self, input: BridgeInput, now: Now, effects: &mut Vec<Effect>) {
        if self.phase == CorePhase::Ended {
            return;
        }
        let now_ns = now.monotonic_ns;
        self.detect_pause(now_ns);
        match input {
            BridgeInput::Start => self.start(now_ns, effects),
            BridgeInput::Record(record) => self.read(record, now_ns, effects),
            BridgeInput::Delivered { token, result } => self.delivered(token, result, now_ns, effects),
            BridgeInput::Request(call) => self.request(call, now_ns, effects),
            BridgeInput::GivenUp(request) => self.calls_out.give_up(&self.writer, request, &mut self.peers, effects),
            BridgeInput::Withheld(request) => {
                self.calls_out.withhold(&self.writer, request, &mut self.peers, now_ns, effects);
            }
            BridgeInput::CallEnded { call, outcome } => {
                self.with_calls_in(now_ns, effects, |calls, context| calls.call_ended(call, outcome, context));
            }
            BridgeInput::Offers(offers) => self.set_offers(offers, effects),
            BridgeInput::BrokerTrouble { reason } => {
                self.broker.last_reason = reason;
                self.calls_out.note_trouble();
            }
            BridgeInput::Unreadable { topic, reason } => self.skip_unreadable(topic, reason, effects),
            BridgeInput::InboxLost { incarnation, reason } => {
                self.renew_incarnation(incarnation, &reason, now_ns, effects)
            }
            BridgeInput::Stop => self.stop(now_ns, effects),
            BridgeInput::Tick => {}
        }
        self.run_due(now_ns, effects);
    }

    /// Latest time of the next [`BridgeInput::Tick`], ns of the monotonic clock.
    #[must_use]
    pub fn next_tick_ns(&self) -> u64 {
        if self.phase == CorePhase::Ended {
            return u64::MAX;
        }
        let lease_ns =
            Some(self.lease_sent_ns + LEASE_PAUSE_NS).filter(|_| self.is_lease_due && self.can_write_leases());
        let stop_ns = match self.phase {
            CorePhase::Stopping { until_ns } | CorePhase::Leaving { until_ns, .. } => Some(until_ns),
            _ => None,
        };
        let peers_ns = Some(self.peers.next_expiry_ns()).filter(|_| self.can_judge_peers(self.last_input_ns));
        let calls_ns = [self.calls_out.next_deadline_ns(), self.calls_in.next_expiry_ns()];
        let all = calls_ns.into_iter().chain([lease_ns, stop_ns, peers_ns]);
        all.flatten().fold(self.next_heartbeat_ns, u64::min)
    }

    const fn can_write_leases(&self) -> bool {
        self.mark.is_some()
            && matches!(self.phase, CorePhase::Joining | CorePhase::Serving | CorePhase::Stopping { .. })
    }

    /// Records that changed nothing.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the bridge serves: its mark and its lease were read back, and it does not stop.
    #[must_use]
    pub const fn is_serving(&self) -> bool {
        matches!(self.phase, CorePhase::Serving)
    }

    /// Name and incarnation.
    #[must_use]
    pub const fn id(&self) -> &BridgeId {
        &self.id
    }

    /// Calls in flight: to other bridges, from other bridges.
    #[must_use]
    pub fn in_flight(&self) -> (usize, usize) {
        (self.calls_out.len(), self.calls_in.len())
    }

    fn start(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        assert_eq!(self.phase, CorePhase::New, "a bridge starts once");
        effects.push(Effect::ReadPresence);
        self.send_mark(now_ns, effects);
    }

    fn send_mark(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        self.phase = CorePhase::Marking { is_sent: true };
        self.next_heartbeat_ns = now_ns + self.interval_ns();
        (self.inbox_end.echo_ns, self.presence_end.echo_ns) = (now_ns, now_ns);
        self.last_sent += 1;
        let record = self.writer.mark(&self.process_name());
        self.send(DeliveryToken::Mark(self.last_sent), &self.inbox.clone(), record, effects);
    }

    fn process_name(&self) -> String {
        format!("{}/{}", self.options.machine, self.options.process)
    }

    fn interval_ns(&self) -> u64 {
        saturating_ns(self.options.limits.lease_interval)
    }

    fn lease_ns(&self) -> u64 {
        saturating_ns(self.options.limits.lease_time)
    }

    fn send(&self, token: DeliveryToken, topic: &Arc<str>, record: KafkaRecord, effects: &mut Vec<Effect>) {
        effects.push(Effect::Send(OutgoingRecord { token, topic: topic.clone(), record, begins: None }));
    }

    const fn is_marked(&self) -> bool {
        matches!(
            self.phase,
            CorePhase::Joining | CorePhase::Serving | CorePhase::Stopping { .. } | CorePhase::Leaving { .. }
        )
    }

    fn with_calls_in(
        &mut self,
        now_ns: u64,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut CallsIn, &mut InputContext<'_>),
    ) {
        let time = self.inbox_end.time;
        let age_ns = move |append_time_ms| time.age_ns(append_time_ms, now_ns);
        let (writer, counters) = (&self.writer, &mut self.counters);
        act(&mut self.calls_in, &mut InputContext { writer, now_ns, age_ns: &age_ns, counters, effects });
    }

    fn request(&mut self, call: OutgoingCall, now_ns: u64, effects: &mut Vec<Effect>) {
        let reason = match self.phase {
            CorePhase::Serving => self.broker_loss_reason(now_ns),
            CorePhase::Stopping { .. } | CorePhase::Leaving { .. } => Some(format!("bridge {} stops", self.id.name)),
            _ => Some(format!("bridge {} has not begun yet", self.id.name)),
        };
        match reason {
            None => self.calls_out.begin((&self.id, &self.writer), call, &mut self.peers, now_ns, effects),
            Some(reason) => {
                let outcome = CallOutcome::Failed(CallFailure::NoRoute { reason });
                effects.push(Effect::End { request: call.request, outcome });
            }
        }
    }

    fn delivered(
        &mut self,
        token: DeliveryToken,
        result: Result<RecordPlace, AppendFailure>,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.note_appended(token, result.as_ref().ok(), now_ns);
        match token {
            DeliveryToken::Mark(number)
                if number == self.last_sent && self.phase == (CorePhase::Marking { is_sent: true }) =>
            {
                match result {
                    Ok(RecordPlace { offset, .. }) => {
                        self.phase = CorePhase::Reading;
                        // A reader from before may have seen the mark.
                        self.inbox_end.next = None;
                        effects.push(Effect::ReadInbox { offset });
                    }
                    Err(AppendFailure { reason, .. }) => {
                        // Sent again with the next beat; a second mark changes nothing.
                        self.phase = CorePhase::Marking { is_sent: false };
                        self.broker.last_reason = reason;
                    }
                }
            }
            DeliveryToken::Lease(number) if number == self.last_sent => {
                if let CorePhase::Leaving { is_delivered, .. } = &mut self.phase {
                    *is_delivered = true;
                }
                if let Err(AppendFailure { reason, .. }) = result {
                    self.broker.last_reason = reason;
                }
            }
            DeliveryToken::Request(request) => {
                self.calls_out.delivered(&self.writer, request, result, &mut self.peers, now_ns, effects);
            }
            DeliveryToken::Reply(reply) => {
                self.with_calls_in(now_ns, effects, |calls, context| calls.delivered(reply, result.err(), context));
            }
            DeliveryToken::Mark(_) | DeliveryToken::Lease(_) | DeliveryToken::Ping | DeliveryToken::Control => {}
        }
    }

    fn read(&mut self, record: ReadRecord, now_ns: u64, effects: &mut Vec<Effect>) {
        let ReadRecord { topic, offset, append_time_ms, record } = record;
        let end = match topic {
            Topic::Inbox => &mut self.inbox_end,
            Topic::Presence => &mut self.presence_end,
        };
        if !end.read(offset, append_time_ms, now_ns) {
            self.counters.repeated_records += 1;
            return;
        }
        match topic {
            Topic::Presence => self.read_presence(record, append_time_ms, now_ns, effects),
            Topic::Inbox => {
                let place = MarkPlace { offset, time_ms: append_time_ms };
                self.read_inbox(record, place, now_ns, effects);
            }
        }
    }

    /// Leases before the own one may be old.
    const fn is_joined(&self) -> bool {
        matches!(self.phase, CorePhase::Serving | CorePhase::Stopping { .. } | CorePhase::Leaving { .. })
    }

    fn run_due(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        if self.phase == CorePhase::Ended || self.phase == CorePhase::New {
            return;
        }
        self.calls_out.expire(&self.writer, now_ns, &mut self.peers, effects);
        self.with_calls_in(now_ns, effects, |calls, context| calls.expire(context));
        if now_ns >= self.next_heartbeat_ns {
            self.next_heartbeat_ns = now_ns + self.interval_ns();
            self.heartbeat(now_ns, effects);
        }
        if self.is_lease_due && self.can_write_leases() && now_ns >= self.lease_sent_ns + LEASE_PAUSE_NS {
            self.send_lease(now_ns, effects);
        }
        self.check_broker(now_ns, effects);
        self.check_readers(now_ns, effects);
        if self.can_judge_peers(now_ns) {
            for (peer, reason) in self.peers.expire(now_ns) {
                let bridge = self.peers.get(peer).id.name.to_string();
                let words = format!("bridge {bridge} is silent: {reason}");
                effects.push(Effect::Notice(BridgeNotice::PeerSilent { bridge, reason }));
                self.lose_peer(peer, &words, effects);
            }
        }
        self.continue_stopping(now_ns, effects);
    }
}
