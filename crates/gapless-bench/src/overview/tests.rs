//! Options, lines and the table of the overview.

use super::*;
use crate::overview::line::{OverviewPeer, ShownFigure, add_peer};
use gapless_measure::LatencyNs;
use gapless_measure::published::ANSWERS;

fn shown(figure: ShownFigure, floor: Option<&FloorRow>, answers: Option<&str>) -> OverviewLine {
    let answers = answers.map(str::to_owned);
    OverviewLine { part: OverviewPart::Calls, what: "call, 1 B".to_owned(), figure, floor: floor.cloned(), answers }
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
    let row = shown(ShownFigure::Median, Some(&round_trip), None).into_row(latency(5_000));
    assert_eq!((row.floor_ratio, row.floor_name.as_deref()), (Some(2.5), Some("udp_round_trip")));
    let stream = FloorRow { name: "shm_stream".into(), rate_per_s: Some(3e6), ..FloorRow::default() };
    assert_eq!(shown(ShownFigure::Throughput, Some(&stream), None).into_row(rate(2e6)).floor_ratio, Some(1.5));
    assert_eq!(
        shown(ShownFigure::Throughput, Some(&round_trip), None).into_row(rate(250_000.0)).floor_ratio,
        Some(2.0)
    );
    assert_eq!(shown(ShownFigure::Median, Some(&stream), None).into_row(latency(5_000)).floor_ratio, None);
}

#[test]
fn a_missed_rate_has_no_ratio() {
    let floor = FloorRow { name: "shm_ping_pong".into(), p50_ns: Some(300), ..FloorRow::default() };
    let mut missed = Row { rate_reached: Some(false), ..latency(900) };
    missed.config.rate_per_s = Some(10_000);
    let row = shown(ShownFigure::Median, Some(&floor), None).into_row(missed);
    assert_eq!(row.floor_ratio, None);
    let report = Report { rows: vec![row], ..Report::default() };
    assert!(table::whole(&report).contains("MISSED 900 ns"), "{}", table::whole(&report));
    assert!(verdict(&report.rows).is_ok());
}

