//! The picture in README.md is drawn again from a committed run and compared. `GAPLESS_DRAW=1` writes it instead.

use std::path::Path;

use gapless_measure::plot::{self, Chart, Plot};
use serde_json::Value;

const RUN: &str = "2026-11-22/failover.json";
const PICTURE: &str = "2026-11-22/failover.svg";
const CHARTS: [(&str, &str); 2] = [
    ("leader killed", "kill -9 of the leader at 0 ms; a point is the longest wait within 10 ms"),
    ("lead transferred", "the lead is transferred at 0 ms"),
];
const DRAWN_MS: std::ops::RangeInclusive<f64> = -400.0..=800.0;

#[test]
fn committed_picture_matches_figures() {
    let benchmarks = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("benchmarks");
    let run: Value = serde_json::from_slice(&std::fs::read(benchmarks.join(RUN)).unwrap()).unwrap();
    let timeline = run["timelines"].as_array().unwrap().iter().find(|timeline| timeline["members"] == "full").unwrap();
    let plot = Plot {
        title: "A cluster of three loses its leader, three times".to_owned(),
        x_label: "ms since the event".to_owned(),
        y_label: "longest wait for a reply, ms".to_owned(),
        y_range: 0.05..200.0,
        columns: vec![CHARTS.iter().map(|(event, caption)| chart(timeline, event, caption)).collect()],
    };
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("drawn.svg");
    plot::write(&plot, &drawn).unwrap();
    let committed = benchmarks.join(PICTURE);
    if std::env::var_os("GAPLESS_DRAW").is_some() {
        std::fs::copy(&drawn, &committed).unwrap();
    }
    let same = std::fs::read(&drawn).unwrap() == std::fs::read(&committed).unwrap_or_default();
    assert!(same, "{PICTURE} is not what is drawn from {RUN}; GAPLESS_DRAW=1 rewrites it");
}

fn chart(timeline: &Value, event: &str, caption: &str) -> Chart {
    let events = timeline["events"].as_array().expect("events");
    let event = events.iter().find(|found| found["event"] == event).expect("the run has the event");
    let series = event["happenings"].as_array().expect("happenings").iter().map(|happening| {
        let numbers = |name: &str| {
            let text = happening[name].as_str().expect("numbers as text");
            text.split(' ').map(|number| number.parse::<f64>().expect("a number")).collect::<Vec<_>>()
        };
        let (moments, waits_us) = (numbers("at_ms"), numbers("latency_max_us"));
        assert_eq!(moments.len(), waits_us.len());
        let points = moments.into_iter().zip(waits_us).filter(|(at_ms, _)| DRAWN_MS.contains(at_ms));
        points.map(|(at_ms, wait_us)| (at_ms, wait_us / 1000.0)).collect()
    });
    Chart { caption: caption.to_owned(), series: series.collect() }
}
