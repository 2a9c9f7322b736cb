//! `BridgeThread`: the bridge's thread.

use super::broker::BrokerClients;
use super::calls::DomainCalls;
use super::offers::Offers;
use super::ready::{ReadySources, WorkSource};
use super::relays::Relays;
use super::reporter::Reporter;
use super::topics::OwnTopics;
use super::{BridgeEvent, BridgeShared, RunError, now, random};
use crate::bridge_core::{BridgeCore, BridgeInput};
use crate::client::{BrokerConnection, ProducerOptions, TopicSpec};
use crate::config::{BridgeConfig, SEGMENT_HEADERS_BYTES};
use crate::counters::Counters;
use crate::effects::Effect;
use crate::record::names;
use crate::status::BridgeStatus;
use gapless_rpc::Domain;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest delay by a lost wake-up.
const SLEEP_MAX: Duration = Duration::from_secs(1);
const UNWATCHED_INTERVAL: Duration = Duration::from_millis(50);
const REPORT_POLL_INTERVAL: Duration = Duration::from_millis(5);
const FLUSH_MAX: Duration = Duration::from_secs(2);
const HEADERS_ROOM: usize = 64 << 10;
/// Longer than any call, short enough for the disk.
const INBOX_RETENTION: Duration = Duration::from_secs(3600);
/// Time without service until the first report of a standstill, and between two reports, ns.
const REPORT_INTERVAL_NS: u64 = 15_000_000_000;
const IGNORED_INTERVAL_NS: u64 = 60_000_000_000;

pub(super) struct BridgeThread {
    ready: Arc<ReadySources>,
    shared: Arc<BridgeShared>,
    reporter: Reporter,
    domain: Domain,
    core: BridgeCore,
    has_started: bool,
    has_asked_to_stop: bool,
    broker: BrokerClients,
    relays: Relays,
    calls: DomainCalls,
    inputs: VecDeque<BridgeInput>,
    effects: Vec<Effect>,
    /// Start and next report, monotonic ns.
    not_serving: Option<(u64, u64)>,
    /// Ignored records as last reported, with the time, ns of the monotonic clock.
    ignored: (Counters, u64),
}

impl BridgeThread {
    pub(super) fn new(
        config: BridgeConfig,
        domain: Domain,
        shared: Arc<BridgeShared>,
        reporter: Reporter,
    ) -> Result<Self, RunError> {
        let ready = Arc::clone(&shared.ready);
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let process = format!("process {}", std::process::id());
        let connection = BrokerConnection::from_config(&config).map_err(RunError::Secret)?;
        let compression = config.compression;
        let record_bytes_max =
            (config.limits.segment_bytes + HEADERS_ROOM).max(ProducerOptions::default().record_bytes_max);
        // The broker measures whole batches: only a single record may make one too long.
        let batch_bytes_max =
            ProducerOptions::default().batch_bytes_max.min(config.limits.segment_bytes + SEGMENT_HEADERS_BYTES);
        let options = ProducerOptions { compression, record_bytes_max, batch_bytes_max, ..ProducerOptions::default() };
        let topics = OwnTopics {
            inbox: TopicSpec::inbox(&names::inbox(&config.prefix, &config.name), INBOX_RETENTION, compression),
            presence: TopicSpec::compacted(&names::presence(&config.prefix)),
        };
        let core = BridgeCore::new(config.core_options(&machine, &process), random()?);
        Ok(Self {
            broker: BrokerClients::new(Arc::clone(&ready), connection, options, topics, config.limits.segment_bytes),
            relays: Relays::new(Arc::clone(&ready), &machine),
            calls: DomainCalls::new(Arc::clone(&ready)),
            ready,
            shared,
            reporter,
            domain,
            core,
            has_started: false,
            has_asked_to_stop: false,
            inputs: VecDeque::new(),
            effects: Vec::new(),
            not_serving: None,
            ignored: (Counters::default(), 0),
        })
    }

    pub(super) fn run(mut self) -> Result<(), RunError> {
        self.ready.attach();
        let _offers = Offers::watch(&self.domain, &self.ready)?;
        self.broker.prepare()?;
        let mut sources = Vec::new();
        loop {
            self.ready.take(&mut sources);
            let is_idle = sources.is_empty();
            for source in sources.drain(..) {
                self.handle_source(source)?;
            }
            if is_idle || self.broker.has_pending_reports() {
                self.take_from_broker()?;
            }
            if is_idle {
                self.relays.check_unwatched(&mut self.inputs);
                self.report_ignored(IGNORED_INTERVAL_NS);
            }
            self.retry_due()?;
            if self.has_started && now().monotonic_ns >= self.core.next_tick_ns() {
                self.inputs.push_back(BridgeInput::Tick);
            }
            if let Some(ended) = self.handle_inputs()? {
                self.broker.flush(&mut self.relays, FLUSH_MAX);
                self.report_ignored(0);
                return ended;
            }
            self.report_standstill();
            self.ready.sleep(self.sleep_time());
        }
    }

    fn take_from_broker(&mut self) -> Result<(), RunError> {
        self.broker.take(&mut self.inputs)?;
        self.report_all();
        Ok(())
    }

    fn retry_due(&mut self) -> Result<(), RunError> {
        let now_ns = now().monotonic_ns;
        self.broker.retry_due(now_ns, &mut self.inputs)?;
        self.relays.retry_due(&self.domain, now_ns, &mut self.broker.events);
        self.report_all();
        Ok(())
    }