#[test]
fn line_has_published_figure_and_peers() {
    let mut row = shown(ShownFigure::Throughput, None, Some("endurox/call/1")).into_row(rate(47_000.0));
    add_peer(&mut row, &OverviewPeer { system: "nats".to_owned(), figure: 21_000.0 });
    assert_eq!(row.extra[ANSWERS], "endurox/call/1");
    let text = table::whole(&Report { rows: vec![row], ..Report::default() });
    for part in ["calls", "call, 1 B", "47,000/s", "about 40,000/s (Enduro/X", "nats 21,000/s", "yes"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn another_wire_is_named() {
    let row = shown(ShownFigure::Median, None, Some("rumi/latency/direct/default/p50")).into_row(latency(12_000));
    assert!(line::wire(&row).is_some_and(|wire| wire.starts_with("Rumi: InfiniBand")), "{row:?}");
    let row = shown(ShownFigure::Throughput, None, Some("endurox/call/1")).into_row(rate(1.0));
    assert_eq!(line::wire(&row), None);
}

#[test]
fn beatable_floor_is_explained() {
    let futex = FloorRow { name: "futex_round_trip".into(), p50_ns: Some(80_000), ..FloorRow::default() };
    let row = shown(ShownFigure::Throughput, Some(&futex), None).into_row(rate(60_000.0));
    assert!(row.floor_ratio.is_some_and(|ratio| ratio < 1.0), "{row:?}");
    let notes: Vec<String> = notes_of_floors(&[row]).collect();
    assert!(notes.len() == 1 && notes[0].starts_with("futex_round_trip: two threads that sleep"), "{notes:?}");
    assert_eq!(notes_of_floors(&[rate(1.0)]).count(), 0);
}

#[test]
fn kill_rows_show_failed_calls() {
    let mut row = Row { lost: Some(3), verified: Some(true), ..Row::default() };
    row.extra.insert("longest_silence_ns".to_owned(), 4_200_000.into());
    let what = "killed".to_owned();
    let line = OverviewLine {
        part: OverviewPart::Kills,
        what,
        figure: ShownFigure::Time("longest_silence_ns"),
        floor: None,
        answers: None,
    };
    assert!(table::measured(&line.into_row(row)).contains("4.20 ms, 3 failed"));
}

#[test]
fn a_failed_check_fails_the_run() {
    let wrong = Row { verified: Some(false), notes: vec!["2 replies are wrong".to_owned()], ..rate(1.0) };
    let rows = vec![
        shown(ShownFigure::Throughput, None, None).into_row(rate(2.0)),
        shown(ShownFigure::Throughput, None, None).into_row(wrong),
    ];
    let error = verdict(&rows).unwrap_err().to_string();
    assert!(error.contains("1 of 2 rows failed") && error.contains("2 replies are wrong"), "{error}");
    let text = table::whole(&Report { rows, ..Report::default() });
    assert!(text.contains("NOT VERIFIED") && text.contains("FAILED: calls: call, 1 B"), "{text}");
}

#[test]
#[should_panic(expected = "mercury/none is no published figure")]
fn unknown_published_key_is_refused() {
    let _ = shown(ShownFigure::Throughput, None, Some("mercury/none")).into_row(rate(1.0));
}

#[test]
fn calls_keep_their_benchmark_ratio() {
    let floor = FloorRow { name: "futex_round_trip".into(), p50_ns: Some(32_495), ..FloorRow::default() };
    let mut row = Row { throughput_per_s: Some(61_538.0), ..latency(20_175) };
    let shown = shown(ShownFigure::Throughput, Some(&floor), None).into_row(row.clone());
    row.compare_with(&floor);
    assert_eq!((shown.floor_ratio, shown.floor_ratio), (Some(0.62), row.floor_ratio));
}

pub(super) fn overview<'a>(interrupted: &'a Arc<AtomicBool>) -> Overview<'a> {
    let progress = BenchProgress::new(1, NAME, true);
    let plan = OverviewArguments::default().plan();
    Overview { plan, report: Report::default(), progress, interrupted, began: Instant::now() }
}

#[test]
fn notes_of_a_part_are_kept() {
    let interrupted = Arc::default();
    let mut overview = overview(&interrupted);
    let mut part = overview.part("rpc curve");
    part.report.notes = vec!["futex_round_trip: not measured".to_owned()];
    part.report.rows = vec![rate(1.0)];
    assert_eq!(overview.finish_part(part).rows.len(), 1);
    assert_eq!(overview.report.notes, ["futex_round_trip: not measured"]);
}

#[test]
fn missing_kafka_is_named() {
    let interrupted = Arc::default();
    let mut overview = overview(&interrupted);
    // The script of the broker is not in the folder of a test.
    network::measure(&mut overview).unwrap();
    let help = if cfg!(feature = "kafka") {
        "run it in the project's folder"
    } else {
        "cargo build --release --features kafka"
    };
    let note = &overview.report.notes[0];
    assert!(note.starts_with("not measured: calls over Kafka") && note.ends_with(help), "{note}");
    assert!(overview.report.rows.is_empty());
}

#[test]
fn floors_are_added_once() {
    let interrupted = Arc::default();
    let mut overview = overview(&interrupted);
    let write = FloorRow { name: "sequential_write".into(), bytes_per_s: Some(3e9), ..FloorRow::default() };
    let in_messages = FloorRow { rate_per_s: Some(1e7), ..write.clone() };
    for _ in 0..2 {
        overview.add(shown(ShownFigure::Throughput, Some(&in_messages), None), rate(1e6));
    }
    assert_eq!(overview.report.floor, [write]);
    assert!(overview.report.rows.iter().all(|row| row.floor_ratio == Some(10.0)));
}
