//! [`ClientSessions`]: nodes connected over a network, for every carrier of packets. Their frames go into rings like
//! those of a local publisher.

use crate::acceptor::Acceptor;
use crate::counters::prefixed_counters;
use crate::history_check::HistoryCheck;
pub use crate::node_status::{NodeStatus, ReceivedReport, SharedStatus};
use gapless_client::feed_sessions::{Feed, SharedFeeds};
use gapless_log::{LogError, StreamIdentity, Window};
use gapless_transport::credentials::Credentials;
use gapless_transport::link::{ConnectionId, RingSizes};
use gapless_transport::network::datagrams::Peer;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::token::random_token;
use gapless_transport::transport::Transport;
use gapless_transport::warnings::Warnings;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::soup::Field;
use gapless_wire::upstream::{
    HEADER_LENGTH, NodeHello, NodeReport, NodeWelcome, POSITION_FIRST, POSITION_LIVE, POSITION_NONE, RefusalReason,
    UpstreamBody, UpstreamPacket, finish_answers,
};
use gapless_wire::{Frame, aligned_length};
use rustc_hash::FxHashMap;
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSessionOptions {
    /// Users that may connect; if empty, everyone.
    pub users: Vec<Credentials>,
    pub clients_max: usize,
    /// Heartbeat interval of a node, ns; it is dropped after ten silent ones.
    pub heartbeat_interval_ns: u64,
    /// Rings between a node's connection and the sequencer.
    pub rings: RingSizes,
}

impl Default for ClientSessionOptions {
    fn default() -> Self {
        Self {
            users: Vec::new(),
            clients_max: 1024,
            heartbeat_interval_ns: 200_000_000,
            rings: RingSizes { command_ring_bytes: 1 << 20, reply_ring_bytes: 64 << 10 },
        }
    }
}

impl ClientSessionOptions {
    #[must_use]
    pub fn is_authorized(&self, username: &Field<6>, password: &Field<10>) -> bool {
        // Every user, so that the timing reveals nothing.
        let known = |user: &Credentials| user.username.matches(username) & user.password.matches(password);
        self.users.is_empty() || self.users.iter().fold(false, |any, user| any | known(user))
    }
}

prefixed_counters! {
    pub struct ClientSessionCounters {
        /// Nodes now.
        nodes: ".nodes",
        /// Packets that are foreign or damaged.
        malformed: ".packets_malformed",
        /// Packets from peers that were not admitted.
        unknown: ".packets_unknown",
        /// Refused nodes.
        refused: ".nodes_refused",
        /// Published frames for which there was no room.
        frames_dropped: ".frames_dropped",
    }
}

pub struct ClientSession {
    /// Source address of its packets.
    pub peer: Peer,
    nonce: u64,
    link: PublisherLink,
    username: String,
    report: Option<ReceivedReport>,
    last_packet_ns: u64,
    frames_published: u64,
    frames_dropped: u64,
    is_dirty: bool,
    is_new: bool,
}

/// Facts of the stream for welcomes.
pub struct WelcomeFacts {
    pub window: Window,
    /// Finds nodes that have seen another history.
    pub history: HistoryCheck,
    /// Feed sessions; `None` if the stream belongs to a service.
    pub feeds: Option<SharedFeeds>,
    /// First sequence that is still kept.
    pub first_retained: Box<dyn Fn() -> u64 + Send>,
}

pub struct ClientSessions {
    network: Transport,
    options: ClientSessionOptions,
    acceptor: Arc<Acceptor>,
    facts: WelcomeFacts,
    sessions: FxHashMap<u64, ClientSession>,
    dropped: Vec<(u64, Peer)>,
    status: SharedStatus,
    counters: ClientSessionCounters,
    next_sweep_ns: u64,
    warnings: Warnings,
}

pub enum AdmissionResult {
    /// Key of a node admitted now or before.
    Admitted(u64),
    Refused,
}

/// Result of offering frames that must not be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferResult {
    All,
    /// This many bytes are in the ring; no room for the rest.
    Part(usize),
    /// No valid frame follows, or the sequencer takes nothing more.
    Refused,
}

