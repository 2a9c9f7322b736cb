//! [`ClusterConfig`]: a member's TOML file, which describes its cluster, the cluster's members, and its stream.
//!
//! The file is a stream's file (`gapless_client::StreamConfig`) with the additional tables `[cluster]`, `[[member]]`,
//! `[election]`, `[discovery]`, `[tls]`, `[clients]`, `[service]` and `[replication]`. The files of the members differ in
//! `cluster.member`, `stream.directory` and `clients.address`; `[replication]` and files of `[tls]` may differ.
//!
//! ```
//! use gapless_cluster::config::ClusterConfig;
//! let text = r#"
//! [cluster]
//! name = "orders"
//! member = 2
//! [[member]]
//! id = 1
//! addresses = ["192.0.2.1:4100"]
//! [[member]]
//! id = 2
//! addresses = ["192.0.2.2:4100"]
//! [[member]]
//! id = 3
//! addresses = ["192.0.2.3:4100"]
//! kind = "witness"
//! [stream]
//! directory = "orders"
//! "#;
//! let config = ClusterConfig::parse(text, "orders.toml")?;
//! assert_eq!((config.name.as_str(), config.own().id, config.voters()), ("orders", 2, 3));
//! let refused = ClusterConfig::parse(&text.replace("member = 2", "member = 4"), "orders.toml").err().unwrap();
//! assert_eq!(refused.to_string(), "orders.toml:4: cluster.member: there is no member 4; 1, 2, 3 are members");
//! # Ok::<(), gapless_stream::StreamError>(())
//! ```

use crate::consensus::details::MEMBER_ADDRESSES_MAX;
use crate::consensus::types::NUMBER_MAX;
use crate::link::tls::{can_be_certified, certificate_name};
use crate::link::{SHARED_MEMORY_PREFIX, shared_memory_path};
use gapless_client::StreamConfig;
use gapless_config::{ConfigError, Document, Table, Value};
use gapless_stream::StreamError;
use gapless_stream::network::ClientPort;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::Tier;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod clients;
pub mod replication;
pub mod service;

pub use crate::link::wire::CLUSTER_NAME_LENGTH_MAX;
pub use replication::ReplicationConfig;
pub use service::{OnFault, ServiceConfig};

/// Limit of members in a file: each further voter makes every message wait for more answers.
pub const CLUSTER_MEMBERS_MAX: usize = 16;

/// Role of a member in addition to storing frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberKind {
    #[default]
    Full,
    Witness,
    Learner,
}

impl MemberKind {
    /// Every kind with its name in the file.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("full", Self::Full), ("witness", Self::Witness), ("learner", Self::Learner)];

    /// Whether it counts for the majority.
    #[must_use]
    pub const fn is_voter(self) -> bool {
        matches!(self, Self::Full | Self::Witness)
    }
}

/// A `[[member]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// Number from 1 on, never reused.
    pub id: u64,
    /// Tried by the others in this order: `host:port`, or `shm:` and a socket path for shared memory on one host, which
    /// is tried first. The member listens on the first port and at the first path. Empty for a member to be discovered.
    pub addresses: Vec<String>,
    pub kind: MemberKind,
}

impl MemberConfig {
    /// The `host:port` addresses.
    pub fn network_addresses(&self) -> impl Iterator<Item = &str> {
        self.addresses.iter().map(String::as_str).filter(|address| !address.starts_with(SHARED_MEMORY_PREFIX))
    }

    /// Returns the first shared-memory socket on its own host.
    #[must_use]
    pub fn shared_memory_path(&self) -> Option<PathBuf> {
        self.addresses.iter().find_map(|address| shared_memory_path(address).ok().flatten())
    }
}

const HEARTBEAT_INTERVAL_MAX: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// Shortest wait without a leader, half of the longest; witnesses wait two to three times as long.
    pub timeout: Duration,
    /// Default: a third of the timeout, at most 100 ms.
    pub heartbeat_interval: Duration,
}

impl Default for ElectionConfig {
    fn default() -> Self {
        Self { timeout: Duration::from_millis(300), heartbeat_interval: HEARTBEAT_INTERVAL_MAX }
    }
}

/// Multicast group for member discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryConfig {
    pub group: SocketAddr,
    /// Network interface on which the group is joined.
    pub interface: String,
}

