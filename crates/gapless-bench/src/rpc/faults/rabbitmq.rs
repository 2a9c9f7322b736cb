//! RabbitMQ: one of its two servers is killed, and the broker passes its calls to the other; or the broker is killed
//! and started again with its server, and callers reconnect.

use super::killing::{Death, KillDice, Victims, kill};
use crate::rpc::{NAME, failed};
use gapless_load::peers::PeerError;
use gapless_load::peers::rabbitmq::{RabbitMqBroker, RabbitMqCaller};
use gapless_load::peers::subject::{PeerCaller as _, WaitMode};
use gapless_load::rpc::faults::serving::{FaultAssignment, ROUTE, ServerPlace};
use gapless_load::rpc::faults::traffic::FaultCaller;
use gapless_measure::child_process::{Child, ChildRole};
use gapless_measure::reporting::is_set;
use gapless_measure::{BenchError, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerVictim {
    Server,
    Broker,
}

impl BrokerVictim {
    pub(super) const ALL: [Self; 2] = [Self::Server, Self::Broker];

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Server => "rabbitmq, one of two servers",
            Self::Broker => "rabbitmq, the broker",
        }
    }

    pub(super) const fn servers(self) -> usize {
        match self {
            Self::Server => 2,
            Self::Broker => 1,
        }
    }
}

pub(super) struct BrokerUnderTest<'a> {
    victim: BrokerVictim,
    /// `None` during a restart.
    running: Option<(RabbitMqBroker, Vec<Child<'a>>)>,
    address: Arc<BrokerAddress>,
    directory: PathBuf,
    starts: usize,
    interrupted: &'a AtomicBool,
}

/// Address of the newest broker.
#[derive(Default)]
struct BrokerAddress {
    /// Number of the broker, from 1, and its address; number 0 ends all waiting.
    known: Mutex<(usize, Option<SocketAddr>)>,
    changed: Condvar,
}

impl BrokerAddress {
    fn set(&self, number: usize, address: Option<SocketAddr>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = (number, address);
        self.changed.notify_all();
    }

    /// Waits for a broker newer than `number`.
    fn after(&self, number: usize) -> Option<(usize, SocketAddr)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.changed.wait_while(known, |(known, _)| *known != 0 && *known <= number);
        let (number, address) = *known.unwrap_or_else(PoisonError::into_inner);
        Some((number, address?))
    }
}

impl<'a> BrokerUnderTest<'a> {
    /// The inner error says how RabbitMQ is installed.
    pub(super) fn start(
        directory: &Path,
        victim: BrokerVictim,
        interrupted: &'a AtomicBool,
    ) -> Result<std::result::Result<Self, String>> {
        let directory = directory.join(format!("rabbitmq-{victim:?}"));
        let mut broker = Self { victim, running: None, address: Arc::default(), directory, starts: 0, interrupted };
        Ok(broker.start_again()?.map(|()| broker))
    }

    fn start_again(&mut self) -> Result<std::result::Result<(), String>> {
        self.starts += 1;
        let directory = self.directory.join(format!("rabbitmq-{}", self.starts));
        std::fs::create_dir_all(&directory).map_err(|source| BenchError::io("create", &directory, source))?;
        let started = RabbitMqBroker::start(&directory, &|| is_set(self.interrupted));
        let broker = match started {
            Ok(broker) => broker,
            Err(error @ PeerError::Missing { .. }) => return Ok(Err(error.to_string())),
            Err(error) => return Err(failed(error)),
        };
        let address = broker.address();
        let servers = (0..self.victim.servers()).map(|_| self.start_server(address)).collect::<Result<_>>()?;
        self.running = Some((broker, servers));
        self.address.set(self.starts, Some(address));
        Ok(Ok(()))
    }

    fn start_server(&self, address: SocketAddr) -> Result<Child<'a>> {
        let assignment = FaultAssignment { place: ServerPlace::Broker(address), begun: self.begun() };
        let mut server = Child::start(NAME, "the server", (ChildRole::RpcFaults, &assignment), self.interrupted)?;
        server.receive::<bool>()?;
        Ok(server)
    }
}

impl Victims for BrokerUnderTest<'_> {
    type Caller = BrokerCaller;

    fn line(&mut self) -> Result<BrokerCaller> {
        let mut line = BrokerCaller { address: Arc::clone(&self.address), connected: None, number: 0, ticket: 0 };
        if line.ready() { Ok(line) } else { Err(failed("the broker has gone")) }
    }

    fn kill(&mut self, dice: &mut KillDice) -> Result<Vec<Death>> {
        let gone = || failed("the broker has gone");
        let (broker, mut servers) = self.running.take().ok_or_else(gone)?;
        if self.victim == BrokerVictim::Broker {
            let deaths = kill(&[broker.node_process_id().ok_or_else(gone)?])?;
            drop((broker, servers));
            return self.start_again()?.map(|()| deaths).map_err(failed);
        }
        let victim = dice.below(servers.len());
        let deaths = kill(&[servers[victim].id()])?;
        servers[victim] = self.start_server(broker.address())?;
        self.running = Some((broker, servers));
        Ok(deaths)
    }

    fn release(&self) {
        self.address.set(0, None);
    }

    fn begun(&self) -> PathBuf {
        self.directory.join("begun")
    }
}

pub(super) struct BrokerCaller {
    address: Arc<BrokerAddress>,
    connected: Option<RabbitMqCaller>,
    number: usize,
    ticket: u64,
}

impl FaultCaller for BrokerCaller {
    fn ready(&mut self) -> bool {
        while self.connected.is_none() {
            let Some((number, address)) = self.address.after(self.number) else { return false };
            self.number = number;
            self.connected = RabbitMqCaller::connect(address, ROUTE, WaitMode::Blocking).ok();
        }
        true
    }

    fn call(&mut self, request: &[u8], answer: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
        let Some(caller) = &mut self.connected else { return Err("not_connected") };
        self.ticket += 1;
        let (own, mut is_answered) = (self.ticket, false);
        let mut called = caller.begin(own, request);
        while called.is_ok() && !is_answered {
            // A server that died after its answer has not acknowledged the call: another one answers it, too.
            called = caller.receive(&mut |ticket, found| {
                if ticket == own && !std::mem::replace(&mut is_answered, true) {
                    answer.extend_from_slice(found);
                }
            });
        }
        called.map_err(|error| {
            self.connected = None;
            match error {
                PeerError::Silence { .. } => "timed_out",
                _ => "connection_lost",
            }
        })
    }
}
