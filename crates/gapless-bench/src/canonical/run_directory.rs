//! The directory of a run, and the host as the settings describe it, and its directory.

use crate::options::{CpuConfiguration, CpuMask, JournalSettings, RunMode, RunSettings, RunTier};
use crate::own_directory::OwnDirectory;
use crate::{BenchError, Result};
use gapless::prelude::{Persistence, Threads};
use gapless_agent::{OptimizeFor, PlanKind};
use gapless_engine::ServiceHostOptions;
use gapless_journal::{Flush, Zeroing};
use std::path::{Path, PathBuf};

/// Directories that killed runs leave, in the current directory and in those that runs are given.
pub const PREFIXES: &[&str] = &[".gapless-bench-", ".gapless-floor-", ".gapless-backup-"];

/// Removed with this value, unless the user named it: then the next run continues it. A clustered run has a new one
/// below the named one.
pub struct RunDirectory {
    directory: PathBuf,
    /// `None` if the user named it, on one node.
    _own: Option<OwnDirectory>,
}

impl RunDirectory {
    pub fn new(settings: &RunSettings, parent: &Path, number: usize) -> Result<Self> {
        let named = settings.journal.as_ref().and_then(|journal| journal.directory.clone());
        if let (Some(named), Some(_)) = (&named, &settings.cluster) {
            // The other member's log may be on another machine, and is not continued: so neither is this one.
            let own = OwnDirectory::create_with_parent(named, "gapless-canonical")?.kept(true);
            return Ok(Self { directory: own.path().to_owned(), _own: Some(own) });
        }
        if let Some(directory) = named {
            std::fs::create_dir_all(&directory).map_err(|source| BenchError::io("create", &directory, source))?;
            return Ok(Self { directory, _own: None });
        }
        let own = OwnDirectory::create(parent, &format!(".gapless-bench-{}-{number}", std::process::id()))?;
        Ok(Self { directory: own.path().to_owned(), _own: Some(own) })
    }

    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// `callers_hot` threads of this process spin, too.
    pub fn host_options(
        &self,
        settings: &RunSettings,
        callers_hot: usize,
        driver_cpu: Option<usize>,
    ) -> ServiceHostOptions {
        let mut options = ServiceHostOptions::in_directory(&self.directory);
        options.tier = match settings.tier {
            RunTier::Memory => gapless::prelude::Tier::Memory,
            RunTier::Journal | RunTier::Quorum => gapless::prelude::Tier::Journal,
            RunTier::Sync | RunTier::QuorumSync => gapless::prelude::Tier::Sync,
        };
        if let Some(journal) = &settings.journal {
            options.persistence = persistence(journal);
        }
        // Figures end with the run; a snapshot would be part of the next one's start.
        options.snapshot_on_stop = false;
        let throughput = settings.mode == RunMode::Throughput;
        options.threads = Threads {
            plan: match settings.cpu {
                CpuConfiguration::Min => PlanKind::Min,
                CpuConfiguration::Default => PlanKind::Default,
                CpuConfiguration::Max => PlanKind::Max,
            },
            optimize_for: if throughput { OptimizeFor::Throughput } else { OptimizeFor::Latency },
            callers_hot,
            detach_persister: settings.journal.as_ref().and_then(|journal| journal.detached).unwrap_or(false),
            detach_sender: settings.detached_send_queue_depth.is_some(),
            send_queue_depth: settings.detached_send_queue_depth.unwrap_or(1024),
            service_cpus: mask(&settings.affinity.service).or_else(|| cpus_without(driver_cpu)),
            persister_cpus: mask(&settings.affinity.persister),
            sender_cpus: mask(&settings.affinity.sender),
        };
        options
    }
}

fn persistence(journal: &JournalSettings) -> Persistence {
    Persistence {
        segment_length_bytes: journal.initial_length_bytes,
        first_segment_length_bytes: journal.initial_length_bytes,
        zeroing: Zeroing::of(journal.zero_out_initial, true),
        flush: journal.mapped.map(|mapped| if mapped { Flush::Mapped } else { Flush::Write }),
        write_buffer_bytes: journal.write_buffer_bytes,
        flush_on_commit: journal.flush_on_commit,
        ..Persistence::default()
    }
}

fn mask(mask: &Option<CpuMask>) -> Option<gapless_agent::CpuMask> {
    gapless_agent::CpuMask::of(&mask.as_ref()?.cpus())
}

fn cpus_without(driver_cpu: Option<usize>) -> Option<gapless_agent::CpuMask> {
    let driver_cpu = driver_cpu?;
    let others: Vec<usize> =
        gapless_measure::affinity::available_cpus().into_iter().filter(|cpu| *cpu != driver_cpu).collect();
    gapless_agent::CpuMask::of(&others)
}
