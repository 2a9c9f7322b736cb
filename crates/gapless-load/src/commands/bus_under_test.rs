//! The bus of one row: started for it in a directory of its own, and removed afterwards.

use crate::commands::case::{BusCase, BusTier, CommandEncoding};
use crate::commands::failed;
use crate::commands::messages::{CommandForm, Counter, SbeForm, SerdeForm};
use gapless_agent::{CpuMask, OptimizeFor};
use gapless_cqrs::{AggregateOptions, BusOptions, CommandBus, CommandHost, CommandModel, PolledBus};
use gapless_engine::{Persistence, ServiceHostOptions, Threads};
use gapless_journal::Zeroing;
use gapless_measure::Result;
use gapless_measure::affinity::{available_cpus, pair_of_cores, pin_current_thread};
use gapless_measure::own_directory::{OwnDirectory, sync_file_system};
use std::path::Path;

pub struct BusUnderTest {
    host: CommandHost,
    // Dropped, and so removed, after the host.
    _directory: Option<OwnDirectory>,
}

#[derive(Clone, Copy)]
pub struct BusPlace<'a> {
    pub parent: &'a Path,
    pub optimize_for: OptimizeFor,
    /// Twice the need of a row, because the next segment is prepared from the half on. Zeroed before the run: a virtual
    /// machine is slow to provide memory that it has not used for a while.
    pub segment_bytes: u64,
}

impl BusUnderTest {
    pub fn start(case: &BusCase, place: BusPlace<'_>) -> Result<Self> {
        let (directory, options) = options(case, place)?;
        let with = match case.encoding {
            CommandEncoding::Sbe => Self::with::<SbeForm>,
            CommandEncoding::Serde => Self::with::<SerdeForm>,
        };
        with(AggregateOptions::default(), options, place.optimize_for, directory)
    }

    pub fn in_directory<F: CommandForm>(directory: &Path, aggregates_max: usize) -> Result<Self> {
        let options = AggregateOptions { aggregates_max, ..AggregateOptions::default() };
        Self::with::<F>(options, ServiceHostOptions::in_directory(directory), OptimizeFor::Throughput, None)
    }

    fn with<F: CommandForm>(
        bus: AggregateOptions,
        mut options: ServiceHostOptions,
        optimize_for: OptimizeFor,
        directory: Option<OwnDirectory>,
    ) -> Result<Self> {
        options.snapshot_on_stop = false;
        options.threads =
            Threads { optimize_for, callers_hot: 1, service_cpus: cpus_without_driver(), ..Threads::default() };
        let model = CommandModel::new().aggregate::<Counter<F>>();
        let host = CommandHost::start(model, bus, options).map_err(failed)?;
        Ok(Self { host, _directory: directory })
    }

    pub fn direct<F: CommandForm>(
        case: &BusCase,
        place: BusPlace<'_>,
        in_flight_max: usize,
    ) -> Result<(PolledBus, Option<OwnDirectory>)> {
        let (directory, mut options) = options(case, place)?;
        options.snapshot_on_stop = false;
        options.threads.optimize_for = place.optimize_for;
        let model = CommandModel::new().aggregate::<Counter<F>>();
        let bus = BusOptions { in_flight_max };
        let bus = PolledBus::start(model, AggregateOptions::default(), options, &bus).map_err(failed)?;
        Ok((bus, directory))
    }

    pub const fn host(&self) -> &CommandHost {
        &self.host
    }

    pub fn bus(&self, in_flight_max: usize) -> Result<CommandBus> {
        self.host.bus(&BusOptions { in_flight_max }).map_err(failed)
    }

    /// An error that the bus has met fails the measurement.
    pub fn stop(self) -> Result<()> {
        self.host.stop().map(drop).map_err(failed)
    }
}

/// No-op on one CPU.
pub fn pin_driver() {
    if let Some((first, _)) = pair_of_cores() {
        // An unpinned driver is slower, not wrong.
        drop(pin_current_thread(&[first]));
    }
}

fn cpus_without_driver() -> Option<CpuMask> {
    let (first, _) = pair_of_cores()?;
    let others: Vec<usize> = available_cpus().into_iter().filter(|cpu| *cpu != first).collect();
    CpuMask::of(&others)
}

fn options(case: &BusCase, place: BusPlace<'_>) -> Result<(Option<OwnDirectory>, ServiceHostOptions)> {
    // Also in memory: the same two cores write data that other rows have left.
    sync_file_system(place.parent)?;
    let (directory, mut options) = match case.tier {
        BusTier::Memory => (None, ServiceHostOptions::in_memory()),
        BusTier::Journal | BusTier::Sync | BusTier::Quorum => {
            let name = format!(".gapless-commands-{}", std::process::id());
            let directory = OwnDirectory::create(place.parent, &name)?;
            let mut options = ServiceHostOptions::in_directory(directory.path());
            options.persistence = Persistence {
                segment_length_bytes: place.segment_bytes,
                first_segment_length_bytes: place.segment_bytes,
                zeroing: Zeroing::All,
                ..Persistence::default()
            };
            (Some(directory), options)
        }
    };
    options.tier = match case.tier {
        BusTier::Memory => gapless_transport::Tier::Memory,
        BusTier::Journal => gapless_transport::Tier::Journal,
        BusTier::Sync => gapless_transport::Tier::Sync,
        BusTier::Quorum => unreachable!("that is a member's"),
    };
    Ok((directory, options))
}