/// Mutual TLS between members, PEM; needs the feature `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificate chain for the DNS name `link::tls::certificate_name`, for server and client use.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Certificate of the authority that signs all members' certificates.
    pub authority: PathBuf,
}

/// Configuration of a member.
#[derive(Clone)]
pub struct ClusterConfig {
    /// 1 to [`CLUSTER_NAME_LENGTH_MAX`] bytes; members of another cluster are refused.
    pub name: String,
    /// Member that this file describes.
    pub member: u64,
    /// Joins a running cluster: with an empty directory it waits for the list of members.
    pub joins: bool,
    /// Incarnation of a cluster recovered by force; members of an earlier one are refused.
    pub incarnation: u64,
    /// Durability of a released frame: `quorum` or `quorum-sync`.
    pub tier: Tier,
    /// Members at the first start, ordered by number; later changes are in the journal.
    pub members: Vec<MemberConfig>,
    pub election: ElectionConfig,
    /// Source of addresses missing in the file.
    pub discovery: Option<DiscoveryConfig>,
    pub tls: Option<TlsConfig>,
    /// TCP port for clients of the service.
    pub clients: Option<ClientPort>,
    /// Operator's settings; a witness runs no service.
    pub service: ServiceConfig,
    /// Additional threads, outside of the thread plan.
    pub replication: ReplicationConfig,
    stream: StreamConfig,
    stream_options: EventStreamOptions,
}

impl ClusterConfig {
    /// Reads the file `path`; relative paths in it are relative to the file.
    ///
    /// # Errors
    /// [`ConfigError::File`], and those of [`ClusterConfig::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, StreamError> {
        let path = path.as_ref();
        let (stream, parts) = StreamConfig::load_with(path, MemberTables::read)?;
        let mut config = parts.with(stream)?;
        if let (Some(tls), Some(parent)) = (&mut config.tls, path.parent()) {
            for file in [&mut tls.certificate, &mut tls.key, &mut tls.authority] {
                *file = parent.join(&*file);
            }
        }
        Ok(config)
    }

    /// Parses `text`; `name` is the file, for messages. Relative paths stay as they are.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] with file, line, key, the found and the allowed value.
    pub fn parse(text: &str, name: &str) -> Result<Self, StreamError> {
        let (stream, parts) = StreamConfig::parse_with(text, name, MemberTables::read)?;
        parts.with(stream)
    }

    /// Entry of this member.
    ///
    /// # Panics
    /// If this member was removed from the list.
    #[must_use]
    pub fn own(&self) -> &MemberConfig {
        self.members.iter().find(|each| each.id == self.member).expect("a member is one of the members")
    }

    pub fn others(&self) -> impl Iterator<Item = &MemberConfig> {
        self.members.iter().filter(|each| each.id != self.member)
    }

    /// Configuration of the stream.
    #[must_use]
    pub const fn stream(&self) -> &StreamConfig {
        &self.stream
    }

    /// Options of this member's stream.
    #[must_use]
    pub fn event_stream_options(&self) -> EventStreamOptions {
        let clients = self.clients.clone();
        self.replication.applied_to(EventStreamOptions { tier: self.tier, clients, ..self.stream_options.clone() })
    }

    #[must_use]
    pub fn voters(&self) -> usize {
        self.members.iter().filter(|each| each.kind.is_voter()).count()
    }

    /// Warning about the number of tolerated failures, if there is reason for one.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self.voters() {
            1 => {
                Some("one member votes: nothing is lost while its disk is there, and nothing goes on without it".into())
            }
            2 => Some(
                "two members vote: both are needed, so the cluster stops when either is lost; add a witness, or take \
                 `gapless cluster recover --force-single` when it has happened"
                    .into(),
            ),
            _ => None,
        }
    }
}

struct MemberTables {
    name: String,
    member: u64,
    joins: bool,
    incarnation: u64,
    tier: Tier,
    members: Vec<MemberConfig>,
    election: ElectionConfig,
    discovery: Option<DiscoveryConfig>,
    tls: Option<TlsConfig>,
    clients: Option<ClientPort>,
    service: ServiceConfig,
    replication: ReplicationConfig,
}

