//! A clustered run, as its primary: member, service and driver here, the backup in a process of its own, on this
//! machine or another. Where each process has one core, driver, member and service share one thread: a second one that
//! spins would cost milliseconds.

use super::backup::{
    BACKUP, BackupAnswer, BackupAssignment, BackupConnection, BackupRequest, CopySnapshot, PRIMARY, cpus_line,
    not_answered, parse,
};
use super::hot_threads::{NamedThread, of_this_process};
use super::load::{client_options, load_of};
use super::run_directory::RunDirectory;
use super::run_progress::RunProgress;
use super::{NAME, failed, finish};
use crate::child_process::{Child, ChildRole};
use crate::histogram::IntervalRecorder;
use crate::options::{
    BACKUP_ADDRESS, CpuConfiguration, CpuMask, HostRole, ReplicationLink, RunMode, RunSettings, RunTier,
};
use crate::ports::free_ports;
use crate::resources::{MemoryUsage, memory, process_cpu_ns};
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_agent::{Clock, ThreadPlan};
use gapless_cluster::consensus::MemberRole;
use gapless_engine::Replica;
use gapless_load::canonical::driver::{DriverSignals, LoadOutcome, drive, drive_by_hand, query};
use gapless_load::canonical::form::CarFunctions;
use gapless_load::canonical::processor::ProcessorState;
use gapless_measure::affinity::{available_cpus, pair_of_cores, pin_current_thread};
use gapless_stream::AgentRole;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(60);

const BURST_MESSAGES_ONE_THREAD: u64 = 256;

pub(super) struct ClusteredResult {
    pub outcome: LoadOutcome,
    pub before: ProcessorState,
    pub after: ProcessorState,
    /// CPU time of member and service here and of the backup's process, ns.
    pub service_cpu_ns: u64,
    pub backup_cpu_ns: u64,
    pub peak: Option<MemoryUsage>,
    pub plan: ThreadPlan<AgentRole>,
    pub backup_plan: Vec<String>,
    pub threads: [Vec<NamedThread>; 2],
    pub pin_warnings: Vec<String>,
    pub clock_offset_ns: (i64, u64),
    pub difference: Option<String>,
    pub is_one_thread: bool,
    pub cpus: PinnedCpus,
}

/// CPUs of the threads of a clustered run; `None` leaves a thread to the scheduler.
pub(super) struct PinnedCpus {
    pub driver: Option<Vec<usize>>,
    pub primary: Option<Vec<usize>>,
    pub backup: Option<String>,
}

/// Restores this thread's CPUs when dropped, or the next row's backup would have to share them.
struct PinGuard(Vec<usize>);

impl PinGuard {
    fn to(cpus: &[usize]) -> Self {
        let before = available_cpus().into_iter().collect();
        // Unpinned it is slower, not wrong.
        let _ = pin_current_thread(cpus);
        Self(before)
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        // Unpinned the next row is slower, not wrong.
        let _ = pin_current_thread(&self.0);
    }
}

fn backup<'a>(settings: &RunSettings, interrupted: &'a AtomicBool) -> Result<(Option<Child<'a>>, BackupConnection)> {
    let cluster = settings.cluster.as_ref().expect("a clustered run");
    if cluster.role.is_some() {
        let address = match &cluster.backup_address {
            Some(address) if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                address.clone()
            }
            Some(host) => format!("{host}:{}", BACKUP_ADDRESS.rsplit_once(':').expect("it has a port").1),
            None => super::discovery::find(cluster.discovery_interface)?.to_string(),
        };
        return Ok((None, BackupConnection::to(&address)?));
    }
    let mut child = Child::start(NAME, "the backup", (ChildRole::CanonicalBackup, &()), interrupted)?;
    let address: SocketAddr = child.receive()?;
    Ok((Some(child), BackupConnection::to(&address.to_string())?))
}

