//! One run: a host, a driver beside it, the checks, and the row of the report.

use super::car::SERIAL_NUMBER;
use super::clustered::Clustered;
use super::driver::{Outcome, Signals, drive, query};
use super::form::Form;
use super::load::{client_options, load_of};
use super::processor::ProcessorState;
use super::run_directory::RunDirectory;
use super::shown::Shown;
use super::{client_process, clustered, failed};
use crate::Result;
use crate::histogram::{IntervalRecorder, RecordedRun};
use crate::options::{Mode, OutputSettings, ReplicationLink, RunSettings};
use crate::own_directory::settle;
use crate::resources::{memory, stolen_ns};
use gapless::prelude::*;
use gapless_agent::{Clock, Pauses};
use gapless_report::affinity::{pair_of_cores, pin_current_thread};
use gapless_report::progress::Progress;
use gapless_report::{CpuPerMessage, Row, RowConfig};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// A finished run.
pub struct Finished {
    /// For the report.
    pub row: Row,
    /// For the `.hlog` file.
    pub latencies: RecordedRun,
    /// When its counted section began, nearly.
    pub began: SystemTime,
    /// Names it in the `.hlog` file.
    pub tag: String,
    /// For the report's notes: the text of the thread plan, for instance.
    pub notes: Vec<String>,
}

/// Bytes of the payload that `settings` send.
///
/// # Errors
/// The message cannot be encoded.
pub fn payload_bytes(settings: &RunSettings) -> Result<u64> {
    let serial_number = (!settings.empty_message).then_some(SERIAL_NUMBER);
    Form::of(settings.encoding).length(serial_number)
}

/// Runs one configuration.
///
/// # Errors
/// The host or the driver fails.
pub fn run_one(
    settings: &RunSettings,
    parent: &Path,
    number: usize,
    output: &OutputSettings,
    progress: &Progress,
    interrupted: &Arc<AtomicBool>,
) -> Result<Finished> {
    let form = Form::of(settings.encoding);
    Run { form, settings, parent, number, output, progress, interrupted }.run()
}

struct Run<'a> {
    form: Form,
    settings: &'a RunSettings,
    parent: &'a Path,
    number: usize,
    output: &'a OutputSettings,
    progress: &'a Progress,
    interrupted: &'a Arc<AtomicBool>,
}

