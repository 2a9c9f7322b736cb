//! Defaults, validation and the matrix: from the typed options to the runs. Pure, except
//! [`CanonicalArguments::resolve_here`]. An error stops before anything runs; a warning goes to stderr and into the
//! report.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::arguments::CanonicalArguments;
use crate::Result;
use gapless_load::values::{
    CpuConfiguration, CpuMask, HostRole, MessageAccess, MessageEncoding, ReplicationLink, RunMode, RunTier, ServiceKind,
};
use gapless_measure::affinity::available_cpus;
use gapless_measure::workbook::CellAddress;

#[derive(Debug, Clone, PartialEq)]
pub struct CanonicalOptions {
    pub plan: RunPlan,
    pub output: OutputSettings,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RunPlan {
    Single(Box<RunSettings>),
    Matrix(Vec<RunSettings>),
}

impl RunPlan {
    pub fn runs(&self) -> &[RunSettings] {
        match self {
            Self::Single(run) => std::slice::from_ref(run),
            Self::Matrix(runs) => runs,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    pub program: ServiceKind,
    pub mode: RunMode,
    /// The access follows from it.
    pub encoding: MessageEncoding,
    pub tier: RunTier,
    pub cpu: CpuConfiguration,
    /// Warm-up included.
    pub count: u64,
    /// `None`: as fast as possible.
    pub rate_per_s: Option<u64>,
    /// Warm-up, ns; see `crate::open_loop::WarmUp`.
    pub warm_up_ns: u64,
    pub empty_message: bool,
    pub sessions: u64,
    pub repeats_per_million: u32,
    /// 0: a driver in the service's process.
    pub client_processes: u32,
    pub affinity: Affinity,
    /// `None` sends on the business logic's thread, unless `cpu` says otherwise.
    pub detached_send_queue_depth: Option<usize>,
    /// `None` at tier `memory`.
    pub journal: Option<JournalSettings>,
    /// `None` is one node.
    pub cluster: Option<ClusterSettings>,
}

impl RunSettings {
    pub(super) fn is_usual(&self) -> bool {
        let is_latency = self.rate_per_s.is_some();
        !is_latency || (self.sessions == 1 && self.rate_per_s == Some(matrix::LATENCY_RATE_PER_S))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// `None` runs both members on this machine.
    pub role: Option<HostRole>,
    /// Address for the other member.
    pub interface: Option<Ipv4Addr>,
    /// Interface on which the backup is looked for.
    pub discovery_interface: Option<Ipv4Addr>,
    /// Address at which the backup listens for its primary.
    pub backup_address: Option<String>,
    pub link: ReplicationLink,
    pub backup_cpus: Option<CpuMask>,
    pub is_one_thread: bool,
    pub threads: ReplicationThreads,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicationThreads {
    pub spins: bool,
    pub detached_send: bool,
    pub sender: Option<CpuMask>,
    pub detached_dispatch: bool,
    pub dispatcher: Option<CpuMask>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Affinity {
    pub injector: Option<CpuMask>,
    pub service: Option<CpuMask>,
    pub sender: Option<CpuMask>,
    pub persister: Option<CpuMask>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalSettings {
    /// `None`: one of the run's own, removed after it.
    pub directory: Option<PathBuf>,
    /// Segment length; the first segment is zeroed before the run.
    pub initial_length_bytes: u64,
    /// Whether later segments are zeroed, too.
    pub zero_out_initial: bool,
    pub write_buffer_bytes: usize,
    pub flush_on_commit: bool,
    /// `Some(true)` flushes through a mapping, `Some(false)` by `pwrite`; `None` lets the journal choose.
    pub mapped: Option<bool>,
    /// Persister on its own thread; `None` leaves it to the CPU configuration.
    pub detached: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputSettings {
    pub json: Option<PathBuf>,
    pub hlog: Option<HlogTarget>,
    pub workbook: Option<WorkbookTarget>,
    pub print_interval_stats: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HlogTarget {
    pub path: PathBuf,
    /// Whether the user named it; if not, the program says where it is.
    pub named: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkbookTarget {
    pub path: PathBuf,
    /// A cell of an existing workbook; `None` for a new one.
    pub cell: Option<CellAddress>,
    pub figure: SheetFigure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SheetFigure {
    /// Median latency, µs.
    LatencyP50,
    Throughput,
}

impl OutputSettings {
    pub fn json_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }
}

const DEFAULT_HLOG: &str = "canonical.hlog";

pub const BACKUP_ADDRESS: &str = "0.0.0.0:4300";

impl CanonicalArguments {
    /// Validates against the CPUs that this process may use.
    ///
    /// # Errors
    /// See [`CanonicalArguments::resolve`].
    pub fn resolve_here(&self) -> Result<CanonicalOptions> {
        self.resolve(&available_cpus())
    }

    /// Applies the defaults and validates.
    ///
    /// # Errors
    /// When options contradict each other, or the mode of the run has no use for one.
    pub fn resolve(&self, available: &BTreeSet<usize>) -> Result<CanonicalOptions> {
        self.refuse_contradictions()?;
        self.refuse_what_the_mode_has_not(available)?;
        let mut warnings = Vec::new();
        self.warn_of_what_has_no_effect(&mut warnings);
        let plan = if self.is_default_matrix() {
            RunPlan::Matrix(self.matrix(available))
        } else {
            RunPlan::Single(Box::new(self.single(available, &mut warnings)))
        };
        Ok(CanonicalOptions { plan, output: self.output(), warnings })
    }

    pub const fn is_clustered(&self) -> bool {
        self.enable_clustering || self.role.is_some()
    }

    /// Serves a primary of another host, until it is told to end.
    #[must_use]
    pub fn is_backup(&self) -> bool {
        self.role == Some(HostRole::Backup)
    }

    fn cluster(&self, cpu: CpuConfiguration, available: &BTreeSet<usize>) -> Option<ClusterSettings> {
        self.is_clustered().then(|| ClusterSettings {
            is_one_thread: self.is_one_thread(cpu, available),
            role: self.role,
            interface: self.clustering_interface,
            discovery_interface: self.discovery_interface,
            backup_address: self.backup_address.clone(),
            link: self.replication_link.unwrap_or_default(),
            backup_cpus: self.replication_reader_cpu_mask.clone(),
            threads: ReplicationThreads {
                spins: self.replication_spin_read,
                detached_send: self.replication_detached_send,
                detached_dispatch: self.replication_detached_dispatch,
                ..ReplicationThreads::default()
            },
        })
    }

    fn single(&self, available: &BTreeSet<usize>, warnings: &mut Vec<String>) -> RunSettings {
        let tier = self.tier.unwrap_or(if self.is_clustered() {
            RunTier::Quorum
        } else if self.enable_persistence {
            RunTier::Journal
        } else {
            RunTier::Memory
        });
        let cpu = self.cpu.unwrap_or(CpuConfiguration::Default);
        let mut mask = |option: &str, mask: &Option<CpuMask>| {
            let mask = mask.clone()?;
            let missing = mask.missing(available);
            if missing.is_empty() {
                return Some(mask);
            }
            let missing: Vec<String> = missing.iter().map(usize::to_string).collect();
            let missing = missing.join(", ");
            warnings.push(format!("{option} {mask}: CPU {missing} is not there; the thread is not pinned"));
            None
        };
        let affinity = Affinity {
            injector: mask("--injector-cpu-mask", &self.injector_cpu_mask),
            service: mask("--service-cpu-mask", &self.service_cpu_mask),
            sender: mask("--detached-send-cpu-mask", &self.detached_send_cpu_mask),
            persister: mask("--persister-cpu-mask", &self.persister_cpu_mask),
        };
        let mut cluster = self.cluster(cpu, available);
        // The CPUs of a backup on another host are known there.
        if let Some(cluster) = cluster.as_mut().filter(|cluster| cluster.role != Some(HostRole::Primary)) {
            cluster.backup_cpus = mask("--replication-reader-cpu-mask", &self.replication_reader_cpu_mask);
        }
        if let Some(ClusterSettings { threads, .. }) = &mut cluster {
            let has_dispatcher = threads.detached_dispatch || cpu == CpuConfiguration::Max;
            threads.sender = mask("--replication-sender-cpu-mask", &self.replication_sender_cpu_mask);
            threads.sender = threads.sender.take().filter(|_| threads.detached_send);
            threads.dispatcher = mask("--replication-dispatcher-cpu-mask", &self.replication_dispatcher_cpu_mask);
            threads.dispatcher = threads.dispatcher.take().filter(|_| has_dispatcher);
        }
        let mode = self.mode.unwrap_or(RunMode::Latency);
        let default_rate = (mode == RunMode::Latency).then_some(100_000);
        RunSettings {
            count: self.count.unwrap_or(10_000_000),
            rate_per_s: self.rate.or(default_rate),
            warm_up_ns: (self.warmup_time.unwrap_or(2.0) * 1e9) as u64,
            empty_message: self.empty_message,
            affinity,
            detached_send_queue_depth: self
                .detached_send
                .then(|| usize_of(self.detached_send_queue_depth.unwrap_or(1024))),
            journal: (tier != RunTier::Memory).then(|| self.journal()),
            cluster,
            ..self.base(mode, self.encoding.unwrap_or(MessageEncoding::ProtobufSerial), (tier, cpu), available)
        }
    }

    fn journal(&self) -> JournalSettings {
        JournalSettings {
            directory: self.log_location.clone(),
            initial_length_bytes: (self.initial_log_length.unwrap_or(1.0) * GIB) as u64,
            zero_out_initial: self.zero_out_initial,
            write_buffer_bytes: usize_of(self.write_buffer_size.unwrap_or(8192)),
            flush_on_commit: self.flush_on_commit,
            mapped: Some(self.flush_using_mapped_memory),
            detached: self.detached_persister.then_some(true),
        }
    }

    /// Ordered by tier, CPU configuration, mode, encoding.
    fn matrix(&self, available: &BTreeSet<usize>) -> Vec<RunSettings> {
        let choose = |chosen: Option<RunTier>, all: &[RunTier], few: RunTier| {
            chosen.map_or_else(|| if self.all { all.to_vec() } else { vec![few] }, |tier| vec![tier])
        };
        let tiers = if self.is_clustered() {
            choose(self.tier, &[RunTier::Quorum, RunTier::QuorumSync], RunTier::Quorum)
        } else {
            choose(self.tier, &[RunTier::Memory, RunTier::Journal, RunTier::Sync], RunTier::Journal)
        };
        let cpus = match self.cpu {
            Some(cpu) => vec![cpu],
            None if self.all => CpuConfiguration::ALL.to_vec(),
            None => vec![CpuConfiguration::Default],
        };
        let modes = self.mode.map_or_else(|| RunMode::ALL.to_vec(), |mode| vec![mode]);
        let mut runs = Vec::new();
        if self.is_clustered() && self.program.is_none() {
            let of = |program| Self { program: Some(program), ..self.clone() }.matrix(available);
            let mut of_state = of(ServiceKind::Sr);
            // The short matrix ends within its time: of the second program one encoding.
            of_state
                .retain(|run| self.all || self.full || (run.encoding == MessageEncoding::SbeSerial && run.is_usual()));
            return [of(ServiceKind::Es), of_state].concat();
        }
        for &tier in &tiers {
            for &cpu in &cpus {
                for &mode in &modes {
                    let row = |encoding| self.base(mode, encoding, (tier, cpu), available);
                    runs.extend(MessageEncoding::ALL.iter().map(|&encoding| row(encoding)));
                    if mode == RunMode::Latency && self.sessions.is_none() {
                        let spread = row(MessageEncoding::SbeSerial);
                        runs.push(RunSettings { sessions: matrix::SESSIONS, ..spread });
                    }
                    if mode == RunMode::Latency && self.is_clustered() && tier == RunTier::Quorum {
                        runs.extend(matrix::RATES_PER_S.map(|per_s| {
                            let run = row(MessageEncoding::ProtobufSerial);
                            let count = if self.quick { run.count } else { per_s * matrix::RATE_SECONDS };
                            RunSettings { rate_per_s: Some(per_s), count, ..run }
                        }));
                    }
                }
            }
        }
        runs
    }

    fn base(
        &self,
        mode: RunMode,
        encoding: MessageEncoding,
        (tier, cpu): (RunTier, CpuConfiguration),
        available: &BTreeSet<usize>,
    ) -> RunSettings {
        let (mut count, rate_per_s) = match mode {
            RunMode::Latency if self.is_clustered() => {
                (matrix::LATENCY_COUNT_CLUSTERED, Some(matrix::LATENCY_RATE_PER_S))
            }
            RunMode::Latency => (matrix::LATENCY_COUNT, Some(matrix::LATENCY_RATE_PER_S)),
            RunMode::Throughput if matches!(tier, RunTier::Sync | RunTier::QuorumSync) => {
                (matrix::THROUGHPUT_COUNT_SYNC, None)
            }
            RunMode::Throughput if encoding.access() == MessageAccess::Direct && encoding.is_sbe() => {
                (matrix::THROUGHPUT_COUNT, None)
            }
            RunMode::Throughput => (matrix::THROUGHPUT_COUNT_SLOWER, None),
        };
        let mut warm_up_ns = matrix::WARM_UP_NS;
        let mut initial_length_bytes = match mode {
            RunMode::Latency => matrix::INITIAL_LOG_BYTES_LATENCY,
            RunMode::Throughput => matrix::INITIAL_LOG_BYTES_THROUGHPUT,
        };
        if self.full {
            (count, warm_up_ns) = match mode {
                RunMode::Latency => (matrix::FULL_LATENCY_COUNT, matrix::FULL_LATENCY_WARM_UP_NS),
                RunMode::Throughput => (matrix::FULL_THROUGHPUT_COUNT, matrix::FULL_THROUGHPUT_WARM_UP_NS),
            };
        }
        if self.quick {
            (count, warm_up_ns) = (matrix::QUICK_COUNT, matrix::QUICK_WARM_UP_NS);
            initial_length_bytes = matrix::QUICK_INITIAL_LOG_BYTES;
        }
        RunSettings {
            program: self.program.unwrap_or(ServiceKind::Es),
            mode,
            encoding,
            tier,
            cpu,
            count,
            rate_per_s,
            warm_up_ns,
            empty_message: false,
            sessions: self.sessions.unwrap_or(match mode {
                RunMode::Latency => 1,
                RunMode::Throughput => matrix::SESSIONS,
            }),
            repeats_per_million: (self.repeat_percent.unwrap_or(1.0) * 10_000.0).round() as u32,
            client_processes: u32::try_from(self.client_processes.unwrap_or(0)).unwrap_or(u32::MAX),
            affinity: Affinity::default(),
            detached_send_queue_depth: None,
            journal: (tier != RunTier::Memory).then_some(JournalSettings {
                directory: None,
                initial_length_bytes,
                zero_out_initial: true,
                write_buffer_bytes: 8192,
                flush_on_commit: false,
                mapped: None,
                detached: None,
            }),
            cluster: self.cluster(cpu, available),
        }
    }

    fn output(&self) -> OutputSettings {
        let beside_json = || {
            let json = self.json.as_ref().filter(|path| path.as_path() != Path::new("-"))?;
            Some(json.with_extension("hlog")).filter(|hlog| hlog != json)
        };
        let of_a_single_run = || (!self.is_default_matrix()).then(|| PathBuf::from(DEFAULT_HLOG));
        let hlog = match &self.hlog {
            Some(path) => Some(HlogTarget { path: path.clone(), named: true }),
            None if self.no_latency_writes => None,
            None => beside_json().or_else(of_a_single_run).map(|path| HlogTarget { path, named: false }),
        };
        OutputSettings {
            json: self.json.clone(),
            hlog,
            workbook: self.output_file.as_ref().map(|path| WorkbookTarget {
                path: path.clone(),
                cell: self.output_cell,
                figure: if self.output_throughput { SheetFigure::Throughput } else { SheetFigure::LatencyP50 },
            }),
            print_interval_stats: self.print_interval_stats,
        }
    }
}

const GIB: f64 = 1_073_741_824.0;

/// Chosen so that the default matrix, also clustered, ends within three minutes on two cores.
mod matrix {
    pub(super) const SESSIONS: u64 = 1000;
    pub(super) const LATENCY_RATE_PER_S: u64 = 10_000;
    pub(super) const LATENCY_COUNT: u64 = 40_000;
    /// One slice: each has new members, which take seconds to start and stop.
    pub(super) const LATENCY_COUNT_CLUSTERED: u64 = 30_000;
    pub(super) const THROUGHPUT_COUNT: u64 = 3_500_000;
    pub(super) const THROUGHPUT_COUNT_SLOWER: u64 = 2_000_000;
    pub(super) const THROUGHPUT_COUNT_SYNC: u64 = 2_000_000;
    pub(super) const WARM_UP_NS: u64 = 500_000_000;
    pub(super) const RATES_PER_S: [u64; 3] = [50_000, 100_000, 200_000];
    pub(super) const RATE_SECONDS: u64 = 3;
    /// The counts of the published runs.
    pub(super) const FULL_LATENCY_COUNT: u64 = 600_000;
    pub(super) const FULL_LATENCY_WARM_UP_NS: u64 = 10_000_000_000;
    pub(super) const FULL_THROUGHPUT_COUNT: u64 = 5_000_000;
    pub(super) const FULL_THROUGHPUT_WARM_UP_NS: u64 = 2_000_000_000;
    pub(super) const QUICK_COUNT: u64 = 2_000;
    pub(super) const QUICK_WARM_UP_NS: u64 = 20_000_000;
    pub(super) const QUICK_INITIAL_LOG_BYTES: u64 = 4 << 20;
    /// Segment length, zeroed before the run: a virtual machine takes 10 µs for each page that it has not used for a
    /// while. Twice the need, because the next segment is prepared from the half on.
    pub(super) const INITIAL_LOG_BYTES_THROUGHPUT: u64 = 2 << 30;
    pub(super) const INITIAL_LOG_BYTES_LATENCY: u64 = 64 << 20;
}

fn usize_of(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
