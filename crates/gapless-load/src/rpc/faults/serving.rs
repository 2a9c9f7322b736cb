//! The process that serves: a copy of a route, or the server behind a broker. It notes what it begins, and takes its time.

use super::content::{Numbers, answer, number_of};
use crate::peers::rabbitmq::{Acknowledgement, RabbitMqServer};
use crate::peers::subject::{Handler, Server as _, Waiting};
use crate::rpc::{NAME, failed};
use gapless_measure::child_process::{Parent, WhenGone};
use gapless_measure::{BenchError, Result};
use gapless_rpc::{Domain, DomainOptions, Rejection, ServedRoute};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Its name.
pub const ROUTE: &str = "faults/increment";
/// Of each copy: threads, so that some have begun and some have nothing to do when it dies.
pub const WORKERS: usize = 4;
/// A handler takes so long.
pub const WORK: Duration = Duration::from_millis(1);

/// What a copy of a supervisor prints when it serves.
pub const SERVES: &str = "serves";

/// The assignment of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub place: Place,
    /// Where it notes what it begins.
    pub begun: PathBuf,
}

/// Where it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Domain(PathBuf),
    /// The same, for a supervisor, which gives it nobody to listen to; it notes its process here.
    Supervised {
        domain: PathBuf,
        started: PathBuf,
    },
    Broker(SocketAddr),
}

/// The domain that both ends open.
pub fn open(directory: &Path) -> Result<Domain> {
    Domain::open_directory(directory, DomainOptions::default()).map_err(failed)
}

struct Work(Numbers);

impl Work {
    fn answered(&self, request: &[u8], attempt: u8) -> std::io::Result<Vec<u8>> {
        if let Some(number) = number_of(request) {
            self.0.note(number)?;
        }
        std::thread::sleep(WORK);
        Ok(answer(request, attempt))
    }
}

impl Handler for Work {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        // Without an answer its caller says that it is wrong.
        reply.extend(self.answered(request, 1).unwrap_or_default());
    }

    fn call_again(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        reply.extend(self.answered(request, 2).unwrap_or_default());
    }

    fn receive(&mut self, _message: &[u8]) {}
}

fn serve(domain: &Path, work: Work) -> Result<ServedRoute> {
    let served = open(domain)?.serve(ROUTE).workers(WORKERS).handle(move |request: Vec<u8>, context| {
        work.answered(&request, context.attempt()).map_err(|error| Rejection::from(error.to_string()))
    });
    served.map_err(failed)
}

/// The work of the process; it says `true` when it serves.
///
/// # Errors
/// A malformed assignment; a domain that cannot be opened; a broker or a benchmark that has gone.
pub fn main(assignment: &str) -> Result<()> {
    let Assignment { place, begun } = serde_json::from_str(assignment)?;
    let work = Work(Numbers::open(&begun)?);
    match place {
        Place::Domain(directory) => {
            let parent = Parent::listen(NAME, WhenGone::Exit)?;
            let _served = serve(&directory, work)?;
            parent.send(&true)?;
            while parent.receive::<bool>()?.is_some() {}
            Ok(())
        }
        Place::Supervised { domain, started } => {
            let noted = Numbers::open(&started)?.note(std::process::id().into());
            noted.map_err(|source| BenchError::io("write", &started, source))?;
            let _served = serve(&domain, work)?;
            println!("{SERVES}");
            loop {
                // Until a signal ends it.
                std::thread::park();
            }
        }
        Place::Broker(address) => {
            let parent = Parent::listen(NAME, WhenGone::Exit)?;
            let mut work = work;
            let server = RabbitMqServer::connect(address, ROUTE, Waiting::Blocking, Acknowledgement::Explicit);
            let mut server = server.map_err(failed)?;
            parent.send(&true)?;
            server.serve(&mut work, &AtomicBool::new(false)).map_err(failed)
        }
    }
}