fn config(settings: &RunSettings, member: u64, addresses: [&str; 2], cpus: Option<&[usize]>) -> String {
    let plan = match settings.cpu {
        CpuConfiguration::Min => "min",
        CpuConfiguration::Default => "default",
        CpuConfiguration::Max => "max",
    };
    let optimize_for = if settings.mode == RunMode::Throughput { "throughput" } else { "latency" };
    let journal = settings.journal.as_ref().expect("a replicated tier has a journal");
    let flush = match journal.mapped {
        Some(true) => "flush = \"mapped\"\n",
        Some(false) => "flush = \"write\"\n",
        None => "",
    };
    let pinned = cpus.map_or(String::new(), cpus_line);
    let replication = replication(settings, member);
    // The primary is to lead: its backup waits longer for a leader, and is not taken in by a primary that is busy.
    let timeout = if member == PRIMARY { "1 s" } else { "5 s" };
    format!(
        "[cluster]\nname = \"canonical\"\nmember = {member}\ntier = \"{}\"\n\
         [[member]]\nid = {PRIMARY}\naddresses = [{:?}]\n[[member]]\nid = {BACKUP}\naddresses = [{:?}]\n\
         [election]\ntimeout = \"{timeout}\"\nheartbeat_interval = \"50 ms\"\n\
         [stream]\nwindow = \"16 MiB\"\nmessage_length_max = \"1 MiB\"\n\
         [journal]\nsegment_length = {}\nfirst_segment_length = {}\nzero_initial = {}\nzero_first = true\nwrite_buffer = {}\n{flush}{replication}\
         [threads]\nplan = \"{plan}\"\noptimize_for = \"{optimize_for}\"\n{pinned}",
        settings.tier,
        addresses[0],
        addresses[1],
        journal.initial_length_bytes,
        journal.initial_length_bytes,
        journal.zero_out_initial,
        journal.write_buffer_bytes,
    )
}

fn replication(settings: &RunSettings, member: u64) -> String {
    let cluster = settings.cluster.as_ref().expect("a clustered run");
    let threads = &cluster.threads;
    let detached_dispatch = threads.detached_dispatch || threads.dispatcher.is_some();
    let flush_on_commit = settings.journal.as_ref().is_some_and(|journal| journal.flush_on_commit);
    let mut text = format!(
        "[replication]\nspin = {}\ndetached_send = {}\ndetached_dispatch = {detached_dispatch}\nflush_on_commit = {flush_on_commit}\n",
        threads.spins, threads.detached_send
    );
    let mut put_cpus = |key: &str, cpus: Option<Vec<usize>>| {
        if let Some(cpus) = cpus {
            let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
            text += &format!("{key} = \"{}\"\n", list.join(","));
        }
    };
    let cpus = |mask: &Option<CpuMask>| mask.as_ref().map(CpuMask::cpus);
    // The primary's member may take turns with a driver that is pinned, and starts this thread there.
    let anywhere = (threads.detached_send && member == PRIMARY).then(|| available_cpus().into_iter().collect());
    put_cpus("send_cpus", cpus(&threads.sender).or(anywhere));
    put_cpus("dispatch_cpus", cpus(&threads.dispatcher));
    if settings.tier == RunTier::QuorumSync {
        put_cpus("sync_cpus", cpus(&settings.affinity.persister));
    }
    if let Some(depth) = settings.detached_send_queue_depth.filter(|_| member == PRIMARY) {
        put_cpus("reply_cpus", cpus(&settings.affinity.sender));
        text += &format!("detached_replies = true\nreply_queue_depth = {depth}\n");
    }
    text
}

fn socket_of(directory: &Path, member: u64) -> String {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    format!("shm:{}", directory.join(format!("link-{member}")).display())
}

/// One CPU each on this machine, or all of its own.
struct PlannedCpus {
    primary: Option<Vec<usize>>,
    driver: Option<Vec<usize>>,
    backup: Option<Vec<usize>>,
}

fn cpus_of(settings: &RunSettings) -> PlannedCpus {
    let cluster = settings.cluster.as_ref().expect("a clustered run");
    let masked = |mask: &Option<CpuMask>| mask.as_ref().map(CpuMask::cpus);
    let pair = pair_of_cores().filter(|_| cluster.role.is_none());
    let (driver, service) = (masked(&settings.affinity.injector), masked(&settings.affinity.service));
    let (driver, service) = if cluster.is_one_thread { (None, service.or(driver)) } else { (driver, service) };
    PlannedCpus {
        primary: service.or_else(|| pair.map(|(first, _)| vec![first])),
        driver,
        backup: masked(&cluster.backup_cpus).or_else(|| pair.map(|(_, second)| vec![second])),
    }
}

pub(super) fn run(
    form: &CarFunctions,
    settings: &RunSettings,
    run_directory: &RunDirectory,
    shown: RunProgress<'_>,
) -> Result<ClusteredResult> {
    let cluster = settings.cluster.as_ref().expect("a clustered run");
    debug_assert_ne!(cluster.role, Some(HostRole::Backup), "that one has no runs of its own");
    let (mut child, mut connection) = backup(settings, shown.interrupted)?;
    let run = run_with_backup(form, settings, run_directory, (child.is_some(), &mut connection), shown);
    drop(connection);
    match (child.as_mut().map_or(Ok(()), Child::check_running), run) {
        (_, Ok(run)) => child.map_or(Ok(()), finish).map(|()| run),
        // The end of the backup is the cause.
        (looked, Err(error)) => Err(looked.err().unwrap_or(error)),
    }
}