    fn report_all(&mut self) {
        for event in std::mem::take(&mut self.broker.events) {
            self.report(event);
        }
    }

    fn sleep_time(&self) -> Duration {
        let until_tick = match self.has_started {
            true => Duration::from_nanos(self.core.next_tick_ns().saturating_sub(now().monotonic_ns)),
            false => SLEEP_MAX,
        };
        let longest = match (self.broker.has_pending_reports(), self.relays.has_unwatched()) {
            (true, _) => REPORT_POLL_INTERVAL,
            (false, true) => UNWATCHED_INTERVAL,
            (false, false) => SLEEP_MAX,
        };
        let due_ns = self.broker.next_attempt_ns().min(self.relays.next_attempt_ns());
        let until_attempt = Duration::from_nanos(due_ns.saturating_sub(now().monotonic_ns));
        until_tick.min(longest).min(until_attempt)
    }

    fn handle_source(&mut self, source: WorkSource) -> Result<(), RunError> {
        match source {
            WorkSource::Owner => {
                // Acquire: pairs with the Release of the owner.
                if self.shared.is_stopping.load(Ordering::Acquire) && !self.has_asked_to_stop {
                    self.has_asked_to_stop = true;
                    self.inputs.push_back(BridgeInput::Stop);
                }
            }
            WorkSource::Broker => {
                for input in self.broker.poll_prepared()?.into_iter().flatten() {
                    if input == BridgeInput::Start {
                        self.has_started = true;
                    }
                    self.inputs.push_back(input);
                }
                self.take_from_broker()?;
            }
            WorkSource::Status => self.shared.status.answer(|| self.status()),
            WorkSource::Routes => {
                // Only the newest counts, and before the start they would pile up.
                self.inputs.retain(|input| !matches!(input, BridgeInput::Offers(_)));
                self.inputs.push_back(BridgeInput::Offers(Offers::now(&self.domain)));
            }
            WorkSource::Relay(number) => self.relays.take(number, &mut self.inputs),
            WorkSource::Request(request) => self.relays.check_caller(request, &mut self.inputs),
            WorkSource::Call(call) => self.inputs.extend(self.calls.poll(call)),
        }
        Ok(())
    }

    fn status(&self) -> BridgeStatus {
        let mut status = self.core.status(now());
        status.taken.iter_mut().for_each(|taken| taken.is_served = self.relays.serves(&taken.route));
        status
    }

    fn handle_inputs(&mut self) -> Result<Option<Result<(), RunError>>, RunError> {
        if !self.has_started {
            // No other bridge knows this one yet.
            return Ok(self.has_asked_to_stop.then_some(Ok(())));
        }
        loop {
            while let Some(input) = self.inputs.pop_front() {
                let mut effects = std::mem::take(&mut self.effects);
                self.core.handle(input, now(), &mut effects);
                for effect in effects.drain(..) {
                    if let Some(ended) = self.perform(effect)? {
                        return Ok(Some(ended));
                    }
                }
                self.effects = effects;
            }
            self.broker.flush_bundles(&mut self.relays, &mut self.inputs);
            if self.inputs.is_empty() {
                return Ok(None);
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Result<Option<Result<(), RunError>>, RunError> {
        match effect {
            Effect::ReadPresence => self.broker.read_presence()?,
            Effect::ReadInbox { offset } => self.broker.read_inbox(offset)?,
            Effect::ReopenInbox { reason } => self.broker.reopen_inbox(reason, now().monotonic_ns),
            Effect::SkipLeases => self.broker.skip_leases(now().monotonic_ns),
            Effect::PurgeQueue => self.broker.purge_queue(&mut self.inputs),
            Effect::Send(outgoing) => self.broker.send(outgoing, &mut self.relays, &mut self.inputs),
            Effect::Start(incoming) => self.inputs.extend(self.calls.start(&self.domain, incoming)),
            Effect::Cancel(call) => self.calls.cancel(call),
            Effect::End { request, outcome } => self.relays.end(request, outcome),
            Effect::Relay(remote) => {
                self.relays.relay(&self.domain, remote, now().monotonic_ns, &mut self.broker.events);
                self.report_all();
            }
            Effect::Withdraw { route } => {
                self.relays.withdraw(&route);
            }
            Effect::Notice(notice) => {
                self.report(BridgeEvent::Notice(notice));
            }
            Effect::Ended(ended) => return Ok(Some(ended.map_err(RunError::from))),
        }
        Ok(None)
    }

    fn report(&mut self, event: BridgeEvent) {
        self.shared.status.note(&event);
        self.reporter.report(event);
    }

    fn report_standstill(&mut self) {
        if !self.has_started || self.core.is_serving() || self.has_asked_to_stop {
            self.not_serving = None;
            return;
        }
        let now_ns = now().monotonic_ns;
        let (since_ns, due_ns) = *self.not_serving.get_or_insert((now_ns, now_ns + REPORT_INTERVAL_NS));
        if now_ns >= due_ns {
            self.not_serving = Some((since_ns, now_ns + REPORT_INTERVAL_NS));
            self.report(BridgeEvent::NotServing { since: Duration::from_nanos(now_ns - since_ns) });
        }
    }

    fn report_ignored(&mut self, every_ns: u64) {
        let (counters, reported_ns) = &mut self.ignored;
        let (found, now_ns) = (self.core.counters(), now().monotonic_ns);
        if found != counters && now_ns >= reported_ns.saturating_add(every_ns) {
            (*counters, *reported_ns) = (*found, now_ns);
            self.report(BridgeEvent::Ignored(*found));
        }
    }
}
