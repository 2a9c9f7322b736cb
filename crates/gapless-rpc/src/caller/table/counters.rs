//! [`CallCounters`]: a process's counters of its calls of a route to other processes, written under the lock of the
//! route's table, except for those of backlogs.

use crate::error::RpcError;
use crate::outcome::CallError;
use crate::route_counters::{CounterDestination, CounterValues, RouteCounters, Side, times_of, value};
use gapless_agent::{Counter, Counters, CountersWriter, SharedCounter, WrittenCounters, time_buckets as times};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum CallEnd {
    Replied,
    Refused,
    Panicked,
    BadMessage,
    TimedOut,
    Unknown,
    NotBegun,
    Busy,
    NoRoute,
    Cancelled,
    Retried,
    Forwarded,
    /// Not taken when the last instance went: waits for another.
    TakenBack,
}

const ENDS: [&str; 13] = [
    "outcome.replied",
    "outcome.refused",
    "outcome.panicked",
    "outcome.bad_message",
    "outcome.timed_out",
    "outcome.unknown",
    "outcome.not_begun",
    "outcome.busy",
    "outcome.no_route",
    "outcome.cancelled",
    "retried",
    "forwarded",
    "taken_back",
];
const OFFERED: &str = "offered";
const SENT: &str = "sent";
const SENT_FOLLOWED: &str = "sent_followed";
const UNOFFERED: &str = "unoffered";
const WITHDRAWN: &str = "withdrawn";
const LOST: &str = "lost";
const BACKLOG: [&str; 4] = ["overflowed", "in_backlog", "on_disk", "spilled"];

/// One call in 2^4 is timed: the clock costs as much as ten counters.
const TIMED_SHARE_POWER: u32 = 4;

impl CallEnd {
    pub(crate) const fn of(error: &CallError) -> Self {
        match error {
            CallError::NoRoute { .. } => Self::NoRoute,
            CallError::Busy { .. } => Self::Busy,
            CallError::NotBegun { .. } | CallError::Unavailable { .. } | CallError::OtherProtocol { .. } => {
                Self::NotBegun
            }
            CallError::Unknown { .. } => Self::Unknown,
            CallError::Refused { .. } | CallError::CannotForward { .. } => Self::Refused,
            CallError::TimedOut { .. } => Self::TimedOut,
            CallError::Mismatch { .. } | CallError::BadMessage { .. } => Self::BadMessage,
            CallError::Panicked { .. } => Self::Panicked,
            CallError::Closed => Self::Cancelled,
        }
    }
}

#[derive(Debug)]
pub(super) struct CallCounters {
    counters: Counters,
    /// `None` if there was no room: no call fails for the sake of statistics.
    _file: Option<WrittenCounters>,
    writer: Arc<CountersWriter>,
    offered: Counter,
    sent: Counter,
    sent_followed: Counter,
    unoffered: Counter,
    withdrawn: Counter,
    lost: Counter,
    ends: Vec<Counter>,
    times: Vec<Counter>,
}

#[derive(Debug)]
pub(crate) struct BacklogCounters {
    counters: Vec<SharedCounter>,
    writer: Arc<CountersWriter>,
}

impl BacklogCounters {
    pub(crate) fn change(&self, had: [u64; BACKLOG.len()], has: [u64; BACKLOG.len()]) {
        for ((counter, had), has) in self.counters.iter().zip(had).zip(has) {
            counter.add(has.wrapping_sub(had));
        }
        self.writer.changed();
    }
}

impl CallCounters {
    pub(super) fn create(route: &str, shown: &CounterDestination) -> Result<(Self, BacklogCounters), RpcError> {
        let counters = RouteCounters::create(Side::Caller, route, 6 + ENDS.len() + BACKLOG.len())?;
        let add_all = |labels: &[&str]| labels.iter().map(|label| counters.add(label)).collect::<Result<Vec<_>, _>>();
        let backlog = BacklogCounters {
            counters: add_all(&BACKLOG)?.into_iter().map(Counter::shared).collect(),
            writer: Arc::clone(&shown.writer),
        };
        let (offered, unoffered) = (counters.add(OFFERED)?, counters.add(UNOFFERED)?);
        let (sent, sent_followed) = (counters.add(SENT)?, counters.add(SENT_FOLLOWED)?);
        let (withdrawn, lost) = (counters.add(WITHDRAWN)?, counters.add(LOST)?);
        let (ends, times) = (add_all(&ENDS)?, counters.add_times()?);
        let file = counters.show(shown).unwrap_or_else(|error| {
            tracing::debug!(route, %error, "calls are counted where no other process sees it");
            None
        });
        let writer = Arc::clone(&shown.writer);
        let counters = counters.into_counters();
        let made = Self {
            counters,
            _file: file,
            writer,
            offered,
            sent,
            sent_followed,
            unoffered,
            withdrawn,
            lost,
            ends,
            times,
        };
        Ok((made, backlog))
    }

