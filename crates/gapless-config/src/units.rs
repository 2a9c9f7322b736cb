//! `"64 KiB"`, `"200 ms"`, or a plain number.

use gapless_agent::monotonic::saturating_ns;
use std::time::Duration;

type Unit = (&'static str, u64);

const SIZES: &[Unit] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const DURATIONS: &[Unit] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

pub const SIZE_EXPECTED: &str = "a number of bytes, or a text such as \"64 KiB\" (B, KiB, MiB, GiB, TiB)";
pub const DURATION_EXPECTED: &str = "a number of seconds, or a text such as \"200 ms\" (ns, us, ms, s, min, h, d)";

/// Bytes; `None` if not a size.
pub fn size(text: &str) -> Option<u64> {
    amount(text, SIZES, "B")
}

/// Whole nanoseconds; `None` if not a duration.
pub fn duration(text: &str) -> Option<Duration> {
    amount(text, DURATIONS, "s").map(Duration::from_nanos)
}

/// Largest unit without a fraction.
pub fn size_text(bytes: u64) -> String {
    text(bytes, SIZES)
}

/// Largest unit without a fraction.
pub fn duration_text(duration: Duration) -> String {
    text(saturating_ns(duration), DURATIONS)
}

fn text(amount: u64, units: &[Unit]) -> String {
    let fits = |unit: &&Unit| amount > 0 && amount.is_multiple_of(unit.1);
    let (name, size) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {name}", amount / size)
}

/// Whole or decimal, with an optional unit.
fn amount(text: &str, units: &[Unit], without: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let unit = if unit.is_empty() { without } else { unit };
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let parts = u128::from(whole.parse::<u64>().ok()?) * scale + u128::from(fraction.parse::<u64>().ok()?);
    let amount = parts * u128::from(*factor);
    // A fraction of the smallest unit is refused.
    amount.is_multiple_of(scale).then(|| u64::try_from(amount / scale).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_optional_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17 B", 17),
            ("64 KiB", 64 << 10),
            ("64KiB", 64 << 10),
            (" 1.5 GiB ", 3 << 29),
            ("0.5 KiB", 512),
            ("2 TiB", 2 << 40),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "KiB",
            "1 kb",
            "1 MB",
            "-1",
            "1e3",
            "1..2 KiB",
            ".5 KiB",
            "1. KiB",
            "0.3 B",
            "99999999999 TiB",
            "1 KiB x",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn durations_parse_with_optional_unit() {
        for (text, ns) in [
            ("3", 3_000_000_000),
            ("200 ms", 200_000_000),
            ("0.25 s", 250_000_000),
            ("24 h", 86_400_000_000_000),
            ("1d", 86_400_000_000_000),
            ("50 us", 50_000),
            ("50 µs", 50_000),
            ("7 ns", 7),
        ] {
            assert_eq!(duration(text), Some(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["soon", "1 hour", "1 m", "0.5 ns", "999999999999 d"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn formatted_in_the_largest_unit() {
        assert_eq!(
            (size_text(64 << 10), size_text(1_376), size_text(0)),
            ("64 KiB".into(), "1376 B".into(), "0 B".into())
        );
        assert_eq!(duration_text(Duration::from_secs(86_400)), "1 d");
        assert_eq!(duration_text(Duration::from_millis(1500)), "1500 ms");
    }
}
