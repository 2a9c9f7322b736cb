//! [`Started`]: a started host, whatever it runs.

use crate::HostError;
use crate::node::{NodeHost, NodeQuery};
use crate::status::{Phase, Role, Status};
use gapless_agent::Counter;
#[cfg(feature = "cluster")]
use gapless_client::polled::TCP_PREFIX;
use gapless_client::{ClientOptions, PolledClient, QueryError};
#[cfg(feature = "cluster")]
use gapless_cluster::consensus::MemberRole;
#[cfg(feature = "cluster")]
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome};
#[cfg(all(feature = "cqrs", feature = "cluster"))]
use gapless_cqrs::member::CommandMember;
#[cfg(feature = "cqrs")]
use gapless_cqrs::{
    CommandCounters, CommandHost, DeletionError, DeletionReport, EventFilter, EventReader, FoundEvents, Position,
};
use gapless_engine::{EngineError, ServiceHost};
#[cfg(feature = "cluster")]
use std::path::PathBuf;
use std::time::Duration;

pub(crate) enum Started {
    Service(Box<ServiceHost>),
    #[cfg(feature = "cluster")]
    Member(Box<gapless_engine::Replica>),
    #[cfg(feature = "cqrs")]
    Bus(Box<CommandHost>),
    #[cfg(all(feature = "cqrs", feature = "cluster"))]
    BusMember(Box<CommandMember>),
    Node(NodeHost),
}

enum Stream<'a> {
    Own(&'a ServiceHost),
    #[cfg(feature = "cluster")]
    Member(&'a gapless_engine::Replica),
    Others(&'a NodeHost),
}

/// Way of a client to the service.
pub(crate) enum Connection {
    /// Within this process.
    Own(Box<PolledClient>),
    /// A node takes no commands.
    None,
    #[cfg(feature = "cluster")]
    Members(MemberAddresses),
}

/// Addresses of the cluster's members for clients, as far as known.
#[cfg(feature = "cluster")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberAddresses {
    /// The leader's first.
    pub all: Vec<PathBuf>,
    /// The leader's and those of all connected members are known.
    pub is_complete: bool,
}

#[cfg(feature = "cluster")]
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

impl Started {
    fn stream(&self) -> Stream<'_> {
        match self {
            Self::Service(host) => Stream::Own(host),
            #[cfg(feature = "cluster")]
            Self::Member(replica) => Stream::Member(replica),
            #[cfg(feature = "cqrs")]
            Self::Bus(host) => Stream::Own(host.service()),
            #[cfg(all(feature = "cqrs", feature = "cluster"))]
            Self::BusMember(member) => Stream::Member(member.replica()),
            Self::Node(node) => Stream::Others(node),
        }
    }

    pub fn failure(&self) -> Option<EngineError> {
        match self.stream() {
            Stream::Own(host) => host.failure(),
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => replica.failure(),
            Stream::Others(node) => node.failure(),
        }
    }

    /// Returns whether it has stopped with another member's state, from which the next start continues.
    pub fn must_start_again(&self) -> bool {
        match self.stream() {
            Stream::Own(_) | Stream::Others(_) => false,
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => replica.failure().is_some() && replica.must_start_again(),
        }
    }

    pub fn connection(&self, options: &ClientOptions) -> Result<Connection, HostError> {
        match self.stream() {
            Stream::Own(host) => Ok(Connection::Own(Box::new(host.connect(options.clone())?))),
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => Ok(Connection::Members(addresses_of(replica))),
            Stream::Others(_) => Ok(Connection::None),
        }
    }

    pub fn status(&self, starts: u64) -> Status {
        let mut status = Status {
            phase: Phase::Running,
            role: Role::Alone,
            leader: None,
            tier: Default::default(),
            released: 0,
            handled: 0,
            recovered: Default::default(),
            dead_letters: 0,
            state_hash: None,
            node: None,
            starts,
            failure: None,
        };
        match self.stream() {
            Stream::Own(host) => {
                (status.tier, status.recovered) = (host.tier(), *host.recovered());
                (status.released, status.handled) = (host.released_sequence(), host.handled_sequence());
                (status.dead_letters, status.state_hash) = (host.dead_letter_count(), host.state_hash());
            }
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => {
                let stream = replica.member().stream();
                (status.tier, status.recovered) = (stream.tier(), replica.recovered());
                (status.released, status.handled) = (stream.released_sequence(), replica.handled_sequence());
                (status.dead_letters, status.state_hash) = (replica.dead_letter_count(), replica.state_hash());
                let consensus = replica.member().status().map(|status| status.consensus);
                status.leader = consensus.as_ref().and_then(|consensus| consensus.leader).map(|leader| leader.get());
                status.role = match consensus {
                    _ if is_witness(replica) => Role::Witness,
                    Some(consensus) if consensus.role == MemberRole::Leader => Role::Leader,
                    _ => Role::Follower,
                };
            }
            Stream::Others(node) => {
                (status.role, status.recovered, status.dead_letters) =
                    (Role::Node, node.recovered(), node.dead_letter_count());
                status.handled = node.handled();
                status.released = node.released().max(status.handled);
                status.node = Some(node.status());
            }
        }
        status
    }

    /// # Errors
    /// `Ok(Err(reason))`: the member refuses.
    pub fn snapshot(&self) -> Result<Result<u64, String>, HostError> {
        #[cfg(all(feature = "cqrs", feature = "cluster"))]
        if let Self::BusMember(_) = self {
            return Ok(Err("aggregates are loaded from the whole stream, so no snapshot may replace it".to_owned()));
        }
        match self.stream() {
            Stream::Own(host) => Ok(Ok(host.snapshot()?)),
            // Also writes the sequencer's state, so that retention may delete the frames before both.
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => Ok(replica.member().shared().snapshot(&|| replica.failure().is_some())),
            Stream::Others(_) => {
                Ok(Err("a node takes one every Host::snapshot_every frames, and at its stop".to_owned()))
            }
        }
    }

    /// `Err(None)`: it has no time of its own.
    pub fn advance(&self, by: Duration) -> Result<u64, Option<HostError>> {
        match self.stream() {
            Stream::Own(host) => host.advance(by).map_err(|error| Some(error.into())),
            #[cfg(feature = "cluster")]
            Stream::Member(_) => Err(None),
            Stream::Others(_) => Err(None),
        }
    }

    /// # Errors
    /// `Ok(Err(reason))`: the member refuses.
    pub fn begin_version(&self, version: u32) -> Result<Result<(), String>, HostError> {
        match self.stream() {
            Stream::Own(host) => Ok(Ok(host.begin_version(version)?)),
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => {
                Ok(match replica.member().ask(AdminCommand::Upgrade(version), VERSION_TIMEOUT) {
                    Some(AdminOutcome::Begun) => Ok(()),
                    Some(AdminOutcome::NotUpgraded(reason)) => Err(reason),
                    Some(AdminOutcome::Refused(error)) => Err(error.to_string()),
                    Some(AdminOutcome::NotChanged(error)) => Err(error.to_string()),
                    None => Err("the member does not answer; ask again".to_owned()),
                })
            }
            Stream::Others(_) => Ok(Err("a stream of others has no versions of its readers".to_owned())),
        }
    }

    /// `None`: a node has none.
    pub fn add_counter(&self, name: &str) -> Option<Result<Counter, HostError>> {
        let counters = match self.stream() {
            Stream::Own(host) => host.counters(),
            #[cfg(feature = "cluster")]
            Stream::Member(replica) => replica.member().stream().counters(),
            Stream::Others(_) => return None,
        };
        Some(counters.add(name).map_err(|error| EngineError::from(error).into()))
    }

    /// `None`: not a node.
    pub fn query(&self, query: NodeQuery) -> Option<Result<Vec<u8>, QueryError>> {
        match self {
            Self::Node(node) => Some(node.query(query)),
            _ => None,
        }
    }

    pub fn stop(self) -> Result<u64, HostError> {
        Ok(match self {
            Self::Service(host) => host.stop()?,
            #[cfg(feature = "cluster")]
            Self::Member(replica) => replica.stop()?,
            #[cfg(feature = "cqrs")]
            Self::Bus(host) => host.stop()?,
            #[cfg(all(feature = "cqrs", feature = "cluster"))]
            Self::BusMember(member) => member.stop()?,
            Self::Node(node) => node.stop()?,
        })
    }
}

