//! `Links`: a member's links to all other members.

use super::addresses::Resolver;
use super::discovery::PeerDiscovery;
use super::error::{LinkError, LinkEvent, SendError};
use super::handshake::judge;
use super::listener::LinkListener;
use super::log_state::{Acknowledgement, LogState};
use super::options::{MemberLinkOptions, PEERS_MAX, PeerOptions};
use super::peer::{LinkStatistics, PeerLink};
use super::pending_connections::{PendingConnections, PendingStatistics};
use super::wire::{Introduction, LinkRefusal, LinkRefusalCode, MemberIdentity, MemberNumber, MessageKind};
use super::{MessageContent, ReceivedMessage};
use gapless_agent::Now;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::net::SocketAddr;

/// Each check costs a system call or two.
const CHECK_INTERVAL_NS: u64 = 200_000;
/// Poll interval of a parked caller while an operation without a descriptor is in progress.
const SOON_NS: u64 = 1_000_000;
const ACCEPTS_PER_CHECK: usize = 16;
const ACCEPT_PAUSE_NS: u64 = 100_000_000;
/// Unused memory of long messages is freed after this time.
const SHRINK_INTERVAL_NS: u64 = 10_000_000_000;

/// A member's links.
///
/// Of two members the one with the lower number dials, so there is never more than one connection between them. Over
/// one connection messages arrive in order and whole; when it breaks, messages in flight are lost, and the sender
/// resends them.
///
/// ```
/// use gapless_agent::Now;
/// use gapless_cluster::link::wire::{ClusterName, MemberIdentity};
/// use gapless_cluster::link::{MessageContent, LinkEvent, MemberLinkOptions, Links, PeerOptions};
///
/// let identity = |member| MemberIdentity {
///     cluster: ClusterName::new("market").unwrap(), stream_id: 5, incarnation: 1, member, instance: member,
/// };
/// let listen = MemberLinkOptions { listen: Some("127.0.0.1:0".parse()?), ..MemberLinkOptions::default() };
/// let mut second = Links::open(listen, identity(2), &[PeerOptions { member: 1, addresses: vec![] }])?;
/// let at = second.local_address().unwrap().to_string();
/// let mut first = Links::open(MemberLinkOptions::default(), identity(1), &[PeerOptions { member: 2, addresses: vec![at] }])?;
///
/// let clock = std::time::Instant::now();
/// let now = || Now { monotonic_ns: clock.elapsed().as_nanos() as u64, epoch_ns: 0 };
/// let mut received = Vec::new();
/// while received.is_empty() {
///     first.poll(now());
///     second.poll(now());
///     if let Some(LinkEvent::Connected(member)) = first.next_event() {
///         first.send(member, MessageContent::Consensus, b"vote for me", &[b"a frame,", b" another"])?;
///     }
///     while second.next_event().is_some() {}
///     second.receive(|message| received.extend_from_slice(message.frames));
/// }
/// assert_eq!(received, b"a frame, another");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Links {
    options: MemberLinkOptions,
    identity: MemberIdentity,
    log: LogState,
    peers: Vec<PeerLink>,
    listeners: Vec<LinkListener>,
    /// Highest number so far: an unknown member up to it was removed, one above may be new. `None`: only peers are
    /// accepted.
    numbers_used: Option<MemberNumber>,
    discovery: Option<PeerDiscovery>,
    pending_connections: PendingConnections,
    resolver: Resolver,
    first: usize,
    now_ns: u64,
    next_check_ns: u64,
    next_accept_ns: u64,
    next_shrink_ns: u64,
}

impl Links {
    /// Opens the configured port and shared-memory socket; polling makes the connections.
    ///
    /// # Errors
    /// Contradictory options, an invalid peer, a port or a socket that cannot be opened.
    pub fn open(
        options: MemberLinkOptions,
        identity: MemberIdentity,
        peers: &[PeerOptions],
    ) -> Result<Self, LinkError> {
        options.validate()?;
        if identity.member == 0 {
            return Err(LinkError::Peer { member: 0, rule: "0 is no member" });
        }
        let listeners = LinkListener::open_all(&options)?;
        let discovery = options.discovery.as_ref().map(PeerDiscovery::open).transpose()?;
        let mut links = Self {
            options,
            identity,
            log: LogState::default(),
            peers: Vec::new(),
            listeners,
            numbers_used: None,
            discovery,
            pending_connections: PendingConnections::default(),
            resolver: Resolver::default(),
            first: 0,
            now_ns: 0,
            next_check_ns: 0,
            next_accept_ns: 0,
            next_shrink_ns: 0,
        };
        for peer in peers {
            links.add_peer(peer)?;
        }
        Ok(links)
    }