impl Run<'_> {
    fn run(&self) -> Result<Finished> {
        let settings = self.settings;
        let run_directory = RunDirectory::new(settings, self.parent, self.number)?;
        let driver_cpu = match &settings.affinity.injector {
            Some(mask) => mask.cpus().first().copied(),
            None => pair_of_cores().map(|(first, _)| first),
        };
        if settings.cluster.is_some() {
            settle(run_directory.path())?;
            return self.clustered(&run_directory);
        }
        let is_inside = settings.client_processes == 0;
        let options = run_directory.host_options(settings, usize::from(is_inside), driver_cpu);
        if settings.journal.is_some() {
            settle(run_directory.path())?;
        }
        let host = self.form.start_host(settings.program, options).map_err(failed)?;
        let mut observer = host.connect(ClientOptions::default()).map_err(failed)?;
        let before = query(&mut observer, &mut || Ok(0))?;
        let signals = Arc::new(Signals::default());
        let began = SystemTime::now();
        let stolen_before_ns = stolen_ns();
        let (outcome, service_cpu_ns) = if is_inside {
            self.drive_inside(&host, &signals, driver_cpu)?
        } else {
            client_process::drive_outside(settings, &host, driver_cpu, self.progress, self.interrupted)?
        };
        let stolen_ns = stolen_ns().zip(stolen_before_ns).map(|(after, before)| after.saturating_sub(before));
        let paused = paused(&outcome);
        let after = query(&mut observer, &mut || Ok(0))?;
        let peak = memory();
        let plan = host.plan().to_string();
        let pin_warnings = host.pin_warnings();
        drop(observer);
        host.stop().map_err(failed)?;
        let mut finished = self.finish(outcome, before, after, service_cpu_ns, peak, began, &plan, pin_warnings);
        if let Some(stolen_ns) = stolen_ns {
            finished.row.extra.insert("stolen_ns".to_owned(), json!(stolen_ns));
        }
        finished.row.extra.extend(paused);
        Ok(finished)
    }

    fn shown(&self) -> Shown<'_> {
        Shown {
            progress: self.progress,
            base: self.number as u64 * 100,
            has_lines: self.output.print_interval_stats,
            interrupted: self.interrupted,
        }
    }

    fn clustered(&self, run_directory: &RunDirectory) -> Result<Finished> {
        let (began, stolen_before_ns) = (SystemTime::now(), stolen_ns());
        let run = clustered::run(&self.form, self.settings, run_directory, self.shown())?;
        let stolen_ns = stolen_ns().zip(stolen_before_ns).map(|(after, before)| after.saturating_sub(before));
        let counted = run.outcome.sent.max(1) as f64;
        let paused = paused(&run.outcome);
        let Clustered { before, after, service_cpu_ns, peak, .. } = run;
        let mut finished = self.finish(run.outcome, before, after, service_cpu_ns, peak, began, &run.plan, Vec::new());
        let row = &mut finished.row;
        if let Some(difference) = run.difference {
            row.verified = Some(false);
            row.notes.push(difference);
        }
        let (offset_ns, uncertainty_ns) = run.clock_offset_ns;
        row.extra.extend(paused);
        row.extra.extend(stolen_ns.map(|stolen_ns| ("stolen_ns".to_owned(), json!(stolen_ns))));
        row.extra.insert("backup_cpu_ns_per_message".to_owned(), json!(run.backup_cpu_ns as f64 / counted));
        row.extra.insert("backup_clock_offset_ns".to_owned(), json!(offset_ns));
        row.extra.insert("backup_clock_uncertainty_ns".to_owned(), json!(uncertainty_ns));
        row.extra.insert("driver_and_service_on_one_thread".to_owned(), json!(run.is_one_thread));
        if run.is_one_thread {
            finished.notes = vec![format!(
                "{} plan, clustered: driver, member and service take turns on one thread of the primary, the backup's \
                 member and service on one of its own process",
                self.settings.cpu
            )];
        }
        finished.notes.push(format!(
            "the backup's clock is {:.1} us ahead of the primary's, give or take {:.1} us; latencies are of the primary's",
            offset_ns as f64 / 1e3,
            uncertainty_ns as f64 / 1e3
        ));
        Ok(finished)
    }

    /// Drives from a thread of this process; the outcome, and the CPU time of everything else in it.
    fn drive_inside(
        &self,
        host: &ServiceHost,
        signals: &Arc<Signals>,
        driver_cpu: Option<usize>,
    ) -> Result<(Outcome, u64)> {
        let load = load_of(self.settings);
        let mut client = host.connect(client_options()).map_err(failed)?;
        let shown = self.shown();
        let done = AtomicBool::new(false);
        let masks = self.settings.affinity.injector.as_ref().map(crate::options::CpuMask::cpus);
        let cpus = masks.or_else(|| driver_cpu.map(|cpu| vec![cpu]));
        let outcome = std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                if let Some(cpus) = &cpus {
                    // An unpinned driver is slower, not wrong; the resolved options have warned of missing CPUs.
                    let _ = pin_current_thread(cpus);
                }
                let (clock, _) = Clock::fastest();
                let service_pauses = || sum(&host.pauses());
                let hook = &mut |recorder: &mut IntervalRecorder| shown.print_intervals(recorder);
                let driven =
                    drive(&self.form, &mut client, &load, &clock, signals, hook, &service_pauses, &mut || Ok(0));
                done.store(true, Ordering::Release);
                driven
            });
            shown.follow(signals, load.count, &done);
            driver.join()
        });
        let outcome = outcome.map_err(|_| failed("the driver panicked"))??;
        let service = outcome.process_cpu_ns.saturating_sub(outcome.driver_cpu_ns);
        Ok((outcome, service))
    }

    #[allow(clippy::too_many_arguments, reason = "one call, in this file")]
    fn finish(
        &self,
        outcome: Outcome,
        before: ProcessorState,
        after: ProcessorState,
        service_cpu_ns: u64,
        peak: Option<crate::resources::Memory>,
        began: SystemTime,
        plan: &str,
        pin_warnings: Vec<String>,
    ) -> Finished {
        let settings = self.settings;
        let gained =
            ProcessorState { cars: after.cars.wrapping_sub(before.cars), sum: after.sum.wrapping_sub(before.sum) };
        let mut row = Row { config: self.config(&outcome), ..Row::default() };
        let per_message = |ns: u64| (ns as f64 / outcome.counted.max(1) as f64).round();
        if settings.mode == Mode::Latency || settings.rate_per_s.is_some() {
            row.latency_ns = outcome.latencies.total.latency_ns();
            row.rate_reached = outcome.rate_reached;
            row.intervals = outcome.latencies.interval_rows();
        }
        if settings.mode == Mode::Throughput || settings.rate_per_s.is_none() {
            row.throughput_per_s = Some((outcome.counted as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64).round());
        }
        row.sent = Some(outcome.counted);
        row.elapsed_ns = Some(outcome.elapsed_ns);
        row.cpu_ns_per_message =
            Some(CpuPerMessage { driver: per_message(outcome.driver_cpu_ns), service: per_message(service_cpu_ns) });
        row.peak_memory_bytes = peak.map(|memory| memory.peak_bytes);
        if let Some(memory) = peak {
            row.extra.insert("anonymous_memory_bytes".to_owned(), json!(memory.anonymous_bytes));
            row.extra.insert("mapped_memory_bytes".to_owned(), json!(memory.mapped_bytes));
        }
        row.extra.insert("repeats_sent".to_owned(), json!(outcome.repeats));
        row.extra.insert("repeats_answered".to_owned(), json!(outcome.replies_again));
        row.lost = Some(outcome.sent - outcome.replied.min(outcome.sent));
        row.duplicated = Some(gained.cars.saturating_sub(outcome.sent));
        row.notes = complaints(&outcome, gained);
        row.verified = Some(row.notes.is_empty());
        row.notes.extend(pin_warnings);
        if outcome.warm_up_cut_short {
            row.notes.push("the warm-up was cut short: it took half of the messages".to_owned());
        }
        let tag = format!("{}-{}-{}-{}", settings.mode, settings.encoding, settings.tier, settings.cpu);
        let notes = plan
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| format!("{} plan, optimized for {}: {line}", settings.cpu, settings.mode));
        Finished { latencies: outcome.latencies, began, tag, notes: notes.collect(), row }
    }

    fn config(&self, outcome: &Outcome) -> RowConfig {
        let settings = self.settings;
        let mut config = RowConfig {
            program: Some(settings.program.to_string()),
            mode: Some(settings.mode.to_string()),
            access: Some(settings.encoding.access().to_string()),
            encoding: Some(settings.encoding.to_string()),
            tier: Some(settings.tier.to_string()),
            cpu: Some(settings.cpu.to_string()),
            clustered: Some(settings.cluster.is_some()),
            transport: Some(
                match (settings.cluster.as_ref().map(|cluster| cluster.link), settings.client_processes) {
                    (Some(ReplicationLink::Tcp), _) => "tcp",
                    (None, 0) => "none",
                    (Some(ReplicationLink::SharedMemory), _) | (None, _) => "shm",
                }
                .to_owned(),
            ),
            payload_bytes: Some(outcome.payload_bytes),
            rate_per_s: settings.rate_per_s,
            count: Some(settings.count),
            ..RowConfig::default()
        };
        let mut put = |key: &str, value| config.extra.insert(key.to_owned(), value);
        put("sessions", json!(settings.sessions));
        put("repeat_percent", json!(f64::from(settings.repeats_per_million) / 10_000.0));
        put("client_processes", json!(settings.client_processes));
        if let Some(journal) = &settings.journal {
            put("journal_mapped", json!(journal.mapped));
            put("journal_flush_on_commit", json!(journal.flush_on_commit));
            put("journal_initial_length_bytes", json!(journal.initial_length_bytes));
        }
        config
    }
}

