//! One run: a host, a driver next to it, the checks, and the row of the report.

use super::clustered::{ClusteredResult, PinnedCpus};
use super::hot_threads::{BusyThread, described, shared_cpus};
use super::load::{client_options, load_of};
use super::prepared::PreparedJournal;
use super::run_directory::RunDirectory;
use super::run_progress::RunProgress;
use super::slices::BareRoundTrip;
use super::{client_process, clustered, failed, slices};
use crate::Result;
use crate::histogram::{IntervalRecorder, RecordedRun};
use crate::options::{CpuConfiguration, CpuMask, OutputSettings, ReplicationLink, RunMode, RunSettings};
use crate::own_directory::sync_file_system;
use crate::resources::{memory, stolen_ns};
use gapless::prelude::*;
use gapless_agent::{Clock, ThreadPlan};
use gapless_engine::ServiceHost;
use gapless_load::canonical::car::SERIAL_NUMBER;
use gapless_load::canonical::driver::{DriverSignals, LoadOutcome, drive, query};
use gapless_load::canonical::form::CarFunctions;
use gapless_load::canonical::processor::ProcessorState;
use gapless_measure::affinity::{available_cpus, pair_of_cores, pin_current_thread};
use gapless_measure::progress::BenchProgress;
use gapless_measure::{CpuPerMessage, FAILED, Row, RowConfig};
use gapless_stream::AgentRole;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

pub struct FinishedRun {
    pub row: Row,
    pub latencies: RecordedRun,
    /// When its counted section began, nearly.
    pub began: SystemTime,
    pub tag: String,
    /// Report notes, such as the thread plan.
    pub notes: Vec<String>,
}

impl FinishedRun {
    pub fn failed(settings: &RunSettings, reason: &str) -> Self {
        let payload = payload_bytes(settings).unwrap_or(0);
        let mut row = Row { config: config(settings, payload), ..Row::default() };
        row.extra.insert(FAILED.to_owned(), json!(reason));
        Self { row, latencies: RecordedRun::default(), began: SystemTime::now(), tag: tag(settings), notes: Vec::new() }
    }
}

pub fn payload_bytes(settings: &RunSettings) -> Result<u64> {
    let serial_number = (!settings.empty_message).then_some(SERIAL_NUMBER);
    CarFunctions::of(settings.encoding).length(serial_number)
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
    progress: &BenchProgress,
    interrupted: &Arc<AtomicBool>,
) -> Result<FinishedRun> {
    let form = CarFunctions::of(settings.encoding);
    let slices = slices::of(settings);
    let mut bare = BareRoundTrip::for_slice(&slices[0], payload_bytes(settings)?);
    let mut all: Option<FinishedRun> = None;
    let (mut run_slices, mut count) = (0, 0);
    for slice in &slices {
        if interrupted.load(Ordering::Relaxed) && all.is_some() {
            break;
        }
        bare.iter_mut().for_each(BareRoundTrip::measure);
        let one = match (CanonicalRun { form, settings: slice, parent, number, output, progress, interrupted }).run() {
            Err(_) if interrupted.load(Ordering::Relaxed) && all.is_some() => break,
            one => one?,
        };
        match &mut all {
            None => all = Some(one),
            Some(all) => slices::add((&mut all.row, &mut all.latencies), one.row, one.latencies),
        }
        run_slices += 1;
        count += slice.count;
    }
    let mut all = all.expect("a row has a slice at least");
    if interrupted.load(Ordering::Relaxed) {
        count = all.row.sent.unwrap_or(count);
        all.row.notes.push(format!("interrupted: {run_slices} of {} slices", slices.len()));
    }
    all.row.config.count = Some(count);
    all.row.config.extra.insert("slices".to_owned(), json!(run_slices));
    if let Some(bare) = &mut bare {
        bare.measure();
        bare.add_to_row(&mut all.row);
    }
    Ok(all)
}

struct CanonicalRun<'a> {
    form: CarFunctions,
    settings: &'a RunSettings,
    parent: &'a Path,
    number: usize,
    output: &'a OutputSettings,
    progress: &'a BenchProgress,
    interrupted: &'a Arc<AtomicBool>,
}

