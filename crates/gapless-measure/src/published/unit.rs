//! `FigureUnit`: the unit of a figure, and figures as text.

use serde::{Deserialize, Serialize};

use crate::numbers::{grouped, rate, time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Greater is better.
    #[serde(rename = "per_s")]
    PerSecond,
    /// Smaller is better.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// All processes, percent of one core; smaller is better.
    CpuPercent,
    /// A rate by RabbitMQ's; greater is better.
    TimesRabbitMq,
    /// A rate of direct by indirect access; greater is better.
    TimesIndirect,
    /// A time of direct access, percent of indirect; smaller is better.
    PercentOfIndirect,
}

impl FigureUnit {
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::TimesRabbitMq | Self::TimesIndirect)
    }

    /// Divides one of our rows by another.
    #[must_use]
    pub fn is_of_two_rows(self) -> bool {
        matches!(self, Self::TimesRabbitMq | Self::TimesIndirect | Self::PercentOfIndirect)
    }

    /// Ratio above 1 where ours is better.
    #[must_use]
    pub fn ratio(self, ours: f64, theirs: f64) -> f64 {
        if self.more_is_better() { ours / theirs } else { theirs / ours }
    }

    #[must_use]
    pub fn text(self, figure: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", rate(figure)),
            Self::Nanoseconds => time(figure),
            Self::CpuPercent => format!("{} %", grouped(figure.round() as u64)),
            Self::PercentOfIndirect => format!("{figure:.0} %"),
            Self::TimesRabbitMq | Self::TimesIndirect => format!("{figure:.1} ×"),
        }
    }

    #[must_use]
    pub fn range_text(self, least: f64, greatest: f64) -> String {
        if least == greatest {
            return self.text(least);
        }
        let (least, greatest) = (self.text(least), self.text(greatest));
        // One unit for both, where it is the same.
        let of_unit =
            |text: &str| text.find(|character: char| !character.is_ascii_digit() && !".,".contains(character));
        match (of_unit(&least), of_unit(&greatest)) {
            (Some(at), Some(other)) if least[at..] == greatest[other..] => format!("{} – {greatest}", &least[..at]),
            _ => format!("{least} – {greatest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FigureUnit;

    #[test]
    fn figures_have_their_unit() {
        assert_eq!(FigureUnit::PerSecond.range_text(951.0, 1_316.0), "951 – 1,316/s");
        assert_eq!(FigureUnit::Nanoseconds.range_text(240.0, 1_280.0), "240 ns – 1.28 µs");
        assert_eq!(
            [FigureUnit::TimesRabbitMq.text(2.04), FigureUnit::CpuPercent.range_text(128.0, 128.0)],
            ["2.0 ×", "128 %"]
        );
    }
}
