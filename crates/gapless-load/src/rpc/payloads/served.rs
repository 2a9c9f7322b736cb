//! The serving end, in the benchmark's process or in its own.

use super::content::is_whole;
use crate::rpc::{NAME, failed};
use gapless_measure::Result;
use gapless_measure::child_process::{OrphanPolicy, Parent};
use gapless_measure::resources::process_cpu_ns;
use gapless_rpc::domain::ServeReach;
use gapless_rpc::{Domain, DomainOptions, ServedRoute};
use std::path::{Path, PathBuf};

/// Answers whether the payload is whole.
pub const ONE_WAY: &str = "payloads/one-way";
/// Answers with the payload.
pub const TWO_WAY: &str = "payloads/two-way";
pub const WORKERS: usize = 200;
/// Power of two that keeps all workers busy.
pub const SLOTS: u32 = 256;

pub fn open(directory: &Path) -> Result<Domain> {
    let options = DomainOptions { slots: SLOTS, ..DomainOptions::default() };
    Domain::open_directory(directory, options).map_err(failed)
}

pub fn serve(domain: &Domain, reach: ServeReach) -> Result<[ServedRoute; 2]> {
    let route = |name| domain.serve(name).reach(reach).workers(WORKERS);
    let one_way = route(ONE_WAY).handle(|payload: Vec<u8>, _context| Ok(is_whole(&payload)));
    let two_way = route(TWO_WAY).handle(|payload: Vec<u8>, _context| Ok(payload));
    Ok([one_way.map_err(failed)?, two_way.map_err(failed)?])
}

/// The assignment is the domain's directory. Answers each message by its CPU time, ns.
///
/// # Errors
/// A malformed assignment; a domain that cannot be opened; a benchmark that is gone.
pub fn main(assignment: &str) -> Result<()> {
    let directory: PathBuf = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
    let domain = open(&directory)?;
    let _routes = serve(&domain, ServeReach::OtherProcesses)?;
    parent.send(&process_cpu_ns())?;
    while parent.receive::<bool>()?.is_some() {
        parent.send(&process_cpu_ns())?;
    }
    Ok(())
}