    /// Returns whether to time it.
    #[inline]
    pub(super) fn offer(&self, one_way: bool) -> bool {
        let number = self.offered.get();
        self.offered.set(number.wrapping_add(1));
        if one_way {
            self.sent.add(1);
        }
        self.writer.changed();
        // Multiples of the golden ratio are spread evenly, whatever subset of them is timed.
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - TIMED_SHARE_POWER) == 0
    }

    #[cold]
    pub(super) fn send_followed(&self) {
        self.sent_followed.add(1);
    }

    #[inline]
    pub(super) fn end(&self, end: CallEnd, took_ns: Option<u64>) {
        self.ends[end as usize].add(1);
        if let Some(took_ns) = took_ns {
            self.times[times::bucket(took_ns)].add(1);
        }
        self.writer.changed();
    }

    pub(super) fn withdraw(&self) {
        self.withdrawn.add(1);
        self.writer.changed();
    }

    pub(super) fn lose(&self) {
        self.lost.add(1);
        self.writer.changed();
    }

    pub(super) fn end_unoffered(&self, end: CallEnd) {
        self.unoffered.add(1);
        self.end(end, None);
    }

    /// Counts a one-way request that is followed as a call from now on, and so has an end.
    pub(super) fn adopt(&self) {
        self.unoffered.add(1);
    }

    pub(super) fn values(&self) -> Vec<(String, u64)> {
        self.counters.values()
    }
}

/// Calls of one caller that ended before their route had a table.
#[derive(Debug)]
pub(crate) struct TablelessCounters(Mutex<CallCounters>);

impl TablelessCounters {
    pub(crate) fn create(route: &str, shown: &CounterDestination) -> Result<Self, RpcError> {
        Ok(Self(Mutex::new(CallCounters::create(route, shown)?.0)))
    }

    pub(crate) fn count(&self, end: CallEnd) {
        self.0.lock().expect("nobody panics with the lock").end_unoffered(end);
    }

    pub(crate) fn values(&self) -> Vec<(String, u64)> {
        self.0.lock().expect("nobody panics with the lock").values()
    }
}

/// Counters of a process's calls of one route to other processes. Calls within the process are counted where they are
/// served: [`InstanceStatistics`](crate::InstanceStatistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallStatistics {
    /// Attempts offered to instances, including one-way requests.
    pub offered: u64,
    /// One-way requests among `offered`. Ends of those that went through a backlog are counted below.
    pub sent: u64,
    /// Offered and not ended: waiting for an instance, being handled, or with a reply not taken yet.
    pub in_flight: u64,
    pub replied: u64,
    /// [`CallError::Refused`] by the handler, and [`CallError::CannotForward`].
    pub refused: u64,
    /// [`CallError::Panicked`].
    pub panicked: u64,
    /// [`CallError::BadMessage`] and [`CallError::Mismatch`].
    pub bad_messages: u64,
    /// [`CallError::TimedOut`].
    pub timed_out: u64,
    /// [`CallError::Unknown`].
    pub unknown: u64,
    /// [`CallError::NotBegun`] and [`CallError::Unavailable`].
    pub not_begun: u64,
    /// [`CallError::Busy`].
    pub busy: u64,
    /// [`CallError::NoRoute`].
    pub no_route: u64,
    /// Given up by their callers before the end, also while waiting for a slot or an instance; or ended with the
    /// domain.
    pub cancelled: u64,
    /// Retried because their instance had died or left, by the retry policy.
    pub retried: u64,
    /// Forwarded to other routes, where they are counted from then on.
    pub forwarded: u64,
    /// Withdrawn from a living instance that had taken them: timeouts, cancelled calls, broken connections and moved
    /// keys.
    pub withdrawn: u64,
    /// Attempts that had begun at an instance which died or left before it answered.
    pub lost: u64,
    /// Total requests that waited in a backlog ([`crate::CallerOptions::overflow`]) for want of a free slot.
    pub overflowed: u64,
    /// Requests in a backlog now.
    pub in_backlog: u64,
    /// Backlog requests on disk now.
    pub on_disk: u64,
    /// Total requests that went to disk.
    pub spilled: u64,
    /// Median time of a call, within 7 %, ns; sampled from one call in sixteen. 0 before one has ended.
    pub p50_ns: u64,
    /// 99th percentile of the same, ns.
    pub p99_ns: u64,
}