impl CanonicalRun<'_> {
    fn run(&self) -> Result<FinishedRun> {
        let settings = self.settings;
        let run_directory = RunDirectory::new(settings, self.parent, self.number)?;
        let masked = settings.affinity.injector.as_ref().map(CpuMask::cpus);
        let driver_cpus = masked.or_else(|| pair_of_cores().map(|(first, _)| vec![first]));
        let driver_cpu = driver_cpus.as_ref().and_then(|cpus| cpus.first().copied());
        if settings.cluster.is_some() {
            sync_file_system(run_directory.path())?;
            return self.clustered(&run_directory);
        }
        let is_inside = settings.client_processes == 0;
        let options = run_directory.host_options(settings, usize::from(is_inside), driver_cpu);
        if settings.journal.is_some() {
            sync_file_system(run_directory.path())?;
        }
        let prepared = settings.journal.as_ref().and_then(|_| PreparedJournal::of(run_directory.path()));
        let host = self.form.start_host(settings.program, options).map_err(failed)?;
        let mut observer = host.connect(ClientOptions::default()).map_err(failed)?;
        let before = query(&mut observer, &mut || Ok(0))?;
        let signals = Arc::new(DriverSignals::default());
        let began = SystemTime::now();
        let stolen_before_ns = stolen_ns();
        let (mut outcome, service_cpu_ns) = if is_inside {
            self.drive_inside(&host, &signals, driver_cpus.as_deref())?
        } else {
            client_process::drive_outside(settings, &host, driver_cpus.as_deref(), self.progress, self.interrupted)?
        };
        let stolen_ns = stolen_ns().zip(stolen_before_ns).map(|(after, before)| after.saturating_sub(before));
        let (paused, progress) = (paused(&outcome), std::mem::take(&mut outcome.progress));
        let after = query(&mut observer, &mut || Ok(0))?;
        let peak = memory();
        let plan = host.plan().clone();
        let pin_warnings = host.pin_warnings();
        drop(observer);
        host.stop().map_err(failed)?;
        let mut finished = self.finish(outcome, before, after, service_cpu_ns, peak, began, &plan, pin_warnings);
        if let Some(prepared) = prepared {
            prepared.put_into(&mut finished.row, &progress)?;
        }
        if let Some(stolen_ns) = stolen_ns {
            finished.row.extra.insert("stolen_ns".to_owned(), json!(stolen_ns));
        }
        finished.row.extra.extend(paused);
        let clients = (0..settings.client_processes.max(1)).map(|number| match settings.client_processes {
            0 => BusyThread::new("driver", driver_cpus.as_deref()),
            _ => BusyThread::new(&format!("client process {}", number + 1), driver_cpus.as_deref()),
        });
        finished.note_threads(&clients.chain(BusyThread::all_of(&plan)).collect::<Vec<_>>(), &plan);
        Ok(finished)
    }

    fn shown(&self) -> RunProgress<'_> {
        RunProgress {
            progress: self.progress,
            base: self.number as u64 * 100,
            has_lines: self.output.print_interval_stats,
            interrupted: self.interrupted,
        }
    }

    fn clustered(&self, run_directory: &RunDirectory) -> Result<FinishedRun> {
        let (began, stolen_before_ns) = (SystemTime::now(), stolen_ns());
        let prepared = PreparedJournal::of(&run_directory.path().join("primary"));
        let mut run = clustered::run(&self.form, self.settings, run_directory, self.shown())?;
        let stolen_ns = stolen_ns().zip(stolen_before_ns).map(|(after, before)| after.saturating_sub(before));
        let counted = run.outcome.sent.max(1) as f64;
        let (paused, progress) = (paused(&run.outcome), std::mem::take(&mut run.outcome.progress));
        let ClusteredResult { before, after, service_cpu_ns, peak, .. } = run;
        let mut finished =
            self.finish(run.outcome, before, after, service_cpu_ns, peak, began, &run.plan, run.pin_warnings);
        if let Some(prepared) = prepared {
            prepared.put_into(&mut finished.row, &progress)?;
        }
        let mut threads = if run.is_one_thread {
            vec![BusyThread::new("the primary", run.cpus.primary.as_deref())]
        } else {
            let driver = BusyThread::new("driver", run.cpus.driver.as_deref());
            std::iter::once(driver).chain(BusyThread::all_of(&run.plan)).collect()
        };
        let row = &mut finished.row;
        put_cpus(&mut row.config, &run.cpus);
        for (key, threads) in ["primary_threads", "backup_threads"].into_iter().zip(&run.threads) {
            row.config.extra.insert(key.to_owned(), json!(threads));
        }
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
            // No threads are planned: all take turns on one.
            finished.notes = vec![format!(
                "{} plan, clustered: driver, member and service take turns on one thread of the primary, the backup's \
                 member and service on one of its own process",
                self.settings.cpu
            )];
        }
        finished.notes.extend(run.backup_plan.iter().map(|line| format!("the backup's {line}")));
        let is_here = self.settings.cluster.as_ref().is_some_and(|cluster| cluster.role.is_none());
        let backup = run.cpus.backup.as_deref().and_then(|cpus| cpus.parse::<gapless_agent::CpuMask>().ok());
        if let Some(cpus) = backup.filter(|_| is_here) {
            threads.push(BusyThread::new("the backup", Some(&cpus.iter().collect::<Vec<_>>())));
            let of = |mask: &Option<CpuMask>| mask.as_ref().map(CpuMask::cpus);
            let beside = self.settings.cluster.as_ref().map(|cluster| &cluster.threads).expect("a clustered run");
            if self.settings.cpu == CpuConfiguration::Max || beside.detached_dispatch {
                threads.push(BusyThread::new("the backup's service", of(&beside.dispatcher).as_deref()));
            }
            if beside.detached_send {
                let sender = of(&beside.sender);
                threads.extend(["primary", "backup"].map(|member| {
                    BusyThread::new(&format!("thread replica-sender of the {member}"), sender.as_deref())
                }));
            }
        }
        finished.note_threads(&threads, &run.plan);
        if !is_here {
            finished.notes.push(format!(
                "the backup's clock is {:.1} us ahead of the primary's, give or take {:.1} us; latencies are of the primary's",
                offset_ns as f64 / 1e3,
                uncertainty_ns as f64 / 1e3
            ));
        }
        Ok(finished)
    }

    /// Returns the outcome, and the CPU time of everything else in this process.
    fn drive_inside(
        &self,
        host: &ServiceHost,
        signals: &Arc<DriverSignals>,
        cpus: Option<&[usize]>,
    ) -> Result<(LoadOutcome, u64)> {
        let load = load_of(self.settings);
        let mut client = host.connect(client_options()).map_err(failed)?;
        let shown = self.shown();
        let done = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                if let Some(cpus) = cpus {
                    // An unpinned driver is slower, not wrong; the resolved options have warned of missing CPUs.
                    let _ = pin_current_thread(cpus);
                }
                let (clock, _) = Clock::fastest();
                let service_pauses = || host.pauses().into_iter().sum();
                let hook = &mut |recorder: &mut IntervalRecorder| shown.print_intervals(recorder);
                let driven = drive(&self.form, &mut client, &load, &clock, signals, hook, &service_pauses);
                done.store(true, Ordering::Release);
                driven
            });
            shown.follow(signals, load.count, load.rate_per_s.is_some(), &done);
            driver.join()
        });
        let outcome = outcome.map_err(|_| failed("the driver panicked"))??;
        let service = outcome.process_cpu_ns.saturating_sub(outcome.driver_cpu_ns);
        Ok((outcome, service))
    }

    #[allow(clippy::too_many_arguments, reason = "one call, in this file")]
    fn finish(
        &self,
        outcome: LoadOutcome,
        before: ProcessorState,
        after: ProcessorState,
        service_cpu_ns: u64,
        peak: Option<crate::resources::MemoryUsage>,
        began: SystemTime,
        plan: &ThreadPlan<AgentRole>,
        pin_warnings: Vec<String>,
    ) -> FinishedRun {
        let settings = self.settings;
        let gained =
            ProcessorState { cars: after.cars.wrapping_sub(before.cars), sum: after.sum.wrapping_sub(before.sum) };
        let mut row = Row { config: config(settings, outcome.payload_bytes), ..Row::default() };
        let per_message = |ns: u64| (ns as f64 / outcome.counted.max(1) as f64).round();
        if settings.mode == RunMode::Latency || settings.rate_per_s.is_some() {
            row.latency_ns = outcome.latencies.total.latency_ns();
            row.rate_reached = outcome.rate_reached;
            row.intervals = outcome.latencies.interval_rows();
        }
        if settings.mode == RunMode::Throughput || settings.rate_per_s.is_none() {
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
        let plan = plan.to_string();
        let notes = plan
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| format!("{} plan, optimized for {}: {line}", settings.cpu, settings.mode));
        FinishedRun { latencies: outcome.latencies, began, tag: tag(settings), notes: notes.collect(), row }
    }
}

