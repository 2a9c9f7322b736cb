//! [`PeerLink`]: the link to one other member, through all of its connections.

use super::addresses::{PeerAddresses, Resolver};
use super::connection::{ConnectionError, PeerConnection};
use super::content::{MessageContent, ReceivedMessage};
use super::dial::dial;
use super::error::{DisconnectReason, LinkError, LinkEvent, SendError};
use super::handshake::judge;
use super::log_state::{Acknowledgement, LogState};
use super::options::{MemberLinkOptions, PeerOptions};
use super::pending_connections::refuse;
use super::wire;
use super::wire::{Introduction, LinkRefusal, LinkRefusalCode, MemberIdentity, MemberNumber, MessageKind, WireError};
use gapless_transport::sockets::Address;
use gapless_transport::warnings::Warnings;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::ErrorKind;

/// Largest number of messages returned of one peer before the others have their turn.
const MESSAGES_PER_TURN: usize = 256;
/// Largest number of addresses tried at one check because the previous one failed at once.
const DIALS_PER_LOOK: usize = 4;

/// Time without a connection after which a peer that should dial is asked for its reason, ns.
const QUESTION_INTERVAL_NS: u64 = 3_000_000_000;

/// Counters of the link to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Messages given to the connection or its queue.
    pub messages_sent: u64,
    /// Messages dropped because the queue was full.
    pub messages_dropped: u64,
    /// Messages returned to the caller.
    pub messages_received: u64,
    /// Bytes of parts given to the connection or its queue.
    pub bytes_sent: u64,
    /// Bytes of parts returned to the caller.
    pub bytes_received: u64,
    pub connections: u64,
    /// Connections closed because the received bytes were no message.
    pub garbage: u64,
    pub queued_bytes: u64,
}

/// State of the next connection.
#[derive(Debug)]
enum DialState {
    /// The other side connects.
    Listens,
    /// A pause before the next round.
    Waits { until_ns: u64 },
    /// Connecting, or waiting for the welcome.
    UnderWay { connection: Box<PeerConnection>, address: Address, deadline_ns: u64 },
}

/// Result of a check of a dialled connection.
enum DialOutcome {
    Nothing,
    Welcome(Introduction),
    Refusal(LinkRefusal),
    Failed(ConnectionError),
}

#[derive(Debug)]
pub(super) struct PeerLink {
    pub(super) member: MemberNumber,
    pub(super) addresses: PeerAddresses,
    connection: Option<PeerConnection>,
    dial: DialState,
    /// Whether this side dials.
    dials: bool,
    /// Whether the peer connected by itself, and no record has named it a member yet, or given its addresses.
    is_newcomer: bool,
    back_off_ns: u64,
    connected_ns: u64,
    /// Instance of the connected peer.
    instance: u64,
    /// Instance that the peer must have; 0 while it is not known.
    known_instance: u64,
    /// Known acknowledgement of the peer.
    acknowledged: Acknowledgement,
    /// Log state that this side sent in its last introduction.
    reported_log: LogState,
    /// For a peer that dials: time of the next question about its absence.
    next_question_ns: u64,
    last_received_ns: u64,
    last_sent_ns: u64,
    /// Whether the last event taken was [`LinkEvent::Connected`].
    is_reported: bool,
    /// Reason of a [`LinkEvent::Disconnected`] that was not taken yet.
    disconnected: Option<DisconnectReason>,
    /// A refusal that was not taken yet, and whether this side refuses.
    refusal: Option<(LinkRefusal, bool)>,
    statistics: LinkStatistics,
    warnings: Warnings,
}

