//! `PacketNetwork`: configuration of the packet ports of a sequencer, and creation of their agents.

use super::client_sessions::{ClientSessionCounters, ClientSessionOptions, ClientSessions, SharedStatus, WelcomeFacts};
use super::feed_sender::{FeedCounters, FeedSender, FeedSenderOptions};
use super::gateway::Gateway;
use super::replayer::{Replayer, ReplayerCounters};
use crate::StreamError;
use crate::acceptor::Acceptor;
use crate::history_check::HistoryCheck;
use gapless_agent::{Agent, Counters};
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::replay_merge::ReplayMerge;
use gapless_journal::JournalReader;
use gapless_log::{GatingCursor, Window};
use gapless_transport::mailbox::Mailbox;
use gapless_transport::network::datagrams::{Datagrams, PACKET_LENGTH_MAX, Peer};
use gapless_transport::network::memory::MemoryNetwork;
use gapless_transport::network::route::Route;
use gapless_transport::network::shared::SharedDatagrams;
use gapless_transport::network::udp::UdpSocket;
use gapless_transport::network::udp_options::{Interface, MulticastOut, Segmentation, UdpOptions};
use gapless_transport::transport::Transport;
use gapless_wire::{MESSAGE_ALIGNMENT, aligned_length, mold, upstream};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone)]
pub enum Carrier {
    Udp {
        interface: Interface,
        /// Time to live of multicast packets.
        hops: u8,
        segmentation: Segmentation,
    },
    Memory(MemoryNetwork),
}

/// Packet ports of a sequencer.
#[derive(Clone)]
pub struct PacketNetwork {
    pub carrier: Carrier,
    /// Address for publishing.
    pub command: Peer,
    /// Address for requests of missed messages.
    pub request: Peer,
    /// Multicast groups of the feed, A and B; without, each node gets the feed separately.
    pub groups: Vec<Peer>,
    /// Credentials and number of admitted clients.
    pub sessions: ClientSessionOptions,
    /// A packet may hold several frames.
    pub batch: bool,
    /// Longest packet, bytes of UDP payload.
    pub packet_length_max: usize,
    /// Interval of heartbeats on an idle feed, ns.
    pub heartbeat_interval_ns: u64,
}

impl PacketNetwork {
    /// Defaults for UDP, without multicast.
    #[must_use]
    pub fn udp(command: Peer, request: Peer) -> Self {
        let carrier = Carrier::Udp { interface: Interface::Default, hops: 1, segmentation: Segmentation::Auto };
        Self {
            carrier,
            command,
            request,
            groups: Vec::new(),
            sessions: ClientSessionOptions::default(),
            batch: true,
            packet_length_max: mold::PACKET_LENGTH_UDP,
            heartbeat_interval_ns: mold::HEARTBEAT_INTERVAL_NS,
        }
    }

    /// Longest frame that fits in both directions, bytes.
    #[must_use]
    pub const fn frame_length_max(&self) -> usize {
        let down = mold::HEADER_LENGTH + mold::BLOCK_HEADER_LENGTH;
        let padded =
            self.packet_length_max.saturating_sub(upstream::HEADER_LENGTH) / MESSAGE_ALIGNMENT * MESSAGE_ALIGNMENT;
        let down = self.packet_length_max.saturating_sub(down);
        if padded < down { padded } else { down }
    }

    /// Whether frames fit its packets.
    ///
    /// # Errors
    /// [`StreamError::Option`] states the allowed values.
    pub fn check(&self, frame_length_max: usize) -> Result<(), StreamError> {
        let refuse = |option, reason: String| Err(StreamError::Option { option, reason });
        let down = mold::HEADER_LENGTH + mold::BLOCK_HEADER_LENGTH + frame_length_max;
        let needed = down.max(upstream::HEADER_LENGTH + aligned_length(frame_length_max));
        if needed > self.packet_length_max {
            let reason = format!(
                "frames of {frame_length_max} bytes do not fit packets of {} bytes; at most {} are allowed",
                self.packet_length_max,
                self.frame_length_max()
            );
            return refuse("frame_length_max", reason);
        }
        if self.packet_length_max > PACKET_LENGTH_MAX {
            let found = self.packet_length_max;
            return refuse("packet_length_max", format!("at most {PACKET_LENGTH_MAX} bytes are allowed, not {found}"));
        }
        if self.groups.len() > 2 {
            return refuse("groups", format!("feed A and feed B are allowed, not {} groups", self.groups.len()));
        }
        if let Some(group) = self.groups.iter().find(|group| !group.ip().is_multicast()) {
            return refuse("groups", format!("{group} is no multicast address"));
        }
        Ok(())
    }
}

impl PacketNetwork {
    fn check_route(&self, route: Option<Route>, to: Peer) -> Result<(), StreamError> {
        let Some(route) = route else { return Ok(()) };
        route
            .check(self.packet_length_max, to.ip())
            .map_err(|narrow| StreamError::Option { option: "mtu", reason: format!("to {to}: {narrow}") })
    }
}

