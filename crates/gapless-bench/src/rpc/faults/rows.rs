//! Rows of the report, made of the callers' observations and the times of death.

use super::CALLERS;
use super::killing::{Death, Kill};
use super::rabbitmq::BrokerVictim;
use super::supervised::Victim;
use gapless_load::rpc::faults::content::LENGTH;
use gapless_load::rpc::faults::serving::{WORK, WORKERS};
use gapless_load::rpc::faults::traffic::{AffectedCall, CallOutcomes, SilenceClock};
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::reporting::{keys, not_measured, put};
use gapless_measure::{FloorRow, Row, RowConfig};
use gapless_rpc::Retry;
use serde_json::json;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Target: 99 % of the callers of lost calls know it this soon after the kernel's sign.
pub(super) const TARGET_P99_NS: u64 = 5_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultSubject {
    Gapless { instances: usize, retry: Retry },
    Supervised { instances: usize, retry: Retry, victim: Option<Victim> },
    Rabbitmq(BrokerVictim),
}

pub(super) const fn words(retry: Retry) -> &'static str {
    match retry {
        Retry::Never => "never",
        Retry::NotBegun => "not_begun",
        Retry::Always => "always",
    }
}

#[derive(Clone, Copy)]
pub(super) struct TrafficSummary<'a> {
    pub(super) seen: &'a CallOutcomes,
    pub(super) shared: &'a SilenceClock,
    pub(super) elapsed: Duration,
    pub(super) retried: u64,
}

/// `begun`: how often each number was begun.
pub(super) fn row(
    subject: FaultSubject,
    TrafficSummary { seen, shared, elapsed, retried }: TrafficSummary<'_>,
    kills: &[Kill],
    begun: &HashMap<u64, u32>,
    floor: Option<&FloorRow>,
) -> Row {
    let mut config = json!({
        "system": "gapless", "kills": kills.len(), "callers": CALLERS, "workers": WORKERS,
        "handler_ns": WORK.as_nanos() as u64,
    });
    match subject {
        FaultSubject::Gapless { instances, retry } | FaultSubject::Supervised { instances, retry, .. } => {
            (config["copies"], config["retry"]) = (instances.into(), words(retry).into());
        }
        FaultSubject::Rabbitmq(victim) => {
            config["system"] = "rabbitmq".into();
            (config["acknowledgement"], config["workers"]) = ("explicit".into(), 1.into());
            if victim == BrokerVictim::Server {
                // The broker gives every unacknowledged call to another server.
                (config["copies"], config["retry"]) = (victim.servers().into(), words(Retry::Always).into());
            }
        }
    }
    if let FaultSubject::Supervised { victim, .. } = subject {
        config["supervised"] = victim.map_or("any", Victim::words).into();
    }
    let all_deaths: Vec<Death> = kills.iter().flat_map(|kill| &kill.deaths).copied().collect();
    let deaths = &all_deaths;
    let failed: u64 = seen.failed.values().sum();
    let begun_twice = begun.values().filter(|count| **count > 1).count();
    let never_begun = seen.answered.iter().filter(|number| !begun.contains_key(number)).count();
    // Only a caller that asked for it may have one begun again; a broker promises nothing.
    let may_begin_again = match subject {
        FaultSubject::Gapless { retry, .. } | FaultSubject::Supervised { retry, .. } => retry == Retry::Always,
        FaultSubject::Rabbitmq(_) => true,
    };
    let is_noticed = match subject {
        FaultSubject::Supervised { victim: Some(victim), .. } => failed == 0 || victim.is_serving(),
        _ => true,
    };
    let is_once = begun_twice == 0 || may_begin_again;
    let mut row = Row {
        config: RowConfig {
            payload_bytes: Some(LENGTH as u64),
            count: Some(seen.calls),
            extra: keys(config),
            ..RowConfig::default()
        },
        throughput_per_s: Some((seen.answered.len() as f64 / elapsed.as_secs_f64()).round()),
        sent: Some(seen.calls),
        elapsed_ns: Some(elapsed.as_nanos() as u64),
        verified: Some(seen.wrong == 0 && seen.doubled == 0 && never_begun == 0 && is_once && is_noticed),
        lost: Some(failed),
        duplicated: Some(seen.doubled),
        ..Row::default()
    };
    put(&mut row, "failed", json!(seen.failed));
    // A broker does not count: each answer on a later attempt is a retry.
    put(&mut row, "retried", retried.max(seen.answered_again.len() as u64));
    put(&mut row, "answered_again", seen.answered_again.len());
    put(&mut row, "wrong", seen.wrong + never_begun as u64);
    put(&mut row, "begun_twice", begun_twice);
    put(&mut row, "longest_silence_ns", shared.longest_silence().as_nanos() as u64);
    let known = after(&seen.lost, deaths, |death| death.sign_at);
    row.latency_ns = known.latency_ns();
    if let Some(floor) = floor {
        row.compare_with(floor);
    }
    for (key, touched, from) in [
        ("known_after_kill_ns", &seen.lost, (|death| death.killed_at) as fn(&Death) -> Instant),
        ("answered_again_after_sign_ns", &seen.answered_again, |death| death.sign_at),
    ] {
        if let Some(latency) = after(touched, deaths, from).latency_ns() {
            put(&mut row, key, json!(latency));
        }
    }
    let mut restored = LatencyHistogram::new();
    for kill in kills {
        if let Some(sign_at) = kill.deaths.iter().map(|death| death.sign_at).max() {
            restored.record(kill.restored_at.saturating_duration_since(sign_at).as_nanos() as u64);
        }
    }
    if let Some(latency) = restored.latency_ns() {
        put(&mut row, "restored_after_sign_ns", json!(latency));
    }
    if !matches!(subject, FaultSubject::Rabbitmq(_)) && known.count() > 0 {
        put(&mut row, "target_p99_ns", TARGET_P99_NS);
        put(&mut row, "target_met", known.percentile_ns(99.0) <= TARGET_P99_NS);
    }
    let unexplained = failed - known.count();
    if unexplained > 0 {
        row.notes.push(format!("{unexplained} calls failed before any kill"));
    }
    row
}