/// Silent intervals until a node is dropped.
const SILENT_INTERVALS: u64 = 10;

impl ClientSessions {
    /// No nodes yet.
    #[must_use]
    pub fn new(
        network: Transport,
        options: ClientSessionOptions,
        acceptor: Arc<Acceptor>,
        facts: WelcomeFacts,
        status: SharedStatus,
        counters: ClientSessionCounters,
    ) -> Self {
        let (sessions, dropped, next_sweep_ns) = (FxHashMap::default(), Vec::new(), 0);
        let warnings = Warnings::default();
        Self { network, options, acceptor, facts, sessions, dropped, status, counters, next_sweep_ns, warnings }
    }

    #[must_use]
    pub const fn counters(&self) -> &ClientSessionCounters {
        &self.counters
    }

    /// Writes the packet that answers a hello to `answer`; returns its length, too.
    pub fn handle_hello(
        &mut self,
        peer: Peer,
        hello: &NodeHello,
        now_ns: u64,
        answer: &mut [u8],
    ) -> (AdmissionResult, usize) {
        let refuse = |reason, text: &str, answer: &mut [u8]| {
            let packet = UpstreamPacket { key: 0, body: UpstreamBody::Refusal { nonce: hello.nonce, reason, text } };
            (AdmissionResult::Refused, packet.write_to(answer).unwrap_or(0))
        };
        let known = self.sessions.iter().find(|(_, client)| client.peer == peer && client.nonce == hello.nonce);
        let key = match known {
            // The welcome was lost, or the node asks where the feed continues.
            Some((key, _)) => *key,
            None => match self.admit(peer, hello, now_ns) {
                Ok(key) => key,
                Err((reason, text)) => {
                    self.counters.refused.add(1);
                    self.warnings.warn(now_ns, || format!("the node at {peer} was not let in ({reason:?}): {text}"));
                    return refuse(reason, &text, answer);
                }
            },
        };
        match self.welcome(hello, key) {
            Ok(welcome) => {
                let packet = UpstreamPacket { key, body: UpstreamBody::Welcome(welcome) };
                (AdmissionResult::Admitted(key), packet.write_to(answer).unwrap_or(0))
            }
            Err((reason, text)) => {
                self.drop_session(key);
                self.counters.refused.add(1);
                refuse(reason, &text, answer)
            }
        }
    }

    fn admit(&mut self, peer: Peer, hello: &NodeHello, now_ns: u64) -> Result<u64, (RefusalReason, String)> {
        if !self.options.is_authorized(&hello.username, &hello.password) {
            return Err((RefusalReason::NotAuthorized, "username and password are not known here".to_owned()));
        }
        let identity = self.facts.window.identity();
        if hello.stream_id != 0 && hello.stream_id != identity.stream_id {
            return Err((RefusalReason::OtherStream, format!("this is stream {:032x}", identity.stream_id)));
        }
        if hello.incarnation != 0 && hello.incarnation != identity.incarnation {
            return Err((
                RefusalReason::OtherIncarnation,
                format!("this is incarnation {:016x}", identity.incarnation),
            ));
        }
        let seen = SeenFrame {
            identity: StreamIdentity { stream_id: hello.seen_stream_id, incarnation: hello.seen_incarnation },
            sequence: hello.seen_sequence,
            timestamp_ns: hello.seen_timestamp_ns,
        };
        if let Some(contradiction) = self.facts.history.contradiction(seen) {
            let text = format!("sequence {} was seen with another history: {contradiction}", seen.sequence);
            return Err((RefusalReason::OtherHistory, text));
        }
        if let Some(text) = self.acceptor.refuses_mtu(hello.mtu) {
            return Err((RefusalReason::OtherMtu, text));
        }
        // A peer that reconnects from a known address has lost its state.
        let replaced = self.sessions.iter().find(|(_, client)| client.peer == peer).map(|(key, _)| *key);
        replaced.into_iter().for_each(|key| self.drop_session(key));
        if self.sessions.len() >= self.options.clients_max {
            return Err((RefusalReason::Unavailable, format!("there are {} nodes already", self.sessions.len())));
        }
        // `publish` and `offer` verify both checksums.
        let link = self.acceptor.connect_checked(self.options.rings);
        let link = link.map_err(|error| (RefusalReason::Unavailable, error.to_string()))?;
        let key = random_token() as u64 | 1;
        let client = ClientSession {
            peer,
            nonce: hello.nonce,
            link,
            username: hello.username.as_str().to_owned(),
            report: None,
            last_packet_ns: now_ns,
            frames_published: 0,
            frames_dropped: 0,
            is_dirty: false,
            is_new: true,
        };
        self.sessions.insert(key, client);
        self.counters.nodes.set(self.sessions.len() as u64);
        Ok(key)
    }