impl PeerLink {
    pub(super) fn new(own: MemberNumber, peer: &PeerOptions, options: &MemberLinkOptions) -> Result<Self, LinkError> {
        let wrong = |rule| Err(LinkError::Peer { member: peer.member, rule });
        if peer.member == 0 {
            return wrong("0 is no member");
        }
        if peer.member == own {
            return wrong("it is the member itself");
        }
        let dials = own < peer.member;
        if dials && peer.addresses.is_empty() && options.discovery.is_none() {
            return wrong("its number is higher, so that it is to be connected to, but it has no address");
        }
        if !dials && options.listen.is_none() && options.listen_shared.is_none() {
            return wrong("its number is lower, so that it connects, but nothing listens for it");
        }
        Ok(Self::with(peer.member, PeerAddresses::new(peer)?, dials, options))
    }

    /// Creates a peer that connected although this member does not know it.
    pub(super) fn newcomer(member: MemberNumber, options: &MemberLinkOptions) -> Self {
        Self { is_newcomer: true, ..Self::with(member, PeerAddresses::empty(member), false, options) }
    }

    fn with(member: MemberNumber, addresses: PeerAddresses, dials: bool, options: &MemberLinkOptions) -> Self {
        Self {
            member,
            addresses,
            connection: None,
            dial: if dials { DialState::Waits { until_ns: 0 } } else { DialState::Listens },
            dials,
            is_newcomer: false,
            back_off_ns: options.back_off_ns_min,
            connected_ns: 0,
            instance: 0,
            known_instance: 0,
            acknowledged: Acknowledgement::default(),
            reported_log: LogState::default(),
            next_question_ns: 0,
            last_received_ns: 0,
            last_sent_ns: 0,
            is_reported: false,
            disconnected: None,
            refusal: None,
            statistics: LinkStatistics::default(),
            warnings: Warnings::default(),
        }
    }

    pub(super) const fn is_newcomer(&self) -> bool {
        self.is_newcomer
    }

    /// Returns whether it is a newcomer that has disconnected and has no event left.
    pub(super) const fn is_departed_newcomer(&self) -> bool {
        self.is_newcomer && self.connection.is_none() && !self.is_reported && self.refusal.is_none()
    }

    /// Turns a newcomer into the peer `added`; its connection stays.
    pub(super) fn adopt(&mut self, added: Self) {
        let Self { addresses, dial, dials, .. } = added;
        (self.addresses, self.dial, self.dials, self.is_newcomer) = (addresses, dial, dials, false);
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Returns whether a peer with another instance than `instance` is connected as this member.
    pub(super) const fn has_other_instance_than(&self, instance: u64) -> bool {
        self.connection.is_some() && self.instance != instance
    }

    pub(super) const fn instance(&self) -> u64 {
        self.instance
    }

    pub(super) const fn set_known_instance(&mut self, instance: u64) {
        self.known_instance = instance;
    }

    pub(super) const fn set_acknowledged(&mut self, acknowledged: Acknowledgement) {
        self.acknowledged = acknowledged;
    }

    pub(super) const fn reported_log(&self) -> LogState {
        self.reported_log
    }

    /// Creates the introduction of this side's hello or welcome.
    pub(super) fn introduction(&mut self, own: &MemberIdentity, log: LogState) -> Introduction {
        self.reported_log = log;
        Introduction { from: own.clone(), to: self.member, log }
    }

    /// Returns a refusal if this introduction contradicts the peer's earlier instance or acknowledgements.
    pub(super) fn check_instance_and_log(&self, theirs: &Introduction) -> Option<Box<LinkRefusal>> {
        let member = self.member;
        let no = |code, text| Some(Box::new(LinkRefusal::new(code, text)));
        if self.known_instance != 0 && self.known_instance != theirs.from.instance {
            let text = format!(
                "it may have forgotten what it acknowledged; bring back its original directory, no copy, or begin it anew \
                 with an empty directory and a new number: `gapless cluster add --replace {member}`"
            );
            return no(LinkRefusalCode::OtherDirectory, text);
        }
        let (log, Acknowledgement { term, index }) = (theirs.log, self.acknowledged);
        if !log.has_kept(self.acknowledged) {
            let text = format!(
                "entry {index} of term {term}, and it has entry {} and term {}; an older copy of its directory? Run \
                 `gapless cluster add --replace {member}`",
                log.last_index, log.term
            );
            return no(LinkRefusalCode::LostAcknowledged, text);
        }
        None
    }

    pub(super) fn statistics(&self) -> LinkStatistics {
        let queued_bytes = self.connection.as_ref().map_or(0, PeerConnection::unsent) as u64;
        LinkStatistics { queued_bytes, ..self.statistics }
    }

    /// Sends a message; the part that is not accepted now is queued.
    #[inline]
    pub(super) fn send(
        &mut self,
        content: MessageContent,
        consensus: &[u8],
        frames: &[&[u8]],
        queue_bytes_max: usize,
    ) -> Result<(), SendError> {
        let Some(connection) = &mut self.connection else { return Err(SendError::NotConnected) };
        let kind = content.kind();
        let frames_length = frames.iter().map(|part| part.len()).sum();
        let (consensus_length_max, frames_length_max) = kind.lengths_max();
        if consensus.len() > consensus_length_max || frames_length > frames_length_max {
            return Err(SendError::TooLong);
        }
        match connection.send(kind, consensus, frames, frames_length, queue_bytes_max) {
            Ok(true) => {
                self.statistics.messages_sent += 1;
                self.statistics.bytes_sent += (consensus.len() + frames_length) as u64;
                Ok(())
            }
            Ok(false) => {
                self.statistics.messages_dropped += 1;
                Err(SendError::Full)
            }
            Err(broken) => {
                self.close(broken.into());
                Err(SendError::NotConnected)
            }
        }
    }

    #[inline]
    pub(super) fn flush(&mut self) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        match connection.flush() {
            Ok(sent) => usize::from(sent > 0),
            Err(broken) => {
                self.close(broken.into());
                1
            }
        }
    }

