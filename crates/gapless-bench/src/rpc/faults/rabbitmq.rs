//! RabbitMQ: its broker is killed and started anew, as its server is, and its callers connect again.

use super::killing::{Death, Dice, Victims, kill};
use crate::rpc::{NAME, failed};
use gapless_load::peers::PeerError;
use gapless_load::peers::rabbitmq::{RabbitMqBroker, RabbitMqCaller};
use gapless_load::peers::subject::{Caller as _, Waiting};
use gapless_load::rpc::faults::serving::{Assignment, Place, ROUTE};
use gapless_load::rpc::faults::traffic::Line;
use gapless_measure::child_process::{Child, Role};
use gapless_measure::reporting::is_set;
use gapless_measure::{BenchError, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The broker and its server.
pub(super) struct Broker<'a> {
    /// Absent while it is started again.
    running: Option<(RabbitMqBroker, Child<'a>)>,
    address: Arc<Address>,
    directory: PathBuf,
    starts: usize,
    interrupted: &'a AtomicBool,
}

/// Where the broker is that has been started last.
#[derive(Default)]
struct Address {
    /// With its number, from 1; the number 0 says that nobody need wait any more.
    known: Mutex<(usize, Option<SocketAddr>)>,
    changed: Condvar,
}

impl Address {
    fn set(&self, number: usize, address: Option<SocketAddr>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = (number, address);
        self.changed.notify_all();
    }

    /// Waits for a broker after that of this number.
    fn after(&self, number: usize) -> Option<(usize, SocketAddr)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.changed.wait_while(known, |(known, _)| *known != 0 && *known <= number);
        let (number, address) = *known.unwrap_or_else(PoisonError::into_inner);
        Some((number, address?))
    }
}

impl<'a> Broker<'a> {
    /// Starts them below `directory`, or says how RabbitMQ is installed.
    pub(super) fn start(directory: &Path, interrupted: &'a AtomicBool) -> Result<std::result::Result<Self, String>> {
        let directory = directory.to_owned();
        let mut broker = Self { running: None, address: Arc::default(), directory, starts: 0, interrupted };
        Ok(broker.start_again()?.map(|()| broker))
    }

    fn start_again(&mut self) -> Result<std::result::Result<(), String>> {
        self.starts += 1;
        let directory = self.directory.join(format!("rabbitmq-{}", self.starts));
        std::fs::create_dir(&directory).map_err(|source| BenchError::io("create", &directory, source))?;
        let started = RabbitMqBroker::start(&directory, &|| is_set(self.interrupted));
        let broker = match started {
            Ok(broker) => broker,
            Err(error @ PeerError::Missing { .. }) => return Ok(Err(error.to_string())),
            Err(error) => return Err(failed(error)),
        };
        let address = broker.address();
        let assignment = Assignment { place: Place::Broker(address), begun: self.begun() };
        let mut server = Child::start(NAME, "the server", (Role::RpcFaults, &assignment), self.interrupted)?;
        server.receive::<bool>()?;
        self.running = Some((broker, server));
        self.address.set(self.starts, Some(address));
        Ok(Ok(()))
    }
}

impl Victims for Broker<'_> {
    type Line = BrokerLine;

    fn line(&mut self) -> Result<BrokerLine> {
        let mut line = BrokerLine { address: Arc::clone(&self.address), connected: None, number: 0 };
        if line.ready() { Ok(line) } else { Err(failed("the broker has gone")) }
    }

    fn kill(&mut self, _dice: &mut Dice) -> Result<Vec<Death>> {
        let node = self.running.as_ref().and_then(|(broker, _)| broker.node_process_id());
        let deaths = kill(&[node.ok_or_else(|| failed("the broker has gone"))?])?;
        self.running = None;
        match self.start_again()? {
            Ok(()) => Ok(deaths),
            Err(reason) => Err(failed(reason)),
        }
    }

    fn release(&self) {
        self.address.set(0, None);
    }

    fn begun(&self) -> PathBuf {
        self.directory.join("rabbitmq.begun")
    }
}

/// The calling end of one thread.
pub(super) struct BrokerLine {
    address: Arc<Address>,
    connected: Option<RabbitMqCaller>,
    /// Of the broker that it was connected with.
    number: usize,
}

impl Line for BrokerLine {
    fn ready(&mut self) -> bool {
        while self.connected.is_none() {
            let Some((number, address)) = self.address.after(self.number) else { return false };
            self.number = number;
            // One that has been killed meanwhile is followed by another.
            self.connected = RabbitMqCaller::connect(address, ROUTE, Waiting::Blocking).ok();
        }
        true
    }

    fn call(&mut self, request: &[u8], answer: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
        let Some(caller) = &mut self.connected else { return Err("not_connected") };
        // One call at a time: whatever comes is its answer, or a wrong one.
        let called =
            caller.begin(0, request).and_then(|()| caller.receive(&mut |_, found| answer.extend_from_slice(found)));
        called.map_err(|error| {
            self.connected = None;
            match error {
                PeerError::Silence { .. } => "timed_out",
                _ => "connection_lost",
            }
        })
    }
}