    fn welcome(&self, hello: &NodeHello, key: u64) -> Result<NodeWelcome, (RefusalReason, String)> {
        let client = &self.sessions[&key];
        let released_sequence = self.facts.window.released_sequence();
        let identity = self.facts.window.identity();
        let (position, feed) = match &self.facts.feeds {
            Some(feeds) => self.start_sequence(feeds, hello.position, released_sequence)?,
            None if hello.position == POSITION_NONE => {
                (POSITION_NONE, Feed { name: FeedSession::BLANK, first_sequence: 0, last_sequence: None })
            }
            None => {
                let text = "its stream belongs to a service and cannot be read".to_owned();
                return Err((RefusalReason::OtherStream, text));
            }
        };
        Ok(NodeWelcome {
            nonce: hello.nonce,
            stream_id: identity.stream_id,
            incarnation: identity.incarnation,
            position,
            released_sequence,
            frame_length_max: client.link.welcome.frame_length_max,
            tier: client.link.welcome.tier,
            message_bytes_max: client.link.welcome.message_length_max,
            feed_session: feed.name,
            feed_first_sequence: feed.first_sequence,
            feed_last_sequence: feed.last_sequence,
            heartbeat_interval_ns: self.options.heartbeat_interval_ns,
        })
    }

    fn start_sequence(
        &self,
        feeds: &SharedFeeds,
        position: u64,
        released_sequence: u64,
    ) -> Result<(u64, Feed), (RefusalReason, String)> {
        let first_retained = (self.facts.first_retained)();
        let position = match position {
            POSITION_NONE => {
                let text =
                    "this is an event stream, which nodes read; there is no service that would answer".to_owned();
                return Err((RefusalReason::OtherStream, text));
            }
            POSITION_FIRST => first_retained,
            POSITION_LIVE => released_sequence + 1,
            position if position < first_retained => {
                let text = format!("sequence {position} is no longer held; {first_retained} is the first");
                return Err((RefusalReason::NotHeld, text));
            }
            position if position > released_sequence + 1 => {
                let text = format!("sequence {position} is not there yet; {released_sequence} is the last");
                return Err((RefusalReason::NotHeld, text));
            }
            position => position,
        };
        let feeds = feeds.lock();
        match feeds.find_by_sequence(position).or_else(|| feeds.newest()) {
            Some(feed) => Ok((position, *feed)),
            None => Err((RefusalReason::Unavailable, "no feed session has begun yet".to_owned())),
        }
    }

    /// Finds a client that sends from `peer`, and marks it as seen.
    #[inline]
    pub fn client_mut(&mut self, key: u64, peer: Peer, now_ns: u64) -> Option<&mut ClientSession> {
        let client = self.sessions.get_mut(&key).filter(|client| client.peer == peer)?;
        client.last_packet_ns = now_ns;
        Some(client)
    }

    /// Puts frames into the client's ring, as many as fit.
    #[inline]
    pub fn publish(&mut self, key: u64, frames: &[u8]) -> usize {
        let Some(client) = self.sessions.get_mut(&key) else { return 0 };
        if client.link.writer.is_reader_closed() {
            // The sequencer has dropped its ring: its next packet is answered like one of an unknown peer.
            self.drop_session(key);
            return 0;
        }
        let PublishResult { taken, dropped, is_whole } = client.publish(frames);
        if dropped > 0 {
            self.counters.frames_dropped.add(dropped);
        }
        if !is_whole {
            self.counters.malformed.add(1);
        }
        taken
    }

