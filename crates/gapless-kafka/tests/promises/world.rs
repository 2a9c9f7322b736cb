//! Bridges over topics in memory, on virtual time; faults are set by hand or at random.

use gapless_agent::Now;
use gapless_kafka::BridgeCore;
use gapless_kafka::bridge_core::{BridgeInput, ReadRecord, Topic};
use gapless_kafka::bundles::{BeginRequest, Bundles, ProducerRecord};
use gapless_kafka::calls_out::{AppendFailure, Certainty, OutgoingCall, RecordPlace};
use gapless_kafka::config::{BridgeLimits, CoreOptions, SEGMENT_HEADERS_BYTES};
use gapless_kafka::effects::{BridgeError, BridgeNotice, CallId, Effect, IncomingCall, RemoteRoute, RequestId};
use gapless_kafka::outcome::{CallFailure, CallOutcome};
use gapless_kafka::presence::{OfferedInstance, OfferedRoute};
use gapless_kafka::record::{KafkaRecord, RecordHeader, RequestHead};
use gapless_rpc::Refusal;
use gapless_testkit::random::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::Duration;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// The handler of this route does what the payload says.
pub const ROUTE: &str = "shop/price";

enum WorldEvent {
    Append(ProducerRecord),
    Report(u64, Result<RecordPlace, AppendFailure>),
    Fetch,
    Tick,
    HandlerEnds(CallId, CallOutcome),
    Reopen(String),
}

/// Faults of a producer, in records per thousand.
#[derive(Clone, Copy, Default)]
pub struct ProducerFaults {
    /// Appended, and reported as in doubt.
    pub lost_reports: u64,
    pub doubtful: u64,
    pub refused: u64,
    pub repeated: u64,
}

pub struct SimulatedBridge {
    pub name: String,
    pub core: BridgeCore,
    start: u32,
    pub is_paused: bool,
    is_alive: bool,
    deferred: Vec<WorldEvent>,
    inbox: Option<i64>,
    presence: Option<i64>,
    producer_ns: u64,
    queued: Vec<(u64, u64)>,
    bundles: Bundles,
    tick_ns: u64,
    pub refused_requests: HashSet<RequestId>,
    begun: HashSet<RequestId>,
    pub relays: BTreeMap<String, RemoteRoute>,
    pub notices: Vec<BridgeNotice>,
    pub is_stuck: bool,
    pub skips: u32,
    pub purges: u32,
    pub ended: Option<Result<(), BridgeError>>,
    running: HashMap<CallId, u64>,
    pub cancelled: Vec<CallId>,
    pub started: Vec<IncomingCall>,
}

#[derive(Debug)]
pub struct SimulatedCall {
    pub bridge: usize,
    start: u32,
    pub begun_ns: u64,
    pub timeout_ns: Option<u64>,
    pub outcomes: Vec<(u64, CallOutcome)>,
    pub is_given_up: bool,
    was_paused: bool,
    is_one_way: bool,
}

pub struct BridgeWorld {
    pub now_ns: u64,
    pub random: Random,
    pub topics: BTreeMap<String, Vec<(i64, KafkaRecord)>>,
    pub bridges: Vec<SimulatedBridge>,
    pub calls: BTreeMap<u64, SimulatedCall>,
    pub handled: BTreeMap<u64, u32>,
    pub faults: ProducerFaults,
    pub is_broker_down: bool,
    pub broker_ahead_ms: i64,
    pub limits: BridgeLimits,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    by_number: HashMap<u64, (usize, u32, WorldEvent)>,
    last_event: u64,
    last_request: u64,
    pub drop: Option<fn(&KafkaRecord) -> bool>,
    pub too_long: Option<fn(&KafkaRecord) -> bool>,
    pub refused_bridge: Option<usize>,
    pub give_up_ns: u64,
    pub late_ns: u64,
    pub unreadable: HashSet<(String, i64)>,
}

pub fn limits() -> BridgeLimits {
    BridgeLimits { segment_bytes: 1 << 10, ..BridgeLimits::default() }
}

pub fn options(name: &str, limits: BridgeLimits) -> CoreOptions {
    CoreOptions {
        prefix: "test".to_owned(),
        name: name.to_owned(),
        machine: format!("machine-{name}"),
        process: "gapless".to_owned(),
        offer: vec!["shop/**".parse().unwrap()],
        take: vec!["shop/**".parse().unwrap()],
        reply_topics: vec!["test.reply.*".parse().unwrap()],
        limits,
    }
}

