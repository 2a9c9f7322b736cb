//! The plot: for each event and each cluster, latency over time around it, every happening in a colour of its own.

use super::Scenario;
use super::figures::Figures;
use crate::{BenchError, Result};
use plotters::prelude::*;
use std::path::Path;

/// Pixels of one chart.
const CHART: (u32, u32) = (620, 250);
/// Where the title stands.
const TITLE_HEIGHT: u32 = 46;
/// Latencies that fit, ms.
const LATENCY_MS: std::ops::Range<f64> = 0.05..2_000.0;

/// Writes the plot to `path`.
pub(super) fn write(scenarios: &[Scenario], title: &str, path: &Path) -> Result<()> {
    let text = draw(scenarios, title).map_err(|error| super::failed(format!("the plot cannot be drawn: {error}")))?;
    std::fs::write(path, text).map_err(|source| BenchError::io("write", path, source))
}

fn draw(scenarios: &[Scenario], title: &str) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let rows = scenarios.iter().map(|scenario| scenario.figures.len()).max().unwrap_or(0).max(1);
    let columns = scenarios.len().max(1);
    let size = (CHART.0 * columns as u32, CHART.1 * rows as u32 + TITLE_HEIGHT);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let charts = area.titled(title, ("sans-serif", 20))?.split_evenly((rows, columns));
        for (column, scenario) in scenarios.iter().enumerate() {
            for (row, figures) in scenario.figures.iter().enumerate() {
                chart(&charts[row * columns + column], scenario, figures)?;
            }
        }
        area.present()?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn chart(
    area: &Area<'_>,
    scenario: &Scenario,
    figures: &Figures,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let times = figures.happenings.iter().flat_map(|each| &each.points).map(|point| point.at_ms);
    let (from, to) = times.fold((-1.0_f64, 1.0_f64), |(from, to), at| (from.min(at), to.max(at)));
    let first = figures.first_new_reply_max_ns().map_or_else(|| "never".to_owned(), |ns| format!("{:.1} ms", ms(ns)));
    let silence = ms(figures.longest_silence_ns());
    let caption = format!(
        "{}, {}: first new reply {first}, silence {silence:.1} ms at worst",
        scenario.membership.name(),
        figures.what.name(),
    );
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 13))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(52)
        .build_cartesian_2d(from..to, LATENCY_MS.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("ms since the event")
        .y_desc("latency, ms")
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 11))
        .draw()?;
    let event = [(0.0, LATENCY_MS.start), (0.0, LATENCY_MS.end)];
    chart.draw_series(std::iter::once(PathElement::new(event, RED.stroke_width(1))))?;
    for (number, happening) in figures.happenings.iter().enumerate() {
        let style = Palette99::pick(number + 1).filled();
        let points = happening.points.iter().map(|point| {
            let latency_ms = ms(point.latency_max_ns).clamp(LATENCY_MS.start, LATENCY_MS.end);
            Circle::new((point.at_ms, latency_ms), 1, style)
        });
        chart.draw_series(points)?;
    }
    Ok(())
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
