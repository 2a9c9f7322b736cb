//! What a run happens in: the host as the settings describe it, and its directory.

use crate::options::{CpuConfiguration, CpuMask, JournalSettings, Mode, RunSettings, Tier};
use crate::{BenchError, Result};
use gapless::prelude::{Persistence, ServiceHostOptions, Threads};
use gapless_agent::{OptimizeFor, PlanKind};
use gapless_journal::Flush;
use std::path::{Path, PathBuf};

/// A directory of the run's own, removed with this value, or one that the user named, kept.
pub struct Scene {
    directory: PathBuf,
    is_own: bool,
}

impl Scene {
    /// The directory that the settings name, or a new one below `parent`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(settings: &RunSettings, parent: &Path, number: usize) -> Result<Self> {
        let named = settings.journal.as_ref().and_then(|journal| journal.directory.clone());
        let is_own = named.is_none();
        let directory = named.unwrap_or_else(|| parent.join(format!(".gapless-bench-{}-{number}", std::process::id())));
        std::fs::create_dir_all(&directory).map_err(|source| BenchError::io("create", &directory, source))?;
        Ok(Self { directory, is_own })
    }

    /// Where journal and socket are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits until the file system has written what came before this run: floors, the rows before it and their removal
    /// would otherwise be measured with it, as stalls of a fifth of a second.
    ///
    /// # Errors
    /// The device fails.
    pub fn settle(&self) -> Result<()> {
        let failed = |source| BenchError::io("write out the file system of", &self.directory, source);
        let directory = std::fs::File::open(&self.directory).map_err(failed)?;
        rustix::fs::syncfs(&directory).map_err(|errno| failed(errno.into()))
    }

    /// The host that `settings` describe; `callers_hot` threads of this process spin beside it.
    pub fn host_options(
        &self,
        settings: &RunSettings,
        callers_hot: usize,
        driver_cpu: Option<usize>,
    ) -> ServiceHostOptions {
        let mut options = ServiceHostOptions::in_directory(&self.directory);
        options.tier = match settings.tier {
            Tier::Memory => gapless::prelude::Tier::Memory,
            Tier::Journal | Tier::Quorum => gapless::prelude::Tier::Journal,
            Tier::Sync | Tier::QuorumSync => gapless::prelude::Tier::Sync,
        };
        if let Some(journal) = &settings.journal {
            options.persistence = persistence(journal);
        }
        // Figures end with the run; a snapshot would be part of the next one's start.
        options.snapshot_on_stop = false;
        let throughput = settings.mode == Mode::Throughput;
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
            service_cpus: mask(&settings.affinity.service).or_else(|| beside(driver_cpu)),
            persister_cpus: mask(&settings.affinity.persister),
            sender_cpus: mask(&settings.affinity.sender),
        };
        options
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if self.is_own {
            // What cannot be removed is left for the user to see; the figures are made.
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn persistence(journal: &JournalSettings) -> Persistence {
    Persistence {
        segment_length_bytes: journal.initial_length_bytes,
        zero_initial: journal.zero_out_initial,
        flush: journal.mapped.map(|mapped| if mapped { Flush::Mapped } else { Flush::Write }),
        write_buffer_bytes: journal.write_buffer_bytes,
        flush_on_commit: journal.flush_on_commit,
        ..Persistence::default()
    }
}

fn mask(mask: &Option<CpuMask>) -> Option<gapless_agent::CpuMask> {
    gapless_agent::CpuMask::of(&mask.as_ref()?.cpus())
}

/// Every CPU but the driver's.
fn beside(driver_cpu: Option<usize>) -> Option<gapless_agent::CpuMask> {
    let driver_cpu = driver_cpu?;
    let others: Vec<usize> =
        gapless_report::affinity::available_cpus().into_iter().filter(|cpu| *cpu != driver_cpu).collect();
    gapless_agent::CpuMask::of(&others)
}