pub fn program_request(correlation: &str, route: &str) -> Vec<RecordHeader> {
    let headers = [
        ("gapless-kind", "request"),
        ("gapless-route", route),
        ("gapless-correlation", correlation),
        ("gapless-reply-topic", "test.reply.x"),
    ];
    headers.map(|(name, value)| (name.into(), value.as_bytes().to_vec())).to_vec()
}

fn length_of(record: &KafkaRecord) -> usize {
    let headers = record.headers.iter().map(|(name, value)| name.len() + value.len());
    let [key, payload] = [&record.key, &record.payload].map(|bytes| bytes.as_ref().map_or(0, Vec::len));
    key + headers.sum::<usize>() + payload
}

pub fn offer(route: &str, identities: &[u64]) -> OfferedRoute {
    let instance = |identity: &u64| OfferedInstance {
        identity: *identity,
        name: format!("shop.{identity}"),
        workers: 2,
        is_open: true,
    };
    OfferedRoute {
        route: route.to_owned(),
        instances: identities.iter().map(instance).collect(),
        ..OfferedRoute::default()
    }
}

impl SimulatedBridge {
    pub fn stop_reading(&mut self) -> Option<i64> {
        self.inbox.take()
    }

    pub fn read_from(&mut self, offset: Option<i64>) {
        self.inbox = offset;
    }

    pub fn stop_reading_leases(&mut self) {
        self.presence = None;
    }
}

impl BridgeWorld {
    pub fn new(seed: u64) -> Self {
        Self {
            now_ns: 1_000 * SECOND,
            random: Random::new(seed),
            topics: BTreeMap::new(),
            bridges: Vec::new(),
            calls: BTreeMap::new(),
            handled: BTreeMap::new(),
            faults: ProducerFaults::default(),
            is_broker_down: false,
            broker_ahead_ms: 1_700_000_000_000,
            limits: limits(),
            events: BinaryHeap::new(),
            by_number: HashMap::new(),
            last_event: 0,
            last_request: 0,
            drop: None,
            too_long: None,
            refused_bridge: None,
            give_up_ns: 3 * SECOND,
            late_ns: 0,
            unreadable: HashSet::new(),
        }
    }

    pub fn of(seed: u64, names: &[&str]) -> Self {
        let mut world = Self::new(seed);
        for (name, identity) in names.iter().zip(1..) {
            let bridge = world.add(name);
            world.offers(bridge, vec![offer(ROUTE, &[identity])]);
        }
        world.run_for(3 * SECOND);
        for bridge in &world.bridges {
            let known = bridge.relays.get(ROUTE).map_or(0, |route| route.instances.len());
            assert_eq!(known, names.len() - 1, "{}", bridge.name);
        }
        world
    }

    pub fn add(&mut self, name: &str) -> usize {
        let bridge = SimulatedBridge {
            name: name.to_owned(),
            core: BridgeCore::new(options(name, self.limits), self.random.number()),
            start: 0,
            is_paused: false,
            is_alive: true,
            deferred: Vec::new(),
            inbox: None,
            presence: None,
            producer_ns: 0,
            queued: Vec::new(),
            bundles: Bundles::new(self.limits.segment_bytes),
            tick_ns: u64::MAX,
            refused_requests: HashSet::new(),
            begun: HashSet::new(),
            relays: BTreeMap::new(),
            notices: Vec::new(),
            is_stuck: false,
            skips: 0,
            purges: 0,
            ended: None,
            running: HashMap::new(),
            cancelled: Vec::new(),
            started: Vec::new(),
        };
        self.bridges.push(bridge);
        let index = self.bridges.len() - 1;
        self.input(index, BridgeInput::Start);
        index
    }

    pub fn restart(&mut self, index: usize, identity: u64) {
        let incarnation = self.random.number();
        let bridge = &mut self.bridges[index];
        bridge.core = BridgeCore::new(options(&bridge.name, self.limits), incarnation);
        (bridge.start, bridge.is_paused, bridge.is_alive) = (bridge.start + 1, false, true);
        (bridge.inbox, bridge.presence, bridge.tick_ns) = (None, None, u64::MAX);
        bridge.deferred.clear();
        bridge.queued.clear();
        bridge.bundles = Bundles::new(self.limits.segment_bytes);
        bridge.relays.clear();
        bridge.running.clear();
        bridge.refused_requests.clear();
        bridge.ended = None;
        self.input(index, BridgeInput::Start);
        self.offers(index, vec![offer(ROUTE, &[identity])]);
    }