/// 0 for outcomes that were known before the death.
fn after(touched: &[AffectedCall], deaths: &[Death], from: impl Fn(&Death) -> Instant) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    for call in touched {
        if let Some(death) = death_of(call, deaths) {
            histogram.record(call.known_at.saturating_duration_since(from(death)).as_nanos() as u64);
        }
    }
    histogram
}

/// The first death during a call; or the last before its end, if its instance was dead when it began.
fn death_of<'a>(call: &AffectedCall, deaths: &'a [Death]) -> Option<&'a Death> {
    let mut before = deaths.iter().filter(|death| death.killed_at <= call.known_at);
    before.clone().find(|death| death.sign_at >= call.began_at).or_else(|| before.next_back())
}

pub(super) fn missing(reason: &str) -> Row {
    not_measured(RowConfig { extra: keys(json!({ "system": "rabbitmq" })), ..RowConfig::default() }, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began: Instant, ms: u64) -> Instant {
        began + Duration::from_millis(ms)
    }

    #[test]
    fn lost_call_belongs_to_first_death() {
        let zero = Instant::now();
        let death = |killed_ms, sign_ms| Death { killed_at: at(zero, killed_ms), sign_at: at(zero, sign_ms) };
        let deaths = [death(10, 12), death(50, 51), death(90, 92)];
        let touched = |began_ms, known_ms| AffectedCall { began_at: at(zero, began_ms), known_at: at(zero, known_ms) };
        for (call, expected) in [
            (touched(9, 14), Some(0)),
            // Known from the connection's end, before the sign.
            (touched(9, 11), Some(0)),
            (touched(9, 60), Some(0)),
            (touched(13, 60), Some(1)),
            (touched(13, 14), Some(0)),
            (touched(60, 70), Some(1)),
            (touched(1, 5), None),
        ] {
            assert_eq!(death_of(&call, &deaths), expected.map(|index: usize| &deaths[index]), "{call:?}");
        }
        let known = after(&[touched(9, 14), touched(9, 11), touched(1, 5)], &deaths, |death| death.sign_at);
        assert_eq!((known.count(), known.percentile_ns(1.0)), (2, 0));
        assert!((1_990_000..2_010_000).contains(&known.percentile_ns(100.0)));
    }

    fn of(subject: FaultSubject, begun: &[(u64, u32)], seen: &CallOutcomes) -> Row {
        let shared = SilenceClock::default();
        let traffic = TrafficSummary { seen, shared: &shared, elapsed: Duration::from_secs(1), retried: 0 };
        row(subject, traffic, &[], &begun.iter().copied().collect(), None)
    }

    #[test]
    fn supervisor_death_must_fail_no_call() {
        let none = CallOutcomes::default();
        let lost = CallOutcomes { calls: 1, failed: [("unknown", 1)].into(), ..CallOutcomes::default() };
        let under = |victim, seen| {
            let subject = FaultSubject::Supervised { instances: 2, retry: Retry::NotBegun, victim };
            let row = of(subject, &[(0, 1)], seen);
            (row.config.extra["supervised"].clone(), row.verified)
        };
        assert_eq!(under(Some(Victim::Guardian), &lost), ("guardian".into(), Some(false)));
        assert_eq!(under(Some(Victim::Guardian), &none), ("guardian".into(), Some(true)));
        assert_eq!(under(Some(Victim::AllInstances), &lost), ("all_copies".into(), Some(true)));
        assert_eq!(under(None, &lost), ("any".into(), Some(true)));
    }

    #[test]
    fn calls_of_a_killed_server_are_retried() {
        let now = Instant::now();
        let answered_again = vec![AffectedCall { began_at: now, known_at: now }; 3];
        let seen = CallOutcomes { calls: 2, answered: vec![1, 2], answered_again, ..CallOutcomes::default() };
        let row = of(FaultSubject::Rabbitmq(BrokerVictim::Server), &[(1, 2), (2, 1)], &seen);
        let config = ["system", "copies", "retry"].map(|key| row.config.extra[key].clone());
        assert_eq!(config, [json!("rabbitmq"), json!(2), json!("always")]);
        assert_eq!((row.verified, row.lost, &row.extra["retried"]), (Some(true), Some(0), &json!(3)));
        let broker = of(FaultSubject::Rabbitmq(BrokerVictim::Broker), &[(1, 1), (2, 1)], &CallOutcomes::default());
        assert!(!broker.config.extra.contains_key("copies") && !broker.config.extra.contains_key("retry"));
    }

    #[test]
    fn double_or_missing_begin_is_wrong() {
        let seen = CallOutcomes { calls: 3, answered: vec![1, 2], ..CallOutcomes::default() };
        let verified = |retry, begun: &[(u64, u32)], seen: &CallOutcomes| {
            of(FaultSubject::Gapless { instances: 2, retry }, begun, seen).verified
        };
        assert_eq!(verified(Retry::NotBegun, &[(1, 1), (2, 1), (3, 1)], &seen), Some(true));
        assert_eq!(verified(Retry::NotBegun, &[(1, 2), (2, 1)], &seen), Some(false), "twice");
        assert_eq!(verified(Retry::Always, &[(1, 2), (2, 1)], &seen), Some(true), "as it was asked for");
        assert_eq!(verified(Retry::Always, &[(1, 1)], &seen), Some(false), "an answer out of nothing");
        for spoiled in [CallOutcomes { wrong: 1, ..seen.clone() }, CallOutcomes { doubled: 1, ..seen.clone() }] {
            assert_eq!(verified(Retry::Always, &[(1, 1), (2, 1)], &spoiled), Some(false));
        }
    }
}
