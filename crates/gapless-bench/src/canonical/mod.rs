//! `gapless bench canonical`: receive, decode, dispatch, process, create the response, persist, encode
//! and send, on one node, from a driver next to it.
//!
//! | module | what lives there |
//! |---|---|
//! | `load` | how hard a run is driven |
//! | `run_directory` | the node as the settings describe it, and its directory |
//! | `run` | one run: node, driver, checks, a row of the report |
//! | `hot_threads` | the threads of a run, and which of them are in each other's way |
//! | `idle` | the cost of an idle node |
//! | `prepared` | the speed of a run while prepared data lasts, and after |
//! | `slices` | the slices of a row, and the bare round trip between them |
//! | `run_progress` | the display of a run while it is driven |
//! | `clustered`, `backup` | a run on primary and backup |
//! | `discovery` | how they find each other |
//! | `client_process` | the driver in a process of its own |
//!
//! The message, the services and the driver are in [`gapless_load::canonical`].
//!
//! The order of the steps differs from the reference's on purpose: the handler runs on released
//! frames, so persistence comes before processing, and no reply can leave that a crash would take back.

pub(crate) mod backup;
pub(crate) mod client_process;
mod clustered;
mod discovery;
mod hot_threads;
mod idle;
mod load;
mod prepared;
mod run;
mod run_directory;
mod run_progress;
mod slices;

use crate::child_process::Child;
use crate::floor::{FloorKind, FloorPlan};
use crate::histogram::hlog::{TaggedRun, write_file};
use crate::options::{
    BACKUP_ADDRESS, CanonicalArguments, CanonicalOptions, CpuMask, HlogTarget, MessageEncoding, OutputSettings,
    RunPlan, RunSettings, SheetFigure,
};
use crate::own_directory::OwnDirectory;
use crate::{BenchError, Result};
use backup::BackupSettings;
use gapless_load::canonical::{NAME, failed};
use gapless_measure::progress::BenchProgress;
use gapless_measure::reporting::is_set;
use gapless_measure::table::{TableStyle, canonical, measured};
use gapless_measure::{Report, Row, workbook};
use run::{FinishedRun, run_one};
use run_directory::PREFIXES;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

const JOURNAL_BYTES_MIN: u64 = 4 << 20;

fn finish(child: Child<'_>) -> Result<()> {
    let stderr = child.finish()?;
    if !stderr.is_empty() {
        eprintln!("{stderr}");
    }
    Ok(())
}

/// `interrupted` ends it early, with the rows that are complete.
///
/// # Errors
/// Contradicting options; a node that cannot be run; results that cannot be written; a failed check, after everything
/// was written.
pub fn run(arguments: &CanonicalArguments, interrupted: &Arc<AtomicBool>) -> Result<()> {
    if arguments.is_backup() {
        return run_backup(arguments, interrupted);
    }
    let CanonicalOptions { plan, output, warnings } = arguments.resolve_here()?;
    if let Some(target) = &output.workbook {
        // A long run must not end with an error that was there before it.
        workbook::check(&target.path, target.cell).map_err(|error| BenchError::Option(error.to_string()))?;
    }
    // The others that were named are checked where the command line is read.
    if let Some(HlogTarget { path, named: false }) = &output.hlog {
        gapless_measure::output_file(path.clone()).map_err(|reason| {
            BenchError::Option(format!(
                "{}: {reason}; name another file with --hlog, or give --no-latency-writes",
                path.display()
            ))
        })?;
    }
    for warning in &warnings {
        eprintln!("gapless: {warning}");
    }
    let quiet = output.json_on_stdout();
    let started = SystemTime::now();
    let mut report = Report::new(NAME);
    report.notes = warnings;
    let parent = Path::new(".");
    let runs = plan.runs();
    let progress = BenchProgress::new(runs.len() as u64 * 100, "floor", quiet);
    measure_floors(&runs[0], parent, &mut report)?;
    let mut finished: Vec<FinishedRun> = Vec::new();
    let mut is_dropped = false;
    for (number, settings) in runs.iter().enumerate() {
        if is_set(interrupted) {
            break;
        }
        progress.set_label(&label(settings));
        let mut one = match run_one(settings, parent, number, &output, &progress, interrupted) {
            // An interrupted row is no failure.
            Err(_) if is_set(interrupted) => {
                is_dropped = true;
                break;
            }
            Err(BenchError::Measurement { reason, .. }) => FinishedRun::failed(settings, &reason),
            Err(error) => FinishedRun::failed(settings, &error.to_string()),
            Ok(one) => one,
        };
        compare_with_floor(&mut one.row, &report);
        progress.line(&measured(&one.row));
        if let Some(reason) = one.row.failure() {
            progress.line(&format!("gapless: FAILED {}: {reason}", label(settings)));
        }
        if let Some(rate) = one.row.missed_rate_per_s() {
            progress.line(&format!("gapless: MISSED {}: the rate of {rate} messages/s", label(settings)));
        }
        finished.push(one);
    }
    let mut idle = None;
    if matches!(plan, RunPlan::Matrix(_)) && !arguments.is_clustered() && !is_set(interrupted) {
        progress.set_label("idle");
        idle = Some(idle::measure(&runs[0], parent, runs.len())?);
        report.extra.insert("idle".to_owned(), serde_json::to_value(idle)?);
    }
    progress.finish();
    if is_set(interrupted) {
        let last = if is_dropped || finished.is_empty() { "" } else { ", the last one cut short" };
        report.notes.push(format!("interrupted: {} of {} rows{last}", finished.len(), runs.len()));
    }
    for one in &finished {
        for note in &one.notes {
            if !report.notes.contains(note) {
                report.notes.push(note.clone());
            }
        }
    }
    report.notes.extend(costs(idle, &finished));
    report.rows = finished.iter().map(|one| one.row.clone()).collect();
    write_results(&report, &output, &plan, &finished, started)?;
    verdict(&report.rows, arguments.strict)
}

