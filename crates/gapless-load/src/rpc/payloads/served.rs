//! The serving end: a route whose handler sends the payload back, and one whose handler says that it came. In the
//! benchmark's process, or in one of its own.

use super::content::is_whole;
use crate::rpc::{NAME, failed};
use gapless_measure::Result;
use gapless_measure::child_process::{Parent, WhenGone};
use gapless_measure::resources::process_cpu_ns;
use gapless_rpc::domain::ServeReach;
use gapless_rpc::{Domain, DomainOptions, ServedRoute};
use std::path::{Path, PathBuf};

/// Answers whether the payload came whole.
pub const ONE_WAY: &str = "payloads/one-way";
/// Answers with the payload.
pub const TWO_WAY: &str = "payloads/two-way";
/// Of each route.
pub const WORKERS: usize = 200;
/// Calls in flight at one time, at most: a power of two that keeps all workers busy.
pub const SLOTS: u32 = 256;

/// The domain that both ends open.
pub fn open(directory: &Path) -> Result<Domain> {
    let options = DomainOptions { slots: SLOTS, ..DomainOptions::default() };
    Domain::open_directory(directory, options).map_err(failed)
}

/// Serves both routes, each with [`WORKERS`] threads.
pub fn serve(domain: &Domain, reach: ServeReach) -> Result<[ServedRoute; 2]> {
    let route = |name| domain.serve(name).reach(reach).workers(WORKERS);
    let one_way = route(ONE_WAY).handle(|payload: Vec<u8>, _context| Ok(is_whole(&payload)));
    let two_way = route(TWO_WAY).handle(|payload: Vec<u8>, _context| Ok(payload));
    Ok([one_way.map_err(failed)?, two_way.map_err(failed)?])
}

/// The work of the process that serves: its assignment is the domain's directory. Each message is answered by the CPU time
/// that it has used, ns.
///
/// # Errors
/// A malformed assignment; a domain that cannot be opened; a benchmark that has gone.
pub fn main(assignment: &str) -> Result<()> {
    let directory: PathBuf = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, WhenGone::Exit)?;
    let domain = open(&directory)?;
    let _routes = serve(&domain, ServeReach::OtherProcesses)?;
    parent.send(&process_cpu_ns())?;
    while parent.receive::<bool>()?.is_some() {
        parent.send(&process_cpu_ns())?;
    }
    Ok(())
}
