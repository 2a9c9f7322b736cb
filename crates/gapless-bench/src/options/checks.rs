//! Refuses contradicting options, and options that the mode of the run has no use for, before anything runs.

use super::arguments::CanonicalArguments;
use crate::{BenchError, Result};
use gapless_load::values::{CpuConfiguration, HostRole, ReplicationLink, RunMode, RunTier};
use std::collections::BTreeSet;

type GivenOptions<'a> = &'a [(bool, &'static str)];

fn first(given: GivenOptions<'_>) -> Option<&'static str> {
    given.iter().find_map(|(given, option)| given.then_some(*option))
}

impl CanonicalArguments {
    /// Driver, member and service of the primary share one thread where each process has one core: a second one that
    /// spins would cost milliseconds. Not where replies leave on a thread of their own.
    pub(super) fn is_one_thread(&self, cpu: CpuConfiguration, available: &BTreeSet<usize>) -> bool {
        if self.detached_send {
            return false;
        }
        let processes = if self.role.is_none() { 2 } else { 1 };
        match cpu {
            CpuConfiguration::Min => true,
            CpuConfiguration::Default => available.len() / processes < 2,
            CpuConfiguration::Max => false,
        }
    }

    pub(super) fn refuse_what_the_mode_has_not(&self, available: &BTreeSet<usize>) -> Result<()> {
        if self.role == Some(HostRole::Backup) {
            return self.refuse_what_a_backup_has_not();
        }
        if self.is_clustered() {
            self.refuse_what_a_cluster_has_not(available)
        } else {
            self.refuse_what_one_node_has_not()
        }
    }

    fn refuse_what_a_backup_has_not(&self) -> Result<()> {
        let own = Self {
            role: self.role,
            enable_clustering: self.enable_clustering,
            backup_address: self.backup_address.clone(),
            discovery_interface: self.discovery_interface,
            log_location: self.log_location.clone(),
            replication_reader_cpu_mask: self.replication_reader_cpu_mask.clone(),
            ..Self::default()
        };
        if *self == own {
            return Ok(());
        }
        let given = [
            self.general_options(),
            self.output_options(),
            self.persistence_options(),
            self.thread_options(),
            self.replication_options(),
        ]
        .concat();
        let ours = [
            (self.mode.is_some(), "--mode"),
            (self.program.is_some(), "--program"),
            (self.cpu.is_some(), "--cpu"),
            (self.tier.is_some(), "--tier"),
            (self.all, "--all"),
            (self.quick, "--quick"),
            (self.full, "--full"),
            (self.clustering_interface.is_some(), "--clustering-interface"),
            (self.replication_link.is_some(), "--replication-link"),
            (self.sessions.is_some(), "--sessions"),
            (self.repeat_percent.is_some(), "--repeat-percent"),
            (self.client_processes.is_some(), "--client-processes"),
        ];
        let own_names = ["--log-location", "--replication-reader-cpu-mask"];
        let option = given.into_iter().find(|option| !own_names.contains(option)).or_else(|| first(&ours));
        let option = option.unwrap_or("an option");
        refuse(format!(
            "{option} has no use with --role backup, which runs what its primary asks for: say it there; --backup-address, \
             --discovery-interface, --log-location and --replication-reader-cpu-mask are the backup's own"
        ))
    }

    fn refuse_what_a_cluster_has_not(&self, available: &BTreeSet<usize>) -> Result<()> {
        if let Some(tier) = self.tier.filter(|tier| [RunTier::Memory, RunTier::Journal, RunTier::Sync].contains(tier)) {
            return refuse(format!("--tier {tier} is that of one node; a cluster's are quorum and quorum-sync"));
        }
        if self.client_processes.unwrap_or(0) > 0 {
            return refuse("--client-processes: the driver of a clustered run is in the primary's process");
        }
        if self.role.is_some() && self.replication_link == Some(ReplicationLink::SharedMemory) {
            return refuse("--replication-link shared-memory: two hosts share no memory; leave out --role, or this");
        }
        if self.role.is_none() && self.backup_address.is_some() {
            return refuse(
                "--backup-address has no use with --enable-clustering on one machine, where the backup is a process of this \
                 run; it needs --role",
            );
        }
        let both = self.injector_cpu_mask.as_ref().zip(self.service_cpu_mask.as_ref());
        let cpu = self.cpu.unwrap_or(CpuConfiguration::Default);
        if let Some((injector, service)) = both.filter(|(injector, service)| injector != service)
            && self.is_one_thread(cpu, available)
        {
            return refuse(format!(
                "--injector-cpu-mask {injector} contradicts --service-cpu-mask {service}: with --enable-clustering and --cpu {cpu} \
                 driver, member and service take turns on one thread here; give one of them, or --cpu max"
            ));
        }
        Ok(())
    }

    fn refuse_what_one_node_has_not(&self) -> Result<()> {
        let given = [
            (self.clustering_interface.is_some(), "--clustering-interface"),
            (self.discovery_interface.is_some(), "--discovery-interface"),
            (self.backup_address.is_some(), "--backup-address"),
            (self.replication_link.is_some(), "--replication-link"),
            (self.tier == Some(RunTier::Quorum), "--tier quorum"),
            (self.tier == Some(RunTier::QuorumSync), "--tier quorum-sync"),
        ];
        if let Some(option) = first(&given).or(self.replication_options().first().copied()) {
            return refuse(format!("{option} needs --enable-clustering"));
        }
        if self.print_interval_stats && self.client_processes.unwrap_or(0) > 0 {
            return refuse(
                "--print-interval-stats has no use with --client-processes, which give their figures at their end; leave one out",
            );
        }
        Ok(())
    }

    pub(super) fn warn_of_what_has_no_effect(&self, warnings: &mut Vec<String>) {
        let cpu = self.cpu.unwrap_or(CpuConfiguration::Default);
        let (is_synced, is_max) = (self.tier == Some(RunTier::QuorumSync), cpu == CpuConfiguration::Max);
        let is_over_tcp = self.replication_link != Some(ReplicationLink::SharedMemory);
        let given = [
            (
                self.detached_persister && !is_synced,
                "--detached-persister: a member journals in its own turn, while its frames are under way (decision 54); --tier \
                 quorum-sync has a thread that syncs",
            ),
            (
                self.persister_cpu_mask.is_some() && !is_synced,
                "--persister-cpu-mask: only --tier quorum-sync has a thread that syncs",
            ),
            (
                self.detached_send_queue_depth.is_some() && !self.detached_send,
                "--detached-send-queue-depth: without --detached-send replies do not wait",
            ),
            (
                self.detached_send_cpu_mask.is_some() && !self.detached_send,
                "--detached-send-cpu-mask: without --detached-send there is no such thread",
            ),
            (
                self.replication_detached_send && !is_over_tcp,
                "--replication-detached-send: shared memory is written without a system call",
            ),
            (
                self.replication_sender_cpu_mask.is_some() && !(self.replication_detached_send && is_over_tcp),
                "--replication-sender-cpu-mask: without --replication-detached-send there is no such thread",
            ),
            (
                self.replication_dispatcher_cpu_mask.is_some() && !self.replication_detached_dispatch && !is_max,
                "--replication-dispatcher-cpu-mask: without --replication-detached-dispatch or --cpu max there is no such \
                 thread",
            ),
            (
                self.discovery_interface.is_some() && self.role.is_none(),
                "--discovery-interface: on one machine the backup is a process of this run",
            ),
        ];
        let ineffective = given.iter().filter(|(given, _)| *given && self.is_clustered());
        warnings.extend(ineffective.map(|(_, text)| format!("no effect with --enable-clustering: {text}")));
    }

    pub(super) fn refuse_contradictions(&self) -> Result<()> {
        if self.full && self.quick {
            return refuse("--full contradicts --quick; choose one of them");
        }
        if (self.all || self.quick || self.full) && !self.is_default_matrix() {
            let option = if self.all {
                "--all"
            } else if self.quick {
                "--quick"
            } else {
                "--full"
            };
            return refuse(format!(
                "{option} runs a matrix of its own and cannot be combined with the options of a single run"
            ));
        }
        if self.tier == Some(RunTier::Memory)
            && let Some(option) = self.persistence_options().first()
        {
            return refuse(format!(
                "{option} contradicts --tier memory; choose --tier journal or sync, or leave one out"
            ));
        }
        let has_journal = self.enable_persistence || self.is_clustered() || self.tier.is_some();
        if !has_journal && let Some(option) = self.persistence_options().first() {
            return refuse(format!("{option} has no use without a journal; add --enable-persistence"));
        }
        let is_max = self.cpu == Some(CpuConfiguration::Max);
        let without_thread = [
            (
                self.detached_send_queue_depth.is_some() && !self.detached_send,
                "--detached-send-queue-depth",
                "--detached-send",
            ),
            (
                self.detached_send_cpu_mask.is_some() && !self.detached_send && !is_max,
                "--detached-send-cpu-mask",
                "--detached-send or --cpu max",
            ),
            (
                self.persister_cpu_mask.is_some() && !self.detached_persister && !is_max,
                "--persister-cpu-mask",
                "--detached-persister or --cpu max",
            ),
        ];
        let without_thread = without_thread.iter().find(|(is_given, ..)| *is_given && !self.is_clustered());
        if let Some((_, option, needed)) = without_thread {
            return refuse(format!("{option} has no use without {needed}"));
        }
        if self.hlog.is_some() && self.no_latency_writes {
            return refuse("--hlog names a latency data file and --no-latency-writes forbids it; leave one out");
        }
        if self.output_file.is_none() && (self.output_cell.is_some() || self.output_throughput) {
            return refuse("--output-cell and --output-throughput need --output-file");
        }
        let is_throughput = self.mode == Some(RunMode::Throughput);
        if self.output_throughput && !is_throughput {
            return refuse(
                "--output-throughput has no use in mode latency, whose runs have a rate and no throughput; add --mode throughput",
            );
        }
        if self.output_cell.is_some() && !self.output_throughput && is_throughput && self.rate.is_none() {
            return refuse(
                "--output-cell has no use in mode throughput, whose runs have no latency; add --output-throughput or --rate",
            );
        }
        if self.hlog.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            return refuse("--hlog is written to a file, and not to standard output; name one");
        }
        if self.json.is_some() && self.json == self.hlog {
            return refuse("--json and --hlog name the same file");
        }
        Ok(())
    }

    pub(super) fn persistence_options(&self) -> Vec<&'static str> {
        all(&[
            (self.enable_persistence, "--enable-persistence"),
            (self.log_location.is_some(), "--log-location"),
            (self.initial_log_length.is_some(), "--initial-log-length"),
            (self.zero_out_initial, "--zero-out-initial"),
            (self.write_buffer_size.is_some(), "--write-buffer-size"),
            (self.flush_on_commit, "--flush-on-commit"),
            (self.flush_using_mapped_memory, "--flush-using-mapped-memory"),
            (self.detached_persister, "--detached-persister"),
            (self.persister_cpu_mask.is_some(), "--persister-cpu-mask"),
        ])
    }

    fn general_options(&self) -> Vec<&'static str> {
        all(&[
            (self.encoding.is_some(), "--encoding"),
            (self.count.is_some(), "--count"),
            (self.rate.is_some(), "--rate"),
            (self.warmup_time.is_some(), "--warmup-time"),
            (self.empty_message, "--empty-message"),
            (self.no_latency_writes, "--no-latency-writes"),
            (self.print_interval_stats, "--print-interval-stats"),
        ])
    }

    fn output_options(&self) -> Vec<&'static str> {
        all(&[
            (self.output_file.is_some(), "--output-file"),
            (self.output_cell.is_some(), "--output-cell"),
            (self.output_throughput, "--output-throughput"),
            (self.json.is_some(), "--json"),
            (self.hlog.is_some(), "--hlog"),
            (self.strict, "--strict"),
        ])
    }

    fn thread_options(&self) -> Vec<&'static str> {
        all(&[
            (self.injector_cpu_mask.is_some(), "--injector-cpu-mask"),
            (self.service_cpu_mask.is_some(), "--service-cpu-mask"),
            (self.detached_send_cpu_mask.is_some(), "--detached-send-cpu-mask"),
            (self.detached_send, "--detached-send"),
            (self.detached_send_queue_depth.is_some(), "--detached-send-queue-depth"),
        ])
    }

    fn replication_options(&self) -> Vec<&'static str> {
        all(&[
            (self.replication_spin_read, "--replication-spin-read"),
            (self.replication_reader_cpu_mask.is_some(), "--replication-reader-cpu-mask"),
            (self.replication_detached_send, "--replication-detached-send"),
            (self.replication_sender_cpu_mask.is_some(), "--replication-sender-cpu-mask"),
            (self.replication_detached_dispatch, "--replication-detached-dispatch"),
            (self.replication_dispatcher_cpu_mask.is_some(), "--replication-dispatcher-cpu-mask"),
        ])
    }
}

fn all(given: GivenOptions<'_>) -> Vec<&'static str> {
    given.iter().filter_map(|(given, option)| given.then_some(*option)).collect()
}

fn refuse(message: impl Into<String>) -> Result<()> {
    Err(BenchError::Option(message.into()))
}