    /// Passes the received messages to `take`, after at most one read of the socket. Returns their number.
    #[inline]
    pub(super) fn receive(&mut self, now_ns: u64, take: &mut impl FnMut(ReceivedMessage<'_>)) -> usize {
        // Messages of a connection are returned once its event was taken.
        if !self.is_reported || self.disconnected.is_some() {
            return 0;
        }
        let Some(connection) = &mut self.connection else { return 0 };
        let mut handed = 0;
        let outcome = deliver(self.member, connection, &mut handed, &mut self.statistics, take).and_then(|()| {
            if handed == 0 && connection.read()? {
                deliver(self.member, connection, &mut handed, &mut self.statistics, take)?;
            }
            Ok(())
        });
        if let Err(why) = outcome {
            if let DisconnectReason::Garbage(error) = &why {
                self.statistics.garbage += 1;
                let member = self.member;
                self.warnings.warn(now_ns, || format!("the connection to member {member} is closed: {error}"));
            }
            self.close(why);
        }
        handed
    }

    /// Sends pings, and detects silence. For `gap_ns` of the time since the last call this member did not run.
    pub(super) fn keep_alive(&mut self, now_ns: u64, gap_ns: u64, options: &MemberLinkOptions) {
        let Some(connection) = &mut self.connection else { return };
        connection.socket.check();
        self.last_received_ns = if connection.take_received() { now_ns } else { self.last_received_ns + gap_ns };
        if connection.take_sent() {
            self.last_sent_ns = now_ns;
        }
        if now_ns.saturating_sub(self.last_received_ns) >= options.silence_ns_max {
            self.close(DisconnectReason::Silent { silence_ms: options.silence_ns_max / 1_000_000 });
            return;
        }
        // Queued bytes make a ping unnecessary: they show that this side is alive.
        let is_due = now_ns.saturating_sub(self.last_sent_ns) >= options.ping_interval_ns && connection.unsent() == 0;
        if is_due && let Err(broken) = connection.send(MessageKind::Ping, &[], &[], 0, options.queue_bytes_max) {
            self.close(broken.into());
        }
    }

    /// Announces that the caller is about to sleep; it polls once more before it does.
    pub(super) fn arm(&self) {
        self.connection.iter().for_each(|connection| connection.socket.arm());
    }

    /// Announces that the caller is awake.
    pub(super) fn disarm(&mut self) {
        self.connection.iter_mut().for_each(|connection| connection.socket.disarm());
    }

    /// Frees memory that only a long message needed.
    pub(super) fn shrink(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.shrink();
        }
    }

