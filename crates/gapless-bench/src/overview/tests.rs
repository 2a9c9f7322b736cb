//! Options, lines and the table of the overview.

use super::*;
use crate::overview::line::{Figure, Peer, add_peer};
use gapless_measure::LatencyNs;
use gapless_measure::published::{ANSWERS, facts};

fn shown(figure: Figure, floor: Option<&FloorRow>, answers: Option<(&str, &'static str)>) -> Line {
    let answers = answers.map(|(key, differs)| (key.to_owned(), differs));
    Line { part: Part::Calls, what: "call, 1 B".to_owned(), figure, floor: floor.cloned(), answers }
}

fn latency(p50: u64) -> Row {
    let latency = LatencyNs { p50, ..LatencyNs::default() };
    Row { latency_ns: Some(latency), verified: Some(true), ..Row::default() }
}

fn rate(per_s: f64) -> Row {
    Row { throughput_per_s: Some(per_s), verified: Some(true), ..Row::default() }
}

#[test]
fn times_and_rates_have_their_ratio() {
    let round_trip = FloorRow { name: "udp_round_trip".into(), p50_ns: Some(2_000), ..FloorRow::default() };
    let row = shown(Figure::Median, Some(&round_trip), None).of(latency(5_000));
    assert_eq!((row.floor_ratio, row.floor_name.as_deref()), (Some(2.5), Some("udp_round_trip")));
    let stream = FloorRow { name: "shm_stream".into(), rate_per_s: Some(3e6), ..FloorRow::default() };
    assert_eq!(shown(Figure::Throughput, Some(&stream), None).of(rate(2e6)).floor_ratio, Some(1.5));
    // One call after the other stands beside round trips a second.
    assert_eq!(shown(Figure::Throughput, Some(&round_trip), None).of(rate(250_000.0)).floor_ratio, Some(2.0));
    assert_eq!(shown(Figure::Median, Some(&stream), None).of(latency(5_000)).floor_ratio, None);
}

#[test]
fn a_missed_rate_has_no_ratio() {
    let floor = FloorRow { name: "shm_ping_pong".into(), p50_ns: Some(300), ..FloorRow::default() };
    let mut missed = Row { rate_reached: Some(false), ..latency(900) };
    missed.config.rate_per_s = Some(10_000);
    let row = shown(Figure::Median, Some(&floor), None).of(missed);
    assert_eq!(row.floor_ratio, None);
    let report = Report { rows: vec![row], ..Report::default() };
    assert!(table::whole(&report).contains("MISSED 0.90 µs"), "{}", table::whole(&report));
    assert!(verdict(&report.rows).is_ok());
}

#[test]
fn a_line_has_its_published_figure_and_peers() {
    let mut row = shown(Figure::Throughput, None, Some(("endurox/call/1", ""))).of(rate(47_000.0));
    add_peer(&mut row, &Peer { system: "nats".to_owned(), figure: 21_000.0 });
    assert_eq!(row.extra[ANSWERS], "endurox/call/1");
    let text = table::whole(&Report { rows: vec![row], ..Report::default() });
    for part in ["calls", "call, 1 B", "47,000/s", "about 40,000/s (Enduro/X", "nats 21,000/s", "yes"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn another_wire_is_named() {
    let row = shown(Figure::Median, None, Some(("rumi/latency/direct/default/p50", ""))).of(latency(12_000));
    assert!(line::wire(&row).is_some_and(|wire| wire.starts_with("Rumi: InfiniBand")), "{row:?}");
    let row = shown(Figure::Throughput, None, Some(("endurox/call/1", ""))).of(rate(1.0));
    assert_eq!(line::wire(&row), None);
}

#[test]
fn calls_that_failed_stand_in_the_rows_of_kills() {
    let mut row = Row { lost: Some(3), verified: Some(true), ..Row::default() };
    row.extra.insert("longest_silence_ns".to_owned(), 4_200_000.into());
    let what = "killed".to_owned();
    let line = Line { part: Part::Kills, what, figure: Figure::Time("longest_silence_ns"), floor: None, answers: None };
    assert!(table::measured(&line.of(row)).contains("4.2 ms, 3 failed"));
}

#[test]
fn a_failed_check_fails_the_run() {
    let wrong = Row { verified: Some(false), notes: vec!["2 replies are wrong".to_owned()], ..rate(1.0) };
    let rows =
        vec![shown(Figure::Throughput, None, None).of(rate(2.0)), shown(Figure::Throughput, None, None).of(wrong)];
    let error = verdict(&rows).unwrap_err().to_string();
    assert!(error.contains("1 of 2 rows failed") && error.contains("2 replies are wrong"), "{error}");
    let text = table::whole(&Report { rows, ..Report::default() });
    assert!(text.contains("NOT VERIFIED") && text.contains("FAILED: calls: call, 1 B"), "{text}");
}

#[test]
fn every_published_figure_is_a_fact() {
    let keys: Vec<String> = facts().into_iter().map(|fact| fact.key).collect();
    let named = calls::SIZES.iter().filter_map(|(_, key)| *key).chain([
        "rumi/latency/direct/default/p50",
        "rumi/throughput/indirect/min/4.0",
        "coralsequencer/latency/1024/mean",
        "coralsequencer/latency/256/mean",
        "coralsequencer/throughput/256/batched/sequencer",
        "coralsequencer/throughput/256/one-per-packet/sequencer",
        "endurox/send",
        "mercury/1-50",
        "mercury/50-50",
        "mercury/memory/one_way/500071",
        "mercury/memory/two_way/500068",
        "mercury/kafka/one_way/500071",
        "mercury/kafka/two_way/500068",
        "axon/simple/repeated",
        "axon/disruptor/repeated",
    ]);
    for key in named {
        assert!(keys.iter().any(|known| known == key), "{key}");
    }
}