    /// [`ClientSessions::publish`] for a carrier that offers frames without room again.
    #[inline]
    pub fn offer(&mut self, key: u64, frames: &[u8]) -> OfferResult {
        self.sessions.get_mut(&key).map_or(OfferResult::Refused, |client| client.offer(frames))
    }

    /// Takes a client's report of its own state.
    pub fn note_report(&mut self, key: u64, report: NodeReport) {
        let released_sequence = self.facts.window.released_sequence();
        if let Some(client) = self.sessions.get_mut(&key) {
            let (frames_published, at_ns) = (client.frames_published, client.last_packet_ns);
            client.report = Some(ReceivedReport { report, released_sequence, frames_published, at_ns });
        }
    }

    #[cold]
    fn drop_session(&mut self, key: u64) {
        if let Some(client) = self.sessions.remove(&key) {
            self.dropped.push((key, client.peer));
            self.counters.nodes.set(self.sessions.len() as u64);
        }
    }

    /// Removes a leaving client; returns its address.
    pub fn leave(&mut self, key: u64) -> Option<Peer> {
        let client = self.sessions.remove(&key)?;
        self.counters.nodes.set(self.sessions.len() as u64);
        // A network without nodes is not swept.
        let connection = ConnectionId(client.link.welcome.connection);
        self.status.lock().retain(|node| node.connection != connection);
        Some(client.peer)
    }

    /// Makes published frames visible to the sequencer.
    #[inline]
    pub fn flush(&mut self) {
        for client in self.sessions.values_mut() {
            if std::mem::take(&mut client.is_dirty) && client.link.writer.publish() {
                // Fails only if the counter is full: the sequencer is being woken already.
                let _ = rustix::io::write(&client.link.wake_service, &1u64.to_ne_bytes());
            }
        }
    }

    /// Passes answers to `send`, in packets of at most `packet_length_max` bytes.
    #[inline]
    pub fn answer(&mut self, packet_length_max: usize, mut send: impl FnMut(u64, Peer, &[u8])) -> usize {
        let mut count = 0;
        for (key, client) in &mut self.sessions {
            count += client.answer(*key, packet_length_max, &mut send);
        }
        count
    }

    /// [`ClientSessions::answer`] for one client, at most a ring of frames and headers.
    #[inline]
    pub fn answer_one(&mut self, key: u64, packet_length_max: usize, mut send: impl FnMut(u64, Peer, &[u8])) -> usize {
        self.sessions.get_mut(&key).map_or(0, |client| client.answer(key, packet_length_max, &mut send))
    }

    /// Drops silent nodes and notes the state of all, once per interval and after a session was dropped. Calls `gone`
    /// for nodes dropped since the last sweep.
    pub fn sweep(&mut self, now_ns: u64, mut gone: impl FnMut(u64, Peer)) {
        if now_ns < self.next_sweep_ns && self.dropped.is_empty() {
            return;
        }
        self.next_sweep_ns = now_ns + self.options.heartbeat_interval_ns;
        let silence_ns_max = self.options.heartbeat_interval_ns * SILENT_INTERVALS;
        self.sessions.retain(|key, client| {
            let is_silent = now_ns.saturating_sub(client.last_packet_ns) > silence_ns_max;
            if is_silent {
                tracing::info!(peer = %client.peer, "a node has fallen silent and is forgotten");
                gone(*key, client.peer);
            }
            !is_silent
        });
        for (key, peer) in std::mem::take(&mut self.dropped) {
            // The node may have reconnected.
            if !self.sessions.values().any(|client| client.peer == peer) {
                gone(key, peer);
            }
        }
        self.counters.nodes.set(self.sessions.len() as u64);
        let network = self.network;
        let status = |client: &ClientSession| NodeStatus {
            network,
            username: client.username.clone(),
            peer: client.peer,
            connection: ConnectionId(client.link.welcome.connection),
            report: client.report,
            frames_dropped: client.frames_dropped,
            last_packet_ns: client.last_packet_ns,
        };
        let mut nodes = self.status.lock();
        nodes.retain(|node| node.network != network);
        nodes.extend(self.sessions.values().map(status));
    }