    /// Installs a new connection.
    pub(super) fn connect(
        &mut self,
        mut connection: PeerConnection,
        instance: u64,
        now_ns: u64,
        options: &MemberLinkOptions,
    ) {
        if self.connection.is_some() {
            self.close(DisconnectReason::Replaced);
        }
        connection.accept_messages(options.receive_buffer_bytes);
        if let Some(detached) = &options.detached_send {
            connection.detach_sending(detached);
        }
        self.connection = Some(connection);
        self.instance = instance;
        self.back_off_ns = options.back_off_ns_min;
        (self.connected_ns, self.last_received_ns, self.last_sent_ns) = (now_ns, now_ns, now_ns);
        self.refusal = None;
        self.statistics.connections += 1;
        tracing::info!(member = self.member, "connected");
    }

    fn close(&mut self, why: DisconnectReason) {
        self.connection = None;
        tracing::info!(member = self.member, %why, "not connected any more");
        if self.is_reported {
            // The first reason is the one that ended the reported connection.
            self.disconnected.get_or_insert(why);
        }
        if let DialState::Waits { until_ns } = &mut self.dial {
            // Immediately, unless the connection was made just now: a peer that is accepted and dropped in turns waits
            // in between.
            *until_ns = self.connected_ns + self.back_off_ns;
        }
    }

    /// Returns the next event; a connection that was never reported has none.
    pub(super) fn next_event(&mut self) -> Option<LinkEvent> {
        if let Some(why) = self.disconnected.take() {
            self.is_reported = false;
            return Some(LinkEvent::Disconnected(self.member, why));
        }
        if let Some((refusal, is_own)) = self.refusal.take() {
            let event = if is_own { LinkEvent::NotWanted } else { LinkEvent::Refused };
            return Some(event(self.member, refusal));
        }
        if self.connection.is_some() && !self.is_reported {
            self.is_reported = true;
            return Some(LinkEvent::Connected(self.member));
        }
        None
    }

    /// Advances the connection that is being made, if this side dials.
    pub(super) fn dial(
        &mut self,
        now_ns: u64,
        options: &MemberLinkOptions,
        own: (&MemberIdentity, LogState),
        resolver: &mut Resolver,
    ) {
        match &mut self.dial {
            // The peer may not know this member any more; then it answers so.
            DialState::Listens => {
                if self.connection.is_some() || self.next_question_ns == 0 {
                    self.next_question_ns = now_ns + QUESTION_INTERVAL_NS;
                } else if now_ns >= self.next_question_ns {
                    self.next_question_ns = now_ns + QUESTION_INTERVAL_NS;
                    self.addresses.begin_round(now_ns, resolver);
                    self.dial_next(now_ns, options, own);
                }
            }
            DialState::Waits { until_ns } => {
                if self.connection.is_none() && now_ns >= *until_ns {
                    self.addresses.begin_round(now_ns, resolver);
                    self.dial_next(now_ns, options, own);
                }
            }
            DialState::UnderWay { connection, address, deadline_ns } => {
                let address = address.clone();
                match read_welcome(connection, now_ns >= *deadline_ns) {
                    DialOutcome::Nothing => {}
                    DialOutcome::Welcome(theirs) => self.handle_welcome(&theirs, &address, now_ns, options, own.0),
                    // A refusal of another member at one address says nothing about the peer's other addresses.
                    DialOutcome::Refusal(refusal) if refusal.code == LinkRefusalCode::OtherMember => {
                        self.note_refusal(refusal, &address, now_ns, false);
                        self.dial_next(now_ns, options, own);
                    }
                    DialOutcome::Refusal(refusal) => {
                        self.note_refusal(refusal, &address, now_ns, false);
                        self.dial = self.dial_at(now_ns + options.back_off_ns_max);
                    }
                    DialOutcome::Failed(broken) => {
                        let is_wrong =
                            matches!(&broken, ConnectionError::System(error) if error.kind() == ErrorKind::InvalidData);
                        let (member, why) = (self.member, DisconnectReason::from(broken));
                        if is_wrong {
                            self.warnings
                                .warn(now_ns, || format!("no connection to member {member} at {address}: {why}"));
                        } else {
                            tracing::debug!(member, %address, %why, "no connection");
                        }
                        self.addresses.note_failure(&address);
                        self.dial_next(now_ns, options, own);
                    }
                }
            }
        }
    }

