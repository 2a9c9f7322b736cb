//! Histogram buckets of durations: eight for each power of two from 128 ns to 34 s, so a bucket is at most 12.5 % wide.

const FIRST_POWER: u32 = 7;
const END_POWER: u32 = 35;
const STEPS_POWER: u32 = 3;
const STEPS: u64 = 1 << STEPS_POWER;

pub const BUCKETS: usize = 1 + (END_POWER - FIRST_POWER) as usize * STEPS as usize;

#[inline]
pub fn bucket(time_ns: u64) -> usize {
    let power = (time_ns | 1).ilog2();
    if power < FIRST_POWER {
        return 0;
    }
    let step = (time_ns >> (power - STEPS_POWER)) & (STEPS - 1);
    let bucket = 1 + u64::from(power - FIRST_POWER) * STEPS + step;
    (bucket as usize).min(BUCKETS - 1)
}

const fn from_ns(bucket: usize) -> u64 {
    if bucket == 0 {
        return 0;
    }
    let (power, step) = ((bucket as u64 - 1) / STEPS, (bucket as u64 - 1) % STEPS);
    (STEPS + step) << (FIRST_POWER - STEPS_POWER) << power
}

pub const fn middle_ns(bucket: usize) -> u64 {
    (from_ns(bucket) + from_ns(bucket + 1)) / 2
}

pub fn label(prefix: &str, bucket: usize) -> String {
    format!("{prefix}{}", from_ns(bucket))
}

pub fn bucket_of(prefix: &str, label: &str) -> Option<usize> {
    label.strip_prefix(prefix)?.parse().ok().map(bucket)
}

/// Duration that `percent` of all do not exceed; 0 without any. `times` are ascending, each with its count.
pub fn quantile(times: &[(u64, u64)], percent: u64) -> u64 {
    let all: u128 = times.iter().map(|(_, count)| u128::from(*count)).sum();
    let wanted = (all * u128::from(percent)).div_ceil(100);
    let mut seen = 0;
    let found = times.iter().find(|(_, count)| {
        seen += u128::from(*count);
        seen > 0 && seen >= wanted
    });
    found.map_or(0, |(time_ns, _)| *time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::{Random, printed_seed};

    #[test]
    fn buckets_and_labels_are_consistent() {
        for each in 0..BUCKETS {
            assert_eq!((bucket(from_ns(each)), bucket_of("a.", &label("a.", each))), (each, Some(each)));
            assert!(each == 0 || bucket(from_ns(each) - 1) == each - 1, "{each}");
        }
        assert_eq!(
            (bucket(0), bucket(u64::MAX), bucket_of("a.", "begun"), bucket_of("a.", "a.")),
            (0, BUCKETS - 1, None, None)
        );
        let mut random = Random::new(printed_seed());
        for _ in 0..10_000 {
            let power = 8 + random.below(26);
            let time_ns = 128 + random.below(1 << power);
            let error = middle_ns(bucket(time_ns)).abs_diff(time_ns) as f64 / time_ns as f64;
            assert!(error < 0.07, "{time_ns}: {error}");
        }
    }

    #[test]
    fn quantiles_match_sorted_times() {
        assert_eq!((quantile(&[], 50), quantile(&[(100, 0)], 99)), (0, 0));
        assert_eq!(quantile(&[(100, 0), (200, 1)], 50), 200);
        let times = [(100, 50), (200, 48), (300, 1), (400, 1)];
        assert_eq!([50, 51, 98, 99, 100].map(|percent| quantile(&times, percent)), [100, 200, 200, 300, 400]);
    }
}