impl MemberTables {
    fn read(document: &Document<'_>, file: &mut Table<'_>) -> Result<Self, ConfigError> {
        let (name, member, joins, incarnation, tier) = cluster(file.table("cluster")?)?;
        let mut members = file.tables("member")?.into_iter().map(described).collect::<Result<Vec<_>, _>>()?;
        let parts = Self {
            name,
            member,
            joins,
            incarnation,
            tier,
            election: election(file.table("election")?)?,
            discovery: discovery(file.table("discovery")?)?,
            tls: tls(file.table("tls")?)?,
            clients: clients::read(file.table("clients")?)?,
            service: service::read(file.table("service")?)?,
            replication: replication::read(file.table("replication")?)?,
            members: {
                members.sort_by_key(|each| each.id);
                members
            },
        };
        parts.check(document)?;
        Ok(parts)
    }

    fn check(&self, document: &Document<'_>) -> Result<(), ConfigError> {
        let refuse = |key: &str, reason: String| Err(document.refuse(key, reason));
        if self.members.is_empty() {
            return refuse("member", "missing; a [[member]] with id and addresses is expected for each".to_owned());
        }
        if self.members.len() > CLUSTER_MEMBERS_MAX {
            return refuse("member", format!("{} members; {CLUSTER_MEMBERS_MAX} are allowed", self.members.len()));
        }
        if let Some(pair) = self.members.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return refuse("member", format!("there are two members {}; each has a number of its own", pair[0].id));
        }
        let Some(own) = self.members.iter().find(|each| each.id == self.member) else {
            let ids: Vec<_> = self.members.iter().map(|each| each.id.to_string()).collect();
            let reason = format!("there is no member {}; {} are members", self.member, ids.join(", "));
            return refuse("cluster.member", reason);
        };
        if !self.members.iter().any(|each| each.kind == MemberKind::Full) {
            return refuse("member", "nobody could lead; one at least is of kind \"full\"".to_owned());
        }
        let is_needed =
            |each: &&MemberConfig| each.addresses.is_empty() && (self.discovery.is_none() || each.id == own.id);
        if let Some(each) = self.members.iter().find(is_needed) {
            let reason = format!(
                "member {} has no addresses, \"host:port\"; they may be left out of others with [discovery]",
                each.id
            );
            return refuse("member", reason);
        }
        if self.tls.is_some() && !can_be_certified(&self.name) {
            let reason = format!(
                "{:?} is no part of a DNS name; with [tls] the certificate of a member is for {:?}",
                self.name,
                certificate_name("orders", self.member)
            );
            return refuse("cluster.name", reason);
        }
        let shares = |each: &&MemberConfig| each.shared_memory_path().is_some();
        if let (Some(_), Some(each)) = (&self.tls, self.members.iter().find(shares)) {
            let reason = format!("member {} has an address of shared memory; with [tls] there is TLS alone", each.id);
            return refuse("member", reason);
        }
        if document.has("stream.tier") {
            return refuse("stream.tier", "a cluster's tier is cluster.tier".to_owned());
        }
        if let Some(each) = self.members.iter().find(|each| each.addresses.len() > MEMBER_ADDRESSES_MAX) {
            let (id, found) = (each.id, each.addresses.len());
            return refuse("member", format!("member {id} has {found} addresses; {MEMBER_ADDRESSES_MAX} are allowed"));
        }
        if self.election.timeout < 3 * self.election.heartbeat_interval {
            let reason = format!(
                "{:?} are less than three times election.heartbeat_interval of {:?}: a beat or two may be late",
                self.election.timeout, self.election.heartbeat_interval
            );
            return refuse("election.timeout", reason);
        }
        Ok(())
    }

    fn with(self, stream: StreamConfig) -> Result<ClusterConfig, StreamError> {
        let stream_options = EventStreamOptions::from_config(&stream)?;
        let Self { name, member, joins, incarnation, tier, members, election, discovery, tls, .. } = self;
        let (clients, service, replication) = (self.clients, self.service, self.replication);
        Ok(ClusterConfig {
            name,
            member,
            joins,
            incarnation,
            tier,
            members,
            election,
            discovery,
            tls,
            clients,
            service,
            replication,
            stream,
            stream_options,
        })
    }
}

