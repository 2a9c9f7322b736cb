//! An instance of a route, or the server of a broker. It notes each request that it begins, and takes its time.

use super::content::{NumberFile, answer, number_of};
use crate::peers::rabbitmq::{Acknowledgement, RabbitMqServer};
use crate::peers::subject::{PeerHandler, PeerServer as _, WaitMode};
use crate::rpc::{NAME, failed};
use gapless_measure::child_process::{OrphanPolicy, Parent};
use gapless_measure::{BenchError, Result};
use gapless_rpc::{Domain, DomainOptions, Rejection, ServedRoute};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub const ROUTE: &str = "faults/increment";
/// Enough that some are busy and some idle when it is killed.
pub const WORKERS: usize = 4;
pub const WORK: Duration = Duration::from_millis(1);

/// Printed by a supervised instance once it serves.
pub const SERVES: &str = "serves";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultAssignment {
    pub place: ServerPlace,
    pub begun: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerPlace {
    Domain(PathBuf),
    /// The process has no parent to listen to, so it notes its start in a file.
    Supervised {
        domain: PathBuf,
        started: PathBuf,
    },
    Broker(SocketAddr),
}

pub fn open(directory: &Path) -> Result<Domain> {
    Domain::open_directory(directory, DomainOptions::default()).map_err(failed)
}

struct NotedWork(NumberFile);

impl NotedWork {
    fn answered(&self, request: &[u8], attempt: u8) -> std::io::Result<Vec<u8>> {
        if let Some(number) = number_of(request) {
            self.0.note(number)?;
        }
        std::thread::sleep(WORK);
        Ok(answer(request, attempt))
    }
}

impl PeerHandler for NotedWork {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        // Without an answer, the caller reports a wrong one.
        reply.extend(self.answered(request, 1).unwrap_or_default());
    }

    fn call_again(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        reply.extend(self.answered(request, 2).unwrap_or_default());
    }

    fn receive(&mut self, _message: &[u8]) {}
}

fn serve(domain: &Path, work: NotedWork) -> Result<ServedRoute> {
    let served = open(domain)?.serve(ROUTE).workers(WORKERS).handle(move |request: Vec<u8>, context| {
        work.answered(&request, context.attempt()).map_err(|error| Rejection::from(error.to_string()))
    });
    served.map_err(failed)
}

/// Reports `true` once it serves.
///
/// # Errors
/// A malformed assignment; a domain that cannot be opened; a broker or a benchmark that is gone.
pub fn main(assignment: &str) -> Result<()> {
    let FaultAssignment { place, begun } = serde_json::from_str(assignment)?;
    let work = NotedWork(NumberFile::open(&begun)?);
    match place {
        ServerPlace::Domain(directory) => {
            let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
            let _served = serve(&directory, work)?;
            parent.send(&true)?;
            while parent.receive::<bool>()?.is_some() {}
            Ok(())
        }
        ServerPlace::Supervised { domain, started } => {
            let noted = NumberFile::open(&started)?.note(std::process::id().into());
            noted.map_err(|source| BenchError::io("write", &started, source))?;
            let _served = serve(&domain, work)?;
            println!("{SERVES}");
            loop {
                // Ended by a signal.
                std::thread::park();
            }
        }
        ServerPlace::Broker(address) => {
            let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
            let mut work = work;
            let server = RabbitMqServer::connect(address, ROUTE, WaitMode::Blocking, Acknowledgement::Explicit);
            let mut server = server.map_err(failed)?;
            parent.send(&true)?;
            server.serve(&mut work, &AtomicBool::new(false)).map_err(failed)
        }
    }
}