    pub fn kill(&mut self, index: usize) {
        self.bridges[index].is_alive = false;
        self.bridges[index].start += 1;
    }

    pub fn pause(&mut self, index: usize) {
        self.bridges[index].is_paused = true;
        let start = self.bridges[index].start;
        let its = self.calls.values_mut().filter(|call| call.bridge == index && call.start == start);
        its.filter(|call| call.outcomes.is_empty()).for_each(|call| call.was_paused = true);
    }

    pub fn resume(&mut self, index: usize) {
        self.bridges[index].is_paused = false;
        let (start, deferred) = (self.bridges[index].start, std::mem::take(&mut self.bridges[index].deferred));
        for event in deferred {
            self.at(self.now_ns, index, start, event);
        }
    }

    pub fn offers(&mut self, index: usize, offers: Vec<OfferedRoute>) {
        self.input(index, BridgeInput::Offers(offers));
    }

    pub fn call(&mut self, bridge: usize, what: &str, timeout_ms: Option<u64>) -> u64 {
        self.call_with(bridge, what, timeout_ms, |_| {})
    }

    pub fn call_with(
        &mut self,
        bridge: usize,
        what: &str,
        timeout_ms: Option<u64>,
        change: impl FnOnce(&mut RequestHead),
    ) -> u64 {
        self.last_request += 1;
        let number = self.last_request;
        let mut head = RequestHead { route: ROUTE.to_owned(), attempt: 1, ..RequestHead::default() };
        change(&mut head);
        let start = self.bridges[bridge].start;
        let call = SimulatedCall {
            bridge,
            start,
            begun_ns: self.now_ns,
            timeout_ns: timeout_ms.map(|ms| ms * MS),
            outcomes: Vec::new(),
            is_given_up: false,
            was_paused: false,
            is_one_way: head.is_one_way,
        };
        self.calls.insert(number, call);
        let timeout = timeout_ms.map(Duration::from_millis);
        let payload = format!("{number} {what}").into_bytes();
        self.input(
            bridge,
            BridgeInput::Request(OutgoingCall { request: RequestId(number), head: Box::new(head), payload, timeout }),
        );
        number
    }

    pub fn give_up(&mut self, number: u64) {
        let call = self.calls.get_mut(&number).unwrap();
        let bridge = call.bridge;
        let is_there = call.start == self.bridges[bridge].start && !self.bridges[bridge].is_paused;
        if call.outcomes.is_empty() && !call.is_given_up && is_there {
            call.is_given_up = true;
            self.input(bridge, BridgeInput::GivenUp(RequestId(number)));
        }
    }

    pub fn outcome(&self, number: u64) -> &CallOutcome {
        let outcomes = &self.calls[&number].outcomes;
        assert_eq!(outcomes.len(), 1, "call {number}: {outcomes:?}");
        &outcomes[0].1
    }

    pub fn duration_ms(&self, number: u64) -> u64 {
        let call = &self.calls[&number];
        (call.outcomes[0].0 - call.begun_ns) / MS
    }

    pub fn ended(&self, number: u64) -> &CallFailure {
        match self.outcome(number) {
            CallOutcome::Failed(ended) => ended,
            other => panic!("call {number}: {other:?}"),
        }
    }

