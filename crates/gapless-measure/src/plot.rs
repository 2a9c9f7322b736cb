//! SVG plots: charts over time around an event, and curves.

use std::ops::Range;
use std::path::Path;

use crate::{BenchError, Result};

mod svg;

/// Charts with the same axes.
#[derive(Debug)]
pub struct Plot {
    pub title: String,
    /// The event is at 0, where a red line stands.
    pub x_label: String,
    pub y_label: String,
    /// Range above 0; points beyond stand at the edge. The axis is logarithmic.
    pub y_range: Range<f64>,
    /// Column by column.
    pub columns: Vec<Vec<Chart>>,
}

#[derive(Debug)]
pub struct Chart {
    pub caption: String,
    /// One colour per series of (x, y).
    pub series: Vec<Vec<(f64, f64)>>,
}

/// Curves that share their axes; y is logarithmic and fits the points.
#[derive(Debug)]
pub struct Curves {
    pub title: String,
    pub subtitle: String,
    pub x_label: String,
    pub y_label: String,
    pub curves: Vec<Curve>,
}

#[derive(Debug)]
pub struct Curve {
    pub name: String,
    /// Points from left to right; one that is not above 0 is left out.
    pub points: Vec<(f64, f64)>,
}

/// Adds the curve with its first point.
pub fn add_point(curves: &mut Vec<Curve>, name: String, point: (f64, f64)) {
    match curves.iter_mut().find(|curve| curve.name == name) {
        Some(curve) => curve.points.push(point),
        None => curves.push(Curve { name, points: vec![point] }),
    }
}

/// Replaces the file as a whole.
///
/// # Errors
/// When it cannot be drawn, or the file cannot be written.
pub fn write(plot: &Plot, path: &Path) -> Result<()> {
    let text = svg::draw(plot)?;
    std::fs::write(path, text).map_err(|source| BenchError::io("write", path, source))
}

/// Replaces the file as a whole.
///
/// # Errors
/// As [`write()`].
pub fn write_curves(curves: &Curves, path: &Path) -> Result<()> {
    let text = svg::draw_curves(curves)?;
    std::fs::write(path, text).map_err(|source| BenchError::io("write", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_names_and_log_axis() {
        let curve = |name: &str, points: &[(f64, f64)]| Curve { name: name.to_owned(), points: points.to_vec() };
        let curves = Curves {
            title: "Calls".to_owned(),
            subtitle: "a machine".to_owned(),
            x_label: "bytes".to_owned(),
            y_label: "calls a second".to_owned(),
            curves: vec![
                curve("fast", &[(1.0, 1e6), (4096.0, 1e5)]),
                curve("slow", &[(1.0, 1e3), (64.0, 0.0), (4096.0, 1e2)]),
                curve("one point", &[(1.0, 1e4)]),
                curve("nothing", &[]),
            ],
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("curves.svg");
        write_curves(&curves, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for expected in ["Calls", "a machine", "bytes", "calls a second", "fast", "slow", "one point", "nothing"] {
            assert!(text.contains(expected), "{expected} is missing");
        }
        let height_of = |circle: &str| -> f64 {
            let text = circle.split_once("cy=\"").unwrap().1;
            text.split('"').next().unwrap().parse().unwrap()
        };
        let heights: Vec<f64> = text.lines().filter(|line| line.starts_with("<circle")).map(height_of).collect();
        assert_eq!(heights.len(), 5);
        // Equal distances per power of ten.
        let (first, second) = (heights[1] - heights[0], heights[3] - heights[2]);
        assert!(first > 20.0 && (first - second).abs() <= 2.0, "{heights:?}");
        let empty = Curves { curves: Vec::new(), ..curves };
        write_curves(&empty, &path).unwrap();
    }

    #[test]
    fn series_have_colours_and_are_clamped() {
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
