//! From a stream's file to its options.

use super::{EventStreamOptions, message_length_within};
use crate::StreamError;
use crate::network::TcpNetwork;
use crate::network::client_sessions::ClientSessionOptions;
use crate::network::endpoints::{Carrier, PacketNetwork};
use crate::network::tcp_endpoints::FRAME_LENGTH_TCP;
use crate::persistence::Persistence;
use gapless_client::StreamConfig;
use gapless_client::stream_file::{JournalSettings, NetworkSettings, SequencerSettings};
use gapless_journal::{JournalError, JournalOptions, Zeroing};
use gapless_transport::transport::Transport;
use gapless_wire::descriptor::FRAME_LENGTH_UDP;

#[cfg(test)]
mod tests;

impl EventStreamOptions {
    /// Options of the sequencer for the stream that `config` describes. Unset options are as in
    /// [`EventStreamOptions::in_directory`]; the frame length is the maximum of the transport.
    ///
    /// ```
    /// # mod gapless {
    /// #     pub mod prelude { pub use {gapless_client::StreamConfig, gapless_stream::options::EventStreamOptions}; }
    /// # }
    /// use gapless::prelude::*;
    /// let config = StreamConfig::parse("[stream]\ndirectory = \"orders\"\nmessage_length_max = \"40 MiB\"", "orders.toml")?;
    /// let refused = EventStreamOptions::from_config(&config).err().unwrap().to_string();
    /// assert!(refused.starts_with("orders.toml:3: stream.message_length_max: "), "{refused}");
    /// # Ok::<(), gapless_stream::StreamError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::Refused`](gapless_config::ConfigError::Refused) with file, line and key, if `config` was read from
    /// a file: a value outside the sequencer's limits. Without a file [`StreamError::Option`].
    pub fn from_config(config: &StreamConfig) -> Result<Self, StreamError> {
        let options = Self::unchecked(config);
        options.check().map_err(|error| with_line(error, config))?;
        options.check_against(config)?;
        Ok(options)
    }

    fn unchecked(config: &StreamConfig) -> Self {
        let defaults = Self::in_directory("");
        let sequencer = config.sequencer.clone();
        let SequencerSettings { tier, feed_session, window_bytes, session_expiry, plan, optimize_for, .. } = sequencer;
        let (packets, tcp) = networks(config);
        let window_bytes = window_bytes.unwrap_or(defaults.window_bytes);
        let frame_length_max = sequencer.frame_length_max.unwrap_or_else(|| {
            let by_transport = match config.transport {
                Transport::SharedMemory => defaults.frame_length_max,
                Transport::Udp | Transport::Multicast => FRAME_LENGTH_UDP,
                Transport::Tcp => FRAME_LENGTH_TCP,
            };
            let by_tcp = tcp.as_ref().map(|_| FRAME_LENGTH_TCP);
            let by_packets = packets.as_ref().map(PacketNetwork::frame_length_max);
            let carried = by_tcp.into_iter().chain(by_packets).min().unwrap_or(usize::MAX);
            config.mtu.map_or(by_transport, |mtu| mtu.frame_length_max().min(carried))
        });
        let message_length_max =
            sequencer.message_length_max.unwrap_or_else(|| message_length_within(window_bytes, frame_length_max));
        Self {
            directory: config.directory.clone(),
            tier: tier.unwrap_or(defaults.tier),
            persistence: persistence(&sequencer.journal),
            feed_session: feed_session.unwrap_or(defaults.feed_session),
            window_bytes,
            mtu: config.mtu,
            frame_length_max,
            message_length_max,
            fragments_bytes_max: sequencer.fragments_bytes_max.unwrap_or(defaults.fragments_bytes_max),
            session_expiry: session_expiry.unwrap_or(defaults.session_expiry),
            throttle: sequencer.throttle,
            state_interval_frames: sequencer.state_interval_frames.unwrap_or(defaults.state_interval_frames),
            state_interval_min: sequencer.state_interval_min.unwrap_or(defaults.state_interval_min),
            plan: plan.unwrap_or(defaults.plan),
            optimize_for: optimize_for.unwrap_or(defaults.optimize_for),
            sequencer_cpus: sequencer.sequencer_cpus,
            packets,
            tcp,
            ..defaults
        }
    }