/// How long driver and service were kept from running while they spun, of a run at a rate: the part of a latency's tail
/// that the machine, and not the path, adds.
fn paused(outcome: &Outcome) -> Option<(String, serde_json::Value)> {
    let (driver, service) = (outcome.pauses?, outcome.service_pauses);
    let share = (driver.total_ns + service.total_ns) as f64 / outcome.driven_ns.max(1) as f64;
    let value = json!({
        "driver": {"count": driver.count, "total_ns": driver.total_ns, "longest_ns": driver.longest_ns},
        "service": {"count": service.count, "total_ns": service.total_ns},
        "share": share,
    });
    Some(("paused".to_owned(), value))
}

/// The pauses of a host's threads together.
fn sum(threads: &[Pauses]) -> Pauses {
    threads.iter().fold(Pauses::default(), |sum, thread| Pauses {
        count: sum.count + thread.count,
        total_ns: sum.total_ns + thread.total_ns,
        longest_ns: sum.longest_ns.max(thread.longest_ns),
    })
}

/// The faults of a run; empty if every message is accounted for and every content is right.
fn complaints(outcome: &Outcome, gained: ProcessorState) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut unless = |good: bool, text: String| {
        if !good {
            complaints.push(text);
        }
    };
    unless(outcome.replied == outcome.sent, format!("{} of {} commands have a reply", outcome.replied, outcome.sent));
    unless(outcome.replies_wrong == 0, format!("{} replies have the wrong content", outcome.replies_wrong));
    unless(outcome.repeats_differing == 0, format!("{} repeats got another reply", outcome.repeats_differing));
    unless(outcome.replies_again <= outcome.repeats, "more replies to repeats than repeats".to_owned());
    if let Some((count, reason)) = &outcome.refused {
        unless(false, format!("{count} commands were refused: {reason}"));
    }
    unless(
        gained == outcome.expected,
        format!("the service's state gained {gained:?}, its commands add up to {:?}", outcome.expected),
    );
    complaints
}
