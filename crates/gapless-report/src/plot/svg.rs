//! The drawing of a plot.

use plotters::prelude::*;

use super::{Chart, Plot};
use crate::{ReportError, Result};

/// Pixels of one chart.
const CHART: (u32, u32) = (620, 250);
/// Where the title stands.
const TITLE_HEIGHT: u32 = 46;

pub(super) fn draw(plot: &Plot) -> Result<String> {
    text(plot).map_err(|error| ReportError::Plot(error.to_string()))
}

fn text(plot: &Plot) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let rows = plot.columns.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let columns = plot.columns.len().max(1);
    let size = (CHART.0 * columns as u32, CHART.1 * rows as u32 + TITLE_HEIGHT);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let charts = area.titled(&plot.title, ("sans-serif", 20))?.split_evenly((rows, columns));
        for (column, below_each_other) in plot.columns.iter().enumerate() {
            for (row, chart) in below_each_other.iter().enumerate() {
                draw_chart(&charts[row * columns + column], plot, chart)?;
            }
        }
        area.present()?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_chart(area: &Area<'_>, plot: &Plot, chart: &Chart) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (low, high) = (plot.y_range.start, plot.y_range.end);
    let places = chart.series.iter().flatten().map(|&(x, _)| x);
    let (from, to) = places.fold((-1.0_f64, 1.0_f64), |(from, to), x| (from.min(x), to.max(x)));
    let mut drawn = ChartBuilder::on(area)
        .caption(&chart.caption, ("sans-serif", 13))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(52)
        .build_cartesian_2d(from..to, (low..high).log_scale())?;
    drawn
        .configure_mesh()
        .x_desc(&plot.x_label)
        .y_desc(&plot.y_label)
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 11))
        .draw()?;
    let event = [(0.0, low), (0.0, high)];
    drawn.draw_series(std::iter::once(PathElement::new(event, RED.stroke_width(1))))?;
    for (number, series) in chart.series.iter().enumerate() {
        let style = Palette99::pick(number + 1).filled();
        drawn.draw_series(series.iter().map(|&(x, y)| Circle::new((x, y.clamp(low, high)), 1, style)))?;
    }
    Ok(())
}
