//! `TcpNetwork`: configuration of the TCP ports of a sequencer, and creation of their agents.

use super::client_sessions::{ClientSessionCounters, ClientSessionOptions, ClientSessions};
use super::endpoints::ServedStream;
use super::soup_server::{SoupServer, SoupServerCounters, SoupServerOptions, SoupSource};
use super::tcp_gateway::{TcpGateway, TcpGatewayCounters};
use crate::StreamError;
use gapless_agent::Agent;
use gapless_transport::link::RingSizes;
use gapless_transport::transport::Transport;
use gapless_wire::aligned_length;
use std::net::SocketAddr;
use std::sync::Arc;

/// TCP ports of a sequencer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpNetwork {
    /// Address for publishing; port 0 picks a free one.
    pub command: SocketAddr,
    /// Address of SoupBinTCP; port 0 picks a free one.
    pub rewind: SocketAddr,
    /// Admission, for each of the two ports.
    pub sessions: ClientSessionOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpAddresses {
    /// Address for publishing.
    pub command: SocketAddr,
    /// Address of SoupBinTCP.
    pub rewind: SocketAddr,
}

/// Longest frame over TCP, bytes: SoupBinTCP counts in 16 bits.
pub const FRAME_LENGTH_TCP: usize = 65_000;

impl TcpNetwork {
    /// Default options.
    #[must_use]
    pub fn new(command: SocketAddr, rewind: SocketAddr) -> Self {
        Self { command, rewind, sessions: ClientSessionOptions::default() }
    }

    /// Whether frames fit packets and rings.
    ///
    /// # Errors
    /// [`StreamError::Option`] states the allowed values.
    pub fn check(&self, frame_length_max: usize) -> Result<(), StreamError> {
        let refuse = |option, reason: String| Err(StreamError::Option { option, reason });
        if frame_length_max > FRAME_LENGTH_TCP {
            let reason = format!(
                "frames of {frame_length_max} bytes do not fit SoupBinTCP; at most {FRAME_LENGTH_TCP} are allowed"
            );
            return refuse("frame_length_max", reason);
        }
        let ring_bytes = self.sessions.rings.command_ring_bytes;
        if ring_bytes / 2 < aligned_length(frame_length_max) {
            let reason = format!(
                "a ring of {ring_bytes} bytes takes frames of {} at most, not of {frame_length_max}",
                ring_bytes / 2
            );
            return refuse("command_ring_bytes", reason);
        }
        if self.command == self.rewind && self.command.port() != 0 {
            return refuse("rewind", format!("{} is the command port already", self.rewind));
        }
        Ok(())
    }
}

const NEWS_RINGS: RingSizes = RingSizes { command_ring_bytes: 4096, reply_ring_bytes: 4096 };

pub(crate) fn build(
    network: &TcpNetwork,
    served: &ServedStream<'_>,
) -> Result<([Box<dyn Agent>; 2], TcpAddresses), StreamError> {
    let counters = ClientSessionCounters::add_to(served.counters, "tcp-gateway")?;
    let sessions = ClientSessions::new(
        Transport::Tcp,
        network.sessions.clone(),
        Arc::clone(&served.acceptor),
        served.facts(),
        served.status.clone(),
        counters,
    );
    let counters = TcpGatewayCounters::add_to(served.counters)?;
    let limits = (network.sessions.clients_max, network.sessions.rings.reply_ring_bytes);
    let gateway = TcpGateway::bind(network.command, sessions, limits, counters)?;
    let source = SoupSource {
        window: served.window.clone(),
        feeds: served.feeds.clone(),
        make_reader: served.reader(),
        news: served.acceptor.connect(NEWS_RINGS)?,
        ends_here: served.ends_here,
    };
    let counters = SoupServerCounters::add_to(served.counters)?;
    let rewind = SoupServer::bind(network.rewind, source, SoupServerOptions::new(network.sessions.clone()), counters)?;
    let addresses = TcpAddresses { command: gateway.local_address(), rewind: rewind.local_address() };
    Ok(([Box::new(gateway), Box::new(rewind)], addresses))
}