/// Fails for failed rows, and for missed rates where the user is strict.
fn verdict(rows: &[Row], is_strict: bool) -> Result<()> {
    let missed = |row: &Row| {
        let rate = row.missed_rate_per_s().filter(|_| is_strict)?;
        Some(format!("the asked rate of {rate} messages/s was not reached"))
    };
    let failures: Vec<String> = rows.iter().filter_map(|row| row.failure().or_else(|| missed(row))).collect();
    let reason = match failures.first() {
        None => return Ok(()),
        Some(only) if rows.len() == 1 => only.clone(),
        Some(first) => format!("{} of {} rows failed, the first: {first}", failures.len(), rows.len()),
    };
    Err(BenchError::Verdict { name: NAME, reason })
}

/// Measures on the device of the first row's journal, after removing what killed runs have left there and in `parent`.
fn measure_floors(settings: &RunSettings, parent: &Path, report: &mut Report) -> Result<()> {
    let named = settings.journal.as_ref().and_then(|journal| journal.directory.as_deref());
    for directory in [Some(parent), named].into_iter().flatten() {
        OwnDirectory::remove_abandoned(directory, PREFIXES);
    }
    let payload = run::payload_bytes(settings)?;
    let name = format!(".gapless-floor-{}", std::process::id());
    let directory = OwnDirectory::create_with_parent(named.unwrap_or(parent), &name)?;
    let plan = match settings.cluster {
        Some(_) => FloorPlan::clustered(directory.path(), payload),
        None => FloorPlan::canonical(directory.path(), payload),
    };
    let floor = plan.measure();
    report.floor = floor.rows;
    report.notes.extend(floor.skipped);
    Ok(())
}

/// Measures one row, `sbe.serial`, below `parent` for another benchmark; `messages` replaces the matrix's number, and
/// the journal shrinks in proportion.
pub(crate) fn one_row(
    arguments: &CanonicalArguments,
    count: Option<u64>,
    parent: &Path,
    interrupted: &Arc<AtomicBool>,
) -> Result<Row> {
    let runs = arguments.resolve_here()?.plan;
    let found = runs.runs().iter().find(|run| run.encoding == MessageEncoding::SbeSerial);
    let mut settings = found.ok_or_else(|| failed("there is no such row"))?.clone();
    if let Some(count) = count {
        if let Some(journal) = &mut settings.journal {
            let length = journal.initial_length_bytes as f64 * count as f64 / settings.count as f64;
            journal.initial_length_bytes = (length as u64).clamp(JOURNAL_BYTES_MIN, journal.initial_length_bytes);
        }
        settings.count = count;
    }
    let progress = BenchProgress::new(100, NAME, true);
    let finished = run_one(&settings, parent, 0, &OutputSettings::default(), &progress, interrupted)?;
    Ok(finished.row)
}

fn run_backup(arguments: &CanonicalArguments, interrupted: &Arc<AtomicBool>) -> Result<()> {
    let options = arguments.resolve_here()?;
    for warning in &options.warnings {
        eprintln!("gapless: {warning}");
    }
    let address = arguments.backup_address.as_deref().unwrap_or(BACKUP_ADDRESS);
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = port.ok_or_else(|| BenchError::Option(format!("--backup-address {address}: HOST:PORT is expected")))?;
    OwnDirectory::remove_abandoned(Path::new("."), PREFIXES);
    let cluster = options.plan.runs().first().and_then(|settings| settings.cluster.as_ref());
    let cpus = cluster.and_then(|cluster| cluster.backup_cpus.as_ref()).map(CpuMask::cpus);
    let own = BackupSettings { log_location: arguments.log_location.clone(), cpus };
    discovery::answer(arguments.discovery_interface, port, Arc::clone(interrupted));
    backup::run(address, &own, interrupted)
}

