//! What does not go together, each refused at the line of the key that is to be changed.

use super::StreamConfig;
use crate::StreamError;
use crate::network::TcpNetwork;
use crate::network::endpoints::{Carrier, PacketNetwork};
use gapless_client::stream_file::document::Document;
use gapless_journal::{JournalError, JournalOptions};
use gapless_transport::network::Interface;
use gapless_transport::transport::Transport;
use gapless_wire::soup::HEARTBEAT_INTERVAL_NS;
use std::net::{IpAddr, SocketAddr};

pub(super) fn check(config: &StreamConfig, document: &Document<'_>) -> Result<(), StreamError> {
    let stream = &config.stream;
    if stream.directory.is_none() && config.transport == Transport::SharedMemory {
        let reason = "missing; transport \"shared-memory\" needs one, to meet in it";
        return Err(document.refuse("stream.directory", reason).into());
    }
    stream.check().map_err(|error| at_its_line(error, document))?;
    journal(config, document)?;
    let publisher = &config.node.publisher;
    let longest = stream.message_bytes_max();
    if publisher.kept_bytes_max < longest {
        let reason = format!(
            "{} bytes do not hold a message of stream.message_length_max, which takes {longest} with its headers",
            publisher.kept_bytes_max
        );
        return Err(document.refuse("node.kept", reason).into());
    }
    if stream.fragments_bytes_max < longest {
        let reason = format!(
            "{} bytes do not hold a message of stream.message_length_max, which takes {longest} with its headers",
            stream.fragments_bytes_max
        );
        return Err(document.refuse("stream.fragments", reason).into());
    }
    if let Some(network) = &stream.packets {
        packets(network, config, document)?;
    }
    if let Some(network) = &stream.tcp {
        tcp(network, config, document)?;
    }
    if config.transport == Transport::SharedMemory && document.has("user") {
        let reason = "over shared memory the directory's permissions say who is let in, not users";
        return Err(document.refuse("user", reason).into());
    }
    let guests = stream.tcp.as_ref().map(|network| &network.guests);
    let guests = guests.or(stream.packets.as_ref().map(|network| &network.guests));
    let users = guests.map_or(&[][..], |guests| &guests.users);
    let is_twice = |index: usize| users[..index].iter().any(|user| user.username.matches(&users[index].username));
    match (0..users.len()).find(|index| is_twice(*index)) {
        Some(index) => {
            Err(document.refuse("user", format!("{:?} is there twice", users[index].username.as_str())).into())
        }
        None => Ok(()),
    }
}

/// The addresses of the sequencer's ports: of its machine, and of one family.
fn ports(ports: &[(&str, SocketAddr)], document: &Document<'_>) -> Result<(), StreamError> {
    for (key, address) in ports {
        if address.ip().is_multicast() || address.ip().is_unspecified() {
            let reason = format!("{address} was found; an address of the sequencer's machine is expected");
            return Err(document.refuse(key, reason).into());
        }
        if address.is_ipv4() != ports[0].1.is_ipv4() {
            return Err(document.refuse(key, format!("{address} is of another family than network.command")).into());
        }
    }
    Ok(())
}

/// A node must not give up between two heartbeats.
fn silence(config: &StreamConfig, heartbeat_interval_ns: u64, document: &Document<'_>) -> Result<(), StreamError> {
    if config.node.silence_ns_max >= 2 * heartbeat_interval_ns {
        return Ok(());
    }
    let reason = format!(
        "{} ms were found; at least two heartbeats, {} ms, are needed",
        config.node.silence_ns_max / 1_000_000,
        2 * heartbeat_interval_ns / 1_000_000
    );
    Err(document.refuse("network.silence", reason).into())
}

fn tcp(network: &TcpNetwork, config: &StreamConfig, document: &Document<'_>) -> Result<(), StreamError> {
    ports(&[("network.command", network.command), ("network.rewind", network.rewind)], document)?;
    silence(config, HEARTBEAT_INTERVAL_NS, document)
}

fn journal(config: &StreamConfig, document: &Document<'_>) -> Result<(), StreamError> {
    let stream = &config.stream;
    let mut options = JournalOptions::new("journal", 1);
    options.segment_length_bytes = stream.persistence.segment_length_bytes;
    options.frame_length_max = stream.frame_length_max;
    match options.validate() {
        Err(JournalError::Options { reason, .. }) => Err(document.refuse("journal.segment_length", reason).into()),
        _ => Ok(()),
    }
}

fn packets(network: &PacketNetwork, config: &StreamConfig, document: &Document<'_>) -> Result<(), StreamError> {
    let refuse = |key: &str, reason: String| Err(document.refuse(key, reason).into());
    if network.command == network.request {
        return refuse(
            "network.request",
            format!("{} is network.command already; another port is needed", network.request),
        );
    }
    ports(&[("network.command", network.command), ("network.request", network.request)], document)?;
    match network.groups.as_slice() {
        [] if document.has("network.groups") => {
            return refuse("network.groups", "none was found; one or two are allowed".to_owned());
        }
        [a, b] if a == b => return refuse("network.groups", format!("{a} is there twice; feed B needs its own")),
        _ => {}
    }
    if let Some(group) = network.groups.iter().find(|group| group.is_ipv4() != network.command.is_ipv4()) {
        return refuse("network.groups", format!("{group} is of another family than network.command"));
    }
    if let Carrier::Udp { interface: Interface::Address(address), .. } = &network.carrier
        && matches!(address, IpAddr::V4(_)) != network.command.is_ipv4()
    {
        return refuse("network.interface", format!("{address} is of another family than network.command"));
    }
    silence(config, network.heartbeat_interval_ns, document)
}

/// What the options themselves refuse, with the key that sets the option.
fn at_its_line(error: StreamError, document: &Document<'_>) -> StreamError {
    let StreamError::Option { option, reason } = error else { return error };
    let table = if matches!(option, "groups" | "rewind") { "network" } else { "stream" };
    document.refuse(&format!("{table}.{option}"), reason).into()
}