impl CallStatistics {
    pub(crate) fn of(counters: &CounterValues) -> Self {
        let of = |label: &str| value(counters, label);
        let end = |end: CallEnd| of(ENDS[end as usize]);
        let ended = ENDS.iter().fold(0_u64, |sum, label| sum.saturating_add(of(label)));
        let begun = of(OFFERED).saturating_add(of(UNOFFERED)).saturating_sub(of(SENT));
        let times = times_of(Side::Caller, counters);
        let [overflowed, in_backlog, on_disk, spilled] = BACKLOG.map(of);
        Self {
            offered: of(OFFERED),
            sent: of(SENT).saturating_add(of(SENT_FOLLOWED)),
            in_flight: begun.saturating_sub(ended),
            replied: end(CallEnd::Replied),
            refused: end(CallEnd::Refused),
            panicked: end(CallEnd::Panicked),
            bad_messages: end(CallEnd::BadMessage),
            timed_out: end(CallEnd::TimedOut),
            unknown: end(CallEnd::Unknown),
            not_begun: end(CallEnd::NotBegun),
            busy: end(CallEnd::Busy),
            no_route: end(CallEnd::NoRoute),
            cancelled: end(CallEnd::Cancelled),
            retried: end(CallEnd::Retried),
            forwarded: end(CallEnd::Forwarded),
            withdrawn: of(WITHDRAWN),
            lost: of(LOST),
            overflowed,
            in_backlog,
            on_disk,
            spilled,
            p50_ns: times::quantile(&times, 50),
            p99_ns: times::quantile(&times, 99),
        }
    }

    /// Names and values.
    #[must_use]
    pub fn values(&self) -> [(&'static str, u64); 23] {
        [
            ("offered", self.offered),
            ("sent", self.sent),
            ("in_flight", self.in_flight),
            ("replied", self.replied),
            ("refused", self.refused),
            ("panicked", self.panicked),
            ("bad_messages", self.bad_messages),
            ("timed_out", self.timed_out),
            ("unknown", self.unknown),
            ("not_begun", self.not_begun),
            ("busy", self.busy),
            ("no_route", self.no_route),
            ("cancelled", self.cancelled),
            ("retried", self.retried),
            ("forwarded", self.forwarded),
            ("withdrawn", self.withdrawn),
            ("lost", self.lost),
            ("overflowed", self.overflowed),
            ("in_backlog", self.in_backlog),
            ("on_disk", self.on_disk),
            ("spilled", self.spilled),
            ("p50_ns", self.p50_ns),
            ("p99_ns", self.p99_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_counter() {
        let (counters, backlog) = CallCounters::create("test.route", &CounterDestination::in_memory()).unwrap();
        let timed: u32 = (0..1600).map(|_| u32::from(counters.offer(false))).sum();
        assert!((90..=110).contains(&timed), "one of sixteen: {timed}");
        counters.offer(true);
        counters.end(CallEnd::Replied, Some(1_000));
        counters.end(CallEnd::TakenBack, None);
        counters.end_unoffered(CallEnd::NoRoute);
        backlog.change([0; 4], [5, 3, 2, 2]);
        backlog.change([5, 3, 2, 2], [6, 0, 0, 2]);
        let seen = CallStatistics::of(&counters.values());
        let expected = (1601, 1, 1598, 1, 1);
        assert_eq!((seen.offered, seen.sent, seen.in_flight, seen.replied, seen.no_route), expected);
        assert_eq!((seen.overflowed, seen.in_backlog, seen.on_disk, seen.spilled), (6, 0, 0, 2));
        assert!(seen.p50_ns.abs_diff(1_000) <= 70 && seen.p50_ns == seen.p99_ns);
        assert!(
            CallCounters::create("test.route", &CounterDestination::in_memory()).unwrap().0.offer(false),
            "the first call is timed"
        );
        let labels = counters.values();
        for (end, label) in [
            (CallEnd::Replied, "outcome.replied"),
            (CallEnd::Cancelled, "outcome.cancelled"),
            (CallEnd::TakenBack, "taken_back"),
        ] {
            assert_eq!(ENDS[end as usize], label);
            assert!(labels.iter().any(|(found, _)| found == label));
        }
    }

    #[test]
    fn files_of_a_route_are_summed() {
        let of = |label: &str, value| (label.to_owned(), value);
        let both = [of(OFFERED, 3), of(OFFERED, 4), of("call.from_ns.1024", 1), of("call.from_ns.128", 9)];
        let seen = CallStatistics::of(&both);
        assert_eq!((seen.offered, seen.in_flight), (7, 7));
        assert!(seen.p50_ns < 200 && seen.p99_ns > 1_000, "{seen:?}");
        let hostile: Vec<_> =
            [OFFERED, SENT, UNOFFERED, LOST].iter().chain(&ENDS).map(|label| of(label, u64::MAX)).collect();
        assert_eq!(CallStatistics::of(&hostile).in_flight, 0);
        assert_eq!(CallStatistics::of(&[of("call.from_ns.x", 1), of("", 7)]), CallStatistics::default());
    }

    #[test]
    fn calls_count_without_a_file() {
        let missing =
            CounterDestination { path: Some("/missing/calls-0.counters".into()), ..CounterDestination::in_memory() };
        let (counters, _) = CallCounters::create("test.route", &missing).unwrap();
        counters.offer(false);
        assert_eq!(CallStatistics::of(&counters.values()).offered, 1);
    }
}
