//! The two pictures: calls a second, and messages a second one way, against size, all curves in each.

use super::rows::curve;
use crate::Result;
use gapless_measure::plot::{Curve, add_point};
use gapless_measure::reporting::config_number;
use gapless_measure::{FloorRow, Report, Row, reporting};
use std::path::{Path, PathBuf};

/// Calls go to `path`, one-way messages to its neighbour.
pub(super) fn write(report: &Report, path: &Path) -> Result<()> {
    let is_call = |row: &Row| config_number(row, "in_flight").is_some();
    let a_second = |ns: u64| 1e9 / ns.max(1) as f64;
    for (path, what, floor, is_of) in [
        (path.to_owned(), "Calls", "shm_ping_pong", &is_call as &dyn Fn(&Row) -> bool),
        (one_way(path), "Messages one way", "shm_stream", &|row: &Row| !is_call(row)),
    ] {
        let floor_rate = |row: &FloorRow| row.rate_per_s.or(row.p50_ns.map(a_second));
        let floors = report.floor.iter().filter(|row| row.name == floor);
        // The size of its row, without the header.
        let points = floors.filter_map(|row| Some((row.payload_bytes.saturating_sub(64) as f64, floor_rate(row)?)));
        let mut curves = vec![Curve { name: format!("floor: {floor}"), points: points.collect() }];
        for row in report.rows.iter().filter(|row| is_of(row) && config_number(row, "connected") == Some(1)) {
            let (Some(name), Some(size), Some(rate)) = (curve(row), row.config.payload_bytes, row.throughput_per_s)
            else {
                continue;
            };
            let point = (size as f64, rate);
            add_point(&mut curves, name, point);
        }
        let title = format!("{what} a second against size: each byte incremented");
        let labels = (&*title, "payload, bytes", &*format!("{} a second", what.to_lowercase()));
        reporting::draw(report, labels, curves, &path)?;
    }
    Ok(())
}

/// `curve.svg` → `curve-one-way.svg`.
fn one_way(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or_else(|| "svg".into(), |extension| extension.to_string_lossy());
    path.with_file_name(format!("{stem}-one-way.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_picture_is_next_to_the_first() {
        assert_eq!(one_way(Path::new("a/curve.svg")), Path::new("a/curve-one-way.svg"));
        assert_eq!(one_way(Path::new("curve")), Path::new("curve-one-way.svg"));
    }

    /// With `GAPLESS_DRAW=1` in the environment they are written instead.
    #[test]
    fn committed_pictures_match_their_data() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/gapless-bench");
        let committed = workspace.join("benchmarks/2026-11-26/rpc-curve.svg");
        let run = std::fs::read_to_string(committed.with_extension("json")).expect("the run");
        let report = Report::from_json(&run).expect("a report");
        let folder = tempfile::tempdir().expect("a folder");
        let drawn = folder.path().join("rpc-curve.svg");
        write(&report, &drawn).expect("two pictures");
        for (drawn, committed) in [(drawn.clone(), committed.clone()), (one_way(&drawn), one_way(&committed))] {
            let drawn = std::fs::read(drawn).expect("a picture");
            if std::env::var_os("GAPLESS_DRAW").is_some() {
                std::fs::write(&committed, &drawn).expect("a place for the picture");
            }
            let name = committed.display();
            assert!(
                drawn == std::fs::read(&committed).unwrap_or_default(),
                "{name} is not what is drawn from its run; GAPLESS_DRAW=1 rewrites it"
            );
        }
    }
}
