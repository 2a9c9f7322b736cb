//! A new system is a variant of [`RpcSystem`], [`SystemEndpoint`] and [`SystemBroker`]; its caller implements
//! [`PeerCaller`], its server [`PeerServer`] or is a variant of [`ServingEnd`].

use super::failed;
use super::gapless_caller::{self, GaplessCaller};
use crate::Result;
use crate::own_directory::OwnDirectory;
use crate::peers::PeerError;
use crate::peers::nats::{NatsBroker, NatsCaller, NatsServer};
use crate::peers::rabbitmq::{Acknowledgement, RabbitMqBroker, RabbitMqCaller, RabbitMqServer};
pub use crate::peers::subject::WaitMode;
use crate::peers::subject::{PeerCaller, PeerServer};
use clap::ValueEnum;
use gapless_measure::reporting::{is_set, word};
use gapless_rpc::Domain;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RpcSystem {
    /// This program, without a broker
    Gapless,
    /// `rabbitmq-server`, with explicit and with automatic acknowledgement
    Rabbitmq,
    /// `nats-server`
    Nats,
}

/// All that either end needs to connect, in any process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemEndpoint {
    Gapless { domain: PathBuf },
    Rabbitmq { address: SocketAddr, is_explicit: bool },
    Nats { address: SocketAddr },
}

impl SystemEndpoint {
    pub fn system(&self) -> &'static str {
        match self {
            Self::Gapless { .. } => "gapless",
            Self::Rabbitmq { .. } => "rabbitmq",
            Self::Nats { .. } => "nats",
        }
    }

    /// Acknowledgement mode, if the system has a choice: when a request is forgotten.
    pub fn acknowledgement(&self) -> Option<&'static str> {
        match self {
            Self::Rabbitmq { is_explicit, .. } => Some(if *is_explicit { "explicit" } else { "automatic" }),
            Self::Gapless { .. } | Self::Nats { .. } => None,
        }
    }

    pub fn caller(&self, route: &str, waiting: WaitMode) -> Result<Box<dyn PeerCaller>> {
        let caller: std::result::Result<Box<dyn PeerCaller>, PeerError> = match self {
            Self::Gapless { domain } => return Ok(Box::new(GaplessCaller::connect(domain, route, waiting)?)),
            Self::Rabbitmq { address, .. } => {
                RabbitMqCaller::connect(*address, route, waiting).map(|caller| Box::new(caller) as _)
            }
            Self::Nats { address } => NatsCaller::connect(*address, route, waiting).map(|caller| Box::new(caller) as _),
        };
        caller.map_err(failed)
    }

    pub fn server(&self, route: &str, waiting: WaitMode) -> Result<ServingEnd> {
        let server: std::result::Result<Box<dyn PeerServer>, PeerError> = match self {
            Self::Gapless { domain } => return Ok(ServingEnd::Gapless(gapless_caller::open(domain)?)),
            Self::Rabbitmq { address, is_explicit } => {
                let acknowledgement = if *is_explicit { Acknowledgement::Explicit } else { Acknowledgement::Automatic };
                RabbitMqServer::connect(*address, route, waiting, acknowledgement).map(|server| Box::new(server) as _)
            }
            Self::Nats { address } => NatsServer::connect(*address, route, waiting).map(|server| Box::new(server) as _),
        };
        server.map(ServingEnd::Peer).map_err(failed)
    }
}

pub enum ServingEnd {
    /// One worker, driven by the benchmark.
    Peer(Box<dyn PeerServer>),
    Gapless(Domain),
}

/// Broker, or for Gapless the directory where processes meet. Dropping stops it and removes its files.
pub enum SystemBroker {
    Gapless(OwnDirectory),
    RabbitMq(RabbitMqBroker, OwnDirectory),
    Nats(NatsBroker, OwnDirectory),
}

impl SystemBroker {
    /// The inner error says how to install it.
    ///
    /// # Errors
    /// A broker that does not start.
    pub fn start(system: RpcSystem, interrupted: &AtomicBool) -> Result<std::result::Result<Self, String>> {
        let stop = || is_set(interrupted);
        let name = format!("gapless-bench-{}-{}", word(system), std::process::id());
        let directory = OwnDirectory::create(&std::env::temp_dir(), &name)?;
        let started = match system {
            RpcSystem::Gapless => Ok(Self::Gapless(directory)),
            RpcSystem::Rabbitmq => {
                RabbitMqBroker::start(directory.path(), &stop).map(|broker| Self::RabbitMq(broker, directory))
            }
            RpcSystem::Nats => NatsBroker::start(directory.path(), &stop).map(|broker| Self::Nats(broker, directory)),
        };
        match started {
            Ok(broker) => Ok(Ok(broker)),
            Err(error @ PeerError::Missing { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(failed(error)),
        }
    }

    /// Each is a curve.
    pub fn endpoints(&self) -> Vec<SystemEndpoint> {
        match self {
            Self::Gapless(directory) => vec![SystemEndpoint::Gapless { domain: directory.path().join("domain") }],
            Self::RabbitMq(broker, _) => {
                let address = broker.address();
                [true, false].map(|is_explicit| SystemEndpoint::Rabbitmq { address, is_explicit }).into()
            }
            Self::Nats(broker, _) => vec![SystemEndpoint::Nats { address: broker.address() }],
        }
    }

    /// CPU time, ns; `None` without a process.
    pub fn cpu_ns(&self) -> Option<u64> {
        match self {
            Self::Gapless(_) => None,
            Self::RabbitMq(broker, _) => Some(broker.process().cpu_ns()),
            Self::Nats(broker, _) => Some(broker.process().cpu_ns()),
        }
    }
}
