//! `InstanceCounters`: counters of an instance of a route, in memory, for a counter file of its domain; one relaxed
//! addition each.

use crate::error::RpcError;
use crate::local::QueueGauges;
use crate::protocol::status::ReplyStatus;
use crate::route_counters::{CounterDestination, CounterValues, RouteCounters, Side, times_of, value};
use gapless_agent::{Counter, Counters, CountersWriter, SharedCounter, WrittenCounters, time_buckets as times};
use std::sync::Arc;

const BEGUN: &str = "begun";
const OUTCOMES: [&str; 9] = [
    "outcome.replied",
    "outcome.refused",
    "outcome.too_late",
    "outcome.bad_request",
    "outcome.panicked",
    "outcome.forwarded",
    "outcome.bad_reply",
    "outcome.not_served",
    "outcome.ended",
];
const UNHEARD: &str = "unheard";
const QUEUED: &str = "queued";
const ON_DISK: &str = "on_disk";
const OVERFLOWED: &str = "overflowed";
const HANDLER_NS: &str = "handler_ns";

#[derive(Debug)]
pub(crate) struct InstanceCounters {
    counters: Counters,
    _file: Option<WrittenCounters>,
    writer: Arc<CountersWriter>,
    begun: SharedCounter,
    /// Indexed by status.
    outcomes: [SharedCounter; 9],
    unheard: SharedCounter,
    handler_ns: SharedCounter,
    times: Box<[SharedCounter]>,
    pub(crate) queue: Arc<QueueGauges>,
}

/// Counters of an instance at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceStatistics {
    pub in_flight: u64,
    pub begun: u64,
    pub replied: u64,
    pub refused: u64,
    pub panicked: u64,
    /// Requests whose deadline had passed when a worker took them; other processes take most of theirs back earlier.
    pub too_late: u64,
    /// Requests and replies that could not be decoded or encoded.
    pub bad_messages: u64,
    /// Requests forwarded to other routes.
    pub forwarded: u64,
    /// Calls of a relay that ended elsewhere with neither a reply nor a refusal.
    pub ended_elsewhere: u64,
    /// Answers to other processes whose callers had given up.
    pub unheard: u64,
    /// Queued requests of this process, in memory and on disk; those of other processes are with their callers.
    pub queued: u64,
    pub on_disk: u64,
    /// Total requests of this process that went through the overflow.
    pub overflowed: u64,
    /// Total time in handlers, ns.
    pub handler_ns: u64,
    /// Median time of a handler, within 7 %, ns; 0 before the first has ended.
    pub p50_ns: u64,
    /// 99th percentile of the same, ns.
    pub p99_ns: u64,
}

impl InstanceCounters {
    pub(crate) fn create(route: &str, shown: &CounterDestination) -> Result<Self, RpcError> {
        let counters = RouteCounters::create(Side::Instance, route, 6 + OUTCOMES.len())?;
        let writer = &shown.writer;
        let add = |label: &str| counters.add(label).map(Counter::shared);
        let outcomes = OUTCOMES.map(add);
        let [a, b, c, d, e, f, g, h, i] = outcomes;
        let outcomes = [a?, b?, c?, d?, e?, f?, g?, h?, i?];
        let too_late = outcomes[ReplyStatus::TooLate as usize].clone();
        let (queued, on_disk, overflowed) = (add(QUEUED)?, add(ON_DISK)?, add(OVERFLOWED)?);
        Ok(Self {
            begun: add(BEGUN)?,
            outcomes,
            unheard: add(UNHEARD)?,
            handler_ns: add(HANDLER_NS)?,
            queue: Arc::new(QueueGauges { queued, on_disk, overflowed, too_late, writer: Arc::clone(writer) }),
            times: counters.add_times()?.into_iter().map(Counter::shared).collect(),
            _file: counters.show(shown)?,
            writer: Arc::clone(writer),
            counters: counters.into_counters(),
        })
    }

    pub(crate) fn begin(&self) {
        self.begun.add(1);
        self.writer.changed();
    }

    pub(crate) fn end(&self, handler_ns: u64) {
        self.handler_ns.add(handler_ns);
        self.times[times::bucket(handler_ns)].add(1);
        self.writer.changed();
    }

    pub(crate) fn answered(&self, status: ReplyStatus, is_heard: bool) {
        self.outcomes[status as usize].add(1);
        if !is_heard {
            self.unheard.add(1);
        }
        self.writer.changed();
    }

    pub(crate) fn statistics(&self) -> InstanceStatistics {
        InstanceStatistics::of(&self.counters.values())
    }
}

impl InstanceStatistics {
    pub(crate) fn of(counters: &CounterValues) -> Self {
        let of = |label: &str| value(counters, label);
        let status = |status: ReplyStatus| of(OUTCOMES[status as usize]);
        let times = times_of(Side::Instance, counters);
        let ended = times.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let begun = of(BEGUN);
        let on_disk = of(ON_DISK);
        Self {
            in_flight: begun.saturating_sub(ended),
            begun,
            replied: status(ReplyStatus::Reply),
            refused: status(ReplyStatus::Refused),
            panicked: status(ReplyStatus::Panicked),
            too_late: status(ReplyStatus::TooLate),
            bad_messages: status(ReplyStatus::BadRequest).saturating_add(status(ReplyStatus::BadReply)),
            forwarded: status(ReplyStatus::Forward),
            ended_elsewhere: status(ReplyStatus::Ended),
            unheard: of(UNHEARD),
            queued: of(QUEUED).saturating_add(on_disk),
            on_disk,
            overflowed: of(OVERFLOWED),
            handler_ns: of(HANDLER_NS),
            p50_ns: times::quantile(&times, 50),
            p99_ns: times::quantile(&times, 99),
        }
    }

    /// Names and values.
    #[must_use]
    pub fn values(&self) -> [(&'static str, u64); 16] {
        [
            ("begun", self.begun),
            ("in_flight", self.in_flight),
            ("replied", self.replied),
            ("refused", self.refused),
            ("panicked", self.panicked),
            ("too_late", self.too_late),
            ("bad_messages", self.bad_messages),
            ("forwarded", self.forwarded),
            ("ended_elsewhere", self.ended_elsewhere),
            ("unheard", self.unheard),
            ("queued", self.queued),
            ("on_disk", self.on_disk),
            ("overflowed", self.overflowed),
            ("handler_ns", self.handler_ns),
            ("p50_ns", self.p50_ns),
            ("p99_ns", self.p99_ns),
        ]
    }

    /// The statistics as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let object: serde_json::Map<_, _> =
            self.values().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        serde_json::Value::Object(object).to_string()
    }
}