    /// Tries the next address; after the last one, waits.
    fn dial_next(&mut self, now_ns: u64, options: &MemberLinkOptions, (own, log): (&MemberIdentity, LogState)) {
        for _ in 0..DIALS_PER_LOOK {
            let Some(address) = self.addresses.next() else { break };
            let hello = self.introduction(own, log).to_bytes();
            let dialled = dial(&address, self.member, options).map_err(ConnectionError::from).and_then(|socket| {
                let mut connection = PeerConnection::new(socket);
                connection.send(MessageKind::Hello, &hello, &[], 0, usize::MAX)?;
                Ok(connection)
            });
            match dialled {
                Ok(connection) => {
                    let deadline_ns = now_ns + options.handshake_ns_max;
                    self.dial = DialState::UnderWay { connection: Box::new(connection), address, deadline_ns };
                    return;
                }
                Err(broken) => {
                    let why = DisconnectReason::from(broken);
                    tracing::debug!(member = self.member, %address, %why, "no connection");
                }
            }
        }
        self.dial = self.dial_at(now_ns + self.back_off_ns);
        self.back_off_ns = (self.back_off_ns * 2).min(options.back_off_ns_max);
    }

    /// Judges the introduction of the member that answered.
    fn handle_welcome(
        &mut self,
        theirs: &Introduction,
        address: &Address,
        now_ns: u64,
        options: &MemberLinkOptions,
        own: &MemberIdentity,
    ) {
        let after = self.dial_at(now_ns + options.back_off_ns_max);
        let DialState::UnderWay { mut connection, .. } = std::mem::replace(&mut self.dial, after) else { return };
        let judged = judge(own, theirs, |member| member == self.member);
        match judged.and_then(|()| self.check_instance_and_log(theirs).map_or(Ok(()), Err)) {
            Ok(()) => {
                self.addresses.note_success(address.clone());
                self.connect(*connection, theirs.from.instance, now_ns, options);
            }
            Err(refusal) => {
                // A peer that does not receive the refusal sees the connection closed.
                let _ = refuse(&mut connection, &refusal);
                self.note_refusal(*refusal, address, now_ns, true);
            }
        }
    }

    /// Returns the state of the next round.
    const fn dial_at(&self, until_ns: u64) -> DialState {
        if self.dials { DialState::Waits { until_ns } } else { DialState::Listens }
    }

    fn note_refusal(&mut self, refusal: LinkRefusal, address: &Address, now_ns: u64, is_own: bool) {
        let member = self.member;
        if !self.dials && refusal.code == LinkRefusalCode::WrongSide {
            // The peer was only asked why it does not connect, and it knows this member.
            tracing::debug!(member, %address, "it is there, and has not connected");
            return;
        }
        self.warnings.warn(now_ns, || format!("no connection to member {member} at {address}: {refusal}"));
        self.refusal = Some((refusal, is_own));
    }

