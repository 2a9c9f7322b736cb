//! One row of several turns: a disturbance meets some turns, and the median least.

use crate::reporting::BenchRun;
use crate::{FloorRow, Result, Row};
use serde_json::json;

const TURNS: &str = "turns";

#[derive(Debug, Default)]
pub struct MeasuredTurn {
    /// Rows, in the same order in each turn.
    pub rows: Vec<Row>,
    /// Floors, in the same order in each turn.
    pub floors: Vec<FloorRow>,
}

/// Adds the median rows and floors to the report, also after an error.
///
/// # Errors
/// The error of a turn.
pub fn measure(
    turns: usize,
    run: &mut BenchRun<'_>,
    mut turn: impl FnMut(&mut BenchRun<'_>, &mut MeasuredTurn) -> Result<()>,
) -> Result<()> {
    let (mut rows, mut floors) = (Vec::new(), Vec::new());
    let measured = (0..turns).try_for_each(|_| {
        let mut found = MeasuredTurn::default();
        let measured = turn(run, &mut found);
        // An interrupted turn counts only if none is whole.
        if measured.is_ok() || rows.is_empty() {
            rows.push(found.rows);
            floors.push(found.floors);
        }
        measured
    });
    run.report.rows.extend(middle_rows(rows));
    run.report.floor.extend(middle_floors(floors));
    measured
}

/// Takes each row from its median turn by rate, with the median ratio and the figures of all turns. One turn stays as
/// it is.
pub fn middle_rows(turns: Vec<Vec<Row>>) -> Vec<Row> {
    if turns.len() == 1 {
        return turns.into_iter().flatten().collect();
    }
    transposed(turns).into_iter().map(middle_row).collect()
}

fn middle_row(turns: Vec<Row>) -> Row {
    let per_s: Vec<f64> = turns.iter().filter_map(|row| row.throughput_per_s).collect();
    let p50_ns: Vec<u64> = turns.iter().filter_map(|row| row.latency_ns.map(|latency| latency.p50)).collect();
    let mut ratios: Vec<f64> = turns.iter().filter_map(|row| row.floor_ratio).collect();
    let all = json!({ "throughput_per_s": per_s, "p50_ns": p50_ns, "floor_ratio": ratios });
    let is_verified = turns.iter().all(|row| row.verified == Some(true));
    let mut row = middle(turns, |row| row.throughput_per_s.unwrap_or(0.0));
    ratios.sort_by(f64::total_cmp);
    row.floor_ratio = ratios.get(ratios.len() / 2).copied();
    // A wrong answer in any turn must show.
    row.verified = row.verified.map(|_| is_verified);
    row.extra.insert(TURNS.to_owned(), all);
    row
}

pub fn middle_floors(turns: Vec<Vec<FloorRow>>) -> Vec<FloorRow> {
    let figure = |row: &FloorRow| row.p50_ns.map_or(row.rate_per_s.unwrap_or(0.0), |p50_ns| p50_ns as f64);
    transposed(turns).into_iter().map(|turns| middle(turns, figure)).collect()
}

/// A floor missing in a turn ends the lists.
fn transposed<T>(turns: Vec<Vec<T>>) -> Vec<Vec<T>> {
    let mut turns: Vec<_> = turns.into_iter().map(Vec::into_iter).collect();
    std::iter::from_fn(|| turns.iter_mut().map(Iterator::next).collect()).collect()
}

fn middle<T>(mut turns: Vec<T>, figure: impl Fn(&T) -> f64) -> T {
    turns.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let middle = turns.len() / 2;
    turns.swap_remove(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BenchError;
    use crate::progress::BenchProgress;
    use std::sync::atomic::AtomicBool;

    fn row(per_s: f64, floor_ratio: Option<f64>, verified: bool) -> Row {
        Row { throughput_per_s: Some(per_s), floor_ratio, verified: Some(verified), ..Row::default() }
    }

    #[test]
    fn median_turn_keeps_wrong_answers() {
        let turns = [(3.0, 9.0), (1.0, 7.0), (2.0, 8.5)]
            .map(|(per_s, ratio)| vec![row(per_s, Some(ratio), true), row(per_s * 10.0, None, per_s < 2.5)]);
        let rows = middle_rows(turns.into());
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].throughput_per_s, rows[0].floor_ratio, rows[0].verified),
            (Some(2.0), Some(8.5), Some(true))
        );
        assert_eq!(rows[0].extra[TURNS]["throughput_per_s"], json!([3.0, 1.0, 2.0]), "in their order");
        assert_eq!((rows[1].throughput_per_s, rows[1].floor_ratio, rows[1].verified), (Some(20.0), None, Some(false)));
    }

    #[test]
    fn interrupted_turn_counts_only_alone() {
        let (interrupted, progress) = (AtomicBool::new(false), BenchProgress::new(1, "", true));
        let rows_after = |whole: usize| {
            let mut run = BenchRun::part("turns", &progress, &interrupted);
            let mut begun = 0;
            let measured = measure(3, &mut run, |_, turn| {
                begun += 1;
                turn.rows.push(row(begun as f64, None, true));
                if begun > whole {
                    return Err(BenchError::measurement("turns", "interrupted"));
                }
                turn.rows.push(row(begun as f64, None, true));
                Ok(())
            });
            assert_eq!(measured.is_ok(), whole == 3);
            run.report.rows.len()
        };
        assert_eq!([0, 1, 3].map(rows_after), [1, 2, 2]);
    }

    #[test]
    fn one_turn_stays_as_it_is() {
        let rows = vec![row(3.0, Some(9.0), true)];
        assert_eq!(middle_rows(vec![rows.clone()]), rows);
    }

    #[test]
    fn floors_are_those_in_the_middle() {
        let of = |p50_ns, rate_per_s| FloorRow { p50_ns, rate_per_s, ..FloorRow::default() };
        let turns =
            [(5, 1.0), (9, 3.0), (7, 2.0)].map(|(p50_ns, rate)| vec![of(Some(p50_ns), None), of(None, Some(rate))]);
        assert_eq!(middle_floors(turns.into()), [of(Some(7), None), of(None, Some(2.0))]);
    }
}
