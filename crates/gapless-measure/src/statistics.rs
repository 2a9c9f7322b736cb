//! Median, and an interval for the ratio of two builds from pairs of runs. A disturbance makes outliers, so the
//! estimate is Hodges and Lehmann's, the median of all pairwise averages, and the interval that of Wilcoxon's
//! signed-rank test. Assumes only that the logarithms of the ratios are symmetric. (Hollander and Wolfe, Nonparametric
//! Statistical Methods, section 3.3.)

pub fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, 0.0_f64), |(least, greatest), &value| (least.min(value), greatest.max(value)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    pub low: f64,
    pub ratio: f64,
    pub high: f64,
}

impl RatioInterval {
    /// Relative width: 0.03 is ±3 %.
    pub fn half_width(self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// `ratios` are positive. Misses the true ratio in at most `error` of all cases. `None` with too few: 6 are needed for
/// 0.05, 9 for 0.005.
pub fn interval(ratios: &[f64], error: f64) -> Option<RatioInterval> {
    let left_out = left_out(ratios.len(), error)?;
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mut averages: Vec<f64> = Vec::with_capacity(logarithms.len() * (logarithms.len() + 1) / 2);
    for (index, first) in logarithms.iter().enumerate() {
        averages.extend(logarithms[index..].iter().map(|second| f64::midpoint(*first, *second)));
    }
    averages.sort_by(f64::total_cmp);
    let count = averages.len();
    let middle = f64::midpoint(averages[(count - 1) / 2], averages[count / 2]);
    Some(RatioInterval {
        low: averages[left_out].exp(),
        ratio: middle.exp(),
        high: averages[count - 1 - left_out].exp(),
    })
}

/// `None` if a thousand are too few.
pub fn pairs_min(error: f64) -> Option<usize> {
    // With n pairs the widest interval there is misses in 2 of 2^n cases.
    (1..=1_000).find(|count| 2.0 * 0.5_f64.powi(*count) <= error).and_then(|count| usize::try_from(count).ok())
}

/// Sorted averages outside the interval, at each end.
fn left_out(count: usize, error: f64) -> Option<usize> {
    let sums = count * (count + 1) / 2;
    // For each sum, the number of the 2^count ways to give signs to the ranks 1..=count with that sum of positive
    // ranks.
    let mut ways = vec![0.0_f64; sums + 1];
    ways[0] = 1.0;
    for rank in 1..=count {
        for sum in (rank..=sums).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all = 2.0_f64.powi(i32::try_from(count).ok()?);
    let mut below = 0.0;
    let mut left_out = None;
    for (sum, ways) in ways.iter().enumerate() {
        below += ways / all;
        if 2.0 * below > error {
            break;
        }
        left_out = Some(sum);
    }
    // A sum of at most `sum` leaves that many averages and one more below.
    left_out
}

/// 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn too_few_pairs_have_no_interval() {
        for error in [0.05, 0.05 / 3.0, 0.005, 0.001] {
            let count = pairs_min(error).unwrap();
            assert!(left_out(count, error).is_some() && left_out(count - 1, error).is_none(), "{error}: {count}");
        }
    }

    #[test]
    fn the_limits_are_those_of_the_tables() {
        // Wilcoxon's table: the largest sum that is significant at 5 %, both sides.
        for (count, critical) in [(6, 0), (7, 2), (8, 3), (10, 8), (15, 25), (20, 52)] {
            assert_eq!(left_out(count, 0.05), Some(critical), "{count} pairs");
        }
        assert_eq!(left_out(5, 0.05), None);
        assert_eq!(left_out(0, 0.05), None);
    }

    #[test]
    fn equal_ratios_have_no_width() {
        let interval = interval(&[1.25; 8], 0.05).unwrap();
        assert!((interval.ratio - 1.25).abs() < 1e-12);
        assert!(interval.half_width() < 1e-12);
    }

    #[test]
    fn an_outlier_moves_little() {
        let mut ratios = vec![1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0];
        let calm = interval(&ratios, 0.05).unwrap();
        ratios[3] = 40.0;
        let disturbed = interval(&ratios, 0.05).unwrap();
        assert!((disturbed.ratio / calm.ratio - 1.0).abs() < 0.01, "{disturbed:?}");
        assert!(disturbed.low < 1.0 && disturbed.high > 1.0);
    }

    /// Of 2,000 comparisons of equal things, with errors of many sizes, about one in twenty finds a difference.
    #[test]
    fn interval_misses_at_stated_rate() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let mut missed = 0;
        for _ in 0..2_000 {
            let ratios: Vec<f64> = (0..12)
                .map(|_| {
                    // Cauchy: without a mean, like a machine that stalls now and then.
                    let heavy = (std::f64::consts::PI * (uniform() - 0.5)).tan();
                    (0.02 * heavy).exp()
                })
                .collect();
            let interval = interval(&ratios, 0.05).unwrap();
            missed += u32::from(interval.low > 1.0 || interval.high < 1.0);
        }
        assert!((50..=130).contains(&missed), "{missed} of 2000");
    }
}