/// Calls for aggregates; `None` on a witness, which has no events.
#[cfg(feature = "cqrs")]
impl Started {
    pub fn events(&self, from: Position) -> Option<EventReader> {
        match self {
            Self::Bus(host) => Some(host.events(from)),
            #[cfg(feature = "cluster")]
            Self::BusMember(member) if !is_witness(member.replica()) => Some(member.events(from)),
            _ => None,
        }
    }

    pub fn found_events(&self, filter: EventFilter, from: Position) -> Option<FoundEvents> {
        match self {
            Self::Bus(host) => Some(host.found_events(filter, from)),
            #[cfg(feature = "cluster")]
            Self::BusMember(member) if !is_witness(member.replica()) => Some(member.found_events(filter, from)),
            _ => None,
        }
    }

    pub fn counters(&self) -> Option<CommandCounters> {
        match self {
            Self::Bus(host) => Some(host.counters()),
            #[cfg(feature = "cluster")]
            Self::BusMember(member) if !is_witness(member.replica()) => Some(member.counters()),
            _ => None,
        }
    }

    /// `None` on a member.
    pub fn delete_events_before(&self, sequence: u64) -> Option<Result<DeletionReport, DeletionError>> {
        match self {
            Self::Bus(host) => Some(host.delete_events_before(sequence)),
            _ => None,
        }
    }
}

#[cfg(feature = "cluster")]
fn is_witness(replica: &gapless_engine::Replica) -> bool {
    replica.progress().is_none()
}

#[cfg(feature = "cluster")]
fn addresses_of(replica: &gapless_engine::Replica) -> MemberAddresses {
    let (member, stream) = (replica.member(), replica.member().stream());
    let Some(status) = member.status() else { return MemberAddresses::default() };
    let leader = status.consensus.leader.map(|leader| leader.get());
    let mut known = member.shared().endpoints();
    if !is_witness(replica) {
        let socket = stream.socket_path().map(|path| path.display().to_string());
        let port = stream.client_address().map(|address| format!("{TCP_PREFIX}{address}"));
        let own: Vec<String> = port.into_iter().chain(socket).collect();
        known.push((status.member.get(), own.join("\n")));
    }
    known.sort_by_key(|(member, _)| (Some(*member) != leader, *member));
    let is_known = |wanted: u64| known.iter().any(|(member, _)| *member == wanted);
    let mut connected = status.links.iter().filter(|(_, is_connected, _)| *is_connected);
    let is_complete = leader.is_some_and(is_known) && connected.all(|(member, ..)| is_known(member.get()));
    let mut all: Vec<PathBuf> = Vec::new();
    for address in known.iter().flat_map(|(_, lines)| lines.lines()) {
        // Members of several machines may have sockets of one path.
        if !all.iter().any(|other| other.as_os_str() == address) {
            all.push(address.into());
        }
    }
    MemberAddresses { all, is_complete }
}