fn costs(idle: Option<idle::IdleCost>, finished: &[FinishedRun]) -> Vec<String> {
    let most = |key| finished.iter().filter_map(|one| one.row.extra.get(key)?.as_u64()).max();
    let mut lines = Vec::new();
    if let (Some(anonymous), Some(mapped)) = (most("anonymous_memory_bytes"), most("mapped_memory_bytes")) {
        let mebibytes = |bytes: u64| bytes >> 20;
        lines.push(format!(
            "at most {} MiB of anonymous memory at the end of a run, node and driver together, and {} MiB mapped, journal \
             and rings",
            mebibytes(anonymous),
            mebibytes(mapped)
        ));
    }
    if let Some(idle) = idle {
        lines.push(format!(
            "an idle node in the default configuration, with a silent client, used {:.2} % of a core over {:.1} s",
            idle.cpu_percent(),
            idle.elapsed_ns as f64 / 1e9
        ));
    }
    lines
}

fn label(settings: &RunSettings) -> String {
    let RunSettings { program, mode, encoding, tier, cpu, .. } = settings;
    format!("{program} {mode} {encoding} {tier} {cpu}")
}

fn compare_with_floor(row: &mut Row, report: &Report) {
    let (kind, payload_bytes) = floor_of(row);
    if let Some(floor) = report.floor_row(kind.name(), payload_bytes) {
        row.compare_with(floor);
    }
}

pub(crate) fn floor_of(row: &Row) -> (FloorKind, u64) {
    let is_over_tcp = row.config.transport.as_deref() == Some("tcp");
    let kind = match (row.latency_ns.is_some(), row.config.tier.as_deref()) {
        (true, Some("sync")) => FloorKind::PwriteFdatasync,
        (true, _) if is_over_tcp => FloorKind::TcpRoundTrip,
        (false, _) if is_over_tcp => FloorKind::TcpStream,
        (true, _) => FloorKind::ShmPingPong,
        (false, _) => FloorKind::ShmStream,
    };
    (kind, row.config.payload_bytes.unwrap_or(0) + crate::floor::HEADER_BYTES)
}

fn write_results(
    report: &Report,
    output: &OutputSettings,
    plan: &RunPlan,
    finished: &[FinishedRun],
    started: SystemTime,
) -> Result<()> {
    if let Some(target) = &output.json {
        report.write_json(target)?;
    }
    if !output.json_on_stdout() {
        let text = canonical(report, TableStyle::for_stdout());
        match writeln!(std::io::stdout(), "{text}") {
            // A reader that has gone, as `head` does, wants no more.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(BenchError::system("print the report", error));
            }
            _ => {}
        }
    }
    if let Some(target) = &output.hlog {
        let tagged: Vec<TaggedRun<'_>> = finished
            .iter()
            .filter(|one| one.latencies.total.count() > 0)
            .map(|one| TaggedRun {
                tag: if matches!(plan, RunPlan::Single(_)) { String::new() } else { one.tag.clone() },
                run: &one.latencies,
                begin: one.began.duration_since(started).unwrap_or(Duration::ZERO),
            })
            .collect();
        if !tagged.is_empty() {
            let comments = [format!("gapless bench canonical; {}", report.environment.summary())];
            write_file(&target.path, started, &comments, &tagged)?;
            if !target.named {
                eprintln!("latencies: {}", target.path.display());
            }
        }
    }
    if let Some(target) = &output.workbook {
        match target.cell {
            None => workbook::create(&target.path, report)?,
            Some(cell) => {
                let row = report.rows.last();
                let is_result = |row: &&Row| row.failure().is_none() && row.missed_rate_per_s().is_none();
                let value = row.filter(is_result).and_then(|row| match target.figure {
                    SheetFigure::LatencyP50 => Some(row.latency_ns?.p50 as f64 / 1000.0),
                    SheetFigure::Throughput => row.throughput_per_s,
                });
                if let Some(value) = value {
                    workbook::write_cell(&target.path, cell, value)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rate_reached: bool, verified: bool) -> Row {
        let mut row = Row { rate_reached: Some(rate_reached), verified: Some(verified), ..Row::default() };
        row.config.rate_per_s = Some(10_000);
        row
    }

    #[test]
    fn missed_rate_fails_only_if_strict() {
        let missed = [row(true, true), row(false, true)];
        assert!(verdict(&missed, false).is_ok());
        let error = verdict(&missed, true).unwrap_err().to_string();
        assert!(error.contains("1 of 2 rows") && error.contains("10000 messages/s"), "{error}");
    }

    #[test]
    fn failed_check_always_fails() {
        for is_strict in [false, true] {
            let error = verdict(&[row(false, false)], is_strict).unwrap_err().to_string();
            assert!(error.contains("the check failed"), "{error}");
        }
    }
}
