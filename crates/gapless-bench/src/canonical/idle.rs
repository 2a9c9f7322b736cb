//! The cost of an idle host: a spinning design must show that it stops spinning.

use super::failed;
use super::run_directory::RunDirectory;
use crate::Result;
use crate::options::{CpuConfiguration, MessageEncoding, RunMode, RunSettings, ServiceKind};
use crate::resources::process_cpu_ns;
use crate::time_sources::elapsed_ns;
use gapless::prelude::*;
use gapless_load::canonical::form::CarFunctions;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IdleCost {
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
}

impl IdleCost {
    /// Part of one core, percent.
    pub fn cpu_percent(&self) -> f64 {
        self.cpu_ns as f64 * 100.0 / self.elapsed_ns.max(1) as f64
    }
}

/// A host parks its threads within milliseconds of its last message.
const SETTLES_WITHIN: Duration = Duration::from_millis(200);
const WATCHED: Duration = Duration::from_secs(2);

/// Runs a host in the default configuration with one silent client, and watches it.
///
/// # Errors
/// The host cannot be run.
pub fn measure(settings: &RunSettings, parent: &Path, number: usize) -> Result<IdleCost> {
    let settings = RunSettings { cpu: CpuConfiguration::Default, mode: RunMode::Latency, ..settings.clone() };
    let run_directory = RunDirectory::new(&settings, parent, number)?;
    let options = run_directory.host_options(&settings, 0, None);
    let host = CarFunctions::of(MessageEncoding::SbeSerial).start_host(ServiceKind::Es, options).map_err(failed)?;
    let mut client = host.connect(ClientOptions::default()).map_err(failed)?;
    client.open_session(random_token(), 1).map_err(failed)?;
    std::thread::sleep(SETTLES_WITHIN);
    let (begin, cpu_ns) = (Instant::now(), process_cpu_ns());
    std::thread::sleep(WATCHED);
    let elapsed_ns = elapsed_ns(begin);
    let idle = IdleCost { elapsed_ns, cpu_ns: process_cpu_ns() - cpu_ns };
    host.stop().map_err(failed)?;
    Ok(idle)
}