    /// Notes the decision on a connection from the peer. A final refusal becomes an event, because the peer may not
    /// connect again.
    pub(super) fn note_judgement(&mut self, judged: &Result<(), Box<LinkRefusal>>) {
        let refusal = judged.as_ref().err().filter(|refusal| refusal.code == LinkRefusalCode::OtherDirectory);
        self.refusal = refusal.map(|refusal| (LinkRefusal::clone(refusal), true)).or_else(|| self.refusal.take());
    }

    /// Returns the latest time of the next check, apart from pings: `soon_ns` while an operation is in progress.
    pub(super) fn deadline_ns(&self, soon_ns: u64) -> Option<u64> {
        if self.disconnected.is_some() || self.refusal.is_some() || (self.connection.is_some() && !self.is_reported) {
            // An event is ready.
            return Some(0);
        }
        match (&self.connection, &self.dial) {
            (Some(connection), _) => connection.has_unsent().then_some(soon_ns),
            (None, DialState::UnderWay { .. }) => Some(soon_ns),
            (None, DialState::Waits { until_ns }) => Some(*until_ns.max(&soon_ns)),
            (None, DialState::Listens) => None,
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let dialled = match &self.dial {
            DialState::UnderWay { connection, .. } => Some(connection.as_fd()),
            _ => None,
        };
        self.connection.iter().map(AsFd::as_fd).chain(dialled)
    }
}

/// Passes the whole messages of the buffer to the caller.
#[inline]
fn deliver(
    from: MemberNumber,
    connection: &mut PeerConnection,
    handed: &mut usize,
    statistics: &mut LinkStatistics,
    take: &mut impl FnMut(ReceivedMessage<'_>),
) -> Result<(), DisconnectReason> {
    while *handed < MESSAGES_PER_TURN {
        let Some(message) = connection.next_message().map_err(DisconnectReason::Garbage)? else { break };
        let Some(content) = MessageContent::from_kind(message.kind) else {
            match message.kind {
                MessageKind::Ping => continue,
                MessageKind::Refusal => {
                    return Err(LinkRefusal::parse(message.consensus)
                        .map_or_else(DisconnectReason::Garbage, DisconnectReason::Refused));
                }
                kind => return Err(DisconnectReason::Garbage(WireError::Kind { found: kind as u8 })),
            }
        };
        *handed += 1;
        statistics.messages_received += 1;
        statistics.bytes_received += (message.consensus.len() + message.frames.len()) as u64;
        take(ReceivedMessage { from, content, consensus: message.consensus, frames: message.frames });
    }
    Ok(())
}

/// Reads once from a connection that waits for its welcome.
fn read_welcome(connection: &mut PeerConnection, is_late: bool) -> DialOutcome {
    connection.socket.check();
    let received = connection.flush().and_then(|_| connection.read());
    let message = match received {
        Ok(_) => connection.next_message(),
        Err(broken) => return DialOutcome::Failed(broken),
    };
    let parsed = match message {
        Ok(Some(message)) => match message.kind {
            MessageKind::Welcome => Introduction::parse(message.consensus).map(DialOutcome::Welcome),
            MessageKind::Refusal => LinkRefusal::parse(message.consensus).map(DialOutcome::Refusal),
            kind => Err(WireError::Kind { found: kind as u8 }),
        },
        Ok(None) if is_late => {
            return DialOutcome::Failed(ConnectionError::System(std::io::ErrorKind::TimedOut.into()));
        }
        Ok(None) => return DialOutcome::Nothing,
        Err(error) => Err(error),
    };
    match parsed {
        Ok(dialled) => dialled,
        Err(WireError::Version { found }) => {
            let text = format!("this member speaks version {}, the other one {found}", wire::VERSION);
            DialOutcome::Refusal(LinkRefusal::new(LinkRefusalCode::OtherVersion, text))
        }
        Err(error) => DialOutcome::Failed(ConnectionError::Wire(error)),
    }
}
