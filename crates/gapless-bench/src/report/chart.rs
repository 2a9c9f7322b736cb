//! [`HtmlChart`]: SVG inside the page. Colours come from the page's style, dark and light; patterns tell lines apart
//! without colour.

use super::html::escape;
use gapless_measure::plot::Curve;
use std::fmt::Write as _;

/// Size, and the margins: left, top, right, bottom.
const SIZE: (f64, f64) = (720.0, 340.0);
const MARGIN: (f64, f64, f64, f64) = (66.0, 12.0, 28.0, 46.0);
/// Values that are drawn; beyond them no figure is one.
const VALUE_MAX: f64 = 1e15;
const LOGARITHM_MIN: f64 = 1e-9;
const STYLES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisScale {
    Linear,
    Logarithmic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CurveMark {
    Line,
    Dots,
    Published,
}

pub(super) struct HtmlChart {
    pub(super) title: String,
    pub(super) x_label: &'static str,
    pub(super) y_label: &'static str,
    pub(super) x: AxisScale,
    pub(super) y: AxisScale,
    /// Labels of the x axis, where they are not numbers.
    pub(super) x_ticks: Vec<(f64, String)>,
    pub(super) curves: Vec<(Curve, CurveMark)>,
}

struct ChartFrame {
    x: Axis,
    y: Axis,
}

struct Axis {
    scale: AxisScale,
    from: f64,
    to: f64,
    pixels: (f64, f64),
}

impl HtmlChart {
    /// Empty if all points share one x.
    pub(super) fn html(&self) -> String {
        let Some(frame) = self.frame() else { return String::new() };
        let title = escape(&self.title);
        let (width, height) = SIZE;
        let mut svg = format!(
            "<figure>\n<figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{title}\">\n"
        );
        self.draw_axes(&frame, &mut svg);
        for (number, (curve, mark)) in self.curves.iter().enumerate() {
            draw_curve(&frame, curve, *mark, number % STYLES, &mut svg);
        }
        svg += "</svg>\n<ul class=\"legend\">\n";
        for (number, (curve, mark)) in self.curves.iter().enumerate() {
            let style = number % STYLES;
            let swatch = match mark {
                CurveMark::Line => format!("<path class=\"line s{style}\" d=\"M1,6H27\"/>"),
                CurveMark::Dots => format!("<path class=\"dots s{style}\" d=\"M4,6h0M14,6h0M24,6h0\"/>"),
                CurveMark::Published => format!("<path class=\"mark s{style}\" d=\"{}\"/>", diamond(14.0, 6.0)),
            };
            let name = escape(&curve.name);
            let _ = writeln!(svg, "<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\">{swatch}</svg>{name}</li>");
        }
        svg + "</ul>\n</figure>\n"
    }

    fn frame(&self) -> Option<ChartFrame> {
        let points = self.curves.iter().flat_map(|(curve, _)| &curve.points);
        let points: Vec<(f64, f64)> = points.copied().filter(|(x, y)| self.x.has(*x) && self.y.has(*y)).collect();
        let of = |value: fn(&(f64, f64)) -> f64| {
            let values = points.iter().map(value);
            values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)))
        };
        let ((left, right), (low, high)) = (of(|point| point.0), of(|point| point.1));
        if left >= right {
            return None;
        }
        let (low, high) = match self.y {
            AxisScale::Logarithmic => {
                let (low, high) = (low.log10().floor(), high.log10().ceil());
                (10_f64.powf(low), 10_f64.powf(if high > low { high } else { low + 1.0 }))
            }
            AxisScale::Linear => (0.0, if high > 0.0 { high * 1.06 } else { 1.0 }),
        };
        let x = Axis { scale: self.x, from: left, to: right, pixels: (MARGIN.0, SIZE.0 - MARGIN.2) };
        Some(ChartFrame { x, y: Axis { scale: self.y, from: low, to: high, pixels: (SIZE.1 - MARGIN.3, MARGIN.1) } })
    }

    fn draw_axes(&self, frame: &ChartFrame, svg: &mut String) {
        let (left, right) = frame.x.pixels;
        let (bottom, top) = frame.y.pixels;
        for value in frame.y.ticks() {
            let (y, label) = (frame.y.place(value), number(value));
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left:.0},{y:.1}H{right:.0}\"/>");
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 7.0,
                y + 4.0
            );
        }
        let ticks = if self.x_ticks.is_empty() {
            frame.x.ticks().into_iter().map(|value| (value, number(value))).collect()
        } else {
            self.x_ticks.clone()
        };
        for (value, label) in ticks.iter().filter(|(value, _)| (frame.x.from..=frame.x.to).contains(value)) {
            let (x, label) = (frame.x.place(*value), escape(label));
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1},{top:.0}V{bottom:.0}\"/>");
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
                bottom + 17.0
            );
        }
        let (middle, below) = (f64::midpoint(left, right), SIZE.1 - 6.0);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{left:.0},{top:.0}V{bottom:.0}H{right:.0}\"/>");
        let _ = writeln!(
            svg,
            "<text class=\"label\" x=\"{middle:.0}\" y=\"{below:.0}\" text-anchor=\"middle\">{}</text>",
            escape(self.x_label)
        );
        let height = f64::midpoint(bottom, top);
        let _ = writeln!(
            svg,
            "<text class=\"label\" x=\"13\" y=\"{height:.0}\" text-anchor=\"middle\" transform=\"rotate(-90 13 {height:.0})\">{}</text>",
            escape(self.y_label)
        );
    }
}

