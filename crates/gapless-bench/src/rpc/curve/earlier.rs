//! The results of an earlier run next to these: each figure by the same figure then.

use super::refused;
use super::rows::curve;
use crate::{BenchError, Result};
use gapless_agent::regular_file;
use gapless_measure::{Report, Row};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const RATIO: &str = "earlier_ratio";

pub(super) fn read(path: &Path) -> Result<Report> {
    let text = regular_file::open(path).and_then(std::io::read_to_string);
    let text = text.map_err(|source| BenchError::io("read", path, source))?;
    let report = Report::from_json(&text)?;
    if report.benchmark != "rpc curve" {
        let found = &report.benchmark;
        return Err(refused(format!(
            "--compare {}: expected results of `rpc curve`, found those of `{found}`",
            path.display()
        )));
    }
    Ok(report)
}

/// Adds ratios to the rows that both runs have, and a note for each curve: the median over all sizes.
pub(super) fn compare(report: &mut Report, earlier: &Report) {
    let key = |row: &Row| Some((curve(row)?, row.config.payload_bytes?));
    let then: BTreeMap<_, f64> =
        earlier.rows.iter().filter_map(|row| Some((key(row)?, row.throughput_per_s?))).collect();
    let mut curves: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in &mut report.rows {
        let (Some(key), Some(now)) = (key(row), row.throughput_per_s) else { continue };
        let Some(&before) = then.get(&key).filter(|&&before| before > 0.0) else { continue };
        row.extra.insert(RATIO.to_owned(), json!((now / before * 1000.0).round() / 1000.0));
        curves.entry(key.0).or_default().push(now / before);
    }
    if earlier.environment.cpu != report.environment.cpu || earlier.environment.kernel != report.environment.kernel {
        let note = format!("the earlier run was made elsewhere: {}", earlier.environment.summary());
        report.notes.push(note);
    }
    if curves.is_empty() {
        report.notes.push("the earlier run has no figure that this one has".to_owned());
    }
    for (curve, ratios) in curves {
        let median = crate::statistics::median(&ratios);
        let (low, high) = crate::statistics::range(&ratios);
        let note = format!("× earlier: {curve}: {median:.2} (median of {}, {low:.2} to {high:.2})", ratios.len());
        report.notes.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(system: &str, size: u64, rate: f64) -> Row {
        let mut row = Row { throughput_per_s: Some(rate), ..Row::default() };
        row.config.payload_bytes = Some(size);
        row.config.count = Some(rate as u64);
        row.config.extra.insert("system".to_owned(), system.into());
        row
    }

    #[test]
    fn only_equal_figures_are_compared() {
        let rows = |all: &[(&str, u64, f64)]| all.iter().map(|&(name, size, rate)| row(name, size, rate)).collect();
        let earlier = Report { rows: rows(&[("a", 1, 10.0), ("a", 32, 20.0), ("b", 1, 5.0)]), ..Report::default() };
        let now = rows(&[("a", 1, 20.0), ("a", 32, 20.0), ("a", 64, 1.0), ("c", 1, 1.0)]);
        let mut report = Report { rows: now, ..Report::default() };
        compare(&mut report, &earlier);
        let ratios: Vec<_> =
            report.rows.iter().map(|row| row.extra.get(RATIO).and_then(|ratio| ratio.as_f64())).collect();
        assert_eq!(ratios, [Some(2.0), Some(1.0), None, None]);
        assert_eq!(report.notes, ["× earlier: a, one way: 1.50 (median of 2, 1.00 to 2.00)"]);
        let mut other = Report { rows: rows(&[("d", 1, 1.0)]), ..Report::default() };
        compare(&mut other, &earlier);
        assert!(other.notes[0].contains("no figure"));
    }

    #[test]
    fn other_benchmarks_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), Report::new("time").to_json().unwrap()).unwrap();
        let error = read(file.path()).unwrap_err();
        assert!(error.to_string().contains("`time`") && error.is_about_options(), "{error}");
        assert!(read(Path::new("missing.json")).unwrap_err().to_string().contains("missing.json"));
    }
}
