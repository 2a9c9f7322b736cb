//! `time`: durations for people.

/// Three digits and the unit; a missing measurement is 0.
pub(crate) fn time(time_ns: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    if time_ns == 0 {
        return "-".to_owned();
    }
    // A value that would round to 1000 becomes 1.00 of the next unit.
    let time_ns = time_ns as f64;
    let (unit, in_ns) = UNITS.into_iter().find(|(_, in_ns)| time_ns < 999.5 * in_ns).unwrap_or(UNITS[3]);
    let value = time_ns / in_ns;
    match value {
        _ if unit == "ns" => format!("{value:.0} {unit}"),
        ..9.995 => format!("{value:.2} {unit}"),
        ..99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn time_has_three_digits_and_a_unit() {
        for (time_ns, expected) in [
            (0, "-"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (4_567, "4.57 µs"),
            (9_994, "9.99 µs"),
            (9_999, "10.0 µs"),
            (45_678, "45.7 µs"),
            (456_789, "457 µs"),
            (999_600, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (999_999_999, "1.00 s"),
            (86_400_000_000_000, "86400 s"),
        ] {
            assert_eq!(time(time_ns), expected, "{time_ns} ns");
        }
    }
}
