//! The command line of `gapless bench canonical`. Names of published command lines are aliases, and the short letters
//! are theirs, so that such lines run unchanged. Only single values are checked here; see [`super::settings`].

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;

use gapless_load::values::{
    CpuConfiguration, CpuMask, HostRole, MessageEncoding, ReplicationLink, RunMode, RunTier, ServiceKind, decimal,
    whole_number,
};
use gapless_measure::reporting::output_path;
use gapless_measure::workbook::CellAddress;

const EXAMPLES: &str = "\
Examples:
  gapless bench canonical
      latency and throughput, direct and indirect, SBE and protobuf, at tier journal; within 3 minutes
  gapless bench canonical --all --json all.json
      every tier, encoding and CPU configuration
  gapless bench canonical --enable-clustering --all --full --tier quorum --json published.json
      the published matrix with the counts of the published runs, over an hour
  gapless bench canonical --mode throughput --tier sync
      the short matrix, only these rows
  gapless bench canonical -l sbe.serial -c 600000 -r 10000 -t 10 -e --hlog run.hlog
      one run: 600,000 messages at 10,000 a second, 10 s of warm-up, tier journal
  gapless bench canonical -l quark.serial -c 5,000,000 -e -d -x '[1]' --mode throughput
      one run as fast as possible, the persister on CPU 1
  gapless bench canonical -c 600000 -r 10000 -e -O results.xlsx -C 5-3
      one run; its median goes to row 5, column 3 of an existing workbook

  gapless bench canonical --enable-clustering --json clustered.json
      the short matrix on primary and backup, two processes of this machine; within 3 minutes
  gapless bench canonical -v -e --mode latency -c 1000000
      one run with the published options: protobuf.serial at 100,000 messages a second
  gapless bench canonical -v -e -W -V '[1]' -S -A '[2]' -D -B '[3]' -u -n 4096 -o '[4]' -c 1000000
      the same with the detached threads of the reference, each on a CPU of its own
  gapless bench canonical --role backup
  gapless bench canonical --enable-clustering --role primary --backup-address host2:4300
      the same on two hosts, one command each

With none of the options of the groups General, Output, Affinity, Bus, Persistence and Cluster but --enable-clustering, \
--clustering-interface, --discovery-interface, --role, --backup-address and --replication-link, a short matrix is run; with any of them it is a single run with their defaults.";