fn cluster(mut table: Table<'_>) -> Result<(String, u64, bool, u64, Tier), ConfigError> {
    let Some(name) = table.take("name") else { return Err(table.missing("name", "the cluster's name")) };
    let Some(member) = table.take("member") else { return Err(table.missing("member", "the number of this member")) };
    let mut joins = false;
    table.set("join", &mut joins, |value| value.switch())?;
    let mut incarnation = 1;
    table.set("incarnation", &mut incarnation, number)?;
    let mut tier = Tier::Quorum;
    table.set("tier", &mut tier, |value| value.choice(&Tier::REPLICATED.map(|tier| (tier.name(), tier))))?;
    table.end()?;
    let (text, member) = (name.text()?.to_owned(), member_number(&member)?);
    let is_name = (1..=CLUSTER_NAME_LENGTH_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if !is_name {
        return Err(
            name.expected(format!("1 to {CLUSTER_NAME_LENGTH_MAX} bytes without control characters are allowed"))
        );
    }
    Ok((text, member, joins, incarnation, tier))
}

fn described(mut table: Table<'_>) -> Result<MemberConfig, ConfigError> {
    let Some(id) = table.take("id") else { return Err(table.missing("id", "a number from 1 on")) };
    let id = member_number(&id)?;
    let addresses = match table.take("addresses") {
        Some(list) => list.list()?.iter().map(address).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let mut kind = MemberKind::default();
    table.set("kind", &mut kind, |value| value.choice(MemberKind::NAMES))?;
    table.end()?;
    Ok(MemberConfig { id, addresses, kind })
}

fn election(mut table: Table<'_>) -> Result<ElectionConfig, ConfigError> {
    let mut election = ElectionConfig::default();
    let range = Duration::from_millis(1)..=Duration::from_secs(60);
    table.set("timeout", &mut election.timeout, |value| value.duration(range.clone()))?;
    election.heartbeat_interval = HEARTBEAT_INTERVAL_MAX.min(election.timeout / 3);
    table.set("heartbeat_interval", &mut election.heartbeat_interval, |value| value.duration(range))?;
    table.end()?;
    Ok(election)
}

fn discovery(mut table: Table<'_>) -> Result<Option<DiscoveryConfig>, ConfigError> {
    let (group, interface) = (table.take("group"), table.take("interface"));
    let found = match (group, interface) {
        (None, None) => None,
        (Some(group), Some(interface)) => {
            let address = group.address()?;
            if !address.ip().is_multicast() {
                return Err(group.expected("an address of a multicast group with a port is allowed"));
            }
            let name = interface.text()?;
            if name.is_empty() {
                return Err(interface.expected("the name of an interface is allowed, such as \"eth0\""));
            }
            Some(DiscoveryConfig { group: address, interface: name.to_owned() })
        }
        (None, Some(_)) => return Err(table.missing("group", "a multicast group, such as \"239.1.2.3:4100\",")),
        (Some(_), None) => return Err(table.missing("interface", "the name of an interface, such as \"eth0\",")),
    };
    table.end()?;
    Ok(found)
}

fn tls(mut table: Table<'_>) -> Result<Option<TlsConfig>, ConfigError> {
    let files = [table.take("certificate"), table.take("key"), table.take("authority")];
    let found = match &files {
        [None, None, None] => None,
        [Some(certificate), Some(key), Some(authority)] => {
            Some(TlsConfig { certificate: path(certificate)?, key: path(key)?, authority: path(authority)? })
        }
        _ => {
            let names = ["certificate", "key", "authority"];
            let missing = names.iter().zip(&files).find(|(_, file)| file.is_none()).map_or("", |(name, _)| *name);
            return Err(table.missing(missing, "the path of a PEM file"));
        }
    };
    table.end()?;
    Ok(found)
}

fn path(value: &Value<'_>) -> Result<PathBuf, ConfigError> {
    match value.text()? {
        "" => Err(value.expected("the path of a PEM file is allowed")),
        path => Ok(path.into()),
    }
}

fn number(value: &Value<'_>) -> Result<u64, ConfigError> {
    value.whole(1..=i64::MAX as u64)
}

fn member_number(value: &Value<'_>) -> Result<u64, ConfigError> {
    value.whole(1..=NUMBER_MAX)
}

/// `host:port`, without a name lookup, or `shm:` and a path.
fn address(value: &Value<'_>) -> Result<String, ConfigError> {
    let text = value.text()?;
    if shared_memory_path(text).map_err(|rule| value.expected(rule))?.is_some() {
        return Ok(text.to_owned());
    }
    if crate::consensus::details::is_address(text) {
        return Ok(text.to_owned());
    }
    Err(value.expected(
        "a host with a port is allowed, such as \"192.0.2.7:4100\" or \"alpha.example:4100\", or shm: with a path, such as \
         \"shm:/run/orders/member-2\"",
    ))
}

#[cfg(test)]
mod tests;