    /// Prepares for sleep: answers wake the agent.
    pub fn arm(&self) {
        self.sessions.values().for_each(|client| client.link.reader.arm());
    }

    pub fn disarm(&self) {
        for client in self.sessions.values() {
            client.link.reader.disarm();
            // Empties the counter; may fail on an empty one.
            let _ = rustix::io::read(&client.link.wake_publisher, &mut [0u8; 8]);
        }
    }

    /// Adds the descriptors that wake this side.
    pub fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.sessions.values().map(|client| client.link.wake_publisher.as_fd()));
    }

    pub fn keys(&self) -> impl Iterator<Item = (u64, Peer)> {
        self.sessions.iter().map(|(key, client)| (*key, client.peer))
    }
}

struct PublishResult {
    taken: usize,
    dropped: u64,
    is_whole: bool,
}

impl ClientSession {
    /// First packet after the hello; true once.
    #[inline]
    pub fn take_is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    #[inline]
    fn publish(&mut self, frames: &[u8]) -> PublishResult {
        let (mut position, mut taken, mut dropped) = (0, 0, 0);
        // A damaged frame counts as lost; in the ring it would spoil those after it.
        while let Ok(frame) = Frame::parse(&frames[position..]).and_then(|frame| frame.verify().map(|()| frame)) {
            let end = position + aligned_length(frame.length());
            let Some(padded) = frames.get(position..end) else { break };
            // A frame without room is resent: a frame after it would only cause a gap.
            if dropped > 0 || self.link.writer.append(padded).is_err() {
                dropped += 1;
            } else {
                taken += 1;
            }
            position = end;
            if position == frames.len() {
                break;
            }
        }
        self.is_dirty |= taken > 0;
        self.frames_published += taken as u64;
        self.frames_dropped += dropped;
        PublishResult { taken, dropped, is_whole: position == frames.len() }
    }

    #[inline]
    fn offer(&mut self, frames: &[u8]) -> OfferResult {
        let mut position = 0;
        while position < frames.len() {
            let frame = Frame::parse(&frames[position..]).and_then(|frame| frame.verify().map(|()| frame));
            let Ok(frame) = frame else { return OfferResult::Refused };
            let end = position + aligned_length(frame.length());
            let Some(padded) = frames.get(position..end) else { return OfferResult::Refused };
            match self.link.writer.append(padded) {
                Ok(()) => {
                    self.is_dirty = true;
                    self.frames_published += 1;
                }
                Err(LogError::Full { .. }) if !self.link.writer.is_reader_closed() => {
                    return OfferResult::Part(position);
                }
                Err(_) => return OfferResult::Refused,
            }
            position = end;
        }
        OfferResult::All
    }

    fn answer(&mut self, key: u64, packet_length_max: usize, send: &mut impl FnMut(u64, Peer, &[u8])) -> usize {
        let mut count = 0;
        let mut packet = Vec::new();
        // Written by the sequencer, in rings of this process.
        while let Ok(Some(length)) = self.link.reader.next_length() {
            let padded = aligned_length(length);
            if packet.is_empty() {
                packet.resize(HEADER_LENGTH, 0);
            } else if packet.len() + padded > packet_length_max {
                finish_answers(&mut packet, key);
                send(key, self.peer, &packet);
                packet.truncate(HEADER_LENGTH);
            }
            let start = packet.len();
            packet.resize(start + padded, 0);
            self.link.reader.copy(&mut packet[start..]);
            self.link.reader.advance(length);
            count += 1;
        }
        if count > 0 {
            finish_answers(&mut packet, key);
            send(key, self.peer, &packet);
            self.link.reader.release();
        }
        count
    }
}