fn run_with_backup(
    form: &CarFunctions,
    settings: &RunSettings,
    run_directory: &RunDirectory,
    (is_child, backup): (bool, &mut BackupConnection),
    shown: RunProgress<'_>,
) -> Result<ClusteredResult> {
    let cluster = settings.cluster.as_ref().expect("a clustered run");
    let (cpus_of, is_one_thread) = (cpus_of(settings), cluster.is_one_thread);
    let clock_offset_ns = backup.clock_offset_ns()?;
    let here = cluster.interface.filter(|address| !address.is_unspecified()).map(std::net::IpAddr::V4);
    let here = here.map_or_else(|| backup.own_ip(), Ok)?;
    let own_port = free_ports(here, 1)?[0];
    let BackupAnswer::Port(port) = backup.ask(&BackupRequest::Port)? else { return Err(not_answered("a port")) };
    let addresses = match cluster.link {
        ReplicationLink::Tcp => [format!("{here}:{own_port}"), format!("{}:{port}", backup.other_ip()?)],
        ReplicationLink::SharedMemory => [PRIMARY, BACKUP].map(|member| socket_of(run_directory.path(), member)),
    };
    let addresses = [&*addresses[0], &*addresses[1]];
    let assignment = BackupAssignment {
        config: config(settings, BACKUP, addresses, cpus_of.backup.as_deref()),
        encoding: settings.encoding.to_string(),
        program: settings.program.to_string(),
        parent: is_child.then(|| run_directory.path().to_owned()),
        is_kept: settings.journal.as_ref().is_some_and(|journal| journal.directory.is_some()),
    };
    let BackupAnswer::Started { cpus: backup_cpus, plan: backup_plan } =
        backup.ask(&BackupRequest::Start(Box::new(assignment)))?
    else {
        return Err(not_answered("that its member runs"));
    };
    let directory = run_directory.path().join("primary");
    let member = parse(&config(settings, PRIMARY, addresses, cpus_of.primary.as_deref()), &directory)?;
    let pinned_driver = if is_one_thread { cpus_of.primary.clone() } else { cpus_of.driver.clone() };
    let (clock, _) = Clock::fastest();
    let mut primary = Primary {
        replica: form.start_replica(settings.program, is_one_thread, &member).map_err(failed)?,
        is_one_thread,
        clock,
        shown,
    };
    // After its start, so that the helpers' threads run where there is room.
    let pinned = cpus_of.primary.as_ref().filter(|_| is_one_thread).or(cpus_of.driver.as_ref());
    let pinned = pinned.map(|cpus| PinGuard::to(cpus));
    primary.lead(backup)?;
    let mut observer = primary.replica.connect(ClientOptions::default()).map_err(failed)?;
    let before = query(&mut observer, &mut || primary.turn())?;
    let mut client = primary.replica.connect(client_options()).map_err(failed)?;
    let (outcome, service_cpu_ns) = primary.drive(form, &mut client, settings)?;
    let peak = memory();
    let after = query(&mut observer, &mut || primary.turn())?;
    let difference = primary.compare(&directory, backup)?;
    let plan = primary.replica.plan().clone();
    let pin_warnings = primary.replica.member().stream().pin_warnings();
    let own_threads = of_this_process();
    let BackupAnswer::Stopped { cpu_ns, threads: backup_threads } =
        backup.ask_while(&BackupRequest::Stop, || primary.turn())?
    else {
        return Err(not_answered("that its member has stopped"));
    };
    drop((client, observer));
    drop(pinned);
    primary.replica.stop().map_err(failed)?;
    Ok(ClusteredResult {
        outcome,
        before,
        after,
        service_cpu_ns,
        backup_cpu_ns: cpu_ns,
        peak,
        plan,
        backup_plan,
        threads: [own_threads, backup_threads],
        pin_warnings,
        clock_offset_ns,
        difference,
        is_one_thread,
        cpus: PinnedCpus { driver: pinned_driver, primary: cpus_of.primary, backup: backup_cpus },
    })
}

struct Primary<'a> {
    replica: Replica,
    is_one_thread: bool,
    clock: Clock,
    shown: RunProgress<'a>,
}

