//! Published facts: their keys, and the rows that answer them.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::*;
use crate::RowConfig;

fn row(config: Value, extra: Value) -> Row {
    Row {
        config: serde_json::from_value(config).unwrap(),
        extra: crate::reporting::keys(extra),
        throughput_per_s: Some(1.0),
        ..Row::default()
    }
}

#[test]
fn keys_are_unique_and_ranges_in_order() {
    let facts = facts();
    let keys: HashSet<&str> = facts.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(keys.len(), facts.len());
    assert!(facts.iter().all(|fact| fact.least > 0.0 && fact.least <= fact.greatest));
    assert!(PublishedSystem::ALL.iter().all(|system| facts.iter().any(|fact| fact.system == *system)));
}

#[test]
fn percentiles_are_in_order() {
    assert!(rumi::LATENCIES.iter().all(|row| row.p50_us < row.p99_us && row.p99_us < row.p99_9_us));
}

#[test]
fn rows_answer_by_configuration() {
    let fact = fact("coralsequencer/throughput/1400/one-per-packet/sequencer").unwrap();
    assert_eq!((fact.least, fact.greatest), (328_025.0, 328_025.0));
    let config = |transport: &str, batch: bool| {
        json!({ "mode": "throughput", "transport": transport, "payload_bytes": 1400, "nodes": 3, "batch_node": batch,
                "batch_sequencer": batch, "mtu": 9000 })
    };
    assert!(fact.is_answered_by("sequencer", &row(config("multicast", false), json!({}))));
    assert!(!fact.is_answered_by("canonical", &row(config("multicast", false), json!({}))));
    assert!(!fact.is_answered_by("sequencer", &row(config("shared-memory", false), json!({}))));
    assert!(!fact.is_answered_by("sequencer", &row(config("udp", true), json!({}))));
}

#[test]
fn rows_answer_by_a_named_key() {
    let fact = fact("endurox/call/1024/5x5").unwrap();
    assert_eq!(fact.answer, None);
    for answers in [json!("endurox/call/1024/5x5"), json!(["other", "endurox/call/1024/5x5"])] {
        assert!(fact.is_answered_by("rpc curve", &row(json!({}), json!({ "answers": answers }))));
    }
    assert!(!fact.is_answered_by("rpc curve", &row(json!({}), json!({ "answers": 7 }))));
    assert!(!fact.is_answered_by("rpc curve", &Row { config: RowConfig::default(), ..Row::default() }));
}

#[test]
fn peers_are_told_from_ours() {
    let answer = fact("endurox/call/1").unwrap().answer.unwrap();
    let config = json!({ "mode": "call", "payload_bytes": 1, "connected": 1, "in_flight": 1, "system": "gapless",
        "waiting": "spinning" });
    let mut theirs = config.clone();
    theirs["system"] = json!("rabbitmq");
    theirs["acknowledgement"] = json!("automatic");
    let (ours, theirs) = (row(config, json!({})), row(theirs, json!({})));
    assert!(answer.is_of("rpc curve", &ours, None) && !answer.is_of("rpc curve", &theirs, None));
    let found: Vec<_> = answer.peers.iter().filter(|peer| answer.is_of("rpc curve", &theirs, Some(peer))).collect();
    assert_eq!(found.iter().map(|peer| peer.name).collect::<Vec<_>>(), ["RabbitMQ, automatic acknowledgement"]);
    assert!(!answer.peers.iter().any(|peer| answer.is_of("rpc curve", &ours, Some(peer))));
}

#[test]
fn java_clients_are_peers_over_kafka() {
    let answer = fact("mercury/kafka/one_way/72").unwrap().answer.unwrap();
    let config = |system: Value| json!({ "mode": "one_way", "payload_bytes": 72, "ends": "Kafka", "system": system });
    let java = row(config(json!(mercury::JAVA)), json!({}));
    for ours in [config(json!("gapless")), config(Value::Null)] {
        let ours = row(ours, json!({}));
        assert!(answer.is_of("network", &ours, None) && !answer.is_of("network", &ours, answer.peers.first()));
    }
    assert!(!answer.is_of("network", &java, None) && answer.is_of("network", &java, answer.peers.first()));
}

#[test]
fn figures_are_found_in_their_rows() {
    let extra = json!({
        "slices": [{ "percent": 99.0, "average_ns": 7.5, "greatest_ns": 9 }],
        "roles": [{ "role": "sequencer", "rate_per_s": 9.0 }, { "role": "node 1", "rate_per_s": 2.0 },
                  { "role": "node 2", "rate_per_s": 4.0 }],
        "cpu_ns_per_call": { "client": 3e8, "server": 2e8 },
    });
    let row = row(json!({}), extra);
    assert_eq!(RowFigure::SliceAverage(99.0).of(&row), Some(7.5));
    assert_eq!(RowFigure::SliceGreatest(99.0).of(&row), Some(9.0));
    assert_eq!(RowFigure::SliceGreatest(75.0).of(&row), None);
    assert_eq!(RowFigure::NodeRate.of(&row), Some(3.0));
    assert_eq!(RowFigure::CpuPercent.of(&row), Some(50.0));
    assert_eq!(cpu_ns_per_call(&row), Some(5e8));
    assert_eq!(RowFigure::Latency(LatencyPart::Mean).of(&row), None);
    assert_eq!(RowFigure::CpuPercent.of(&Row::default()), None);
}