    fn check_against(&self, config: &StreamConfig) -> Result<(), StreamError> {
        let refuse = |option, reason| Err(with_line(StreamError::Option { option, reason }, config));
        let mut journal = JournalOptions::new("journal", 1);
        journal.segment_length_bytes = self.persistence.segment_length_bytes;
        journal.frame_length_max = self.frame_length_max;
        if let Err(JournalError::Options { reason, .. }) = journal.validate() {
            return refuse("journal.segment_length", reason);
        }
        let longest = self.message_bytes_max();
        for (key, bytes) in
            [("node.kept", config.node.publisher.kept_bytes_max), ("stream.fragments", self.fragments_bytes_max)]
        {
            if bytes < longest {
                let reason = format!(
                    "{bytes} bytes do not hold a message of stream.message_length_max, which takes {longest} with its headers"
                );
                return refuse(key, reason);
            }
        }
        Ok(())
    }
}

fn persistence(journal: &JournalSettings) -> Persistence {
    let defaults = Persistence::default();
    Persistence {
        segment_length_bytes: journal.segment_length_bytes.unwrap_or(defaults.segment_length_bytes),
        first_segment_length_bytes: journal.first_segment_length_bytes.unwrap_or(defaults.first_segment_length_bytes),
        zeroing: Zeroing::of(journal.zero_initial.unwrap_or(false), journal.zero_first.unwrap_or(false)),
        flush: journal.flush,
        write_buffer_bytes: journal.write_buffer_bytes.unwrap_or(defaults.write_buffer_bytes),
        retention: journal.retention,
        check: journal.check.unwrap_or(defaults.check),
        ..defaults
    }
}

fn networks(config: &StreamConfig) -> (Option<PacketNetwork>, Option<TcpNetwork>) {
    let NetworkSettings { command, request, rewind, .. } = config.network;
    let by_packets = matches!(config.transport, Transport::Udp | Transport::Multicast);
    let sessions = sessions(config);
    let packets = command.zip(request).filter(|_| by_packets).map(|(command, request)| {
        let defaults = PacketNetwork::udp(command, request);
        PacketNetwork {
            carrier: carrier(&config.network, defaults.carrier),
            groups: config.network.groups.clone(),
            sessions: sessions.clone(),
            batch: config.sequencer.batch.unwrap_or(defaults.batch),
            packet_length_max: config.packet_length_max(),
            heartbeat_interval_ns: config.network.heartbeat_interval_ns.unwrap_or(defaults.heartbeat_interval_ns),
            ..defaults
        }
    });
    // Nodes that use packets read over TCP when they lag far.
    let tcp = command.zip(rewind).filter(|_| config.transport != Transport::SharedMemory);
    (packets, tcp.map(|(command, rewind)| TcpNetwork { sessions, ..TcpNetwork::new(command, rewind) }))
}

fn carrier(network: &NetworkSettings, defaults: Carrier) -> Carrier {
    match defaults {
        Carrier::Udp { interface, hops, segmentation } => Carrier::Udp {
            interface: network.interface.clone().unwrap_or(interface),
            hops: network.hops.unwrap_or(hops),
            segmentation: network.segmentation.unwrap_or(segmentation),
        },
        memory @ Carrier::Memory(_) => memory,
    }
}

fn sessions(config: &StreamConfig) -> ClientSessionOptions {
    let defaults = ClientSessionOptions::default();
    ClientSessionOptions {
        users: config.users.clone(),
        clients_max: config.network.nodes_max.unwrap_or(defaults.clients_max),
        heartbeat_interval_ns: config.network.report_interval_ns.unwrap_or(defaults.heartbeat_interval_ns),
        ..defaults
    }
}

fn with_line(error: StreamError, config: &StreamConfig) -> StreamError {
    let (StreamError::Option { option, reason }, Some(lines)) = (&error, &config.lines) else { return error };
    let key = match *option {
        "groups" | "rewind" => format!("network.{option}"),
        key if key.contains('.') => key.to_owned(),
        _ => format!("stream.{option}"),
    };
    lines.refuse(&key, reason).into()
}