impl FinishedRun {
    fn note_threads(&mut self, threads: &[BusyThread], plan: &ThreadPlan<AgentRole>) {
        self.row.config.extra.insert("threads".to_owned(), described(threads, plan));
        self.row.notes.extend(shared_cpus(threads, &available_cpus()));
    }
}

fn tag(settings: &RunSettings) -> String {
    let RunSettings { program, mode, encoding, tier, cpu, .. } = settings;
    match settings.cluster {
        Some(_) => format!("{program}-{mode}-{encoding}-{tier}-{cpu}"),
        None => format!("{mode}-{encoding}-{tier}-{cpu}"),
    }
}

fn config(settings: &RunSettings, payload_bytes: u64) -> RowConfig {
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
        payload_bytes: Some(payload_bytes),
        rate_per_s: settings.rate_per_s,
        count: Some(settings.count),
        ..RowConfig::default()
    };
    let mut put = |key: &str, value| config.extra.insert(key.to_owned(), value);
    put("sessions", json!(settings.sessions));
    put("repeat_percent", json!(f64::from(settings.repeats_per_million) / 10_000.0));
    put("client_processes", json!(settings.client_processes));
    put("warm_up_ns", json!(settings.warm_up_ns));
    if let Some(depth) = settings.detached_send_queue_depth {
        put("detached_send_queue_depth", json!(depth));
    }
    if let Some(journal) = &settings.journal {
        put("journal_mapped", json!(journal.mapped));
        put("journal_flush_on_commit", json!(journal.flush_on_commit));
        put("journal_initial_length_bytes", json!(journal.initial_length_bytes));
        put("journal_zero_out_initial", json!(journal.zero_out_initial));
        put("journal_write_buffer_bytes", json!(journal.write_buffer_bytes));
        if let Some(directory) = &journal.directory {
            put("journal_directory", json!(directory));
        }
    }
    if let Some(threads) = settings.cluster.as_ref().map(|cluster| &cluster.threads) {
        put("replication_spin", json!(threads.spins));
        put("replication_detached_send", json!(threads.detached_send));
        put("replication_detached_dispatch", json!(threads.detached_dispatch));
    }
    if let Some(role) = settings.cluster.as_ref().and_then(|cluster| cluster.role) {
        put("role", json!(role.name()));
    }
    config
}

fn put_cpus(config: &mut RowConfig, cpus: &PinnedCpus) {
    config.extra.insert("driver_cpus".to_owned(), json!(cpus.driver));
    config.extra.insert("primary_cpus".to_owned(), json!(cpus.primary));
    config.extra.insert("backup_cpus".to_owned(), json!(cpus.backup));
}

/// Share of the time in which driver and service were kept from running while they spun, at a rate: the part of a tail
/// that the machine adds.
fn paused(outcome: &LoadOutcome) -> Option<(String, serde_json::Value)> {
    let (driver, service) = (outcome.pauses?, outcome.service_pauses);
    let share = (driver.total_ns + service.total_ns) as f64 / (2 * outcome.driven_ns).max(1) as f64;
    let value = json!({
        "driver": {"count": driver.count, "total_ns": driver.total_ns, "longest_ns": driver.longest_ns},
        "service": {"count": service.count, "total_ns": service.total_ns},
        "share": share,
    });
    Some(("paused".to_owned(), value))
}

/// Faults of a run; empty if every message is accounted for and every content is right.
fn complaints(outcome: &LoadOutcome, gained: ProcessorState) -> Vec<String> {
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
