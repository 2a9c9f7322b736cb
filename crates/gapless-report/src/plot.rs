//! Plots: charts beside and below each other, each a figure over time around an event, as SVG.
//!
//! Drawn in `svg`, or refused in `no_svg`, which stands in its place without the feature `plots`.

use std::ops::Range;
use std::path::Path;

use crate::{ReportError, Result};

#[cfg_attr(not(feature = "plots"), path = "plot/no_svg.rs")]
mod svg;

/// A sheet of charts with the same axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Stands above all of it.
    pub title: String,
    /// The quantity to the right, with its unit. The event is at 0, where a red line stands.
    pub x_label: String,
    /// The quantity upwards, with its unit; the axis is logarithmic.
    pub y_label: String,
    /// The range that fits, above 0. A point beyond stands at the edge.
    pub y_range: Range<f64>,
    /// Charts below each other, column by column.
    pub columns: Vec<Vec<Chart>>,
}

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Stands above it.
    pub caption: String,
    /// Points (x, y), each series in a colour of its own.
    pub series: Vec<Vec<(f64, f64)>>,
}

/// Checks, before a long run, that a plot can be drawn.
///
/// # Errors
/// When this build has no plots.
pub fn check() -> Result<()> {
    if cfg!(feature = "plots") { Ok(()) } else { Err(ReportError::Feature("plots")) }
}

/// Draws the plot into a file, which is replaced as a whole.
///
/// # Errors
/// When this build has no plots, when it cannot be drawn, or when the file cannot be written.
pub fn write(plot: &Plot, path: &Path) -> Result<()> {
    let text = svg::draw(plot)?;
    std::fs::write(path, text).map_err(|source| ReportError::io("write", path, source))
}

#[cfg(test)]
#[cfg(feature = "plots")]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_a_colour_and_what_does_not_fit_stands_at_the_edge() {
        let chart = |caption: &str, series| Chart { caption: caption.to_owned(), series };
        let plot = Plot {
            title: "Latency around events".to_owned(),
            x_label: "ms since the event".to_owned(),
            y_label: "latency, ms".to_owned(),
            y_range: 0.05..2_000.0,
            columns: vec![
                vec![
                    chart("killed", vec![vec![(-9.0, 1.0), (9.0, 2_000.0)], vec![(9.0, 1e9)]]),
                    chart("nothing", vec![]),
                ],
                vec![chart("moved", vec![vec![(0.0, 1.0)]])],
            ],
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plot.svg");
        check().unwrap();
        write(&plot, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for expected in ["Latency around events", "ms since the event", "latency, ms", "killed", "nothing", "moved"] {
            assert!(text.contains(expected), "{expected} is missing");
        }
        let circles: Vec<&str> = text.lines().filter(|line| line.starts_with("<circle")).collect();
        assert_eq!(circles.len(), 4);
        let attribute = |line: &str, name: &str| line.split_once(&format!("{name}=\"")).unwrap().1.to_owned();
        let of = |index: usize, name: &str| attribute(circles[index], name).split('"').next().unwrap().to_owned();
        assert_eq!((of(1, "cx"), of(1, "cy")), (of(2, "cx"), of(2, "cy")), "beyond the range is at its edge");
        assert_ne!(of(1, "fill"), of(2, "fill"));
        let missing = directory.path().join("no/plot.svg");
        assert!(write(&plot, &missing).unwrap_err().to_string().contains("no/plot.svg"));
    }
}
