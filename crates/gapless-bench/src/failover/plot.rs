//! Latency over time around each event, for each cluster; every occurrence has a colour of its own.

use super::ClusterResults;
use super::figures::{EventFigures, EventOccurrence};
use crate::Result;
use gapless_measure::plot::{self, Chart, Plot};
use std::path::Path;

const LATENCY_MS: std::ops::Range<f64> = 0.05..2_000.0;

pub(super) fn write(scenarios: &[ClusterResults], title: &str, path: &Path) -> Result<()> {
    let column = |scenario: &ClusterResults| scenario.figures.iter().map(|figures| chart(scenario, figures)).collect();
    let plot = Plot {
        title: title.to_owned(),
        x_label: "ms since the event".to_owned(),
        y_label: "latency, ms".to_owned(),
        y_range: LATENCY_MS,
        columns: scenarios.iter().map(column).collect(),
    };
    plot::write(&plot, path)
}

fn chart(scenario: &ClusterResults, figures: &EventFigures) -> Chart {
    let first = figures.first_new_reply_max_ns().map_or_else(|| "never".to_owned(), |ns| format!("{:.1} ms", ms(ns)));
    let silence = ms(figures.longest_silence_ns());
    let caption = format!(
        "{}, {}: first new reply {first}, silence {silence:.1} ms at worst",
        scenario.membership.name(),
        figures.what.name(),
    );
    Chart { caption, series: figures.occurrences.iter().map(series).collect() }
}

fn series(occurrence: &EventOccurrence) -> Vec<(f64, f64)> {
    occurrence.points.iter().map(|point| (point.at_ms, ms(point.latency_max_ns))).collect()
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
