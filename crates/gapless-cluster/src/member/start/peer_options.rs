//! Options of consensus and of the links to the other members.

use super::member_id;
use crate::ClusterError;
use crate::config::{ClusterConfig, DiscoveryConfig, MemberConfig, MemberKind, TlsConfig};
use crate::consensus::{ConsensusOptions, MemberDetails, MemberId, Members};
use crate::link::wire::{ClusterName, MemberIdentity};
use crate::link::{
    DetachedSend, DiscoveryOptions, LinkError, LinkTls, Links, MEMBER_ADDRESSES_MAX, MemberLinkOptions, PeerOptions,
};
use crate::member::member_environment::MemberEnvironment;
use gapless_log::StreamIdentity;
use std::net::{SocketAddr, ToSocketAddrs};

pub(super) fn consensus_options(
    config: &ClusterConfig,
    identity: StreamIdentity,
    window_bytes: usize,
) -> ConsensusOptions {
    let of_kind = |kind| -> Vec<MemberId> {
        config.members.iter().filter(|each| each.kind == kind).map(|each| member_id(each.id)).collect()
    };
    let witnesses = of_kind(MemberKind::Witness);
    let mut voters = [of_kind(MemberKind::Full), witnesses.clone()].concat();
    voters.sort_unstable();
    let members = if config.joins {
        Members::default()
    } else {
        let details = config.members.iter().map(|each| MemberDetails {
            member: member_id(each.id),
            addresses: each.addresses.clone(),
            joining: None,
        });
        let learners = of_kind(MemberKind::Learner);
        Members { voters, learners, witnesses, details: details.collect(), ..Members::default() }
    };
    let timeout_ns = config.election.timeout.as_nanos() as u64;
    let low = identity.stream_id as u64;
    ConsensusOptions {
        // The seed is independent of the incarnation: a cluster recovered by force keeps its chain, and a joining
        // member computes it from the stream's first frame.
        chain_seed: low ^ 1,
        seed: low,
        heartbeat_interval_ns: config.election.heartbeat_interval.as_nanos() as u64,
        election_timeout_min_ns: timeout_ns,
        election_timeout_max_ns: 2 * timeout_ns,
        // Uncommitted frames stay in the window, in addition to unread ones.
        in_flight_bytes_max: (window_bytes / 8) as u64,
        is_witness: config.own().kind == MemberKind::Witness,
        ..ConsensusOptions::new(member_id(config.member), members)
    }
}

pub(super) fn tls(config: &ClusterConfig) -> Result<Option<LinkTls>, LinkError> {
    let load = |files: &TlsConfig| {
        LinkTls::load(&files.certificate, &files.key, &files.authority, &config.name, config.member)
    };
    config.tls.as_ref().map(load).transpose()
}

pub(super) fn links(
    config: &ClusterConfig,
    tls: Option<LinkTls>,
    identity: StreamIdentity,
    instance: u64,
    member_environment: &MemberEnvironment,
) -> Result<Links, ClusterError> {
    let own = config.own();
    let listen = own.network_addresses().next().map(resolve).transpose()?;
    let listen_shared = own.shared_memory_path();
    let discovery = config.discovery.as_ref().map(|discovery| discovery_options(discovery, own)).transpose()?;
    let cluster = ClusterName::new(&config.name).expect("the configuration has checked it");
    let identity = MemberIdentity {
        cluster,
        stream_id: identity.stream_id,
        incarnation: identity.incarnation,
        member: own.id,
        instance,
    };
    let peers: Vec<_> =
        config.others().map(|each| PeerOptions { member: each.id, addresses: each.addresses.clone() }).collect();
    let network = member_environment.network.clone();
    let mut options =
        MemberLinkOptions { listen, listen_shared, network, discovery, tls, ..MemberLinkOptions::default() };
    let is_detached = config.replication.detached_send && !member_environment.without_helpers;
    options.detached_send = is_detached.then_some(DetachedSend { cpus: config.replication.send_cpus });
    // Two followers exchange only pings, and each ping wakes one of them.
    let timeout_ns = config.election.timeout.as_nanos() as u64;
    options.ping_interval_ns = timeout_ns.clamp(options.ping_interval_ns, options.silence_ns_max / 4);
    let mut links = Links::open(options, identity, &peers)?;
    if config.joins {
        // The file's members may have been replaced since.
        links.set_numbers_used(0);
    }
    Ok(links)
}

fn discovery_options(config: &DiscoveryConfig, own: &MemberConfig) -> Result<DiscoveryOptions, ClusterError> {
    let addresses = own.network_addresses().take(MEMBER_ADDRESSES_MAX).map(resolve).collect::<Result<_, _>>()?;
    Ok(DiscoveryOptions { group: config.group, interface: config.interface.clone(), addresses })
}

fn resolve(address: &str) -> Result<SocketAddr, ClusterError> {
    let failed = |source| ClusterError::System { action: format!("looking up {address}"), source };
    let mut found = address.to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(std::io::Error::other("the name has no address")))
}