    /// Port for members with lower numbers.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(LinkListener::network_address)
    }

    #[must_use]
    pub const fn identity(&self) -> &MemberIdentity {
        &self.identity
    }

    /// Sets both once they are known; earlier connections stay.
    pub const fn set_stream(&mut self, stream_id: u128, incarnation: u64) {
        self.identity.stream_id = stream_id;
        self.identity.incarnation = incarnation;
    }

    /// Adds a member.
    ///
    /// # Errors
    /// A known or invalid peer, or [`PEERS_MAX`] reached.
    pub fn add_peer(&mut self, peer: &PeerOptions) -> Result<(), LinkError> {
        let wrong = |rule| Err(LinkError::Peer { member: peer.member, rule });
        let added = PeerLink::new(self.identity.member, peer, &self.options)?;
        let is_full = self.peers.len() >= PEERS_MAX;
        match self.peers.iter_mut().find(|other| other.member == peer.member) {
            Some(newcomer) if newcomer.is_newcomer() => newcomer.adopt(added),
            Some(_) => return wrong("it is one already"),
            None if is_full => return wrong("there are 64 already"),
            None => self.peers.push(added),
        }
        Ok(())
    }

    /// Closes the link to a member without an event; returns whether there was one.
    pub fn remove_peer(&mut self, member: MemberNumber) -> bool {
        let before = self.peers.len();
        self.peers.retain(|peer| peer.member != member);
        self.first = 0;
        before != self.peers.len()
    }

    /// Sets the highest number given to a member, 0 while none is known. A connecting member up to it that is no peer
    /// is refused as removed; one above that knows the stream is a newcomer until [`Links::add_peer`] gives its
    /// addresses, or it disconnects.
    pub const fn set_numbers_used(&mut self, number: MemberNumber) {
        self.numbers_used = Some(number);
    }

    /// Whether this member was added, and is not a newcomer.
    #[must_use]
    pub fn is_peer(&self, member: MemberNumber) -> bool {
        self.peers.iter().any(|peer| peer.member == member && !peer.is_newcomer())
    }

    /// Instance of a connected member.
    #[must_use]
    pub fn instance(&self, member: MemberNumber) -> Option<u64> {
        let peer = self.peers.iter().find(|peer| peer.member == member);
        peer.filter(|peer| peer.is_connected()).map(PeerLink::instance)
    }

    /// Fixes a member's instance, not 0: a connection with another is refused.
    pub fn set_instance(&mut self, member: MemberNumber, instance: u64) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == member) {
            peer.set_known_instance(instance);
        }
    }

    /// State of this log, sent at each handshake.
    pub const fn set_log(&mut self, log: LogState) {
        self.log = log;
    }

    /// A member with a log below its acknowledgement is refused.
    pub fn set_acknowledged(&mut self, member: MemberNumber, acknowledged: Acknowledgement) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == member) {
            peer.set_acknowledged(acknowledged);
        }
    }

    /// Log state that this side sent at the last handshake with `member`.
    #[must_use]
    pub fn reported_log(&self, member: MemberNumber) -> LogState {
        let peer = self.peers.iter().find(|peer| peer.member == member);
        peer.map_or_else(LogState::default, PeerLink::reported_log)
    }

    /// Other members, newcomers included, in the order of their addition.
    pub fn peers(&self) -> impl Iterator<Item = MemberNumber> {
        self.peers.iter().map(|peer| peer.member)
    }

    #[must_use]
    pub fn is_connected(&self, member: MemberNumber) -> bool {
        self.peers.iter().any(|peer| peer.member == member && peer.is_connected())
    }

    /// Counters of the link to this member.
    #[must_use]
    pub fn statistics(&self, member: MemberNumber) -> Option<LinkStatistics> {
        self.peers.iter().find(|peer| peer.member == member).map(PeerLink::statistics)
    }

    /// Counters of the pending connections.
    #[must_use]
    pub const fn pending_statistics(&self) -> PendingStatistics {
        self.pending_connections.statistics
    }

    /// Sends one message with one system call, without a copy if the connection accepts it; the rest is queued, up to
    /// [`MemberLinkOptions::queue_bytes_max`].
    ///
    /// # Errors
    /// The message was not sent.
    #[inline]
    pub fn send(
        &mut self,
        to: MemberNumber,
        content: MessageContent,
        consensus: &[u8],
        frames: &[&[u8]],
    ) -> Result<(), SendError> {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == to) else {
            return Err(SendError::UnknownMember);
        };
        peer.send(content, consensus, frames, self.options.queue_bytes_max)
    }

    /// Sends queued bytes, and at intervals accepts, dials, shakes hands, pings and detects silence. Returns the work
    /// done.
    #[inline]
    pub fn poll(&mut self, now: Now) -> usize {
        let before_ns = std::mem::replace(&mut self.now_ns, now.monotonic_ns);
        let work: usize = self.peers.iter_mut().map(PeerLink::flush).sum();
        if self.now_ns >= self.next_check_ns {
            let pause_ns = self.now_ns.saturating_sub(before_ns);
            self.check(pause_ns);
        }
        work
    }

    /// Passes received messages to `take`, in place: at most one read of each connection, some messages of each peer in
    /// turn, once [`LinkEvent::Connected`] was taken. Returns their number.
    #[inline]
    pub fn receive(&mut self, mut take: impl FnMut(ReceivedMessage<'_>)) -> usize {
        let (later, first) = self.peers.split_at_mut(self.first);
        let peers = first.iter_mut().chain(later);
        let handed = peers.map(|peer| peer.receive(self.now_ns, &mut take)).sum();
        self.first = if self.first + 1 >= self.peers.len() { 0 } else { self.first + 1 };
        handed
    }

    /// Returns the next event. To be called until `None` after each [`Links::poll`], before [`Links::receive`]. A
    /// connection between two polls is no event, so there are only a few for each peer.
    #[inline]
    pub fn next_event(&mut self) -> Option<LinkEvent> {
        self.peers.iter_mut().find_map(PeerLink::next_event)
    }

    /// Announces a sleep until a descriptor of [`Links::watch`] is readable; poll and receive once more before it.
    pub fn arm(&self) {
        self.peers.iter().for_each(PeerLink::arm);
    }

    /// The caller is awake.
    pub fn disarm(&mut self) {
        self.peers.iter_mut().for_each(PeerLink::disarm);
    }

    /// Adds the descriptors to wake up a caller that has called [`Links::arm`].
    pub fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.listeners.iter().map(AsFd::as_fd));
        descriptors.extend(self.pending_connections.descriptors());
        descriptors.extend(self.peers.iter().flat_map(PeerLink::descriptors));
    }

    /// Monotonic time of the next [`Links::poll`] even if nothing is received, ns.
    #[must_use]
    pub fn next_deadline_ns(&self) -> u64 {
        let soon_ns =
            self.now_ns + if self.pending_connections.is_empty() { self.options.ping_interval_ns } else { SOON_NS };
        let deadlines = self.peers.iter().filter_map(|peer| peer.deadline_ns(self.now_ns + SOON_NS));
        deadlines.fold(soon_ns, u64::min)
    }

    #[cold]
    fn check(&mut self, pause_ns: u64) {
        let now_ns = self.now_ns;
        self.next_check_ns = now_ns + CHECK_INTERVAL_NS;
        self.accept();
        self.take_pending_connections();
        while let Some(answer) = self.resolver.next_answer() {
            if let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == answer.member) {
                peer.addresses.note_resolved(&answer);
            }
        }
        if let Some(discovery) = &mut self.discovery {
            let is_missing = self.peers.iter().any(|peer| !peer.is_connected());
            discovery.poll(now_ns, &self.identity, is_missing, |member, addresses| {
                if let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == member && !peer.is_connected()) {
                    peer.addresses.add_announced(addresses);
                }
            });
        }
        // A paused member did not read its connections, so silence during the pause means nothing.
        let gap_ns = if pause_ns >= self.options.silence_ns_max / 2 { pause_ns } else { 0 };
        for peer in &mut self.peers {
            peer.keep_alive(now_ns, gap_ns, &self.options);
            peer.dial(now_ns, &self.options, (&self.identity, self.log), &mut self.resolver);
        }
        if self.peers.iter().any(PeerLink::is_departed_newcomer) {
            self.peers.retain(|peer| !peer.is_departed_newcomer());
            self.first = 0;
        }
        if now_ns >= self.next_shrink_ns {
            self.next_shrink_ns = now_ns + SHRINK_INTERVAL_NS;
            self.peers.iter_mut().for_each(PeerLink::shrink);
        }
    }

    fn accept(&mut self) {
        if self.now_ns < self.next_accept_ns {
            return;
        }
        for listener in &self.listeners {
            for _ in 0..ACCEPTS_PER_CHECK {
                match listener.accept(&self.options) {
                    Ok(Some((socket, address))) => {
                        self.pending_connections.admit(socket, address, self.now_ns, &self.options)
                    }
                    Ok(None) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                    Err(error) => {
                        tracing::warn!(%error, "no connection of a member can be accepted now");
                        self.next_accept_ns = self.now_ns + ACCEPT_PAUSE_NS;
                        break;
                    }
                }
            }
        }
    }

    fn take_pending_connections(&mut self) {
        while let Some((mut connection, theirs, address)) =
            self.pending_connections.next_member(self.now_ns, &self.options, |theirs| {
                let judged = judge_dialler(&self.identity, &self.peers, self.numbers_used, theirs);
                let is_of = |peer: &&mut PeerLink| peer.member == theirs.from.member;
                self.peers.iter_mut().filter(is_of).for_each(|peer| peer.note_judgement(&judged));
                judged
            })
        {
            let found = self.peers.iter().position(|peer| peer.member == theirs.from.member);
            let at = found.unwrap_or_else(|| {
                self.peers.push(PeerLink::newcomer(theirs.from.member, &self.options));
                self.peers.len() - 1
            });
            let peer = &mut self.peers[at];
            let welcome = peer.introduction(&self.identity, self.log).to_bytes();
            match connection.send(MessageKind::Welcome, &welcome, &[], 0, usize::MAX) {
                Ok(_) => peer.connect(connection, theirs.from.instance, self.now_ns, &self.options),
                Err(broken) => tracing::debug!(member = peer.member, %address, ?broken, "gone before it was welcomed"),
            }
        }
    }
}

