//! Rows of the report, with their targets, made of the measurements.

use super::failed;
use super::process_costs::ResidentMemory;
use super::supervisor_under_test::{ReplacementTimes, TakeoverTimes};
use crate::Result;
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::reporting::put;
use gapless_measure::{FloorRow, Row, RowConfig};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const IDLE_SHARE: f64 = 0.002;
const IDLE_BYTES: u64 = 20_000_000;
const UP: Duration = Duration::from_secs(2);
const BACK: Duration = Duration::from_millis(100);
const IN_CONTROL: Duration = Duration::from_millis(300);
/// Limit from a death to the fork of the replacement.
const REPLACED: Duration = Duration::from_millis(5);

pub(crate) fn spawn_floor(count: usize) -> Result<FloorRow> {
    let mut histogram = LatencyHistogram::new();
    for _ in 0..count {
        let begun = Instant::now();
        let child = Command::new("true").stdin(Stdio::null()).status();
        child.map_err(|source| failed(format!("starting `true`: {source}")))?;
        histogram.record(begun.elapsed().as_nanos() as u64);
    }
    histogram.floor_row("spawn_and_wait", 0).ok_or_else(|| failed("nothing was started"))
}

pub(crate) const KILL_NOTICED: &str = "kill_noticed";

/// Time from the kill of a trivial program to the end of its socket at the other side: no peer notices a death sooner.
pub(crate) fn noticed_floor(count: usize) -> Result<FloorRow> {
    let cannot = |source: io::Error| failed(format!("killing `sleep`: {source}"));
    let mut histogram = LatencyHistogram::new();
    for _ in 0..count {
        let (mut near, far) = UnixStream::pair().map_err(cannot)?;
        let child = Command::new("sleep").arg("60").stdin(OwnedFd::from(far)).spawn();
        let mut child = child.map_err(cannot)?;
        let begun = Instant::now();
        child.kill().and_then(|()| near.read(&mut [0])).map_err(cannot)?;
        histogram.record(begun.elapsed().as_nanos() as u64);
        child.wait().map_err(cannot)?;
    }
    histogram.floor_row(KILL_NOTICED, 0).ok_or_else(|| failed("nothing was killed"))
}

pub(super) fn idle(
    name: &str,
    instances: usize,
    elapsed: Duration,
    (before, after): ([Option<u64>; 2], [Option<u64>; 2]),
    memory: [ResidentMemory; 2],
) -> Result<Row> {
    let used = |index: usize| Some(after[index]?.saturating_sub(before[index]?));
    let (Some(guardian), Some(supervisor)) = (used(0), used(1)) else {
        return Err(failed(
            "guardian or supervisor ended while nothing happened, or the kernel counts no processor time",
        ));
    };
    let share = (guardian + supervisor) as f64 / elapsed.as_nanos() as f64;
    let resident: u64 = memory.iter().map(|memory| memory.resident_bytes).sum();
    let mut row = row(name, instances);
    row.elapsed_ns = Some(elapsed.as_nanos() as u64);
    put(&mut row, "cpu_share", share);
    put(&mut row, "cpu_ns_guardian", guardian);
    put(&mut row, "cpu_ns_supervisor", supervisor);
    put(&mut row, "resident_bytes", resident);
    put(&mut row, "proportional_bytes", memory.iter().map(|memory| memory.proportional_bytes).sum::<u64>());
    put(&mut row, "target_cpu_share", IDLE_SHARE);
    put(&mut row, "target_resident_bytes", IDLE_BYTES);
    put(&mut row, "target_met", share <= IDLE_SHARE && resident <= IDLE_BYTES);
    Ok(row)
}

pub(super) fn up(instances: usize, took: Duration) -> Row {
    of_times("up", instances, [took], Some(UP))
}

pub(super) fn down(instances: usize, took: Duration) -> Row {
    of_times("down", instances, [took], None)
}

pub(super) fn replacements(instances: usize, replaced: &[ReplacementTimes]) -> [Row; 2] {
    let started = replaced.iter().map(|replaced| replaced.started);
    [
        of_times("a killed instance's replacement is forked", instances, started, Some(REPLACED)),
        of_times("it runs its program", instances, replaced.iter().map(|replaced| replaced.ready), None),
    ]
}

pub(super) fn supervisors(instances: usize, back: &[TakeoverTimes]) -> [Row; 2] {
    [
        of_times("a killed supervisor is back", instances, back.iter().map(|back| back.listening), Some(BACK)),
        of_times("it is in control", instances, back.iter().map(|back| back.in_control), Some(IN_CONTROL)),
    ]
}

pub(super) fn guardians(instances: usize, back: &[Duration]) -> Row {
    of_times("a killed guardian is back", instances, back.iter().copied(), Some(IN_CONTROL))
}

/// The target is of the median, because the tail is the machine's.
fn of_times(name: &str, instances: usize, times: impl IntoIterator<Item = Duration>, target: Option<Duration>) -> Row {
    let mut histogram = LatencyHistogram::new();
    times.into_iter().for_each(|time| histogram.record(time.as_nanos() as u64));
    let mut row = Row { latency_ns: histogram.latency_ns(), ..row(name, instances) };
    if let Some(target) = target {
        let target_ns = target.as_nanos() as u64;
        put(&mut row, "target_p50_ns", target_ns);
        put(&mut row, "target_met", histogram.percentile_ns(50.0) <= target_ns);
    }
    row
}

fn row(name: &str, instances: usize) -> Row {
    let mut config = RowConfig { name: Some(name.to_owned()), ..RowConfig::default() };
    config.extra.insert("copies".to_owned(), instances.into());
    Row { config, ..Row::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_killed_program_is_noticed() {
        let floor = noticed_floor(3).unwrap();
        assert_eq!((floor.name.as_str(), floor.samples), (KILL_NOTICED, Some(3)));
        assert!(floor.p50_ns.is_some_and(|ns| ns > 0), "{floor:?}");
    }

    #[test]
    fn target_is_judged_by_the_median() {
        let times = |ms: [u64; 3]| ms.map(Duration::from_millis);
        let met = |row: &Row| row.extra["target_met"].as_bool();
        assert_eq!(met(&of_times("x", 5, times([1, 2, 900]), Some(BACK))), Some(true));
        assert_eq!(met(&of_times("x", 5, times([1, 101, 102]), Some(BACK))), Some(false));
        assert!(!of_times("x", 5, times([1, 2, 3]), None).extra.contains_key("target_met"));
        let memory = ResidentMemory { resident_bytes: 9_000_000, proportional_bytes: 5_000_000 };
        let idle =
            |after| idle("idle", 50, Duration::from_secs(1), ([Some(0); 2], [Some(1_000_000), after]), [memory; 2]);
        let row = idle(Some(500_000)).unwrap();
        assert_eq!((row.extra["cpu_share"].as_f64(), met(&row)), (Some(0.0015), Some(true)));
        assert_eq!(met(&idle(Some(1_500_000)).unwrap()), Some(false));
        assert!(idle(None).is_err(), "one that has ended costs nothing");
    }
}