fn draw_curve(frame: &ChartFrame, curve: &Curve, mark: CurveMark, style: usize, svg: &mut String) {
    let is_inside = |&&(x, y): &&(f64, f64)| frame.x.has(x) && frame.y.has(y);
    let places: Vec<(f64, f64)> =
        curve.points.iter().filter(is_inside).map(|&(x, y)| (frame.x.place(x), frame.y.place(y))).collect();
    let mut path = String::new();
    for (number, (x, y)) in places.iter().enumerate() {
        let _ = match mark {
            CurveMark::Line => write!(path, "{}{x:.1},{y:.1}", if number == 0 { 'M' } else { 'L' }),
            CurveMark::Dots => write!(path, "M{x:.1},{y:.1}h0"),
            CurveMark::Published => write!(path, "{}", diamond(*x, *y)),
        };
    }
    let class = match mark {
        CurveMark::Line => "line",
        CurveMark::Dots => "dots",
        CurveMark::Published => "mark",
    };
    let _ = writeln!(svg, "<path class=\"{class} s{style}\" d=\"{path}\"/>");
    if mark == CurveMark::Line && places.len() <= 16 {
        let dots = places.iter().fold(String::new(), |dots, (x, y)| dots + &format!("M{x:.1},{y:.1}h0"));
        let _ = writeln!(svg, "<path class=\"knots s{style}\" d=\"{dots}\"/>");
    }
}

fn diamond(x: f64, y: f64) -> String {
    format!("M{x:.1},{:.1}l5,5l-5,5l-5,-5z", y - 5.0)
}

impl AxisScale {
    fn has(self, value: f64) -> bool {
        value.abs() <= VALUE_MAX && (self == Self::Linear || value >= LOGARITHM_MIN)
    }
}

impl Axis {
    fn has(&self, value: f64) -> bool {
        self.scale.has(value) && value >= self.from && value <= self.to
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            AxisScale::Linear => (value - self.from) / (self.to - self.from),
            AxisScale::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            AxisScale::Linear => {
                let raw = (self.to - self.from) / 6.0;
                let power = 10_f64.powf(raw.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|each| each * power).into_iter().find(|step| *step >= raw);
                let step = step.unwrap_or(raw);
                let first = (self.from / step).ceil();
                (0..20).map(|count| (first + f64::from(count)) * step).take_while(|value| *value <= self.to).collect()
            }
            AxisScale::Logarithmic => {
                let (first, last) = (self.from.log10().ceil() as i32, self.to.log10().floor() as i32);
                let every = ((last - first) / 8).max(0) + 1;
                (first..=last).filter(|power| (power - first) % every == 0).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }
}

/// `0.1`, `40 k`, `3 M`.
fn number(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, " G"),
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    // Ticks are sums of steps; their last digits are noise.
    format!("{}{unit}", (value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> HtmlChart {
        let curve = Curve { name: "a <b>".to_owned(), points: points.to_vec() };
        HtmlChart {
            title: "calls & size".to_owned(),
            x_label: "bytes",
            y_label: "calls a second",
            x: AxisScale::Linear,
            y: AxisScale::Logarithmic,
            x_ticks: Vec::new(),
            curves: vec![(curve, CurveMark::Line)],
        }
    }

    #[test]
    fn points_are_drawn_and_names_escaped() {
        let html = chart(&[(1.0, 1e6), (4096.0, 1e3)]).html();
        assert!(html.contains("calls &amp; size") && html.contains("a &lt;b&gt;") && !html.contains("<b>"), "{html}");
        assert!(html.contains("M66.0,12.0L692.0,294.0"), "{html}");
        assert!(html.contains(">1 M<") && html.contains(">4 k<"), "{html}");
    }

    #[test]
    fn hostile_figures_are_left_out() {
        let sound = chart(&[(1.0, 10.0), (2.0, 100.0)]);
        for hostile in [1.5e308, f64::MAX, 1e-300, f64::MIN_POSITIVE, -1e308] {
            for scale in [AxisScale::Linear, AxisScale::Logarithmic] {
                let mut chart = chart(&[(1.0, 10.0), (2.0, 100.0), (1.5, hostile), (hostile, 50.0)]);
                (chart.x, chart.y) = (scale, AxisScale::Logarithmic);
                let html = chart.html();
                assert!(
                    html.len() < 2 * sound.html().len() && !html.contains("NaN") && !html.contains("inf"),
                    "{html}"
                );
            }
        }
    }

    #[test]
    fn curves_without_width_are_no_picture() {
        for points in [&[][..], &[(1.0, 5.0)], &[(1.0, 5.0), (1.0, 7.0)], &[(1.0, 0.0), (2.0, -1.0)]] {
            assert_eq!(chart(points).html(), "");
        }
        let odd = chart(&[(1.0, f64::INFINITY), (2.0, f64::NAN), (3.0, 4.0), (5.0, 4.0)]).html();
        assert!(!odd.contains("NaN") && !odd.contains("inf"), "{odd}");
    }
}