#[test]
fn the_better_figure_is_ahead() {
    let rate = fact("mercury/memory/two_way/500068").unwrap();
    let verdicts = [950.0, 951.0, 1_316.0, 2_632.0].map(|ours| rate.compare(ours).verdict);
    assert_eq!(
        verdicts,
        [ComparisonVerdict::Behind, ComparisonVerdict::Level, ComparisonVerdict::Level, ComparisonVerdict::Ahead]
    );
    assert_eq!(rate.compare(2_632.0).ratio, Some(2.0));
    let time = fact("coralsequencer/latency/1024/mean").unwrap();
    assert_eq!(
        time.compare(6_758.0),
        Comparison { ours: 6_758.0, ratio: Some(0.5), verdict: ComparisonVerdict::Behind }
    );
    let wired = fact("rumi/latency/direct/min/p50").unwrap();
    assert_eq!(wired.compare(10_000.0), Comparison { ours: 10_000.0, ratio: None, verdict: ComparisonVerdict::Ahead });
}

#[test]
fn nothing_is_known_below_a_bound() {
    let fact = fact("endurox/call/2560").unwrap();
    assert_eq!(
        [4_900.0, 5_100.0].map(|ours| fact.compare(ours).verdict),
        [ComparisonVerdict::Level, ComparisonVerdict::Ahead]
    );
}

#[test]
fn missed_and_failed_rows_are_no_result() {
    let fact = fact("rumi/throughput/indirect/min/4.0").unwrap();
    let sound = Row { throughput_per_s: Some(1e9), ..Row::default() };
    assert_eq!(fact.compare_row(&sound).unwrap().verdict, ComparisonVerdict::Ahead);
    let failed = Row { verified: Some(false), ..sound.clone() };
    let mut missed = Row { rate_reached: Some(false), ..sound };
    missed.config.rate_per_s = Some(10_000);
    for row in [failed, missed] {
        let compared = fact.compare_row(&row).unwrap();
        assert_eq!((compared.verdict, compared.ratio), (ComparisonVerdict::NoResult, None));
    }
    assert_eq!(fact.compare_row(&Row::default()), None);
}

#[test]
fn a_set_time_out_has_no_ratio() {
    let compared = fact("endurox/killed-server").unwrap().compare(1e6);
    assert_eq!((compared.verdict, compared.ratio), (ComparisonVerdict::Ahead, None));
}

#[test]
fn a_named_key_does_not_change_the_load() {
    let fact = fact("axon/simple/repeated").unwrap();
    let row = |in_flight: u64| {
        let config = json!({ "name": "commands, direct", "mode": "throughput", "encoding": "sbe", "tier": "memory",
            "payload_bytes": 0, "aggregates": 1, "drive": "direct", "identifiers": "time-ordered", "in_flight": in_flight });
        row(config, json!({ "answers": "axon/simple/repeated" }))
    };
    assert!(fact.is_answered_by("overview", &row(1)) && !fact.is_answered_by("overview", &row(4096)));
}

#[test]
fn unfair_rows_of_axon_answer_nothing() {
    let answer = fact("axon/simple").unwrap().answer.unwrap();
    let row = |setup: Value| {
        let config = json!({ "name": "axon simple", "mode": "throughput", "encoding": "objects", "tier": "memory",
            "payload_bytes": 0, "aggregates": 1, "identifiers": "random", "in_flight": 4096, "setup": setup });
        row(config, json!({}))
    };
    let found = |setup: Value| {
        answer.peers.iter().filter(|peer| answer.is_of("commands", &row(setup.clone()), Some(peer))).count()
    };
    assert_eq!([json!("ours"), json!("published"), Value::Null].map(found), [1, 1, 0]);
}

#[test]
fn kafka_facts_need_kafka_rows() {
    let fact = fact("mercury/kafka/one_way/72").unwrap();
    let through = |ends: &str| row(json!({ "mode": "one_way", "payload_bytes": 72, "ends": ends }), json!({}));
    assert!(fact.is_answered_by("network", &through("Kafka")));
    assert!(!fact.is_answered_by("rpc payloads", &through("two processes")));
}

#[test]
fn rows_that_are_only_alike_are_remarks() {
    let remark = |key: &str| fact(key).unwrap().answer.unwrap().remark.unwrap();
    let many = row(json!({ "name": "parallel 1→50", "callers": 1, "in_flight": 64 }), json!({}));
    assert!(
        remark("mercury/1-50").is_of(&many) && !fact("mercury/1-50").unwrap().is_answered_by("rpc scenarios", &many)
    );
}