/// Options as typed. `None` and `false` mean "not given": whether a default applies depends on the rest.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct CanonicalArguments {
    /// Message encoding: sbe.serial, sbe.random, protobuf.serial, protobuf.random (quark.* and xbuf2.* are other names) [default: protobuf.serial]
    #[arg(long, short = 'l', value_name = "ENCODING", help_heading = GENERAL)]
    pub encoding: Option<MessageEncoding>,

    /// Messages to inject [default: 10,000,000]
    #[arg(long, short = 'c', value_name = "MESSAGES", help_heading = GENERAL,
          allow_hyphen_values = true, value_parser = count)]
    pub count: Option<u64>,

    /// Messages per second [default: 100,000; in mode throughput: no limit]
    #[arg(long, short = 'r', value_name = "PER_SECOND", help_heading = GENERAL,
          allow_hyphen_values = true, value_parser = rate)]
    pub rate: Option<u64>,

    /// Seconds before figures are collected, at most half of the messages [default: 2]
    #[arg(long, short = 't', alias = "warmupTime", value_name = "SECONDS", help_heading = GENERAL,
          allow_hyphen_values = true, value_parser = warm_up_seconds)]
    pub warmup_time: Option<f64>,

    /// Leave the fields of the message unset
    #[arg(long, short = 'E', alias = "emptyMessage", help_heading = GENERAL)]
    pub empty_message: bool,

    /// Write no latency data file (.hlog)
    #[arg(long, short = 'a', alias = "noLatencyWrites", help_heading = GENERAL)]
    pub no_latency_writes: bool,

    /// Print interval figures during the run, on stderr
    #[arg(long, short = 'b', alias = "printIntervalStats", help_heading = GENERAL)]
    pub print_interval_stats: bool,

    /// Excel file to write the results to: a new one, or with --output-cell an existing one
    #[arg(long, short = 'O', alias = "outputFile", value_name = "FILE", help_heading = OUTPUT)]
    pub output_file: Option<PathBuf>,

    /// Cell of the first sheet of an existing workbook, ROW-COL, both from 1 (5-3 is C5); the rest of it stays as it is
    #[arg(long, short = 'C', alias = "outputCell", value_name = "ROW-COL", help_heading = OUTPUT,
          allow_hyphen_values = true)]
    pub output_cell: Option<CellAddress>,

    /// Write the throughput (messages a second) to the cell instead of the latency (median, microseconds)
    #[arg(long, short = 'T', alias = "outputThroughput", help_heading = OUTPUT)]
    pub output_throughput: bool,

    /// CPUs of the injecting thread, such as `[1]` or `[2,3]`
    #[arg(long, short = 'j', alias = "injectorCPUAffinityMask", value_name = "CPUS", help_heading = AFFINITY)]
    pub injector_cpu_mask: Option<CpuMask>,

    /// CPUs of the business logic thread
    #[arg(long, short = 'y', alias = "muxCPUAffinityMask", value_name = "CPUS", help_heading = AFFINITY)]
    pub service_cpu_mask: Option<CpuMask>,

    /// CPUs of the detached sender
    #[arg(long, short = 'o', alias = "busDetachedSendCPUAffinityMask", value_name = "CPUS", help_heading = AFFINITY)]
    pub detached_send_cpu_mask: Option<CpuMask>,

    /// Send replies on a thread of its own
    #[arg(long, short = 'u', alias = "busDetachedSend", help_heading = BUS)]
    pub detached_send: bool,

    /// Depth of the detached sender's queue, messages [default: 1024]
    #[arg(long, short = 'n', alias = "busDetachedSendQueueDepth", value_name = "MESSAGES", help_heading = BUS,
          allow_hyphen_values = true, value_parser = queue_depth)]
    pub detached_send_queue_depth: Option<u64>,

    /// Keep a transaction log: tier journal
    #[arg(long, short = 'e', alias = "enablePersistence", help_heading = PERSISTENCE)]
    pub enable_persistence: bool,

    /// Directory of the log, which is kept; one node continues it, a cluster begins with an empty one [default: a new one in the
    /// current directory, removed after the run]
    #[arg(long, short = 'k', alias = "persisterLogLocation", value_name = "DIRECTORY", help_heading = PERSISTENCE)]
    pub log_location: Option<PathBuf>,

    /// Length of a segment of the log, GiB, may be a fraction; the first is written full of zeros beforehand [default: 1]
    #[arg(long, short = 'i', alias = "persisterInitialLogLength", value_name = "GIB", help_heading = PERSISTENCE,
          allow_hyphen_values = true, value_parser = log_length)]
    pub initial_log_length: Option<f64>,

    /// Write later segments full of zeros, too, before they are used
    #[arg(long, short = 'z', alias = "persisterZeroOutInitial", help_heading = PERSISTENCE)]
    pub zero_out_initial: bool,

    /// Write buffer of the log, bytes [default: 8192]
    #[arg(long, short = 'w', alias = "persisterWriteBufferSize", value_name = "BYTES", help_heading = PERSISTENCE,
          allow_hyphen_values = true, value_parser = write_buffer_size)]
    pub write_buffer_size: Option<u64>,

    /// Flush the log on every commit (a flush is not a sync)
    #[arg(long, short = 'f', alias = "persisterFlushOnCommit", help_heading = PERSISTENCE)]
    pub flush_on_commit: bool,

    /// Flush through a memory mapping
    #[arg(long, short = 'm', alias = "persisterFlushUsingMappedMemory", help_heading = PERSISTENCE)]
    pub flush_using_mapped_memory: bool,

    /// Persist on a thread of its own; in a cluster the sync of tier quorum-sync always does, and the journal never
    #[arg(long, short = 'd', alias = "persisterDetached", help_heading = PERSISTENCE)]
    pub detached_persister: bool,

    /// CPUs of the detached persister; in a cluster of the thread that syncs, at tier quorum-sync
    #[arg(long, short = 'x', alias = "persisterWriterCPUAffinityMask", value_name = "CPUS", help_heading = PERSISTENCE)]
    pub persister_cpu_mask: Option<CpuMask>,

    /// Primary and backup: a cluster of two members, tier quorum
    #[arg(long, short = 'v', alias = "enableClustering", help_heading = CLUSTER)]
    pub enable_clustering: bool,

    /// Address of this primary for the backup [default: that of the interface towards the backup]
    #[arg(long, short = 'I', alias = "clusteringLocalIfAddr", value_name = "ADDRESS", help_heading = CLUSTER)]
    pub clustering_interface: Option<Ipv4Addr>,

    /// Address of the interface on which the backup is looked for by multicast [default: 0.0.0.0]
    #[arg(long, short = 'U', alias = "clusteringDiscoveryLocalIfAddr", value_name = "ADDRESS", help_heading = CLUSTER)]
    pub discovery_interface: Option<Ipv4Addr>,

    /// Spin on replication reads: the threads of both members never park where they have a core
    #[arg(long, short = 'W', alias = "clusteringLinkSpinRead", help_heading = CLUSTER)]
    pub replication_spin_read: bool,

    /// CPUs of the backup's member, which reads replication
    #[arg(long, short = 'V', alias = "clusteringLinkReaderCPUAffinityMask", value_name = "CPUS", help_heading = CLUSTER)]
    pub replication_reader_cpu_mask: Option<CpuMask>,

    /// Send replication on a thread of its own, over TCP; without it a member sends in its own turn
    #[arg(long, short = 'S', alias = "clusteringDetachedSend", help_heading = CLUSTER)]
    pub replication_detached_send: bool,

    /// CPUs of that thread, of the primary and of the backup
    #[arg(long, short = 'A', alias = "clusteringDetachedSenderCPUAffinityMask", value_name = "CPUS",
          help_heading = CLUSTER)]
    pub replication_sender_cpu_mask: Option<CpuMask>,

    /// Dispatch replicated messages to the service on a thread of its own
    #[arg(long, short = 'D', alias = "clusteringDetachedDispatch", help_heading = CLUSTER)]
    pub replication_detached_dispatch: bool,

    /// CPUs of that thread, of the primary and of the backup
    #[arg(long, short = 'B', alias = "clusteringDetachedDispatcherCPUAffinityMask", value_name = "CPUS",
          help_heading = CLUSTER)]
    pub replication_dispatcher_cpu_mask: Option<CpuMask>,

    /// Quantity to optimize for and to measure [default: both in the matrix, latency in a single run]
    #[arg(long, value_enum, ignore_case = true, help_heading = OURS)]
    pub mode: Option<RunMode>,

    /// Event sourcing or state replication [default: es; both in the clustered matrix]
    #[arg(long, value_enum, ignore_case = true, help_heading = OURS)]
    pub program: Option<ServiceKind>,

    /// Threads: one hot thread, by the number of cores, or one for each agent [default: default]
    #[arg(long, value_enum, ignore_case = true, help_heading = OURS)]
    pub cpu: Option<CpuConfiguration>,

    /// Durability of a message before anyone acts on it [default: quorum with --enable-clustering; else journal in the matrix, and in a single run journal with --enable-persistence and memory without]
    #[arg(long, value_enum, ignore_case = true, help_heading = OURS)]
    pub tier: Option<RunTier>,

    /// Role of this process in a cluster on two hosts; the backup is started first, and takes --backup-address, --discovery-interface, --log-location and --replication-reader-cpu-mask alone
    #[arg(long, value_enum, ignore_case = true, value_name = "ROLE", help_heading = CLUSTER)]
    pub role: Option<HostRole>,

    /// Listen address of the backup, also for the primary [default of the backup: 0.0.0.0:4300; the
    /// primary looks for it by multicast]
    #[arg(long, value_name = "HOST:PORT", help_heading = CLUSTER)]
    pub backup_address: Option<String>,

    /// Link between primary and backup; shared memory where both are on this machine [default: tcp]
    #[arg(long, value_enum, ignore_case = true, value_name = "LINK", help_heading = CLUSTER)]
    pub replication_link: Option<ReplicationLink>,

    /// Run every tier, encoding and CPU configuration
    #[arg(long, help_heading = OURS)]
    pub all: bool,

    /// Run the rows of the matrix briefly, as a functional check
    #[arg(long, help_heading = OURS)]
    pub quick: bool,

    /// Run the matrix with the published counts: 600,000 messages at 10,000/s after 10 s of warm-up, and 5,000,000 as
    /// fast as possible after 2 s
    #[arg(long, help_heading = OURS)]
    pub full: bool,

    /// Exit with 1 if a rate was not reached; by default its row is marked, and only a failed check exits with 1
    #[arg(long, help_heading = OURS)]
    pub strict: bool,

    /// Write the report as one JSON object; - is stdout, and then nothing else is printed there
    #[arg(long, value_name = "FILE", value_parser = output_path(), help_heading = OURS)]
    pub json: Option<PathBuf>,

    /// Write the latencies as an HdrHistogram interval log [default: next to --json; canonical.hlog in a single run]
    #[arg(long, value_name = "FILE", value_parser = output_path(), help_heading = OURS)]
    pub hlog: Option<PathBuf>,

    /// Number of sessions of the messages [default: 1 in mode latency, 1000 in mode throughput]
    #[arg(long, value_name = "SESSIONS", help_heading = OURS, allow_hyphen_values = true, value_parser = sessions)]
    pub sessions: Option<u64>,

    /// Percentage of commands that are sent twice [default: 1]
    #[arg(long, value_name = "PERCENT", help_heading = OURS, allow_hyphen_values = true, value_parser = percent)]
    pub repeat_percent: Option<f64>,

    /// Client processes next to the service's process; without them the driver runs in the service's process
    #[arg(long, value_name = "PROCESSES", help_heading = OURS, allow_hyphen_values = true, value_parser = processes)]
    pub client_processes: Option<u64>,
}