fn judge_dialler(
    own: &MemberIdentity,
    peers: &[PeerLink],
    numbers_used: Option<MemberNumber>,
    theirs: &Introduction,
) -> Result<(), Box<LinkRefusal>> {
    let from = &theirs.from;
    let peer = peers.iter().find(|peer| peer.member == from.member);
    let is_later = numbers_used.is_some_and(|used| from.member > used);
    let may_be_new = peer.is_none() && is_later && from.stream_id != 0 && peers.len() < PEERS_MAX;
    judge(own, theirs, |_| peer.is_some() || may_be_new).map_err(|refusal| {
        let is_used = numbers_used.is_some_and(|used| from.member <= used);
        let is_removed = refusal.code == LinkRefusalCode::UnknownMember && is_used;
        let text = || format!("member {} was removed, as member {} knows", from.member, own.member);
        if is_removed { Box::new(LinkRefusal::new(LinkRefusalCode::Removed, text())) } else { refusal }
    })?;
    if let Some(refusal) = peer.and_then(|peer| peer.check_instance_and_log(theirs)) {
        return Err(refusal);
    }
    // A newcomer's addresses are unknown, so this member does not dial it.
    if from.member > own.member && !may_be_new && !peer.is_some_and(PeerLink::is_newcomer) {
        let text = format!("member {} connects to member {}", own.member, from.member);
        return Err(Box::new(LinkRefusal::new(LinkRefusalCode::WrongSide, text)));
    }
    if peer.is_some_and(|peer| peer.has_other_instance_than(from.instance)) {
        let text = format!("another member {} is connected", from.member);
        return Err(Box::new(LinkRefusal::new(LinkRefusalCode::DuplicateIdentity, text)));
    }
    Ok(())
}
