//! Contradictions between keys, each refused at the line of the key to change.

use super::{NetworkSettings, StreamConfig};
use gapless_config::{ConfigError, KeyLines};
use gapless_transport::network::Interface;
use gapless_transport::transport::Transport;
use gapless_wire::{mold, soup};
use std::net::{IpAddr, SocketAddr};

pub(super) fn check(config: &StreamConfig, lines: &KeyLines) -> Result<(), ConfigError> {
    let network = &config.network;
    match config.transport {
        Transport::SharedMemory if config.directory.is_none() => {
            let reason = "missing; transport \"shared-memory\" needs one, to meet in it";
            return Err(lines.refuse("stream.directory", reason));
        }
        Transport::SharedMemory => {}
        Transport::Udp | Transport::Multicast => {
            packets(network, lines)?;
            let heartbeat_interval_ns = network.heartbeat_interval_ns.unwrap_or(mold::HEARTBEAT_INTERVAL_NS);
            silence(config, heartbeat_interval_ns, lines)?;
        }
        Transport::Tcp => {}
    }
    if let (Some(command), Some(rewind)) = (network.command, network.rewind)
        && config.transport != Transport::SharedMemory
    {
        ports(&[("network.command", command), ("network.rewind", rewind)], lines)?;
        silence(config, soup::HEARTBEAT_INTERVAL_NS, lines)?;
    }
    if config.transport == Transport::SharedMemory && lines.has("user") {
        let reason = "over shared memory the directory's permissions say who is let in, not users";
        return Err(lines.refuse("user", reason));
    }
    let users = &config.users;
    let is_twice = |index: usize| users[..index].iter().any(|user| user.username.matches(&users[index].username));
    match (0..users.len()).find(|index| is_twice(*index)) {
        Some(index) => Err(lines.refuse("user", format!("{:?} is there twice", users[index].username.as_str()))),
        None => Ok(()),
    }
}

fn ports(ports: &[(&str, SocketAddr)], lines: &KeyLines) -> Result<(), ConfigError> {
    for (key, address) in ports {
        if address.ip().is_multicast() || address.ip().is_unspecified() {
            let reason = format!("{address} was found; an address of the sequencer's machine is expected");
            return Err(lines.refuse(key, reason));
        }
        if address.is_ipv4() != ports[0].1.is_ipv4() {
            return Err(lines.refuse(key, format!("{address} is of another family than network.command")));
        }
    }
    Ok(())
}

/// A node must not give up between two heartbeats.
fn silence(config: &StreamConfig, heartbeat_interval_ns: u64, lines: &KeyLines) -> Result<(), ConfigError> {
    if config.node.silence_ns_max >= 2 * heartbeat_interval_ns {
        return Ok(());
    }
    let reason = format!(
        "{} ms were found; at least two heartbeats, {} ms, are needed",
        config.node.silence_ns_max / 1_000_000,
        2 * heartbeat_interval_ns / 1_000_000
    );
    Err(lines.refuse("network.silence", reason))
}

fn packets(network: &NetworkSettings, lines: &KeyLines) -> Result<(), ConfigError> {
    let refuse = |key: &str, reason: String| Err(lines.refuse(key, reason));
    let (Some(command), Some(request)) = (network.command, network.request) else { return Ok(()) };
    if command == request {
        return refuse("network.request", format!("{request} is network.command already; another port is needed"));
    }
    ports(&[("network.command", command), ("network.request", request)], lines)?;
    match network.groups.as_slice() {
        [] if lines.has("network.groups") => {
            return refuse("network.groups", "none was found; one or two are allowed".to_owned());
        }
        [a, b] if a == b => return refuse("network.groups", format!("{a} is there twice; feed B needs its own")),
        _ => {}
    }
    if let Some(group) = network.groups.iter().find(|group| group.is_ipv4() != command.is_ipv4()) {
        return refuse("network.groups", format!("{group} is of another family than network.command"));
    }
    if let Some(Interface::Address(address)) = &network.interface
        && matches!(address, IpAddr::V4(_)) != command.is_ipv4()
    {
        return refuse("network.interface", format!("{address} is of another family than network.command"));
    }
    Ok(())
}
