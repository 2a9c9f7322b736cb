//! Numbers as text.

/// 1234567 → `1,234,567`.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Thousands separated; small ones keep a decimal.
#[must_use]
pub fn rate(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

/// Three significant digits and a suitable unit.
#[must_use]
pub fn time(ns: f64) -> String {
    // Rounded first: 999.7 ns are 1.00 µs.
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = match value {
        _ if unit == "ns" => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_keep_three_digits() {
        let times = [999.4, 999.7, 9_996.0, 999_960.0, 12_345_678.0].map(time);
        assert_eq!(times, ["999 ns", "1.00 µs", "10.0 µs", "1.00 ms", "12.3 ms"]);
    }
}