pub(crate) struct ServedStream<'a> {
    pub acceptor: Arc<Acceptor>,
    pub window: Window,
    pub feeds: SharedFeeds,
    pub history: HistoryCheck,
    pub journal: Option<PathBuf>,
    pub next_sequence: u64,
    /// No other process continues the feed sessions.
    pub ends_here: bool,
    pub status: SharedStatus,
    pub counters: &'a Counters,
}

impl ServedStream<'_> {
    pub fn facts(&self) -> WelcomeFacts {
        let journal = self.journal.clone();
        let next_sequence = self.next_sequence;
        let first_retained = move || match &journal {
            Some(journal) => JournalReader::open(journal).map_or(next_sequence, |reader| reader.first_sequence()),
            None => next_sequence,
        };
        let (window, history, feeds) = (self.window.clone(), self.history.clone(), Some(self.feeds.clone()));
        WelcomeFacts { window, history, feeds, first_retained: Box::new(first_retained) }
    }

    pub fn reader(&self) -> Box<dyn Fn(u64) -> ReplayMerge + Send> {
        let (window, journal) = (self.window.clone(), self.journal.clone());
        Box::new(move |sequence| ReplayMerge::new(window.clone(), journal.clone(), sequence))
    }
}

pub(crate) fn build(
    network: &PacketNetwork,
    cursor: GatingCursor,
    served: &ServedStream<'_>,
) -> Result<[Box<dyn Agent>; 3], StreamError> {
    match &network.carrier {
        Carrier::Udp { interface, hops, segmentation } => {
            let multicast_out = MulticastOut { interface: interface.clone(), hops: *hops, loops_back: true };
            let open = |options: UdpOptions| {
                let action = format!("opening {} for packets", options.peer.unwrap_or(options.local));
                let segmentation = *segmentation;
                UdpSocket::open(&UdpOptions { multicast_out: multicast_out.clone(), segmentation, ..options })
                    .map_err(|source| StreamError::System { action, source })
            };
            let (command, request) = (open(UdpOptions::at(network.command))?, open(UdpOptions::at(network.request))?);
            network.check_route(Route::of_address(network.command.ip()), network.command)?;
            let local = Peer::new(network.command.ip(), 0);
            let to_group = |group: &Peer| {
                let socket = open(UdpOptions { peer: Some(*group), ..UdpOptions::at(local) })?;
                network.check_route(socket.route(), *group)?;
                Ok(Box::new(socket) as Box<dyn Datagrams>)
            };
            let groups = network.groups.iter().map(to_group).collect::<Result<_, StreamError>>()?;
            agents(network, command, request, groups, cursor, served)
        }
        Carrier::Memory(memory) => {
            let open = |local: Peer| {
                let action = || format!("opening {local} in memory");
                memory.socket(local).map_err(|source| StreamError::System { action: action(), source })
            };
            agents(network, open(network.command)?, open(network.request)?, Vec::new(), cursor, served)
        }
    }
}

fn agents<S: Datagrams + 'static>(
    network: &PacketNetwork,
    command: S,
    request: S,
    groups: Vec<Box<dyn Datagrams>>,
    cursor: GatingCursor,
    served: &ServedStream<'_>,
) -> Result<[Box<dyn Agent>; 3], StreamError> {
    let share = |source| StreamError::System { action: "sharing a socket".to_owned(), source };
    let command = SharedDatagrams::new(command).map_err(share)?;
    let changes = Mailbox::new(network.sessions.clients_max * 4);
    let counters = ClientSessionCounters::add_to(served.counters, "gateway")?;
    let sessions = ClientSessions::new(
        if network.groups.is_empty() { Transport::Udp } else { Transport::Multicast },
        network.sessions.clone(),
        Arc::clone(&served.acceptor),
        served.facts(),
        served.status.clone(),
        counters,
    );
    let to_nodes = network.groups.is_empty().then(|| changes.clone());
    let gateway = Gateway::new(command.clone(), sessions, to_nodes, network.packet_length_max);
    let options = FeedSenderOptions {
        groups: network.groups.clone(),
        batch: network.batch,
        packet_length_max: network.packet_length_max,
        heartbeat_interval_ns: network.heartbeat_interval_ns,
    };
    let feeds = served.feeds.lock().clone();
    let counters = FeedCounters::add_to(served.counters)?;
    // Packets to a single node come from the address that it sends to, so that they pass NAT and firewalls.
    let feed = FeedSender::new(command, cursor, &feeds, served.next_sequence, options, changes, counters)
        .with_group_sockets(groups)
        .with_ending_feed(served.ends_here);
    let counters = ReplayerCounters::add_to(served.counters)?;
    let replayer = Replayer::new(request, served.reader(), served.feeds.clone(), network.packet_length_max, counters);
    Ok([Box::new(gateway), Box::new(feed), Box::new(replayer)])
}
