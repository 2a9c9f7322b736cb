//! [`ClientPort`]: the TCP port for clients of a service. Messages are as at a stream's command port
//! (`docs/protocols/upstream.md`), with the position [`POSITION_NONE`](gapless_wire::upstream::POSITION_NONE), because
//! clients read only their replies.

use super::client_sessions::{ClientSessionCounters, ClientSessionOptions, ClientSessions, WelcomeFacts};
use super::endpoints::ServedStream;
use super::tcp_gateway::{TcpGateway, TcpGatewayCounters};
use crate::StreamError;
use gapless_agent::Agent;
use gapless_transport::link::RingSizes;
use gapless_transport::transport::Transport;
use gapless_wire::aligned_length;
use gapless_wire::upstream::{HEADER_LENGTH, PACKET_LENGTH_MAX};
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPort {
    /// An address of this machine; port 0 picks a free one.
    pub address: SocketAddr,
    /// Credentials and number of admitted clients.
    pub sessions: ClientSessionOptions,
}

const HEARTBEAT_INTERVAL_NS: u64 = 1_000_000_000;

impl ClientPort {
    /// Default options.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let sessions = ClientSessionOptions {
            heartbeat_interval_ns: HEARTBEAT_INTERVAL_NS,
            rings: RingSizes::default(),
            ..ClientSessionOptions::default()
        };
        Self { address, sessions }
    }

    /// Whether frames fit packets and rings.
    ///
    /// # Errors
    /// [`StreamError::Option`] states the allowed values.
    pub fn check(&self, frame_length_max: usize) -> Result<(), StreamError> {
        let padded = aligned_length(frame_length_max);
        let ring_bytes = self.sessions.rings.command_ring_bytes.min(self.sessions.rings.reply_ring_bytes);
        let most = (PACKET_LENGTH_MAX - HEADER_LENGTH).min(ring_bytes / 2);
        if padded <= most {
            return Ok(());
        }
        let reason = format!(
            "frames of {frame_length_max} bytes do not fit what clients by TCP send and are sent; at most {most} are allowed"
        );
        Err(StreamError::Option { option: "frame_length_max", reason })
    }
}

pub(crate) fn build(port: &ClientPort, served: &ServedStream<'_>) -> Result<(Box<dyn Agent>, SocketAddr), StreamError> {
    let sessions = ClientSessions::new(
        Transport::Tcp,
        port.sessions.clone(),
        Arc::clone(&served.acceptor),
        WelcomeFacts { feeds: None, ..served.facts() },
        served.status.clone(),
        ClientSessionCounters::add_to(served.counters, "tcp-gateway")?,
    );
    let counters = TcpGatewayCounters::add_to(served.counters)?;
    let limits = (port.sessions.clients_max, port.sessions.rings.reply_ring_bytes);
    let gateway = TcpGateway::bind(port.address, sessions, limits, counters)?;
    let address = gateway.local_address();
    Ok((Box::new(gateway), address))
}
