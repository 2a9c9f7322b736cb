//! The drawing of a plot.

use plotters::prelude::*;

use super::{Chart, Curves, Plot};
use crate::table::grouped;
use crate::{BenchError, Result};

const CHART: (u32, u32) = (620, 250);
const TITLE_HEIGHT: u32 = 46;

const CURVES: (u32, u32) = (1180, 640);
const LEGEND_WIDTH: i32 = 330;
const LEGEND_LINE: i32 = 22;

pub(super) fn draw(plot: &Plot) -> Result<String> {
    text(plot).map_err(|error| BenchError::Plot(error.to_string()))
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

pub(super) fn draw_curves(curves: &Curves) -> Result<String> {
    text_of_curves(curves).map_err(|error| BenchError::Plot(error.to_string()))
}

fn text_of_curves(curves: &Curves) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let all = || curves.curves.iter().flat_map(|curve| &curve.points).filter(|(_, y)| *y > 0.0);
    let (low, high) = all().fold((f64::MAX, 0.0_f64), |(low, high), &(_, y)| (low.min(y), high.max(y)));
    let (low, high) = if high > 0.0 { (low.log10().floor(), high.log10().ceil()) } else { (0.0, 1.0) };
    let (low, high) = (10_f64.powf(low), 10_f64.powf(if high > low { high } else { high + 1.0 }));
    let right = all().fold(1.0_f64, |right, &(x, _)| right.max(x));
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, CURVES).into_drawing_area();
        area.fill(&WHITE)?;
        let area = area.titled(&curves.title, ("sans-serif", 20))?.titled(&curves.subtitle, ("sans-serif", 12))?;
        let (chart, legend) = area.split_horizontally(CURVES.0 as i32 - LEGEND_WIDTH);
        let mut drawn = ChartBuilder::on(&chart)
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(76)
            .build_cartesian_2d(0.0..right, (low..high).log_scale())?;
        drawn
            .configure_mesh()
            .x_desc(&curves.x_label)
            .y_desc(&curves.y_label)
            .x_label_formatter(&|value| grouped(value.round() as u64))
            .y_label_formatter(&|value| grouped(value.round() as u64))
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 12))
            .draw()?;
        for (number, curve) in curves.curves.iter().enumerate() {
            let colour = Palette99::pick(number);
            let points: Vec<_> = curve.points.iter().copied().filter(|(_, y)| *y > 0.0).collect();
            drawn.draw_series(points.iter().map(|&point| Circle::new(point, 2, colour.filled())))?;
            drawn.draw_series(std::iter::once(PathElement::new(points, colour.stroke_width(2))))?;
            let y = 20 + LEGEND_LINE * number as i32;
            legend.draw(&PathElement::new([(4, y), (28, y)], colour.stroke_width(3)))?;
            legend.draw(&Text::new(curve.name.clone(), (34, y - 6), ("sans-serif", 12)))?;
        }
        area.present()?;
    }
    Ok(text)
}