    pub fn reply(&self, number: u64) -> String {
        match self.outcome(number) {
            CallOutcome::Reply(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("call {number}: {other:?}"),
        }
    }

    pub fn append_unreadable(&mut self, topic: &str) {
        let place = self.stored(topic, KafkaRecord::default());
        self.unreadable.insert((topic.to_owned(), place.offset));
    }

    pub fn append(&mut self, topic: &str, record: KafkaRecord) {
        self.stored(topic, record);
    }

    pub fn records(&self, topic: &str) -> Vec<KafkaRecord> {
        self.topics.get(topic).into_iter().flatten().map(|(_, record)| record.clone()).collect()
    }

    pub fn run_for(&mut self, time_ns: u64) {
        let until_ns = self.now_ns + time_ns;
        while let Some(Reverse((at_ns, number))) = self.events.peek().copied()
            && at_ns <= until_ns
        {
            self.events.pop();
            self.now_ns = self.now_ns.max(at_ns);
            if let Some((index, start, event)) = self.by_number.remove(&number) {
                self.take(index, start, event);
            }
        }
        self.now_ns = until_ns;
    }

    pub fn input(&mut self, index: usize, input: BridgeInput) {
        let bridge = &mut self.bridges[index];
        if !bridge.is_alive {
            return;
        }
        let mut effects = Vec::new();
        bridge.core.handle(input, Now { monotonic_ns: self.now_ns, epoch_ns: 0 }, &mut effects);
        for effect in effects {
            self.perform(index, effect);
        }
        self.flush(index, Bundles::flush_ready);
        let bridge = &mut self.bridges[index];
        let next_ns = bridge.core.next_tick_ns();
        assert!(next_ns > self.now_ns || bridge.ended.is_some(), "{} would tick for ever", bridge.name);
        if bridge.ended.is_none() && next_ns < bridge.tick_ns {
            bridge.tick_ns = next_ns;
            let start = bridge.start;
            self.at(next_ns, index, start, WorldEvent::Tick);
        }
    }

    fn flush(&mut self, index: usize, flush: impl FnOnce(&mut Bundles, &mut BeginRequest<'_>) -> Vec<ProducerRecord>) {
        let (calls, mut withheld) = (&mut self.calls, Vec::new());
        let SimulatedBridge { bundles, refused_requests, begun, .. } = &mut self.bridges[index];
        let ready = flush(bundles, &mut |request| {
            let call = calls.get_mut(&request.0).unwrap();
            call.is_given_up |= refused_requests.contains(&request);
            let begins = !call.is_given_up && call.outcomes.is_empty();
            if begins {
                begun.insert(request);
            } else {
                withheld.push(request);
            }
            begins
        });
        for record in ready {
            let delay_ns = MS + self.random.below(2 * MS) + self.late_ns;
            let bridge = &mut self.bridges[index];
            bridge.producer_ns = (bridge.producer_ns + 1).max(self.now_ns + delay_ns);
            let (at_ns, start) = (bridge.producer_ns, bridge.start);
            self.at(at_ns, index, start, WorldEvent::Append(record));
        }
        for request in withheld {
            self.input(index, BridgeInput::Withheld(request));
        }
    }

    fn at(&mut self, at_ns: u64, index: usize, start: u32, event: WorldEvent) -> u64 {
        self.last_event += 1;
        self.events.push(Reverse((at_ns, self.last_event)));
        self.by_number.insert(self.last_event, (index, start, event));
        self.last_event
    }

    fn stored(&mut self, topic: &str, record: KafkaRecord) -> RecordPlace {
        let append_time_ms = self.broker_ahead_ms + (self.now_ns / MS) as i64;
        let log = self.topics.entry(topic.to_owned()).or_default();
        log.push((append_time_ms, record));
        let offset = log.len() as i64 - 1;
        for index in 0..self.bridges.len() {
            let delay_ns = MS + self.random.below(2 * MS);
            self.at(self.now_ns + delay_ns, index, self.bridges[index].start, WorldEvent::Fetch);
        }
        RecordPlace { offset, append_time_ms }
    }

    fn take(&mut self, index: usize, start: u32, event: WorldEvent) {
        let bridge = &mut self.bridges[index];
        if bridge.start != start || !bridge.is_alive {
            return;
        }
        if bridge.is_paused {
            bridge.deferred.push(event);
            return;
        }
        match event {
            WorldEvent::Append(record) => self.append_or_fail(index, start, record),
            WorldEvent::Report(name, result) => {
                for token in bridge.bundles.reported(name) {
                    self.input(index, BridgeInput::Delivered { token, result: result.clone() });
                }
            }
            WorldEvent::Fetch => self.fetch(index),
            WorldEvent::Reopen(reason) => {
                let incarnation = self.random.number();
                self.input(index, BridgeInput::InboxLost { incarnation, reason });
            }
            WorldEvent::Tick => {
                bridge.tick_ns = u64::MAX;
                self.input(index, BridgeInput::Tick);
            }
            WorldEvent::HandlerEnds(call, outcome) => {
                if bridge.running.remove(&call).is_some() {
                    self.input(index, BridgeInput::CallEnded { call, outcome });
                }
            }
        }
    }

    fn append_or_fail(&mut self, index: usize, start: u32, record: ProducerRecord) {
        let ProducerRecord { number: name, topic, record } = record;
        let is_dropped = self.drop.is_some_and(|is_dropped| is_dropped(&record));
        let is_too_long = self.too_long.is_some_and(|is_too_long| is_too_long(&record))
            || length_of(&record) > self.limits.segment_bytes + SEGMENT_HEADERS_BYTES;
        let (faults, chance) = (self.faults, self.random.below(1000));
        let report_ns = self.now_ns + MS;
        let mut bound = 0;
        let mut is_fault = |share: u64| {
            bound += share;
            chance < bound && chance >= bound - share
        };
        let lost = |certainty| Err(AppendFailure { certainty, reason: "the test says so".to_owned() });
        let result = if self.is_broker_down {
            let absent = lost(Certainty::Absent);
            let number = self.at(self.now_ns + self.give_up_ns, index, start, WorldEvent::Report(name, absent));
            return self.bridges[index].queued.push((number, name));
        } else if is_too_long {
            lost(Certainty::TooLong)
        } else if is_fault(faults.refused) || self.refused_bridge == Some(index) {
            lost(Certainty::Absent)
        } else if is_fault(faults.doubtful) || is_dropped {
            lost(Certainty::Doubtful)
        } else if is_fault(faults.lost_reports) {
            self.stored(&topic, record);
            lost(Certainty::Doubtful)
        } else {
            if is_fault(faults.repeated) {
                self.stored(&topic, record.clone());
            }
            Ok(self.stored(&topic, record))
        };
        self.at(report_ns, index, start, WorldEvent::Report(name, result));
    }

    fn fetch(&mut self, index: usize) {
        if self.is_broker_down {
            let start = self.bridges[index].start;
            self.at(self.now_ns + SECOND, index, start, WorldEvent::Fetch);
            return;
        }
        let inbox = format!("test.inbox.{}", self.bridges[index].name);
        for (topic, name) in [(Topic::Presence, "test.presence"), (Topic::Inbox, &*inbox)] {
            loop {
                let bridge = &mut self.bridges[index];
                let next = if topic == Topic::Inbox { &mut bridge.inbox } else { &mut bridge.presence };
                let Some(offset) = *next else { break };
                if self.unreadable.contains(&(name.to_owned(), offset)) {
                    *next = None;
                    self.input(index, BridgeInput::Unreadable { topic, reason: "no batch".to_owned() });
                    break;
                }
                let Some((append_time_ms, record)) = self.topics.get(name).and_then(|log| log.get(offset as usize))
                else {
                    break;
                };
                *next = Some(offset + 1);
                let (append_time_ms, record) = (*append_time_ms, record.clone());
                self.input(index, BridgeInput::Record(ReadRecord { topic, offset, append_time_ms, record }));
            }
        }
    }

    fn perform(&mut self, index: usize, effect: Effect) {
        let bridge = &mut self.bridges[index];
        let start = bridge.start;
        match effect {
            Effect::ReadPresence => {
                bridge.presence = Some(0);
                self.at(self.now_ns + MS, index, start, WorldEvent::Fetch);
            }
            Effect::ReadInbox { offset } => {
                bridge.inbox = Some(offset);
                self.at(self.now_ns + MS, index, start, WorldEvent::Fetch);
            }
            Effect::Send(record) => {
                self.flush(index, |bundles, begin| bundles.add(record, begin));
            }
            Effect::ReopenInbox { reason } if !bridge.is_stuck => {
                bridge.inbox = None;
                self.at(self.now_ns + MS, index, start, WorldEvent::Reopen(reason));
            }
            Effect::ReopenInbox { .. } => {}
            Effect::SkipLeases => {
                bridge.skips += 1;
                bridge.presence = Some(self.topics["test.presence"].len() as i64);
            }
            Effect::PurgeQueue => {
                bridge.purges += 1;
                let withdrawn = bridge.bundles.withdraw();
                for (number, name) in std::mem::take(&mut bridge.queued) {
                    if self.by_number.remove(&number).is_some() {
                        let lost = AppendFailure { certainty: Certainty::Doubtful, reason: "purged".to_owned() };
                        self.at(self.now_ns + MS, index, start, WorldEvent::Report(name, Err(lost)));
                    }
                }
                for token in withdrawn {
                    let lost = AppendFailure { certainty: Certainty::Absent, reason: "it waited".to_owned() };
                    self.input(index, BridgeInput::Delivered { token, result: Err(lost) });
                }
            }
            Effect::Start(call) => self.begin(index, call),
            Effect::Cancel(call) => {
                bridge.running.remove(&call);
                bridge.cancelled.push(call);
            }
            Effect::End { request, outcome } => {
                let now_ns = self.now_ns;
                let has_begun = bridge.begun.contains(&request);
                let outcome = match outcome {
                    CallOutcome::Failed(ended) if !has_begun => CallOutcome::Failed(ended.into_unsent()),
                    other => other,
                };
                let call = self.calls.get_mut(&request.0).unwrap();
                assert!(!call.is_given_up, "call {} has an outcome: {outcome:?}", request.0);
                call.outcomes.push((now_ns, outcome));
            }
            Effect::Relay(route) => _ = bridge.relays.insert(route.route.clone(), route),
            Effect::Withdraw { route } => assert!(bridge.relays.remove(&route).is_some(), "{route}"),
            Effect::Notice(notice) => bridge.notices.push(notice),
            Effect::Ended(result) => bridge.ended = Some(result),
        }
    }

    /// `NUMBER reply N` (bytes), `NUMBER sleep MS`, `NUMBER refuse`, `NUMBER panic`, `NUMBER wait` for ever.
    fn begin(&mut self, index: usize, call: IncomingCall) {
        let text = String::from_utf8(call.payload.clone()).unwrap();
        let mut words: VecDeque<_> = text.split(' ').collect();
        let number = words.pop_front().and_then(|number| number.parse().ok()).unwrap_or(0);
        *self.handled.entry(number).or_insert(0) += 1;
        let said = format!("{} by {}", text.trim_end(), self.bridges[index].name);
        let argument = words.get(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let (delay_ms, outcome) = match words.front().copied() {
            Some("sleep") => (argument, CallOutcome::Reply(said.into_bytes())),
            Some("reply") => (1, CallOutcome::Reply(vec![b'x'; argument as usize])),
            Some("refuse") => (1, CallOutcome::Refused(Refusal { code: 7, text: said, payload: vec![0, 255] })),
            Some("panic") => (1, CallOutcome::Failed(CallFailure::Panicked { reason: said })),
            Some("wait") => (u64::MAX / MS / 4, CallOutcome::Failed(CallFailure::Closed)),
            _ => (1, CallOutcome::Reply(said.into_bytes())),
        };
        let bridge = &mut self.bridges[index];
        bridge.running.insert(call.call, number);
        let (name, start) = (call.call, bridge.start);
        bridge.started.push(call);
        self.at(self.now_ns + delay_ms * MS, index, start, WorldEvent::HandlerEnds(name, outcome));
    }

    #[track_caller]
    pub fn check_calls(&mut self) {
        for (caller, by) in [(0, "b"), (1, "a")] {
            let number = self.call(caller, "hello", Some(1_000));
            self.run_for(SECOND);
            assert!(self.reply(number).ends_with(&format!("by {by}")));
        }
        self.check();
    }

    /// Every call has one outcome in time, unless it was given up or its bridge was killed; nothing begins twice or
    /// against its outcome.
    pub fn check(&self) {
        for (number, call) in &self.calls {
            let begun = self.handled.get(number).copied().unwrap_or(0);
            assert!(begun <= 1, "call {number} began {begun} times");
            let is_killed = self.bridges[call.bridge].start != call.start;
            if !call.is_given_up && !is_killed {
                let (at_ns, outcome) = call.outcomes.first().unwrap_or_else(|| panic!("call {number} has no outcome"));
                if let Some(timeout_ns) = call.timeout_ns
                    && !call.was_paused
                {
                    let late_ns = at_ns.saturating_sub(call.begun_ns + timeout_ns);
                    assert!(late_ns <= MS, "call {number} is {late_ns} ns late: {outcome:?}");
                }
            }
            assert!(call.outcomes.len() <= 1, "call {number}: {:?}", call.outcomes);
            for (_, outcome) in &call.outcomes {
                match outcome {
                    CallOutcome::Failed(ended) if ended.has_not_begun() => {
                        assert_eq!(begun, 0, "call {number}: {ended:?}");
                    }
                    CallOutcome::Reply(_) | CallOutcome::Refused(_) if !call.is_one_way => {
                        assert_eq!(begun, 1, "call {number}")
                    }
                    _ => {}
                }
            }
        }
    }
}