impl Primary<'_> {
    /// No-op unless this thread runs the agents; returns the work done.
    #[inline]
    fn turn(&mut self) -> Result<usize> {
        if !self.is_one_thread {
            return Ok(0);
        }
        self.replica.turn(self.clock.now()).map_err(failed)
    }

    fn until(&mut self, what: &str, mut is_done: impl FnMut(&mut Self) -> Result<bool>) -> Result<()> {
        let since = Instant::now();
        while !is_done(self)? {
            self.turn()?;
            if let Some(failure) = self.replica.failure() {
                return Err(failed(failure));
            }
            if since.elapsed() > TIMEOUT {
                return Err(failed(format!("{what} took longer than {} s", TIMEOUT.as_secs())));
            }
        }
        Ok(())
    }

    fn lead(&mut self, backup: &mut BackupConnection) -> Result<()> {
        let mut asked = Instant::now();
        self.until("an election", |primary| {
            // A later interrupt cuts the run short; the results so far are combined.
            if primary.shown.interrupted.load(Ordering::Relaxed) {
                return Err(failed("interrupted"));
            }
            let Some(status) = primary.replica.member().status() else { return Ok(false) };
            let is_beside = status.links.iter().all(|(_, is_connected, _)| *is_connected);
            if status.consensus.role == MemberRole::Leader {
                return Ok(is_beside);
            }
            if status.consensus.leader.is_some() && asked.elapsed() > Duration::from_millis(200) {
                backup.ask_while(&BackupRequest::HandOver, || primary.turn())?;
                asked = Instant::now();
            }
            Ok(false)
        })
    }

    fn drive(
        &mut self,
        form: &CarFunctions,
        client: &mut PolledClient,
        settings: &RunSettings,
    ) -> Result<(LoadOutcome, u64)> {
        let mut load = load_of(settings);
        if self.is_one_thread {
            // All that is sent in one turn goes to the backup at once.
            load.burst_messages = BURST_MESSAGES_ONE_THREAD;
        }
        let (shown, signals) = (self.shown, DriverSignals::default());
        let mut hook = |recorder: &mut IntervalRecorder| shown.print_intervals(recorder);
        let (clock, done) = (Clock::fastest().0, AtomicBool::new(false));
        let cpu_before_ns = process_cpu_ns();
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| shown.follow(&signals, load.count, load.rate_per_s.is_some(), &done));
            let driven = if self.is_one_thread {
                drive_by_hand(form, client, &load, &clock, &signals, &mut hook, &mut self.replica)
            } else {
                let pauses = || self.replica.member().stream().pauses().into_iter().sum();
                drive(form, client, &load, &clock, &signals, &mut hook, &pauses)
            };
            done.store(true, Ordering::Release);
            driven
        })
        .map_err(|error| self.why(error))?;
        let whole_ns = process_cpu_ns() - cpu_before_ns;
        // On one thread the driver's share cannot be told apart.
        let service_ns = if self.is_one_thread {
            outcome.process_cpu_ns
        } else {
            outcome.process_cpu_ns.saturating_sub(outcome.driver_cpu_ns)
        };
        debug_assert!(service_ns <= whole_ns);
        Ok((outcome, service_ns))
    }

    /// The cause of a driver's error, where the member knows it: the reason of its stop, or the loss of its lead.
    fn why(&self, error: BenchError) -> BenchError {
        if let Some(failure) = self.replica.failure() {
            return failed(failure);
        }
        match self.replica.member().status() {
            Some(status) if status.consensus.role != MemberRole::Leader => failed(format!(
                "{error}; the primary has lost its lead in term {}: it did not hear from the backup within the election timeout, as \
                 where more threads are hot than there are CPUs",
                status.consensus.term
            )),
            _ => error,
        }
    }

    fn compare(&mut self, directory: &Path, backup: &mut BackupConnection) -> Result<Option<String>> {
        let own = CopySnapshot::of(directory, self.snapshot()?)?;
        let mut there = None;
        let mut asked = Instant::now();
        self.until("the backup's copy", |primary| {
            if asked.elapsed() < Duration::from_millis(20) {
                return Ok(false);
            }
            let answer = backup.ask_while(&BackupRequest::State, || primary.turn())?;
            let BackupAnswer::State(copy) = answer else { return Err(not_answered("its copy's state")) };
            asked = Instant::now();
            let is_there = copy.sequence >= own.sequence;
            there = Some(copy);
            Ok(is_there)
        })?;
        Ok(there
            .filter(|there| *there != own)
            .map(|there| format!("the backup's copy is {there:?}, the primary's {own:?}")))
    }

    /// Takes a snapshot of the service here; the agents go on meanwhile.
    fn snapshot(&mut self) -> Result<u64> {
        if !self.is_one_thread {
            return self.replica.snapshot().map_err(failed);
        }
        let requests = self.replica.snapshots().ok_or_else(|| failed("a witness has no copy"))?;
        let (mut taken, asking) = (None, std::thread::spawn(move || requests.take(|| None)));
        self.until("a snapshot", |_| Ok(asking.is_finished()))?;
        if let Ok(outcome) = asking.join() {
            taken = Some(outcome.map_err(failed)?);
        }
        taken.ok_or_else(|| failed("the snapshot panicked"))
    }
}