const GENERAL: &str = "General";
const OUTPUT: &str = "Output";
const AFFINITY: &str = "Affinity";
const BUS: &str = "Bus";
const PERSISTENCE: &str = "Persistence";
const CLUSTER: &str = "Cluster";
const OURS: &str = "Configuration and reports";

impl CanonicalArguments {
    /// Whether none of the reference's options is given. Mode, program, CPU configuration, tier and report files are
    /// ours: they choose from the matrix.
    pub fn is_default_matrix(&self) -> bool {
        let ours = Self {
            mode: self.mode,
            program: self.program,
            cpu: self.cpu,
            tier: self.tier,
            role: self.role,
            backup_address: self.backup_address.clone(),
            replication_link: self.replication_link,
            enable_clustering: self.enable_clustering,
            clustering_interface: self.clustering_interface,
            discovery_interface: self.discovery_interface,
            all: self.all,
            quick: self.quick,
            full: self.full,
            json: self.json.clone(),
            hlog: self.hlog.clone(),
            sessions: self.sessions,
            repeat_percent: self.repeat_percent,
            client_processes: self.client_processes,
            ..Self::default()
        };
        *self == ours
    }
}

fn count(text: &str) -> Result<u64, String> {
    whole_number(text, 1_000_000_000_000)
}

fn rate(text: &str) -> Result<u64, String> {
    whole_number(text, 1_000_000_000)
}

fn warm_up_seconds(text: &str) -> Result<f64, String> {
    decimal(text, 0.0, 86_400.0, "seconds")
}

fn queue_depth(text: &str) -> Result<u64, String> {
    whole_number(text, 1 << 24)
}

fn log_length(text: &str) -> Result<f64, String> {
    // Not less than 1 MiB: a journal of a few frames is a mistake of units.
    decimal(text, 1.0 / 1024.0, 65_536.0, "GiB")
}

fn write_buffer_size(text: &str) -> Result<u64, String> {
    whole_number(text, 1 << 30)
}

fn sessions(text: &str) -> Result<u64, String> {
    whole_number(text, 1_000_000)
}

fn percent(text: &str) -> Result<f64, String> {
    decimal(text, 0.0, 100.0, "percent")
}

fn processes(text: &str) -> Result<u64, String> {
    whole_number(text, 64)
}
